public import Capture
public import MediaCore

/// Plays a clip from a file, at the clip's own speed.
///
/// If the file is slow to read, the clip plays more slowly; it never skips a picture for this reason. A request for a
/// lower rate leaves pictures out. A request for a size goes to the sinks: a published track crops and scales to it.
/// The end of the clip is reported as `CaptureEvent.finished`, and a file that cannot be read on as
/// `CaptureEvent.failed`; the source has then stopped. Releasing the last reference also stops it. May be used from any
/// thread.
public final class ClipSource: VideoCapturer, CoreCapturer {
    /// The core that captures for this source.
    package let core: CaptureCore
    /// Always `.file`.
    public var kind: VideoSourceKind { .file }

    /// Creates a source of the pictures that a reader reads.
    ///
    /// - Parameters:
    ///   - makeReader: Opens the clip; called at each start, on the source's thread. The start throws any error that it
    ///     throws.
    ///   - loop: Whether the clip begins again at its end.
    public convenience init(
        reader makeReader: @escaping @Sendable () throws -> any VideoFrameReader,
        loop: Bool = false
    ) {
        self.init(interruptibleReader: { _ in try makeReader() }, loop: loop)
    }

    /// Creates a source for a reader that can wait for long, such as one of a pipe.
    ///
    /// - Parameters:
    ///   - makeReader: As in the other initialiser. Its argument, called on the source's thread, says whether the
    ///     reader must stop waiting and throw.
    ///   - loop: Whether the clip begins again at its end.
    package init(
        interruptibleReader makeReader:
            @escaping @Sendable (_ isStopRequested: @escaping @Sendable () -> Bool) throws -> any VideoFrameReader,
        loop: Bool = false
    ) {
        core = CaptureCore.painted(
            threadName: "clip",
            losesMissedSlots: false,
            explainShortage: { SyntheticSourceError($0) }
        ) { isStopRequested in
            try ClipPainter(reader: makeReader(isStopRequested), isLooped: loop)
        }
    }

    /// Checks that a clip can be played: it has a picture, and its pictures can be sent.
    ///
    /// Reads the first picture, on the caller's thread.
    ///
    /// - Throws: The reader's error, or a `SyntheticSourceError`.
    package static func check(_ reader: any VideoFrameReader) throws {
        let painter = try ClipPainter(reader: reader, isLooped: false)
        let first = FrameAssignment(number: 0, timestamp: MonotonicInstant(nanoseconds: 0), frameRate: reader.frameRate)
        _ = try painter.paint(first)
    }

    deinit {
        core.abandon(waiting: true)
    }
}
