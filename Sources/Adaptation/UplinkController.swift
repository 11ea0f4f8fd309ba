package import MediaCore
package import RoomProtocol

/// Decides everything that the publishing side of one connection decides: how much to send, which encoding gets how
/// much of it, and which pictures are encoded.
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
        /// In an outage, a frame is sent after this many times `outageAfter`, and then each time that long, in case the
        /// receiver and not the path is at fault.
        package var outageProbe: Int64 = 4
        /// How long a keyframe may be on its way at the lane's share, in seconds: less would be no picture.
        package var keyframeTime = 0.15
        /// The bytes of headers that each frame adds.
        package var frameOverhead = 48.0
        /// A simulcast layer above the lowest is encoded if this part of its highest bitrate is left for it.
        package var lowestLayerPart = 0.25
        /// The same for a layer that is paused, times this.
        package var layerMargin = 1.2
        /// When a simulcast layer is paused and tried again.
        package var layers = LayerAdmission.Settings()
        /// More inputs than this are not recorded without being taken; the record then ends.
        package var mostRecords = 200_000

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
        /// The number of the track on the connection, which encodings of the same pictures share.
        package var track = 0
        /// The rate that the encoder gets at least, whatever the path carries; `nil` for no such rate.
        ///
        /// Where the path carries less, frames are left out instead.
        package var lowestBitrate: Bitrate?
        /// Whether the frames come compressed already.
        ///
        /// Nothing about them can be changed then: a frame is sent, waits or is given up. The wishes of subscribers and
        /// the load of the CPU say nothing about them.
        package var isRelayed = false

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
    var path: PathEstimator
    var controller: RateController
    var lanes: [LaneState] = []
    var nextLane = 0
    var lastTime: Int64 = 0
    var lastSample: PathEstimator.Sample?
    var firstFrame: Int64?
    var lastFrame: Int64 = 0
    var mode = UplinkStatus.Mode.starting
    /// The rate in the mode `unacknowledged`; `nil` before it.
    var unacknowledgedRate: UnacknowledgedRate?
    var cpu = CPUController()
    /// The steps that were taken because of the CPU and not taken back, in their order.
    var cpuSteps: [CPUStep] = []

    /// A step that was taken because the CPU was too slow.
    struct CPUStep: Hashable, Sendable {
        var lane: LaneID
        /// Whether the encoding was given up, and not only made smaller.
        var isPause: Bool
    }

    /// Whether inputs are recorded, for `takeRecords` to take; set it before the first input.
    ///
    /// It becomes `false` by itself if nobody takes the records.
    package var isRecording = false
    private var records: [AdaptationLog.Entry] = []

    /// A controller of a connection that was just opened.
    package init(_ settings: Settings = Settings()) {
        self.settings = settings
        path = PathEstimator(settings.path)
        controller = RateController(settings.rate)
    }

    // MARK: Inputs

    /// Adds an encoding, which nobody wants yet.
    package mutating func add(_ lane: Lane, at now: MonotonicInstant) -> LaneID {
        take(.added(lane), at: now.microseconds)
        return nextLane - 1
    }

    /// Replaces an encoding's limits, because its pictures have another size, or the application chose other limits.
    ///
    /// Its keyframes go on to be counted. Lanes that wait should ask again.
    package mutating func replace(_ id: LaneID, with lane: Lane, at now: MonotonicInstant) {
        take(.replaced(lane, id), at: now.microseconds)
    }

    /// Removes an encoding.
    package mutating func remove(_ id: LaneID, at now: MonotonicInstant) {
        take(.removed(id), at: now.microseconds)
    }

    /// Notes what subscribers want of an encoding; `nil` if nobody receives it.
    package mutating func setWanted(_ bounds: LayerBounds?, of id: LaneID, at now: MonotonicInstant) {
        take(.wanted(bounds, id), at: now.microseconds)
    }

    /// Notes that the socket took `bytes` more of media: of whole messages, in the order in which they are acknowledged.
    package mutating func wrote(_ bytes: Int, at now: MonotonicInstant) {
        take(.wrote(bytes), at: now.microseconds)
    }

    /// Notes that the socket took a text message; as `wrote`, but the other end may acknowledge it with the next frame
    /// only, however long that takes.
    package mutating func wroteText(_ bytes: Int, at now: MonotonicInstant) {
        take(.wroteText(bytes), at: now.microseconds)
    }

    /// Notes that the socket took an acknowledgement of ours; as `wrote`, but the other end need not acknowledge it.
    package mutating func wroteAcknowledgement(_ bytes: Int, at now: MonotonicInstant) {
        take(.wroteAcknowledgement(bytes), at: now.microseconds)
    }

    /// Takes in an acknowledgement, which may have any content.
    ///
    /// Lanes that wait should ask again.
    package mutating func acknowledged(_ acknowledgement: MediaAcknowledgement, at now: MonotonicInstant) {
        take(.acknowledged(acknowledgement), at: now.microseconds)
    }

    /// Whether the kernel's count of packets that arrived would tell something at `now`: `delivered` then tells it.
    package func isSilent(at now: MonotonicInstant) -> Bool { path.isSilent(at: now.microseconds) }

    /// Notes how many packets the other end has had in all, also behind a lost one, as the kernel counts them.
    package mutating func delivered(packets: UInt32, at now: MonotonicInstant) {
        take(.delivered(packets), at: now.microseconds)
    }

    /// Notes that `bytes` of an encoding are encoded and not written yet.
    package mutating func queueChanged(_ bytes: Int, of id: LaneID) {
        take(.queueChanged(bytes, id), at: lastTime)
    }

    /// Notes that a new picture of a lane found its send queue full, so that it waits and nothing is decided.
    package mutating func queueWasFull(_ id: LaneID, at now: MonotonicInstant) {
        take(.queueFull(id), at: now.microseconds)
    }

    /// Decides what a lane does with its newest picture.
    ///
    /// `isNewFrame` says that the picture was not asked for before; it is `false` when the picture is tried again.
    /// `keyframeDue` says that the frame must be a keyframe. A lane whose encoder is intact, and whose keyframe was
    /// only requested, asks `mayEncodeKeyframe` first, and goes on without one if that has to wait.
    package mutating func decide(
        _ id: LaneID,
        isNewFrame: Bool,
        keyframeDue: Bool,
        at now: MonotonicInstant
    ) -> FrameDecision {
        let input = UplinkInput.decide(id, isNewFrame: isNewFrame, keyframeDue: keyframeDue)
        return take(input, at: now.microseconds) ?? .notWanted
    }

    /// Notes what the encoder made of a picture; `nil` if it left the picture out.
    package mutating func encoded(_ report: EncodingReport?, of id: LaneID, at now: MonotonicInstant) {
        take(.encoded(report, id), at: now.microseconds)
    }

    /// Puts the inputs that were recorded since the last call into `entries`, whose content and memory it takes.
    ///
    /// The caller keeps one array and gives it back empty, so that nothing is allocated once both are large enough.
    package mutating func takeRecords(into entries: inout [AdaptationLog.Entry]) {
        entries.removeAll(keepingCapacity: true)
        swap(&entries, &records)
    }

    @discardableResult
    private mutating func take(_ input: UplinkInput, at now: Int64) -> FrameDecision? {
        let decision = apply(input, at: now)
        guard isRecording else { return decision }
        if records.count < settings.mostRecords {
            records.append(AdaptationLog.Entry(time: lastTime, input: input, decision: decision))
        } else {
            isRecording = false
        }
        return decision
    }

    /// Later times, after 36,000 years, are not told apart, so that no difference or sum of times can overflow.
    static let latestTime: Int64 = 1 << 60

    // MARK: Questions

    /// The rate of the connection, in bits per second.
    var rate: Double {
        guard mode == .unacknowledged, let unacknowledgedRate else { return controller.rate }
        return min(unacknowledgedRate.rate, controller.highestRate)
    }

    /// Why the rate is what it is.
    package var rateReason: RateReason { mode == .unacknowledged ? .socket : controller.reason }

    /// Whether the last keyframe of an encoding is long enough ago for another.
    package func mayEncodeKeyframe(_ id: LaneID, at now: MonotonicInstant) -> Bool {
        guard let lane = lanes.first(where: { $0.id == id }), let last = lane.lastKeyframe else { return true }
        return now.microseconds - last >= settings.keyframeInterval
    }

    /// What the controller knows and has chosen.
    package var status: UplinkStatus {
        UplinkStatus(
            mode: mode,
            acknowledged: DataSize(bytes: Int(path.acknowledgedBytes)),
            rate: Bitrate(bitsPerSecond: Int(rate)),
            rateReason: rateReason,
            capacity: Bitrate(bitsPerSecond: Int(controller.capacityEstimate)),
            queueDelay: lastSample.map { .microseconds($0.queue) },
            roundTrip: path.shortestRoundTrip.map { .microseconds($0) },
            unacknowledged: DataSize(bytes: Int(path.unacknowledgedBytes)),
            disregardedAcknowledgements: path.disregarded,
            lanes: lanes.map(\.status)
        )
    }
}
