import Adaptation
import MediaCore
import RoomProtocol
import Threading

/// The work of a relayed encoding's thread: passes the source's frames on when the uplink allows that.
struct LaneRelay: ~Copyable {
    private let lane: EncodingLane
    private let slot: RelaySlot
    private let track: EncodingLane.Track
    private let pool = PacketBufferPool()
    /// The packets of one frame.
    private var packets: [PacketBuffer] = []
    /// The size of the pictures, as it was reported to the uplink.
    private var dimensions: Dimensions
    /// The rate, as it was reported to the uplink.
    private var highestBitrate: Bitrate
    /// The frame that was asked for last.
    private var asked: UInt32?

    /// The connection is to carry this many times the source's rate, so that large frames pass.
    private static let rateMargin = 1.5

    /// The work for `lane`, with the frames in `slot`.
    init(of lane: EncodingLane, slot: RelaySlot) {
        self.lane = lane
        self.slot = slot
        track = lane.track
        dimensions = lane.track.route.dimensions
        highestBitrate = lane.plan.highestBitrate(in: dimensions, of: lane.track.route.codec)
        packets.reserveCapacity(64)
    }

    /// Works until the slot is closed and empty.
    mutating func run() {
        var time: MonotonicInstant?
        while slot.look(by: time) { time = consider() }
    }

    /// Passes on what may be sent now.
    ///
    /// - Returns: When to look again, at the latest.
    private mutating func consider() -> MonotonicInstant? {
        if lane.sendQueue.takeBroken() { slot.breakOff(.network) }
        var waitTime: MonotonicInstant?
        passing: while let entry = slot.first(at: MonotonicClock.now) {
            expectRate()
            let isNewFrame = entry.number != asked
            asked = entry.number
            switch track.route.uplink.decide(lane.seat, isNewFrame: isNewFrame, keyframeDue: false) {
            case .encode:
                if let entry = slot.take(entry.number) { send(entry) }
            case .notWanted:
                slot.giveUpAll(.notWanted)
            case .wait(let time, _):
                waitTime = time
                // As in `LaneEncoder`: the queue gives up what is too late when the connection asks for packets.
                if isNewFrame, !lane.sendQueue.isEmpty { track.route.wake() }
                break passing
            }
        }
        if slot.takeRequest(at: MonotonicClock.now) { track.requestFrame() }
        return [waitTime, slot.nextDeadline].lazy.compactMap(\.self).min()
    }

    /// Tells the uplink of the source's size and rate, if they have changed.
    private mutating func expectRate(_ size: Dimensions? = nil) {
        let size = size ?? dimensions
        let usual = lane.plan.highestBitrate(in: size, of: track.route.codec)
        let measured = Double(slot.sourceRate?.bitsPerSecond ?? 0) * Self.rateMargin
        let wanted = max(usual, Bitrate(bitsPerSecond: Int(measured)))
        let change = Double(wanted.bitsPerSecond) / Double(max(1, highestBitrate.bitsPerSecond))
        guard size != dimensions || !(0.75...1.1).contains(change) else { return }
        (dimensions, highestBitrate) = (size, wanted)
        lane.setSource(size, rate: wanted)
    }

    private mutating func send(_ entry: RelayBacklog.Entry) {
        var info = entry.frame.info
        info.number = entry.number
        // All frames are of layer 0.
        info.baseLayerIndex = UInt16(truncatingIfNeeded: entry.number)
        if info.isKeyframe { expectRate(info.dimensions) }
        let captureTime = track.route.clock.estimate.roomTime(at: info.timestamp)
        let (packetizer, pool, tags) = (track.route.packetizer, pool, entry.frame.tags)
        var packets: [PacketBuffer] = []
        swap(&packets, &self.packets)
        entry.frame.withBytes { bytes in
            packetizer.packetize(
                info,
                bytes: bytes,
                captureTime: captureTime,
                encodeDelay: MonotonicClock.now.duration(since: info.timestamp),
                extensions: PacketExtensions(
                    rotation: tags.rotation,
                    isMirrored: tags.isMirrored,
                    metadata: tags.metadata
                ),
                makeBuffer: { pool.take(count: $0) },
                emit: { packets.append($0) }
            )
        }
        let report = EncodingReport(
            bytes: packets.reduce(0) { $0 + $1.count },
            isKeyframe: info.isKeyframe,
            quantizer: 0,
            encodeDuration: .zero,
            dimensions: dimensions
        )
        count(report)
        lane.sendQueue.append(&packets, of: info, at: MonotonicClock.now)
        packets.removeAll(keepingCapacity: true)
        swap(&packets, &self.packets)
        track.route.uplink.encoded(report, of: lane.seat)
        track.tally.encoded(entry.ticket)
        track.route.wake()
    }

    private func count(_ report: EncodingReport) {
        let now = MonotonicClock.now
        lane.counts.withLock { counts in
            counts.framesEncoded += 1
            if report.isKeyframe { counts.keyframes += 1 }
            counts.last = report
            counts.rate.count(at: now)
        }
    }
}
