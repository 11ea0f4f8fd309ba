import MediaCore
import RoomProtocol

extension UplinkController {
    /// Takes an input in; answers `decide` and nothing else.
    ///
    /// A time before the last one counts as the last one.
    mutating func apply(_ input: UplinkInput, at time: Int64) -> FrameDecision? {
        // Threads that read the clock one after the other may come in the other order; logs may say anything.
        let now = max(lastTime, min(time, Self.latestTime))
        lastTime = now
        switch input {
        case .added(let lane):
            lanes.append(LaneState(lane, id: nextLane, gate: SendGate(settings.gate), at: now))
            nextLane += 1
        case .replaced(let lane, let id):
            withLane(id) { $0.replace(with: lane) }
            allocate()
        case .removed(let id):
            lanes.removeAll { $0.id == id }
            cpuSteps.removeAll { $0.lane == id }
            allocate()
        case .wanted(let bounds, let id):
            withLane(id) { $0.setBounds(bounds) }
            allocate()
        case .wrote(let bytes):
            // Before the first media nothing is acknowledged.
            if firstFrame == nil {
                path.wroteSilently(min(bytes, Self.mostBytes))
            } else {
                path.wrote(min(bytes, Self.mostBytes), at: now)
            }
        case .wroteText(let bytes), .wroteAcknowledgement(let bytes):
            path.wroteSilently(min(bytes, Self.mostBytes))
        case .acknowledged(let acknowledgement):
            take(acknowledgement, at: now)
        case .delivered(let packets):
            path.delivered(packets: packets, at: now)
        case .queueChanged(let bytes, let id):
            withLane(id) { $0.queued = min(max(0, bytes), Self.mostBytes) }
        case .queueFull(let id):
            queueWasFull(id, at: now)
        case .decide(let id, let isNewFrame, let keyframeDue):
            return decide(id, isNewFrame: isNewFrame, keyframeDue: keyframeDue, at: now)
        case .encoded(let report, let id):
            encoded(report, of: id, at: now)
        }
        return nil
    }

    /// More bytes than this at once are not told apart, so that no sum can overflow.
    private static let mostBytes = 1 << 32

    private mutating func withLane(_ id: LaneID, _ change: (inout LaneState) -> Void) {
        guard let index = lanes.firstIndex(where: { $0.id == id }) else { return }
        change(&lanes[index])
    }

    private mutating func take(_ acknowledgement: MediaAcknowledgement, at now: Int64) {
        let sample = path.acknowledged(acknowledgement, at: now)
        // What waited for the end of a stall comes at the rate of the link, whatever the path carries.
        if let train = path.train, sample?.isAfterStall != true {
            controller.note(train, at: now)
            controller.grow(by: train, at: now)
        }
        if let sample {
            lastSample = sample
            controller.update(sample, roundTrip: path.shortestRoundTrip ?? 0, at: now)
            path.holdReference(controller.isCompeting)
        }
        if sample != nil || path.train != nil { allocate() }
    }

    private mutating func queueWasFull(_ id: LaneID, at now: Int64) {
        guard let index = lanes.firstIndex(where: { $0.id == id }), lanes[index].bounds != nil else { return }
        lanes[index].pictureCame(at: now)
        lanes[index].waits(for: .network, at: now)
        noteSocket(of: index, isFull: true, at: now)
    }

    // MARK: Deciding

    private mutating func decide(
        _ id: LaneID,
        isNewFrame: Bool,
        keyframeDue: Bool,
        at now: Int64
    ) -> FrameDecision {
        guard let index = lanes.firstIndex(where: { $0.id == id }), lanes[index].bounds != nil else {
            return .notWanted
        }
        if isNewFrame { lanes[index].pictureCame(at: now) }
        let before = mode
        mode = nextMode(at: now)
        if mode != before { allocate() }
        if isNewFrame { noteSocket(of: index, isFull: isFull(index), at: now) }
        if let (reason, time) = delay(of: index, isNewFrame: isNewFrame, keyframeDue: keyframeDue, at: now) {
            lanes[index].waits(for: reason, at: now)
            return .wait(until: time.map(MonotonicInstant.init(microseconds:)))
        }
        if firstFrame == nil { firstFrame = now }
        lastFrame = now
        let room =
            mode == .unacknowledged ? 2 * lanes[index].frame : lanes[index].room(path, controller, queued: queuedBytes)
        let target = lanes[index].nextTarget(
            room: room,
            isPathLimited: hasFoundLimit,
            keyframeDue: keyframeDue,
            keyframeTime: settings.keyframeTime,
            at: now
        )
        return .encode(target)
    }

    /// Why a picture must wait, and until when at most; `nil` if it need not.
    private mutating func delay(
        of index: Int,
        isNewFrame: Bool,
        keyframeDue: Bool,
        at now: Int64
    ) -> (WaitReason, Int64?)? {
        if lanes[index].isTooMuchForCPU {
            lanes[index].pause(.cpu, at: now)
            return (.cpu, nil)
        }
        guard lanes[index].admission.isAdmitted else {
            lanes[index].pause(hasFoundLimit ? .bandwidth : .none, at: now)
            return (.allocation, nil)
        }
        let id = lanes[index].id
        lanes[index].isShared = lanes.contains { $0.id != id && $0.isEncoded }
        let isRelayed = lanes[index].lane.isRelayed
        if keyframeDue, !isRelayed, let last = lanes[index].lastKeyframe, now - last < settings.keyframeInterval {
            return (.keyframeInterval, last + settings.keyframeInterval)
        }
        if !keyframeDue, !isRelayed, let time = lanes[index].earlyUntil(at: now) { return (.frameRate, time) }
        switch mode {
        case .unacknowledged:
            return isFull(index) ? (.network, nil) : nil
        case .outage:
            // Queued frames go first; the report that they were written makes the lane ask again.
            guard queuedBytes == 0 else { return (.network, nil) }
            // All is written, so it is not for this end that nothing is acknowledged.
            let last = max(lastFrame, path.lastAcknowledgement ?? 0)
            let time = last + settings.outageProbe * settings.outageAfter
            return now >= time ? nil : (.network, time)
        case .starting, .acknowledged:
            // Then a receiver that acknowledges nothing gets frames without that, also if no other picture comes.
            let unacknowledged = mode == .starting ? firstFrame.map { $0 + settings.unacknowledgedAfter + 1 } : nil
            let admits = lanes[index].admits(
                path,
                controller,
                queued: queuedBytes,
                isNewFrame: isNewFrame,
                keyframeDue: keyframeDue,
                keyframeTime: settings.keyframeTime,
                at: now
            )
            return admits ? nil : (.network, unacknowledged)
        }
    }

    /// Whether the path has ever shown that it carries less than the rate.
    private var hasFoundLimit: Bool {
        mode == .unacknowledged ? unacknowledgedRate?.hasFoundLimit ?? false : controller.hasFoundLimit
    }

    /// Whether the bytes of two average frames of an encoding wait for the socket.
    private func isFull(_ index: Int) -> Bool {
        lanes[index].queued > 0 && Double(lanes[index].queued) >= 2 * lanes[index].frame
    }

    /// Chooses the rate towards a receiver that acknowledges nothing, by how fast the socket takes the frames.
    private mutating func noteSocket(of index: Int, isFull: Bool, at now: Int64) {
        // The pictures of an encoding that is paused say nothing of the socket.
        guard mode == .unacknowledged, lanes[index].isEncoded else { return }
        let (start, lowest) = (settings.rate.startRate, settings.rate.lowestRate)
        var rate = unacknowledgedRate ?? UnacknowledgedRate(from: start, lowest: lowest, at: now)
        rate.update(isFull: isFull, highest: controller.highestRate, at: now)
        unacknowledgedRate = rate
        allocate()
    }

    private var queuedBytes: Int {
        var sum = 0
        for lane in lanes { sum += lane.queued }
        return sum
    }

    private func nextMode(at now: Int64) -> UplinkStatus.Mode {
        guard let last = path.lastAcknowledgement else {
            guard let firstFrame, now - firstFrame > settings.unacknowledgedAfter else { return .starting }
            return .unacknowledged
        }
        guard let oldest = path.oldestUnacknowledgedWrite, path.unacknowledgedBytes > settings.gate.silentBytes else {
            return .acknowledged
        }
        let silence = max(settings.outageAfter, 4 * (path.shortestRoundTrip ?? 0)) + path.thinning
        return now - max(oldest, last) > silence ? .outage : .acknowledged
    }
}
