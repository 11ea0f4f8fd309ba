import Capture
import MediaCore
import Threading

extension CaptureLoop {
    /// Goes back to the former camera after `error` if one was just changed to; else, or if that fails too, begins an
    /// outage.
    ///
    /// - Throws: The last error, if the camera is not to be waited for.
    mutating func fallBack(after error: CameraError) throws(CameraError) {
        var reason = error
        if let handover {
            do throws(CameraError) {
                return try takeBack(handover, because: error)
            } catch {
                reason = error
            }
        }
        try beginOutage(reason)
    }

    /// Closes the camera after `error`.
    ///
    /// - Throws: `error`, if the camera is not to be waited for.
    private mutating func beginOutage(_ error: CameraError) throws(CameraError) {
        guard outage.isWaiting, hasWorked else { throw error }
        // Doubles that were plugged in while it worked must not be taken for it.
        plan.selection.device = CameraDirectory(system: plan.system).withDoubles(plan.selection.device)
        note(error)
        closeAside()
    }

    /// Reports the cause of an outage, if it is new.
    mutating func note(_ error: CameraError) {
        lastFailure = error
        if outage.failed(error.code, at: plan.system.now) { context.interrupted(by: error) }
    }

    /// Delivers slates until the camera can be opened again, or a stop is requested.
    ///
    /// - Throws: The last reason why it cannot be opened, once the wait is over.
    mutating func reopen() throws(CameraError) {
        var notifier: NodeNotifier?
        while !stop.isRequested, session == nil {
            let now = plan.system.now
            if outage.isOver(at: now) {
                leaveStuckThreads()
                throw givenUp()
            }
            deliverSlate(at: now)
            if let opening {
                if opening.isDone(within: Self.breath) { finish(opening) }
            } else if closing?.isDone(within: Self.breath) ?? true {
                endClosing()
                if outage.isAttemptDue(at: now) { beginOpening() } else { waitForNextLook(by: &notifier) }
            }
            if session != nil { return }
            do throws(CameraError) {
                try applyChanges()
            } catch {
                // The second of two changes failed, and left the camera of the first one closed.
                try fallBack(after: error)
            }
        }
    }

    private mutating func beginOpening() {
        let (plan, context, readable) = (plan, context, readable)
        let open: @Sendable () -> Result<CaptureSession, CameraError> = {
            Result { () throws(CameraError) in try Self.open(plan, context, readable, for: context.wanted) }
        }
        do throws(ThreadShortage) {
            opening = try SideThread(name: "camera-open", open)
        } catch {
            take(open())
        }
    }

    private mutating func finish(_ opened: SideThread<Result<CaptureSession, CameraError>>) {
        opening = nil
        take(opened.result())
    }

    /// Goes on with the camera that was opened, or notes why it was not.
    private mutating func take(_ opened: Result<CaptureSession, CameraError>) {
        switch opened {
        case .success(let session): begin(session)
        case .failure(let error): note(error)
        }
    }

    /// Waits until the next look at the camera or the next slate, or until its node's access changes.
    private mutating func waitForNextLook(by notifier: inout NodeNotifier?) {
        if outage.lacksAccess, notifier?.isWatching != true {
            notifier = plan.system.makeNodeNotifier()
            outage.isAccessTold = notifier != nil
        }
        if outage.lacksAccess, let notifier {
            if notifier.wait(until: outage.nextDeadline, or: stop) { outage.accessChanged(at: plan.system.now) }
        } else {
            plan.system.sleep(until: outage.nextDeadline, or: stop)
        }
    }

    mutating func begin(_ opened: CaptureSession) {
        report(opened)
        session = opened
        negotiated = opened.negotiated
        requiredDimensions = context.required.dimensions
        let (interval, now) = (negotiated.frameRate.interval, plan.system.now)
        watchdog = CaptureWatchdog(patience: plan.patience, interval: interval, start: now)
        stamps = TimestampCheck(interval: interval, start: now, after: lastInstant)
        context.note(negotiated.videoFormat)
        limitOutput()
    }

    private func givenUp() -> CameraError {
        let waited = "no picture came within \((plan.outageLimit ?? .zero).seconds) s"
        if let lastFailure, lastFailure.code != .noSuchDevice { return lastFailure.adding(waited) }
        let advice = "the camera went away and did not come back; plug it in again and look at its cable and power"
        return CameraError(.deviceLost, device: path, attempt: "read from", explanation: "\(advice); \(waited)")
    }

    /// Delivers a slate of the size of the camera's frames, if one is due.
    mutating func deliverSlate(at now: MonotonicInstant) {
        guard outage.isWaiting, let began = outage.began, outage.takeSlate(at: now) else { return }
        var captured = CaptureStatistics()
        captured.countCaptured(at: now)
        captured.framesSubstituted = 1
        guard context.admit(captured, newestAt: now, pacedRate: CameraOutage.slateRate) else { return }
        converter.requestedDimensions = outputDimensions
        let seconds = Int(now.duration(since: began).seconds)
        let text = ["No picture", plan.selection.device.name, "for \(seconds) s"]
        let size = converter.outputDimensions(for: negotiated.delivered.dimensions)
        var frame = converter.frame(ofUpright: slate.paint(text, dimensions: size), timestamp: now)
        frame.isSubstitute = true
        lastInstant = now
        stamps.substituted(at: now)
        context.deliver(frame)
    }
}
