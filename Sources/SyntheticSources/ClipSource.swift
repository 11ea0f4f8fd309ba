public import Capture
public import MediaCore

/// Plays a clip from a file, at the clip's own speed.
///
/// The clip never skips a picture because the file is slow to read: then it plays more slowly. A lower rate that is asked
/// for leaves pictures out; a size goes on to the sinks, and a published track crops and scales to it. The end of the
/// clip comes as `CaptureEvent.finished`, and a file that cannot be read on as `CaptureEvent.failed`; either way the
/// source has stopped. Releasing the last reference stops it, too. May be used from any thread.
public final class ClipSource: CoreCapturer {
    /// What does the capturing.
    public let core: CaptureCore
    /// Always `.file`.
    public var kind: VideoSourceKind { .file }

    /// A source of the pictures that a reader gives.
    ///
    /// - Parameters:
    ///   - makeReader: Opens the clip; called at each start, on the source's thread. What it throws, the start throws.
    ///   - loop: Whether the clip begins again at its end.
    public convenience init(
        reader makeReader: @escaping @Sendable () throws -> any VideoFrameReader,
        loop: Bool = false
    ) {
        self.init(interruptibleReader: { _ in try makeReader() }, loop: loop)
    }

    /// A source of the pictures of a reader that can wait for long, as for a pipe's writer.
    ///
    /// - Parameters:
    ///   - makeReader: As for the other initialiser; its argument tells the reader, on the source's thread, whether it
    ///     is to give up waiting and throw.
    ///   - loop: Whether the clip begins again at its end.
    package init(
        interruptibleReader makeReader:
            @escaping @Sendable (_ isStopRequested: @escaping @Sendable () -> Bool) throws -> any VideoFrameReader,
        loop: Bool = false
    ) {
        core = CaptureCore.painted(threadName: "clip", explainShortage: { SyntheticSourceError($0) }) {
            isStopRequested in
            try ClipPainter(reader: makeReader(isStopRequested), isLooped: loop)
        }
    }

    /// Checks that a clip can be played: that its pictures can be sent, and that there is one.
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
        core.abandon(waiting: true)
    }
}
