import Capture
import MediaCore
import Threading

extension CaptureLoop {
    /// A change that is made, but since which no good frame has come.
    struct Handover {
        var change: CameraSelection.Change
        /// The camera to go back to if none comes.
        var former: CameraSelection
        /// The request to go back to; `nil` if it was not changed.
        var replaced: ReplacedRequest?
        /// When the last frame before it was captured.
        var last: MonotonicInstant?
    }

    /// Carries out what callers asked for.
    ///
    /// - Throws: An error of the present camera, which a change that failed had closed.
    mutating func applyChanges() throws(CameraError) {
        stop.settle()
        while !stop.isRequested, let change = plan.selection.nextChange() {
            do throws(CameraError) {
                try apply(change)
            } catch {
                // The changes that are left come later; their wakes may be gone.
                stop.wake()
                throw error
            }
        }
    }

    /// Changes to another camera, or to another format of the same.
    ///
    /// The new camera is opened, and has a frame ready, while the present one goes on. Where that is not possible,
    /// because it is the same camera or the bus has no room for two, the present one is closed first, and opened again
    /// if the new one cannot be.
    private mutating func apply(_ change: CameraSelection.Change) throws(CameraError) {
        // It may be the camera to change to; and if not, it is not wanted any more.
        abandonOpening()
        let isOpen = session != nil
        var opened: CaptureSession?
        do throws(CameraError) {
            let selection = plan.selection.target(of: change)
            guard let next = try open(selection, for: context.wanted(for: change.request)) else {
                return change.answer(.failure(CancellationError()))
            }
            opened = next
            try overlap(with: next)
            guard !stop.isRequested else { return change.answer(.failure(CancellationError())) }
            handOver(to: next, selection, change)
        } catch {
            change.answer(.failure(error))
            if opened != nil { closeAside(HandedOver(opened.take())) }
            guard isOpen, session == nil, !stop.isRequested else { return }
            try beginAgain()
        }
    }

    private mutating func handOver(
        to opened: CaptureSession,
        _ selection: CameraSelection,
        _ change: CameraSelection.Change
    ) {
        var next = Handover(change: change, former: plan.selection.copy, last: lastInstant)
        if let handover {
            // Nothing came of that change: the camera before it is the last that worked.
            next.former = handover.former
            next.replaced = handover.replaced
            endHandover(with: .failure(CancellationError()))
        }
        if let request = change.request { next.replaced = context.replaceRequest(request, after: next.replaced) }
        handover = next
        plan.selection.adopt(selection)
        // The new camera has its patience for the first frame, however long the former one has been gone.
        outage.reprieve()
        closeAside()
        begin(opened)
    }

    /// Opens the camera to change to; closes the present one before if both cannot be open.
    ///
    /// - Returns: The camera; `nil` if a stop was requested before the present one was closed.
    /// - Throws: Why it cannot be opened. The present one then goes on, unless it was closed.
    private mutating func open(
        _ selection: CameraSelection,
        for wanted: VideoFormatRequest
    ) throws(CameraError) -> CaptureSession? {
        while !selection.device.isSameCamera(as: plan.selection.device) {
            do throws(CameraError) {
                return try openBeside(selection, for: wanted)
            } catch {
                if isFormerInTheWay(of: selection, error) {
                    finishClosing()
                    continue
                }
                guard error.code == .noBandwidth || isSiblingInTheWay(of: selection, error) else { throw error }
            }
            break
        }
        closeAside()
        finishClosing()
        if stop.isRequested { return nil }
        var target = plan
        target.selection = selection
        return try openAside(target, for: wanted)
    }

    /// Whether the camera cannot be opened because one that is being closed is still open: it may be the same one, or
    /// take the bandwidth of the bus.
    private func isFormerInTheWay(of selection: CameraSelection, _ error: CameraError) -> Bool {
        guard closing != nil else { return false }
        return error.code == .noBandwidth
            || error.code == .busy && plan.system.holder(of: selection.device.path) == nil
    }

    /// Whether the camera is busy because the present one, another node of the same device, is open.
    ///
    /// A camera that another program has stays busy, and the present one is not closed for it.
    private func isSiblingInTheWay(of selection: CameraSelection, _ error: CameraError) -> Bool {
        guard error.code == .busy, session != nil else { return false }
        let (camera, present) = (selection.device, plan.selection.device)
        guard !camera.busInfo.isEmpty, camera.busInfo == present.busInfo else { return false }
        return plan.system.holder(of: camera.path) == nil
    }

    /// Waits until `opened` has a frame, while the present camera goes on.
    private mutating func overlap(with opened: CaptureSession) throws(CameraError) {
        let limit = plan.system.now + plan.patience
        while session != nil, !stop.isRequested {
            let events = opened.wait(until: plan.system.now + .milliseconds(10), or: stop)
            if events.contains(.readable) { return }
            // Further changes wait in the selection; their wakes would end each wait at once.
            if events.contains(.stopped) { stop.settle() }
            if let reason = opened.reasonForSilence(events) { throw reason }
            let now = plan.system.now
            guard now < limit else { throw noFirstFrame(of: opened) }
            goOn(until: now)
        }
    }

    private func noFirstFrame(of opened: CaptureSession) -> CameraError {
        CameraError(
            .noFrames,
            device: opened.path,
            attempt: "change to",
            explanation:
                "the camera streams, but no frame came for \(plan.patience.seconds) s; the other camera goes on"
        )
    }

    /// Goes back to the camera before the change that `error` ended, before its first good frame.
    ///
    /// - Throws: Why that camera cannot be opened.
    mutating func takeBack(_ taken: Handover, because error: CameraError) throws(CameraError) {
        handover = nil
        outage.endReprieve()
        closeAside()
        plan.selection.adopt(taken.former)
        // A request that was made since the change stays.
        if let replaced = taken.replaced { context.takeBack(replaced) }
        taken.change.answer(.failure(error))
        try beginAgain()
    }

    private mutating func beginAgain() throws(CameraError) {
        finishClosing()
        if stop.isRequested { return }
        begin(try openAside(plan))
    }

    /// Tells the caller of a change how it ended, once the new camera has given a frame, or cannot any more.
    mutating func endHandover(with result: Result<Void, any Error>) {
        guard let handover else { return }
        self.handover = nil
        outage.endReprieve()
        handover.change.answer(
            result.map {
                guard let last = handover.last, let lastInstant else { return .zero }
                return max(.zero, lastInstant.duration(since: last))
            }
        )
    }
}

// MARK: - Aside

/// A driver takes up to a second to open or close a camera, and many if its device is stuck. Threads of their own wait
/// for it, while the present camera goes on or slates come.
extension CaptureLoop {
    /// How long a thread is waited for before the next look at what is due.
    static var breath: Duration { .milliseconds(10) }

    /// Opens a camera that is not the present one, while that one goes on.
    private mutating func openBeside(
        _ selection: CameraSelection,
        for wanted: VideoFormatRequest
    ) throws(CameraError) -> CaptureSession {
        let (system, readable) = (plan.system, readable)
        return try aside { () throws(CameraError) in
            try CaptureSession(selection, system, request: wanted, readable: readable)
        }
    }

    /// Opens the camera of `plan` for `wanted`, or for what is wanted now.
    mutating func openAside(
        _ plan: Plan,
        for wanted: VideoFormatRequest? = nil
    ) throws(CameraError) -> CaptureSession {
        let (context, readable) = (context, readable)
        return try aside { () throws(CameraError) in
            try Self.open(plan, context, readable, for: wanted ?? context.wanted)
        }
    }

    private mutating func aside(
        _ open: @escaping @Sendable () throws(CameraError) -> CaptureSession
    ) throws(CameraError) -> CaptureSession {
        let opening: SideThread<Result<CaptureSession, CameraError>>
        // It ends the wait for the present camera.
        let waiting = session == nil ? nil : stop
        do throws(ThreadShortage) {
            opening = try SideThread(name: "camera-open") {
                waiting?.wake()
            } _: {
                Result { () throws(CameraError) in try open() }
            }
        } catch {
            return try open()
        }
        while !opening.isDone, !stop.isRequested { goOn(while: opening) }
        return try opening.result().get()
    }

    /// Begins to close the present camera.
    mutating func closeAside() {
        if session != nil { closeAside(HandedOver(session.take())) }
    }

    private mutating func closeAside(_ former: HandedOver<CaptureSession?>) {
        closeAside { _ = former.take() }
    }

    private mutating func closeAside(_ close: @escaping @Sendable () -> Void) {
        let earlier = closing
        do throws(ThreadShortage) {
            closing = try SideThread(name: "camera-close") {
                close()
                earlier?.result()
            }
        } catch {
            close()
        }
    }

    /// Lets the camera be closed that is being opened, as soon as it is open.
    mutating func abandonOpening() {
        guard let abandoned = opening.take() else { return }
        closeAside { _ = abandoned.result() }
    }

    /// Leaves a driver that opens or closes a camera, and does not return from that, to its thread: the camera is closed as
    /// soon as the driver returns.
    mutating func leaveStuckThreads() {
        abandonOpening()
        if closing?.isDone(within: Self.breath) == false { closing = nil }
    }

    /// Goes on for a moment while `thread` works.
    private mutating func goOn<Value>(while thread: SideThread<Value>) {
        guard session == nil else { return goOn(until: plan.system.now + Self.breath) }
        deliverSlate(at: plan.system.now)
        _ = thread.isDone(within: Self.breath)
    }

    /// Captures from the present camera until `deadline`, while another one is opened or has no frame yet.
    private mutating func goOn(until deadline: MonotonicInstant) {
        deliverSlate(at: plan.system.now)
        // One that fails goes anyway.
        if !captures(until: deadline) { closeAside() }
    }

    /// Takes what comes from the present camera until `deadline`; `false` if that has failed.
    ///
    /// Nothing but `session` holds the camera after this, so that another thread can close it.
    private mutating func captures(until deadline: MonotonicInstant) -> Bool {
        guard let session else { return true }
        let events = session.wait(until: deadline, or: stop)
        // Further changes wait in the selection; their wakes would end each wait at once.
        if events.contains(.stopped) { stop.settle() }
        if events.isDisjoint(with: [.readable, .failed, .gone]) { return true }
        do throws(CameraError) {
            try take(from: session, after: events)
            return true
        } catch {
            return false
        }
    }

    /// Waits until the former camera is closed; its bandwidth and its node are free then.
    ///
    /// Meanwhile the present camera goes on. Without one it is an outage, once that takes as long as viewers notice.
    private mutating func finishClosing() {
        guard closing != nil else { return }
        let patienceEnd = plan.system.now + watchdog.interruption
        // The present camera may go meanwhile, and is then closed as well.
        while let closing, !closing.isDone, !stop.isRequested {
            let now = plan.system.now
            if session == nil, !outage.isOn, outage.isWaiting, hasWorked, now >= patienceEnd { note(slowClosing) }
            goOn(while: closing)
        }
        endClosing()
    }

    /// Waits for the thread that closes the former camera.
    mutating func endClosing() {
        closing?.result()
        closing = nil
    }

    private var slowClosing: CameraError {
        CameraError(
            .noFrames,
            device: path,
            attempt: "read from",
            explanation: "the camera before the last change takes long to close; it goes on by itself after that"
        )
    }
}

extension CaptureDevice {
    /// Whether both describe the same camera.
    ///
    /// The number of a node is not enough: after unplugging, another camera may have it.
    func isSameCamera(as other: CaptureDevice) -> Bool {
        guard name == other.name else { return false }
        guard let hardware, let theirs = other.hardware else { return path == other.path && busInfo == other.busInfo }
        guard hardware.isSameDevice(as: theirs) else { return false }
        if lastPlace == other.lastPlace { return true }
        // Without a serial number, a camera in another port may be any of its model.
        guard hardware.serialNumber != nil, sighting?.hasDouble != true, other.sighting?.hasDouble != true else {
            return false
        }
        return path == other.path || hardware.place == theirs.place
    }
}
