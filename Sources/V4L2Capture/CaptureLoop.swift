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
            let events = session.wait(until: watchdog.deadline, or: stop)
            if stop.isRequested { return }
            guard !events.isEmpty else { throw noFrames }
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
            guard !watchdog.isOver(at: now) else { throw noFrames }
        }
    }

    private mutating func deliver(
        _ newest: FilledBuffer,
        _ captured: CaptureStatistics,
        at now: MonotonicInstant
    ) throws(CameraError) {
        let timestamp = newest.timestamp ?? now
        guard context.admit(captured, newestAt: timestamp) else {
            if context.hasNoSink { watchdog.notWanted() }
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
        watchdog.delivered()
        // Even if the buffer cannot be given back, the frame is there and is delivered.
        let failure = Result<Void, CameraError> { () throws(CameraError) in try session.giveBack(newest) }
        context.deliver(frame)
        try failure.get()
    }

    private var noFrames: CameraError {
        let seconds = watchdog.patience.seconds
        let problem =
            watchdog.damagedInARow == 0
            ? "the camera streams, but no frame came for \(seconds) s; "
                + "plug it in again, or try another port, cable or pixel format"
            : "all frames that came for \(seconds) s, \(watchdog.damagedInARow) in number, were damaged; "
                + "try another pixel format, size, port or cable"
        return CameraError(.noFrames, device: session.path, attempt: "read from", explanation: problem)
    }
}

/// Decides when a streaming camera has failed: when it gives nothing, or only damaged frames, for too long.
///
/// A pure value; the driver passes in the time.
struct CaptureWatchdog {
    /// The longest time for which the camera may deliver nothing.
    let patience: Duration
    /// When the camera counts as failed, unless it gives a frame before.
    private(set) var deadline: MonotonicInstant
    /// The damaged frames since the last delivered one.
    private(set) var damagedInARow = 0
    /// When the first of these damaged frames arrived.
    private var damagedSince: MonotonicInstant?

    /// The frame intervals that may pass without a frame, if this is longer than the patience.
    ///
    /// Cameras at less than a frame a second jitter by a whole interval when they change their exposure.
    private static let fewestIntervals = 3

    /// Creates a watchdog that waits for `patience`, or for three frames of the `interval` if that is longer.
    init(patience: Duration, interval: Duration, start: MonotonicInstant) {
        // A rate that is a driver's error can have an interval of centuries.
        let interval = min(interval, .seconds(3600))
        self.patience = max(patience, interval * Self.fewestIntervals)
        deadline = start + self.patience
    }

    /// Records that the device handed over a frame, whole or not.
    mutating func deviceGave(at now: MonotonicInstant) { deadline = now + patience }

    /// Records that a frame was delivered.
    mutating func delivered() {
        damagedSince = nil
        damagedInARow = 0
    }

    /// Records that no sink wants frames, so that they are not checked.
    mutating func notWanted() { delivered() }

    /// Records that a frame was damaged.
    mutating func damaged(at now: MonotonicInstant) {
        damagedInARow += 1
        damagedSince = damagedSince ?? now
    }

    /// Whether the camera has failed.
    func isOver(at now: MonotonicInstant) -> Bool {
        if now >= deadline { return true }
        // A single damaged frame proves nothing, however long ago it arrived.
        guard let damagedSince, damagedInARow > 1 else { return false }
        return now.duration(since: damagedSince) >= patience
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
