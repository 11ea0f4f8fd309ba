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

    let plan: Plan
    let context: CaptureContext
    let stop: StopSignal
    let converter: any CapturedFrameConverter
    /// The pixel formats that the converter reads in the driver's buffers.
    let readable: Set<PixelFormat>
    /// The open camera; `nil` while it is gone.
    var session: CaptureSession?
    /// The format of the last session.
    var negotiated: NegotiatedFormat
    /// The size that the sinks required when the session began.
    var requiredDimensions: Dimensions?
    /// The most that is delivered while nothing is requested.
    var limits: VideoFormatRequest
    var watchdog: CaptureWatchdog
    var stamps: TimestampCheck
    var outage: CameraOutage
    var damage = DamageNotice()
    /// What the camera that was opened last could not be set to.
    private var reportedSettings: [CameraError] = []
    /// Why the present or last outage lasts.
    var lastFailure: CameraError?
    let slate = SlatePainter()
    /// When the last frame or slate was captured.
    var lastInstant: MonotonicInstant?
    /// Whether a good frame has come since the start: a camera that never worked is not waited for.
    var hasWorked = false
    /// The change of cameras that waits for its first frame.
    var handover: Handover?
    /// Opens the camera again during an outage.
    var opening: SideThread<Result<CaptureSession, CameraError>>?
    /// Closes the former camera, or one before it.
    var closing: SideThread<Void>?

    /// Opens the camera, captures until a stop is requested, and closes it.
    ///
    /// - Throws: `CameraError`. After `opened` it is a failure of the source.
    static func run(_ plan: Plan, _ context: CaptureContext) throws(CameraError) {
        let stop: StopSignal
        do {
            stop = try StopSignal()
        } catch {
            throw CameraError(error, device: plan.selection.device.path, isOpen: false) { nil }
        }
        context.whenStopRequested { stop.request() }
        plan.selection.begin(stop)
        defer { plan.selection.end() }
        var loop = try CaptureLoop(plan, context, stop)
        defer {
            loop.endHandover(with: .failure(CancellationError()))
            loop.abandonOpening()
            loop.endClosing()
        }
        context.opened(loop.negotiated.videoFormat)
        while !loop.stop.isRequested {
            do throws(CameraError) {
                try loop.capture()
            } catch {
                try loop.fallBack(after: error)
                try loop.reopen()
            }
        }
    }

    private init(_ plan: Plan, _ context: CaptureContext, _ stop: StopSignal) throws(CameraError) {
        self.plan = plan
        self.context = context
        self.stop = stop
        let converter = plan.makeConverter()
        self.converter = converter
        readable = PixelFormat.readDirectly.filter { converter.accepts($0.converterFormat) }
        outage = CameraOutage(limit: plan.outageLimit)
        let opened = try Self.open(plan, context, readable, for: context.wanted)
        session = opened
        negotiated = opened.negotiated
        requiredDimensions = context.required.dimensions
        let (interval, now) = (opened.negotiated.frameRate.interval, plan.system.now)
        watchdog = CaptureWatchdog(patience: plan.patience, interval: interval, start: now)
        stamps = TimestampCheck(interval: interval, start: now)
        limits = VideoFormatRequest()
        report(opened)
        limitOutput()
    }

    /// Opens the camera for `wanted`; where the bus is full, as compressed pictures.
    static func open(
        _ plan: Plan,
        _ context: CaptureContext,
        _ readable: Set<PixelFormat>,
        for wanted: VideoFormatRequest
    ) throws(CameraError) -> CaptureSession {
        var request = wanted
        do throws(CameraError) {
            return try CaptureSession(plan.selection, plan.system, request: request, readable: readable)
        } catch {
            guard error.code == .noBandwidth, request.pixelFormat == nil else { throw error }
            request.pixelFormat = .mjpeg
            guard let session = try? CaptureSession(plan.selection, plan.system, request: request, readable: readable)
            else { throw error }
            context.warn(error.adding("it is captured as MJPG instead"))
            return session
        }
    }

    /// Reports what the camera could not be set to when it was opened; the same is reported once in a row.
    mutating func report(_ session: CaptureSession) {
        defer { reportedSettings = session.refusedSettings }
        for error in session.refusedSettings where !reportedSettings.contains(error) { context.warn(error) }
    }

    // MARK: Capturing

    private mutating func capture() throws(CameraError) {
        while !stop.isRequested, session != nil {
            if try step() { try applyChanges() }
        }
    }

    /// Waits for the driver and does what is due then; `true` if a caller asks for a change instead.
    ///
    /// Nothing but `session` may hold the camera after this, so that a change can close it.
    private mutating func step() throws(CameraError) -> Bool {
        guard let session else { return false }
        let deadline = min(outage.nextSlate ?? watchdog.nextDeadline, watchdog.nextDeadline)
        let events = session.wait(until: deadline, or: stop)
        if stop.isRequested { return false }
        if events.contains(.stopped) { return true }
        if !events.isEmpty { try take(from: session, after: events) }
        let now = plan.system.now
        guard !watchdog.isOver(at: now), !(outage.isWaiting && outage.isOver(at: now)) else {
            throw noFrames(at: now, advice: "plug it in again, or try another port, cable, size or pixel format")
        }
        switch watchdog.change(at: now) {
        case .interrupted:
            let limit = outage.timeLeft(at: now) ?? watchdog.timeLeft(at: now)
            note(noFrames(at: now, advice: goesOn(within: min(limit, watchdog.timeLeft(at: now)))))
        case .noFramesYet where !outage.isOn:
            context.noFramesCaptured(because: noFrames(at: now, advice: goesOn(within: watchdog.timeLeft(at: now))))
        case .interruptionEnded, .noFramesYet, nil: break
        }
        if let count = damage.due(at: now) { context.warn(damagedFrames(count)) }
        deliverSlate(at: now)
        return false
    }

    /// Takes what the driver has, and delivers the newest good frame, which ends an outage and a change.
    mutating func take(from session: CaptureSession, after events: NodeEvents) throws(CameraError) {
        let lastGood = watchdog.lastGood
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
        guard watchdog.lastGood != lastGood else { return }
        hasWorked = true
        if outage.recovered(at: now) { context.interruptionEnded() }
        endHandover(with: .success(()))
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
        converter.requestedDimensions = outputDimensions
        let frame: VideoFrame
        do {
            frame = try session.frame(of: newest, at: timestamp, by: converter)
        } catch {
            context.drop(.corrupt)
            damage.noted(1, at: now)
            watchdog.damaged(at: now)
            return try session.giveBack(newest)
        }
        watchdog.delivered(at: now)
        // Even if the buffer cannot be given back, the frame is there and is delivered.
        let failure = Result<Void, CameraError> { () throws(CameraError) in try session.giveBack(newest) }
        tellOfLimits()
        context.deliver(frame)
        try failure.get()
    }

    /// The size of the frames, before other steps; `nil` for the camera's.
    var outputDimensions: Dimensions? {
        if let dimensions = context.request.dimensions { return dimensions }
        return context.openingRequest.dimensions == nil ? requiredDimensions ?? limits.dimensions : nil
    }

    /// Limits what is delivered unless more is requested.
    mutating func limitOutput() {
        let former = limits
        limits = DefaultOutput.limit(negotiated.videoFormat, wanted: context.required)
        context.limitRate(to: limits.frameRate)
        tellOfLimits(areNew: limits != former)
    }

    /// Says that less is delivered than the camera gives, once a sink gets less because of it.
    private func tellOfLimits(areNew: Bool = false) {
        guard areNew || limits != VideoFormatRequest() else { return }
        let inForce = DefaultOutput.limit(negotiated.videoFormat, wanted: context.wanted)
        guard context.takeLimitNotice(of: inForce, areNew: areNew) else { return }
        let format = VideoFormat(
            dimensions: negotiated.delivered.dimensions,
            frameRate: negotiated.frameRate,
            pixelFormat: negotiated.videoFormat.pixelFormat
        )
        context.warn(
            CameraError(
                .formatLimited,
                device: path,
                attempt: "deliver all of",
                explanation: DefaultOutput.explanation(of: inForce, format)
            )
        )
    }

    private func goesOn(within limit: Duration) -> String {
        "it goes on by itself if it delivers again within \(limit.inTenths) s"
    }

    private func noFrames(at now: MonotonicInstant, advice: String) -> CameraError {
        let silence = now.duration(since: watchdog.silentSince).inTenths
        let problem =
            watchdog.damagedInARow == 0
            ? "the camera streams, but no frame came for \(silence) s"
            : "all frames that came for \(silence) s, \(watchdog.damagedInARow) in number, were damaged"
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

    var path: String { session?.path ?? plan.selection.device.path }
}

extension Duration {
    /// The seconds, rounded to tenths for people.
    fileprivate var inTenths: Double { (seconds * 10).rounded() / 10 }
}
