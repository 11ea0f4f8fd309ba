public import MediaCore

/// Plays a clip from a file, at the clip's own speed.
///
/// The clip never skips a picture because the file is slow to read: then it plays more slowly.
///
/// Dropping the last reference stops it, too: within the drop, or, when the sink drops it while it takes a frame, right
/// after that frame. May be used from any thread.
public final class ClipSource: VideoCapturer {
    private let capture: PacedCapture

    /// A source of the pictures that a reader gives.
    ///
    /// - Parameters:
    ///   - makeReader: Opens the clip; called at each start, on the source's thread. What it throws, the start throws.
    ///   - loop: Whether the clip begins again at its end.
    ///   - whenFinished: Called on the source's thread, at most once per start, when the clip is over (with `nil`) or
    ///     cannot be read on; the source has stopped by then. Not called when `stopCapture` comes first.
    public convenience init(
        reader makeReader: @escaping @Sendable () throws -> any VideoFrameReader,
        loop: Bool = false,
        whenFinished: @escaping @Sendable ((any Error)?) -> Void = { _ in }
    ) {
        self.init(interruptibleReader: { _ in try makeReader() }, loop: loop, whenFinished: whenFinished)
    }

    /// A source of the pictures that a reader gives which can wait for long, as for a pipe's writer.
    ///
    /// - Parameters:
    ///   - makeReader: As for the other initialiser; its argument tells the reader, on the source's thread, whether it
    ///     is to give up waiting and throw.
    ///   - loop: Whether the clip begins again at its end.
    ///   - whenFinished: As for the other initialiser.
    package init(
        interruptibleReader makeReader:
            @escaping @Sendable (_ isStopRequested: @escaping @Sendable () -> Bool) throws -> any VideoFrameReader,
        loop: Bool = false,
        whenFinished: @escaping @Sendable ((any Error)?) -> Void = { _ in }
    ) {
        capture = PacedCapture(
            threadName: "clip",
            makePainter: { run in
                try ClipPainter(reader: makeReader { run.isStopRequested }, isLooped: loop)
            },
            whenFinished: whenFinished
        )
    }

    /// Sees whether a clip can be played: that its pictures can be sent, and that there is one.
    ///
    /// Reads the first picture, on the caller's thread.
    ///
    /// - Throws: What the reader throws, or a `SyntheticSourceError`.
    package static func check(_ reader: any VideoFrameReader) throws {
        let painter = try ClipPainter(reader: reader, isLooped: false)
        let first = FrameAssignment(number: 0, timestamp: MonotonicInstant(nanoseconds: 0), frameRate: reader.frameRate)
        _ = try painter.paint(first)
    }

    deinit {
        capture.abandon()
    }

    /// Where frames go: held from start to stop, and not kept alive otherwise.
    ///
    /// May be changed at any time, from any thread.
    public var sink: (any VideoSink)? {
        get { capture.sink }
        set { capture.sink = newValue }
    }

    /// Always `false`.
    public var isScreencast: Bool { false }

    /// Asks for another rate, in force from the next frame on.
    ///
    /// A lower rate leaves pictures out. Size and pixel format are of no effect here. The request goes on to the sink, at
    /// once and at each start: a published track crops and scales the pictures to the size.
    public func requestOutputFormat(_ request: VideoFormatRequest) {
        capture.requestOutputFormat(request)
    }

    /// Opens the clip and starts to play it from its first picture; starting twice does nothing.
    ///
    /// - Throws: What the reader's closure throws, or a `SyntheticSourceError` (`unusableSize`, `outOfResources`).
    public func startCapture() async throws {
        try await capture.start()
    }

    /// Stops within a frame interval; no frame is delivered after it returns.
    ///
    /// Stopping twice does nothing.
    public func stopCapture() async {
        await capture.stop()
    }

    /// What is being delivered; `nil` before the first picture.
    public var captureFormat: VideoFormat? { capture.format }

    /// What has been captured since the start; a slot that was missed counts as captured and as dropped `late`.
    public var captureStatistics: CaptureStatistics { capture.statistics }
}
