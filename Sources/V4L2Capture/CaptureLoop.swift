import Capture
import MediaCore
import Threading

/// The work of a camera's thread from start to stop.
///
/// It captures until the camera fails, delivers slates while there is no picture, and opens the camera again.
struct CaptureLoop {
    /// The inputs of a run.
    struct Plan: Sendable {
        /// The camera, which callers may change.
        var selection: CameraSelection
        var system: any CameraSystem
        var patience: Duration
        /// How long to wait for a camera that is gone; `nil` for ever.
        var outageLimit: Duration?
        var makeConverter: @Sendable () -> any CapturedFrameConverter
    }

    private let plan: Plan
    private let context: CaptureContext
    private let stop: StopSignal
    private let converter: any CapturedFrameConverter
    /// The open camera; `nil` while it is gone.
    private var session: CaptureSession?
    /// The format of the last session.
    private var negotiated: NegotiatedFormat
    /// The size that was requested before the session began.
    private var wishedDimensions: Dimensions?
    private var watchdog: CaptureWatchdog
    private var stamps: TimestampCheck
    private var outage: CameraOutage
    private var damage = DamageNotice()
    /// Why the present or last outage lasts.
    private var lastFailure: CameraError?
    private let slate = SlatePainter()
    /// When the last frame or slate was captured.
    private var lastInstant: MonotonicInstant?
    /// Whether a good frame has come since the start: a camera that never worked is not waited for.
    private var hasWorked = false

    /// Opens the camera, captures until a stop is requested, and closes it.
    ///
    /// - Throws: `CameraError`. After `opened` it is a failure of the source.
    static func run(_ plan: Plan, _ context: CaptureContext) throws(CameraError) {
        var loop = try CaptureLoop(plan, context)
        context.opened(loop.negotiated.videoFormat)
        while !loop.stop.isRequested {
            do throws(CameraError) {
                try loop.capture()
            } catch {
                try loop.beginOutage(error)
                try loop.reopen()
            }
        }
    }

    private init(_ plan: Plan, _ context: CaptureContext) throws(CameraError) {
        self.plan = plan
        self.context = context
        let stop: StopSignal
        do {
            stop = try StopSignal()
        } catch {
            throw CameraError(error, device: plan.selection.device.path, isOpen: false) { nil }
        }
        context.whenStopRequested { stop.request() }
        self.stop = stop
        converter = plan.makeConverter()
        outage = CameraOutage(limit: plan.outageLimit)
        let opened = try Self.open(plan, context, converter)
        Self.report(opened, context)
        session = opened
        negotiated = opened.negotiated
        wishedDimensions = context.wanted.dimensions
        let (interval, now) = (opened.negotiated.frameRate.interval, plan.system.now)
        watchdog = CaptureWatchdog(patience: plan.patience, interval: interval, start: now)
        stamps = TimestampCheck(interval: interval, start: now)
    }

    /// Opens the camera for what is wanted now; where the bus is full, as compressed pictures.
    private static func open(
        _ plan: Plan,
        _ context: CaptureContext,
        _ converter: any CapturedFrameConverter
    ) throws(CameraError) -> CaptureSession {
        var request = context.wanted
        do throws(CameraError) {
            return try CaptureSession(plan.selection, system: plan.system, request: request, converter: converter)
        } catch {
            guard error.code == .noBandwidth, request.pixelFormat == nil else { throw error }
            request.pixelFormat = .mjpeg
            guard
                let session = try? CaptureSession(
                    plan.selection,
                    system: plan.system,
                    request: request,
                    converter: converter
                )
            else { throw error }
            context.warn(error.adding("it is captured as MJPG instead"))
            return session
        }
    }

    /// Reports what the camera could not be set to when it was opened.
    private static func report(_ session: CaptureSession, _ context: CaptureContext) {
        for error in session.refusedSettings { context.warn(error) }
    }

    // MARK: Capturing

    private mutating func capture() throws(CameraError) {
        while !stop.isRequested {
            guard let session else { return }
            let deadline = outage.nextSlate.map { min($0, watchdog.nextDeadline) } ?? watchdog.nextDeadline
            let events = session.wait(until: deadline, or: stop)
            if stop.isRequested { return }
            let lastGood = watchdog.lastGood
            if !events.isEmpty { try take(from: session, after: events) }
            let now = plan.system.now
            if watchdog.lastGood != lastGood, outage.recovered(at: now) { context.interruptionEnded() }
            guard !watchdog.isOver(at: now), !(outage.isWaiting && outage.isOver(at: now)) else {
                throw noFrames(for: watchdog.patience, isOver: true)
            }
            switch watchdog.change(at: now) {
            case .interrupted: note(noFrames(for: watchdog.interruption, isOver: false))
            case .noFramesYet where !outage.isOn:
                context.noFramesCaptured(because: noFrames(for: watchdog.interruption * 2, isOver: false))
            case .interruptionEnded, .noFramesYet, nil: break
            }
            if let count = damage.due(at: now) { context.warn(damagedFrames(count)) }
            deliverSlate(at: now)
        }
    }

    private mutating func take(from session: CaptureSession, after events: NodeEvents) throws(CameraError) {
        var captured = CaptureStatistics()
        let newest: FilledBuffer?
        do {
            newest = try session.takeNewest(counting: &captured, stamps: &stamps)
        } catch {
            context.count(captured)
            throw error
        }
        let now = plan.system.now
        damage.noted(captured.framesDropped[.corrupt], at: now)
        if captured.framesCaptured > 0 {
            watchdog.deviceGave(at: now)
        } else if let reason = session.reasonForSilence(events) {
            throw reason
        }
        if let newest {
            try deliver(newest, of: session, captured, at: now)
        } else {
            context.count(captured)
            if captured.framesCaptured > 0 { watchdog.damaged(at: now) }
        }
        if watchdog.lastGood != nil { hasWorked = true }
    }

    private mutating func deliver(
        _ newest: FilledBuffer,
        of session: CaptureSession,
        _ captured: CaptureStatistics,
        at now: MonotonicInstant
    ) throws(CameraError) {
        let timestamp = newest.timestamp ?? now
        lastInstant = timestamp
        guard context.admit(captured, newestAt: timestamp) else {
            watchdog.notWanted(hasSink: !context.hasNoSink, at: now)
            return try session.giveBack(newest)
        }
        converter.requestedDimensions = context.request.dimensions ?? wishedDimensions
        let frame: VideoFrame
        do {
            frame = try session.frame(of: newest, at: timestamp)
        } catch {
            context.drop(.corrupt)
            damage.noted(1, at: now)
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
        return CameraError(.noFrames, device: path, attempt: "read from", explanation: "\(problem); \(advice)")
    }

    private func damagedFrames(_ count: Int) -> CameraError {
        CameraError(
            .damagedFrames,
            device: path,
            attempt: count == 1 ? "use a frame of" : "use \(count) frames of",
            explanation: "the data came damaged and was left out; a few at the start are usual, but if it goes on, try "
                + "another port or cable, a smaller size, or another pixel format"
        )
    }

    private var path: String { session?.path ?? plan.selection.device.path }
}

// MARK: - Outages

extension CaptureLoop {
    /// Closes the camera after `error`.
    ///
    /// - Throws: `error`, if the camera is not to be waited for.
    private mutating func beginOutage(_ error: CameraError) throws(CameraError) {
        guard outage.isWaiting, hasWorked else { throw error }
        note(error)
        session = nil
    }

    /// Counts and reports the cause of an outage, if it is new.
    private mutating func note(_ error: CameraError) {
        var counts = CaptureStatistics()
        counts.interruptions = outage.isOn ? 0 : 1
        context.count(counts)
        lastFailure = error
        if outage.failed(error.code, at: plan.system.now) { context.interrupted(by: error) }
    }

    /// Delivers slates until the camera can be opened again, or a stop is requested.
    ///
    /// - Throws: The last reason why it cannot be opened, once the wait is over.
    private mutating func reopen() throws(CameraError) {
        while !stop.isRequested {
            let now = plan.system.now
            if outage.isOver(at: now) { throw givenUp() }
            deliverSlate(at: now)
            if outage.isAttemptDue(at: now) {
                do throws(CameraError) {
                    return try begin(Self.open(plan, context, converter))
                } catch {
                    note(error)
                }
            }
            plan.system.sleep(until: outage.nextDeadline, or: stop)
        }
    }

    private mutating func begin(_ opened: CaptureSession) {
        Self.report(opened, context)
        session = opened
        negotiated = opened.negotiated
        wishedDimensions = context.wanted.dimensions
        let (interval, now) = (negotiated.frameRate.interval, plan.system.now)
        watchdog = CaptureWatchdog(patience: plan.patience, interval: interval, start: now)
        stamps = TimestampCheck(interval: interval, start: now, after: lastInstant)
        context.note(negotiated.videoFormat)
    }

    private func givenUp() -> CameraError {
        let waited = "no picture came within \((plan.outageLimit ?? .zero).seconds) s"
        if let lastFailure, lastFailure.code != .noSuchDevice { return lastFailure.adding(waited) }
        let advice = "the camera went away and did not come back; plug it in again and look at its cable and power"
        return CameraError(.deviceLost, device: path, attempt: "read from", explanation: "\(advice); \(waited)")
    }

    /// Delivers a slate of the size of the camera's frames, if one is due.
    private mutating func deliverSlate(at now: MonotonicInstant) {
        guard outage.isWaiting, let began = outage.began, outage.takeSlate(at: now) else { return }
        var captured = CaptureStatistics()
        captured.countCaptured(at: now)
        captured.framesSubstituted = 1
        guard context.admit(captured, newestAt: now, pacedRate: CameraOutage.slateRate) else { return }
        converter.requestedDimensions = context.request.dimensions ?? wishedDimensions
        let seconds = Int(now.duration(since: began).seconds)
        let text = ["No picture", plan.selection.device.name, "for \(seconds) s"]
        let size = converter.outputDimensions(for: negotiated.delivered.dimensions)
        var frame = VideoFrame(buffer: slate.paint(text, dimensions: size), timestamp: now)
        frame.isSubstitute = true
        lastInstant = now
        stamps.substituted(at: now)
        context.deliver(frame)
    }
}
