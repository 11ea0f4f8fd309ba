import Capture
import MediaCore
import Threading

/// The work of a camera's thread from start to stop.
struct CaptureLoop {
    /// The inputs of a run.
    struct Plan: Sendable {
        var device: CaptureDevice
        var system: any CameraSystem
        var patience: Duration
        var makeConverter: @Sendable () -> any CapturedFrameConverter
    }

    private let plan: Plan
    private let context: CaptureContext
    private let stop: StopSignal
    private let session: CaptureSession
    /// The size that was requested before the start.
    private let wishedDimensions: Dimensions?
    private var watchdog: CaptureWatchdog
    private var stamps: TimestampCheck

    /// Opens the camera, captures until a stop is requested, and closes it.
    ///
    /// - Throws: `CameraError`. After `opened` it is a failure of the source.
    static func run(_ plan: Plan, _ context: CaptureContext) throws(CameraError) {
        var loop = try CaptureLoop(plan, context)
        context.opened(loop.session.negotiated.videoFormat)
        try loop.capture()
    }

    private init(_ plan: Plan, _ context: CaptureContext) throws(CameraError) {
        self.plan = plan
        self.context = context
        let stop: StopSignal
        do {
            stop = try StopSignal()
        } catch {
            throw CameraError(error, device: plan.device.path, isOpen: false) { nil }
        }
        context.whenStopRequested { stop.request() }
        self.stop = stop
        let wanted = context.wanted
        wishedDimensions = wanted.dimensions
        session = try CaptureSession(
            device: plan.device,
            system: plan.system,
            request: wanted,
            converter: plan.makeConverter()
        )
        let interval = session.negotiated.frameRate.interval
        let now = plan.system.now
        watchdog = CaptureWatchdog(patience: plan.patience, interval: interval, start: now)
        stamps = TimestampCheck(interval: interval, start: now)
    }

    private mutating func capture() throws(CameraError) {
        while !stop.isRequested {
            let events = session.wait(until: watchdog.nextDeadline, or: stop)
            if stop.isRequested { return }
            if !events.isEmpty { try take(after: events) }
            let now = plan.system.now
            guard !watchdog.isOver(at: now) else { throw noFrames(for: watchdog.patience, isOver: true) }
            switch watchdog.change(at: now) {
            case .interrupted: context.interrupted(by: noFrames(for: watchdog.interruption, isOver: false))
            case .interruptionEnded: context.interruptionEnded()
            case nil: break
            }
        }
    }

    private mutating func take(after events: NodeEvents) throws(CameraError) {
        var captured = CaptureStatistics()
        let newest: FilledBuffer?
        do {
            newest = try session.takeNewest(counting: &captured, stamps: &stamps)
        } catch {
            context.count(captured)
            throw error
        }
        let now = plan.system.now
        if captured.framesCaptured > 0 {
            watchdog.deviceGave(at: now)
        } else if let reason = session.reasonForSilence(events) {
            throw reason
        }
        if let newest {
            try deliver(newest, captured, at: now)
        } else {
            context.count(captured)
            if captured.framesCaptured > 0 { watchdog.damaged(at: now) }
        }
    }

    private mutating func deliver(
        _ newest: FilledBuffer,
        _ captured: CaptureStatistics,
        at now: MonotonicInstant
    ) throws(CameraError) {
        let timestamp = newest.timestamp ?? now
        guard context.admit(captured, newestAt: timestamp) else {
            watchdog.notWanted(hasSink: !context.hasNoSink, at: now)
            return try session.giveBack(newest)
        }
        session.requestedDimensions = context.request.dimensions ?? wishedDimensions
        let frame: VideoFrame
        do {
            frame = try session.frame(of: newest, at: timestamp)
        } catch {
            context.drop(.corrupt)
            watchdog.damaged(at: now)
            return try session.giveBack(newest)
        }
        watchdog.delivered(at: now)
        // Even if the buffer cannot be given back, the frame is there and is delivered.
        let failure = Result<Void, CameraError> { () throws(CameraError) in try session.giveBack(newest) }
        context.deliver(frame)
        try failure.get()
    }

    private func noFrames(for time: Duration, isOver: Bool) -> CameraError {
        let problem =
            watchdog.damagedInARow == 0
            ? "the camera streams, but no frame came for \(time.seconds) s"
            : "all frames that came for \(time.seconds) s, \(watchdog.damagedInARow) in number, were damaged"
        let advice =
            isOver
            ? "plug it in again, or try another port, cable, size or pixel format"
            : "it goes on by itself if it delivers again within \(watchdog.patience.seconds) s"
        return CameraError(.noFrames, device: session.path, attempt: "read from", explanation: "\(problem); \(advice)")
    }
}

/// Replaces a driver's timestamps that cannot be true.
///
/// A pure value; the driver passes in the time.
struct TimestampCheck {
    /// How far a timestamp may lie before the end of the last look at the driver's queue.
    ///
    /// A frame that was not filled by then was captured later, except for the time from its exposure to the hand-over.
    /// That time is 20 to 80 ms for USB cameras (measured, uvcvideo), and up to the interval for a slow exposure. One
    /// second is ample.
    private let tolerance: Duration
    /// When the driver's queue was last seen empty.
    private var emptiedAt: MonotonicInstant
    private var lastStamp: MonotonicInstant?
    private var lastInstant: MonotonicInstant?

    /// Creates a check for a stream that begins at `start`, with frames at `interval`.
    init(interval: Duration, start: MonotonicInstant) {
        tolerance = max(.seconds(1), min(interval, .seconds(3600)) * 2)
        emptiedAt = start
    }

    /// When the frame was captured, and whether that is `now`, the time at which it was taken, instead of its
    /// timestamp.
    ///
    /// A timestamp up to a tolerance in the future is changed to the present: some drivers stamp a frame with the time
    /// at which it should be shown (vivid: up to an interval ahead). Instants never go back.
    mutating func instant(
        for stamp: MonotonicInstant?,
        takenAt now: MonotonicInstant
    ) -> (instant: MonotonicInstant, isReplaced: Bool) {
        let isTrue = stamp.map { stamp in
            stamp >= emptiedAt - tolerance && stamp <= now + tolerance && lastStamp.map { stamp >= $0 } ?? true
        }
        lastStamp = stamp ?? lastStamp
        let judged = isTrue == true ? min(stamp ?? now, now) : now
        let instant = min(max(judged, lastInstant ?? judged), now)
        lastInstant = instant
        return (instant, isTrue != true)
    }

    /// Records that the driver has no filled buffer left.
    mutating func emptied(at now: MonotonicInstant) { emptiedAt = now }
}
