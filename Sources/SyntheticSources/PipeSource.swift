public import Capture
package import MediaCore
import Threading

/// Shows the pictures that another program writes, each as it comes.
///
/// The program's pictures count as captured when they arrive: a `ClipSource` would show them at its own pace, behind a
/// program that is faster, or after a standstill, and never make up for it. Where a newer picture waits already, the
/// one before it is left out and counted as dropped `late`; one in each of the stated intervals is shown in any case. A
/// program that does not keep to its stated rate is shown at up to 60 pictures a second, or that rate if it is higher.
///
/// The end of the pictures is reported as `CaptureEvent.finished`, and data that cannot be read as
/// `CaptureEvent.failed`; the source has then stopped. Releasing the last reference also stops it. May be used from any
/// thread.
public final class PipeSource: VideoCapturer, CoreCapturer {
    /// The core that captures for this source.
    package let core: CaptureCore
    /// What the pictures show.
    public let kind: VideoSourceKind
    /// Whether the pictures show a screen.
    public var isScreencast: Bool { kind == .screen }

    /// Creates a source of the pictures that a reader reads.
    ///
    /// - Parameters:
    ///   - kind: What the pictures show.
    ///   - makeReader: Opens the pipe; called at each start, on the source's thread. Its argument says whether the
    ///     reader must stop waiting and throw. The start throws any error that it throws.
    package init(
        kind: VideoSourceKind,
        interruptibleReader makeReader:
            @escaping @Sendable (_ isStopRequested: @escaping @Sendable () -> Bool) throws -> any VideoFrameReader
    ) {
        self.kind = kind
        core = CaptureCore(threadName: "pipe", explainShortage: { SyntheticSourceError($0) }) { context in
            let reader = try makeReader { context.isStopRequested }
            try PipeReading(reader: reader.withUsableSize(), context: context).run()
        }
    }

    deinit {
        core.abandon(waiting: true)
    }
}

/// The work of a `PipeSource`'s thread.
private struct PipeReading {
    let reader: any VideoFrameReader
    let context: CaptureContext

    /// Reads and delivers until a stop is requested or the program has no more pictures.
    func run() throws {
        let (dimensions, rate) = (reader.dimensions, reader.frameRate)
        let format = VideoFormat(dimensions: dimensions, frameRate: rate, pixelFormat: .i420)
        let pool = VideoBufferPool()
        var count = 0
        /// When the first of the pictures came that were left out since the last one was shown.
        var firstLate: MonotonicInstant?
        context.limitRate(to: rate.framesPerSecond < 60 ? FrameRate(60) : rate)
        context.opened(format)
        while !context.isStopRequested {
            let buffer = pool.take(dimensions)
            guard try reader.readFrame(into: buffer) else { break }
            let now = MonotonicClock.now
            count += 1
            var captured = CaptureStatistics()
            captured.countCaptured(at: now)
            if reader.isNextFrameWaiting, now.duration(since: firstLate ?? now) < rate.interval {
                firstLate = firstLate ?? now
                captured.framesDropped[.late] = 1
                context.count(captured)
                continue
            }
            firstLate = nil
            guard context.admit(captured, newestAt: now) else { continue }
            context.deliver(VideoFrame(buffer: buffer, timestamp: now))
        }
        guard count > 0 || context.isStopRequested else {
            throw SyntheticSourceError(code: .emptyClip, dimensions: dimensions)
        }
    }
}

extension VideoFrameReader {
    /// The reader itself, if its pictures can be sent.
    ///
    /// - Throws: A `SyntheticSourceError` if they cannot.
    func withUsableSize() throws(SyntheticSourceError) -> Self {
        guard dimensions == dimensions.codable else {
            throw SyntheticSourceError(code: .unusableSize, dimensions: dimensions)
        }
        return self
    }
}
