public import MediaCore
package import Threading

/// A source that paints its pictures at a steady rate: the base of custom sources.
///
/// Frames are due at absolute instants, so the rate does not drift. A frame that could not be painted in time is
/// skipped; it counts as captured and as dropped `late`. Frame numbers continue after a restart.
///
/// Releasing the last reference stops the source, at the latest after the frame that is being painted. If a sink
/// releases it while it takes a frame, the source stops right after that frame. May be used from any thread.
public final class PacedSource: VideoCapturer, CoreCapturer {
    /// The core that captures for this source.
    package let core: CaptureCore
    /// What the source shows.
    public let kind: VideoSourceKind
    /// Whether the pictures show a screen.
    public let isScreencast: Bool

    /// Creates a source that shows the pictures of a painter.
    ///
    /// - Parameters:
    ///   - kind: What the source shows.
    ///   - isScreencast: Whether the pictures show a screen, where detail matters more than frame rate; by default what
    ///     `kind` says.
    ///   - makePainter: Called at each start, on the source's thread. The start throws any error that it throws.
    public init(
        kind: VideoSourceKind = .other,
        isScreencast: Bool? = nil,
        painter makePainter: @escaping @Sendable () throws -> any FramePainter
    ) {
        self.kind = kind
        self.isScreencast = isScreencast ?? (kind == .screen)
        core = CaptureCore.painted(threadName: "paced source") { _ in try makePainter() }
    }

    /// Creates a source of pictures of one size, painted into buffers that are reused.
    ///
    /// - Parameters:
    ///   - dimensions: The size of the pictures, changed to the nearest size that can be coded.
    ///   - frameRate: 0.1 to 240 pictures a second; other values are changed to the nearest of these.
    ///   - kind: What the source shows.
    ///   - paint: Paints one picture over the old content of `buffer`, on the source's thread; `false` ends the source.
    public convenience init(
        dimensions: Dimensions,
        frameRate: FrameRate,
        kind: VideoSourceKind = .other,
        paint: @escaping @Sendable (_ buffer: VideoBuffer, _ assignment: FrameAssignment) throws -> Bool
    ) {
        self.init(kind: kind) {
            ClosurePainter(dimensions: dimensions.codable, frameRate: frameRate, body: paint)
        }
    }

    deinit {
        core.abandon(waiting: true)
    }
}

private final class ClosurePainter: FramePainter {
    let dimensions: Dimensions
    let frameRate: FrameRate
    private let body: (VideoBuffer, FrameAssignment) throws -> Bool
    private let pool = VideoBufferPool()

    init(
        dimensions: Dimensions,
        frameRate: FrameRate,
        body: @escaping (VideoBuffer, FrameAssignment) throws -> Bool
    ) {
        self.dimensions = dimensions
        self.frameRate = frameRate
        self.body = body
    }

    func paint(_ assignment: FrameAssignment) throws -> VideoBuffer? {
        let buffer = pool.take(dimensions)
        return try body(buffer, assignment) ? buffer : nil
    }
}

extension CaptureCore {
    /// Makes the core of a source whose thread paints a picture whenever one is due.
    ///
    /// Depth of the hand-over to the sinks: none, it is a call. Drop rule: a slot that is missed by an interval or more
    /// is skipped, and counted as captured and as `late`.
    ///
    /// - Parameters:
    ///   - threadName: At most 15 bytes.
    ///   - losesMissedSlots: Whether a missed slot is a picture that is lost. Otherwise, as with a clip, it comes later,
    ///     and nothing is counted.
    ///   - explainShortage: Makes the error of a start when the system has no thread for it.
    ///   - makePainter: Called on the thread at each start. Its argument says whether a stop was requested.
    /// - Returns: The core.
    package static func painted(
        threadName: String,
        losesMissedSlots: Bool = true,
        explainShortage: @escaping @Sendable (ThreadShortage) -> any Error = { CaptureError($0) },
        makePainter: @escaping @Sendable (_ isStopRequested: @escaping @Sendable () -> Bool) throws -> any FramePainter
    ) -> CaptureCore {
        let numbers = Monitor<UInt32>(0)
        return CaptureCore(threadName: threadName, explainShortage: explainShortage) { context in
            let painter = try makePainter { context.isStopRequested }
            context.opened(nil)
            let loop = PaintingLoop(
                painter: painter,
                losesMissedSlots: losesMissedSlots,
                context: context,
                numbers: numbers
            )
            try loop.run()
        }
    }
}

/// The work of a painted source's thread.
private struct PaintingLoop {
    let painter: any FramePainter
    let losesMissedSlots: Bool
    let context: CaptureContext
    /// The number of the next frame, which continues from start to start.
    let numbers: Monitor<UInt32>

    /// Paints and delivers until a stop is requested or the painter has no more pictures.
    func run() throws {
        var schedule = SlotSchedule(rate: painter.frameRate, start: MonotonicClock.now)
        while waitForSlot(of: &schedule) {
            let now = MonotonicClock.now
            let slots = schedule.takeSlot(at: now)
            let missed = losesMissedSlots ? slots : 0
            schedule.change(to: rate, at: now)
            let number = numbers.withLock { next in
                let number = next &+ UInt32(truncatingIfNeeded: missed)
                next = number &+ 1
                return number
            }
            var captured = CaptureStatistics()
            captured.framesCaptured = missed
            captured.framesDropped[.late] = missed
            captured.countCaptured(at: now)
            guard !context.hasNoSink else {
                _ = context.admit(captured, newestAt: now)
                continue
            }
            let assignment = FrameAssignment(
                number: number,
                timestamp: now,
                dimensions: requestedDimensions,
                frameRate: schedule.rate
            )
            guard let buffer = try painter.paint(assignment) else { return }
            context.note(VideoFormat(dimensions: buffer.dimensions, frameRate: schedule.rate, pixelFormat: .i420))
            guard context.admit(captured, newestAt: now, pacedRate: schedule.rate) else { continue }
            context.deliver(VideoFrame(buffer: buffer, timestamp: now, metadata: painter.metadata))
        }
    }

    /// Waits until the next slot is due; returns `false` when a stop is requested.
    private func waitForSlot(of schedule: inout SlotSchedule) -> Bool {
        // A clip was told how long its picture lasts, and goes on by as much.
        guard losesMissedSlots else { return context.wait(until: schedule.nextDeadline) }
        return context.wait(for: &schedule, at: { rate })
    }

    /// The painter's rate, or a lower one if no sink takes as many pictures.
    private var rate: FrameRate { slower(painter.frameRate, context.highestRate) }

    /// The requested size, or the size that the sinks require if it is smaller than the painter's own.
    private var requestedDimensions: Dimensions? {
        if let requested = context.request.dimensions { return requested }
        return context.wanted.dimensions.flatMap { $0.area < painter.dimensions.area ? $0 : nil }
    }

    /// The lower of two rates; the comparison cannot overflow.
    private func slower(_ rate: FrameRate, _ wanted: FrameRate?) -> FrameRate {
        guard let wanted, wanted.framesPerSecond < rate.framesPerSecond else { return rate }
        return wanted
    }
}

/// Why a source could not begin to capture.
public struct CaptureError: CodedError, Hashable, Sendable, CustomStringConvertible {
    /// What went wrong and what to do about it.
    public let description: String
    /// The name of the kind of failure; the system has no thread left.
    public let codeName = "outOfResources"

    package init(_ shortage: ThreadShortage) {
        description = "The source cannot be started: \(shortage)."
    }
}
