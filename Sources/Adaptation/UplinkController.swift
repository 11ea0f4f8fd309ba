package import MediaCore
package import RoomProtocol

/// Decides everything that the publishing side of one connection decides: how much to send, which encoding gets how much
/// of it, and which pictures are encoded.
///
/// It is a pure value: the same inputs give the same decisions on every machine. Times count in whole microseconds.
/// `docs/adaptation.md` describes how it decides.
package struct UplinkController: Sendable {
    /// The settings.
    package struct Settings: Hashable, Sendable {
        /// How the path is estimated.
        package var path = PathEstimator.Settings()
        /// How the rate is chosen; its `highestRate` is not used, because the encodings' own limits count.
        package var rate = RateController.Settings()
        /// When a frame may be encoded.
        package var gate = SendGate.Settings()
        /// The shortest time between two keyframes of an encoding, in microseconds: that of the server's requests.
        package var keyframeInterval: Int64 = 1_000_000
        /// Without any acknowledgement this long after the first frame, the other end is one that sends none; in
        /// microseconds.
        package var unacknowledgedAfter: Int64 = 2_000_000
        /// The shortest silence that counts as an outage, in microseconds.
        package var outageAfter: Int64 = 1_000_000
        /// The bytes of headers that each packet of a frame adds.
        package var packetOverhead = 48.0

        package init() {}
    }

    /// One encoding of a track.
    package struct Lane: Hashable, Sendable {
        /// Which encodings get more of a rate that does not suffice for all.
        package enum Priority: UInt8, Hashable, Sendable {
            case low, standard, high
        }

        /// The size that the encoder was opened with, which no picture exceeds.
        package var largestDimensions: Dimensions
        /// The approximate rate of the captured pictures.
        package var frameRate: FrameRate
        /// The rate that is never exceeded.
        package var highestBitrate: Bitrate
        /// The share of a rate that does not suffice.
        package var priority: Priority
        /// What is lowered first.
        package var preference: DegradationPreference
        /// The number of the simulcast layer, 0 for the smallest.
        package var simulcastLayer: Int

        /// A lane with the given values.
        package init(
            largestDimensions: Dimensions,
            frameRate: FrameRate,
            highestBitrate: Bitrate,
            priority: Priority = .standard,
            preference: DegradationPreference = .balanced,
            simulcastLayer: Int = 0
        ) {
            self.largestDimensions = largestDimensions
            self.frameRate = frameRate
            self.highestBitrate = highestBitrate
            self.priority = priority
            self.preference = preference
            self.simulcastLayer = simulcastLayer
        }
    }

    /// Names an encoding; small, and never used again.
    package typealias LaneID = Int

    let settings: Settings
    private(set) var path: PathEstimator
    private(set) var controller: RateController
    private var lanes: [LaneState] = []
    private var nextLane = 0
    private var lastSample: PathEstimator.Sample?
    private var firstFrame: Int64?

    /// A controller of a connection that was just opened.
    package init(_ settings: Settings = Settings()) {
        self.settings = settings
        path = PathEstimator(settings.path)
        controller = RateController(settings.rate)
    }

    // MARK: Inputs

    /// Adds an encoding, which nobody wants yet.
    package mutating func add(_ lane: Lane, at now: MonotonicInstant) -> LaneID {
        _ = apply(.added(lane), at: now.microseconds)
        return nextLane - 1
    }

    /// Removes an encoding.
    package mutating func remove(_ id: LaneID, at now: MonotonicInstant) {
        _ = apply(.removed(id), at: now.microseconds)
    }

    /// Notes what subscribers want of an encoding; `nil` if nobody receives it.
    package mutating func setWanted(_ bounds: LayerBounds?, of id: LaneID, at now: MonotonicInstant) {
        _ = apply(.wanted(bounds, id), at: now.microseconds)
    }

    /// Notes that the socket took `bytes` more: the payload of text and binary messages, in the order in which they are
    /// acknowledged.
    package mutating func wrote(_ bytes: Int, at now: MonotonicInstant) {
        _ = apply(.wrote(bytes), at: now.microseconds)
    }

    /// Takes in an acknowledgement, which may have any content.
    ///
    /// Lanes that wait should ask again.
    package mutating func acknowledged(_ acknowledgement: MediaAcknowledgement, at now: MonotonicInstant) {
        _ = apply(.acknowledged(acknowledgement), at: now.microseconds)
    }

    /// Notes that `bytes` of an encoding are encoded and not written yet.
    package mutating func queueChanged(_ bytes: Int, of id: LaneID) {
        _ = apply(.queueChanged(bytes, id), at: nil)
    }

    /// Decides what a lane does with its newest picture.
    ///
    /// `isNewFrame` says that the picture was not asked for before; it is `false` when the picture is tried again.
    /// `keyframeDue` says that the frame must be a keyframe. A lane whose encoder is intact, and whose keyframe was only
    /// requested, asks `mayEncodeKeyframe` first, and goes on without one if that has to wait.
    package mutating func decide(
        _ id: LaneID,
        isNewFrame: Bool,
        keyframeDue: Bool,
        at now: MonotonicInstant
    ) -> FrameDecision {
        let input = UplinkInput.decide(id, isNewFrame: isNewFrame, keyframeDue: keyframeDue)
        return apply(input, at: now.microseconds) ?? .notWanted
    }

    /// Notes what the encoder made of a picture; `nil` if it left the picture out.
    package mutating func encoded(_ report: EncodingReport?, of id: LaneID, at now: MonotonicInstant) {
        _ = apply(.encoded(report, id), at: now.microseconds)
    }

    // MARK: Questions

    /// Whether the last keyframe of an encoding is long enough ago for another.
    package func mayEncodeKeyframe(_ id: LaneID, at now: MonotonicInstant) -> Bool {
        guard let lane = lanes.first(where: { $0.id == id }), let last = lane.lastKeyframe else { return true }
        return now.microseconds - last >= settings.keyframeInterval
    }

    /// What the controller knows and has chosen.
    package var status: UplinkStatus {
        UplinkStatus(
            mode: mode,
            rate: Bitrate(bitsPerSecond: Int(controller.rate)),
            capacity: Bitrate(bitsPerSecond: Int(controller.capacityEstimate)),
            queueDelay: lastSample.map { .microseconds($0.queue) },
            roundTrip: path.shortestRoundTrip.map { .microseconds($0) },
            unacknowledged: DataSize(bytes: Int(path.unacknowledgedBytes)),
            disregardedAcknowledgements: path.disregarded,
            lanes: lanes.map(\.status)
        )
    }

    private var mode: UplinkStatus.Mode { path.lastAcknowledgement == nil ? .starting : .acknowledged }

    // MARK: The law

    /// Takes an input in; answers `decide` and nothing else.
    mutating func apply(_ input: UplinkInput, at now: Int64?) -> FrameDecision? {
        let now = now ?? 0
        switch input {
        case .added(let lane):
            lanes.append(LaneState(lane, id: nextLane, gate: SendGate(settings.gate)))
            nextLane += 1
        case .removed(let id):
            lanes.removeAll { $0.id == id }
            allocate()
        case .wanted(let bounds, let id):
            withLane(id) { $0.bounds = bounds }
            allocate()
        case .wrote(let bytes):
            path.wrote(bytes, at: now)
        case .acknowledged(let acknowledgement):
            take(acknowledgement, at: now)
        case .queueChanged(let bytes, let id):
            withLane(id) { $0.queued = max(0, bytes) }
        case .decide(let id, let isNewFrame, let keyframeDue):
            return decide(id, isNewFrame: isNewFrame, keyframeDue: keyframeDue, at: now)
        case .encoded(let report, let id):
            if report != nil, firstFrame == nil { firstFrame = now }
            withLane(id) { $0.encoded(report, at: now) }
        }
        return nil
    }

    private mutating func withLane(_ id: LaneID, _ change: (inout LaneState) -> Void) {
        guard let index = lanes.firstIndex(where: { $0.id == id }) else { return }
        change(&lanes[index])
    }

    private mutating func take(_ acknowledgement: MediaAcknowledgement, at now: Int64) {
        let sample = path.acknowledged(
            acknowledgement.cumulativeBytes,
            receiveTime: acknowledgement.receiveTime.microseconds,
            at: now
        )
        guard let sample else { return }
        lastSample = sample
        controller.update(sample, roundTrip: path.shortestRoundTrip ?? 50_000, at: now)
        allocate()
    }

    private mutating func allocate() {
        var demand = 0.0
        for index in lanes.indices { demand += lanes[index].demand }
        if demand > 0 { controller.setHighestRate(demand) }
        let total = controller.rate
        for index in lanes.indices {
            lanes[index].share = demand > 0 ? lanes[index].demand * min(1, total / demand) : 0
        }
    }

    private mutating func decide(
        _ id: LaneID,
        isNewFrame: Bool,
        keyframeDue: Bool,
        at now: Int64
    ) -> FrameDecision {
        guard let index = lanes.firstIndex(where: { $0.id == id }), lanes[index].bounds != nil else {
            return .notWanted
        }
        if keyframeDue, let last = lanes[index].lastKeyframe, now - last < settings.keyframeInterval {
            lanes[index].waiting = .keyframeInterval
            return .wait(until: MonotonicInstant(microseconds: last + settings.keyframeInterval))
        }
        var queued = 0
        for lane in lanes { queued += lane.queued }
        let interval = lanes[index].frameInterval
        let isOpen =
            isNewFrame
            ? lanes[index].gate.admits(path, controller, queued: queued, frameInterval: interval, at: now)
            : lanes[index].gate.isOpen(path, controller, queued: queued, frameInterval: interval, at: now)
        guard isOpen else {
            lanes[index].waiting = .network
            return .wait(until: nil)
        }
        lanes[index].waiting = nil
        let budget = lanes[index].gate.budget(path, controller, queued: queued, frameInterval: interval)
        return .encode(lanes[index].target(largestFrame: budget * (keyframeDue ? 4 : 1.5)))
    }
}
