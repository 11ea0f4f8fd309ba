import Capture
import MediaCore

extension CaptureLoop {
    /// A change that is carried out, except that no good frame has come since.
    struct Handover {
        var change: CameraSelection.Change
        /// The camera to go back to if none comes.
        var former: CameraSelection
        /// The request to go back to; `nil` if it was not changed.
        var formerRequest: VideoFormatRequest?
        /// When the last frame before it was captured.
        var last: MonotonicInstant?
    }

    /// Carries out what callers asked for.
    ///
    /// - Throws: An error of the present camera, which a change that failed had closed.
    mutating func carryOutChanges() throws(CameraError) {
        stop.settle()
        while !stop.isRequested, let change = plan.selection.nextChange() { try carryOut(change) }
    }

    /// Changes to another camera, or to another format of the same.
    ///
    /// The new camera is opened, and has a frame ready, before the present one is closed. Where that is not possible,
    /// because it is the same camera or the bus has no room for two, the present one is closed first, and opened again if
    /// the new one cannot be.
    private mutating func carryOut(_ change: CameraSelection.Change) throws(CameraError) {
        let isOpen = session != nil
        do throws(CameraError) {
            let selection = plan.selection.target(of: change)
            let opened = try open(selection, for: context.wanted(for: change.request))
            try overlap(with: opened)
            guard !stop.isRequested else { return change.answer(.failure(CancellationError())) }
            handOver(to: opened, selection, change)
        } catch {
            change.answer(.failure(error))
            guard isOpen, session == nil else { return }
            try beginAgain()
        }
    }

    private mutating func handOver(
        to opened: CaptureSession,
        _ selection: CameraSelection,
        _ change: CameraSelection.Change
    ) {
        var next = Handover(change: change, former: plan.selection.copy, last: lastInstant)
        if change.request != nil { next.formerRequest = context.request }
        if let handover {
            // Nothing came of that change: the camera before it is the last that worked.
            next.former = handover.former
            next.formerRequest = handover.formerRequest ?? next.formerRequest
            endHandover(with: .failure(CancellationError()))
        }
        handover = next
        if let request = change.request { context.replaceRequest(request) }
        plan.selection.adopt(selection)
        begin(opened)
    }

    /// Opens the camera to change to; closes the present one before if both cannot be open.
    private mutating func open(
        _ selection: CameraSelection,
        for wanted: VideoFormatRequest
    ) throws(CameraError) -> CaptureSession {
        var target = plan
        target.selection = selection
        if !selection.device.isSameCamera(as: plan.selection.device) {
            do throws(CameraError) {
                return try CaptureSession(selection, system: plan.system, request: wanted, converter: converter)
            } catch {
                guard [.busy, .noBandwidth].contains(error.code) else { throw error }
            }
        }
        session = nil
        return try Self.open(target, context, converter, for: wanted)
    }

    /// Waits until `opened` has a frame, while the present camera goes on.
    private mutating func overlap(with opened: CaptureSession) throws(CameraError) {
        let limit = plan.system.now + plan.patience
        while let session, !stop.isRequested {
            let events = opened.wait(until: plan.system.now + .milliseconds(10), or: stop)
            if events.contains(.readable) { return }
            // Further changes wait in the selection; their wakes would end each wait at once.
            if events.contains(.stopped) { stop.settle() }
            if let reason = opened.reasonForSilence(events) { throw reason }
            let now = plan.system.now
            guard now < limit else { throw noFirstFrame(of: opened) }
            deliverSlate(at: now)
            let present = session.wait(until: now, or: stop)
            if present.isDisjoint(with: [.readable, .failed, .gone]) { continue }
            do throws(CameraError) {
                try take(from: session, after: present)
            } catch {
                // It goes anyway.
                self.session = nil
            }
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
        session = nil
        plan.selection.adopt(taken.former)
        if let request = taken.formerRequest { context.replaceRequest(request) }
        taken.change.answer(.failure(error))
        try beginAgain()
    }

    private mutating func beginAgain() throws(CameraError) {
        begin(try Self.open(plan, context, converter, for: context.wanted))
    }

    /// Tells the caller of a change how it ended, once the new camera has given a frame, or cannot any more.
    mutating func endHandover(with result: Result<Void, any Error>) {
        guard let handover else { return }
        self.handover = nil
        handover.change.answer(
            result.map {
                guard let last = handover.last, let lastInstant else { return .zero }
                return max(.zero, lastInstant.duration(since: last))
            }
        )
    }
}

extension CaptureDevice {
    /// Whether both are the same camera, as far as can be told from their descriptions.
    ///
    /// The number of a node is not enough: after unplugging, another camera may have it.
    func isSameCamera(as other: CaptureDevice) -> Bool {
        guard name == other.name else { return false }
        guard let hardware, let theirs = other.hardware else { return path == other.path && busInfo == other.busInfo }
        return hardware.isAtSamePlace(as: theirs) || (path == other.path && hardware.isSameDevice(as: theirs))
    }
}
