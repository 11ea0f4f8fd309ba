package import Adaptation
package import MediaCore
import RoomProtocol

/// A publisher with several tracks on one connection, and the receiver that acknowledges to it.
///
/// The tracks' messages take turns on the socket, as those of a publisher do.
package final class SimulatedTracks: LinkUser {
    /// A track of one encoding, which somebody receives all the time.
    package struct Track: Sendable {
        /// The encoding.
        package var lane: UplinkController.Lane
        /// How many bits per pixel its pictures have at least.
        package var floor = 0.02
        /// How many bits per pixel its pictures have at most.
        package var ceiling = 0.6
        /// For how many milliseconds of each period the pictures move; `nil` if they always do.
        ///
        /// A picture that stands still comes once a second, and needs few bits.
        package var motion: (milliseconds: Int, of: Int)?
        /// The rate at which pictures come, if it is not the one that the encoding states.
        package var cameraFrameRate: FrameRate?

        /// A track of `lane`, on whose pictures something always moves.
        package init(_ lane: UplinkController.Lane) {
            self.lane = lane
        }

        var pictureRate: FrameRate { cameraFrameRate ?? lane.frameRate }

        func isStill(at now: Int) -> Bool { motion.map { now % $0.of > $0.milliseconds } ?? false }
    }

    private struct Chunk {
        var bytes: Int
        var track: Int
        var frame: UInt32
        var isFirst: Bool
        /// The frame, if these are its last bytes.
        var frameEnd: SimulatedFlow.Arrival?
        /// Microseconds.
        var sent: Int64
    }

    /// The sending side of a track.
    private struct Sender {
        let track: Track
        let id: UplinkController.LaneID
        var encoder: SimulatedEncoder
        /// When the picture that waits was captured.
        var held: Int?
        var keyframeDue = true
        var nextPicture: Double
        var frameNumber: UInt32 = 0
        var queue = Fifo<Chunk>()
        var queuedBytes = 0
        var queuedFrames = 0

        /// Whether a new picture comes at `now`.
        mutating func captures(at now: Int) -> Bool {
            let interval = 1000 / track.pictureRate.framesPerSecond
            let isStill = track.isStill(at: now)
            // A picture that begins to move comes at once.
            if !isStill, nextPicture > Double(now) + interval { nextPicture = Double(now) }
            guard Double(now) >= nextPicture else { return false }
            nextPicture += isStill ? max(1000, interval) : interval
            held = now
            return true
        }
    }

    private static let stillFloor = 0.0002
    private static let stillCeiling = 0.0008
    private static let mostInSocket = 131_072
    /// As many frames of a track wait for the socket at most.
    private static let mostQueuedFrames = 2

    package private(set) var uplink: UplinkController
    /// The frames of each track that arrived, in their order.
    package private(set) var arrivals: [[SimulatedFlow.Arrival]]
    private let delay: Int
    private var senders: [Sender] = []
    /// The track whose message is written next, if it has one.
    private var turn = 0
    private var inSocket = 0
    private var written = 0
    /// When the socket took the last message, in microseconds.
    private var lastWrite: Int64 = 0
    private var chunks = Fifo<(chunk: Chunk, end: Int)>()
    private var schedule = AcknowledgementSchedule(AcknowledgementSchedule.Settings())
    private var returning = Fifo<(at: Int, value: MediaAcknowledgement)>()

    init(_ tracks: [Track], delay: Int, _ settings: UplinkController.Settings) {
        self.delay = delay
        uplink = UplinkController(settings)
        arrivals = tracks.map { _ in [] }
        let start = MonotonicInstant(microseconds: 0)
        for (index, track) in tracks.enumerated() {
            var lane = track.lane
            lane.track = index
            let id = uplink.add(lane, at: start)
            uplink.setWanted(LayerBounds(temporalLayers: 1), of: id, at: start)
            let encoder = SimulatedEncoder(SimulatedEncoder.Content(), seed: 100 + UInt64(index))
            // Cameras do not take their pictures at the same time.
            senders.append(Sender(track: track, id: id, encoder: encoder, nextPicture: Double(index) * 7.3))
        }
    }

    // MARK: Sender

    func send(at now: Int, put: (Packet) -> Void) {
        var isNudged = takeAcknowledgements(at: now)
        for index in senders.indices {
            let isNew = senders[index].captures(at: now)
            if isNew || isNudged { encode(index, isNew: isNew, at: now) }
        }
        isNudged = write(at: now, put: put)
        guard isNudged else { return }
        for index in senders.indices { encode(index, isNew: false, at: now) }
        _ = write(at: now, put: put)
    }

    private func takeAcknowledgements(at now: Int) -> Bool {
        var isAny = false
        while let next = returning.first, next.at <= now {
            returning.removeFirst()
            uplink.acknowledged(next.value, at: MonotonicInstant(microseconds: Int64(now) * 1000))
            isAny = true
        }
        return isAny
    }

    private func encode(_ index: Int, isNew: Bool, at now: Int) {
        let instant = MonotonicInstant(microseconds: Int64(now) * 1000)
        guard let captured = senders[index].held else { return }
        let (id, track, keyframeDue) = (senders[index].id, senders[index].track, senders[index].keyframeDue)
        guard senders[index].queuedFrames < Self.mostQueuedFrames else {
            if isNew { uplink.queueWasFull(id, at: instant) }
            return
        }
        let decision = uplink.decide(id, isNewFrame: isNew, keyframeDue: keyframeDue, at: instant)
        guard case .encode(let target) = decision else { return }
        senders[index].held = nil
        let isStill = track.isStill(at: now)
        senders[index].encoder.content.floor = isStill ? Self.stillFloor : track.floor
        senders[index].encoder.content.ceiling = isStill ? Self.stillCeiling : track.ceiling
        let rate = track.pictureRate
        guard var report = senders[index].encoder.encode(target, at: rate, forceKeyframe: keyframeDue) else {
            return uplink.encoded(nil, of: id, at: instant)
        }
        senders[index].keyframeDue = false
        queueChunks(of: &report, index, captured: captured, at: now)
        uplink.encoded(report, of: id, at: instant)
        uplink.queueChanged(senders[index].queuedBytes, of: id)
    }

    private func queueChunks(of report: inout EncodingReport, _ index: Int, captured: Int, at now: Int) {
        let most = WireFormat.maximumBinaryMessage.bytes - MediaPacketHeader.fixedLength
        let payload = report.bytes
        report.bytes += (payload + most - 1) / most * MediaPacketHeader.fixedLength
        let frame = SimulatedFlow.Arrival(
            size: report.bytes,
            captured: captured,
            arrived: 0,
            isKeyframe: report.isKeyframe,
            dimensions: report.dimensions
        )
        var left = payload
        while left > 0 {
            let part = min(left, most)
            let chunk = Chunk(
                bytes: part + MediaPacketHeader.fixedLength,
                track: index,
                frame: senders[index].frameNumber,
                isFirst: left == payload,
                frameEnd: left == part ? frame : nil,
                sent: Int64(now) * 1000
            )
            senders[index].queue.append(chunk)
            left -= part
        }
        senders[index].frameNumber &+= 1
        senders[index].queuedBytes += report.bytes
        senders[index].queuedFrames += 1
    }

    /// Writes what the socket takes; returns whether it took anything.
    private func write(at now: Int, put: (Packet) -> Void) -> Bool {
        var isAny = false
        while inSocket < Self.mostInSocket, let (index, chunk) = nextChunk() {
            senders[index].queue.removeFirst()
            senders[index].queuedBytes -= chunk.bytes
            if chunk.frameEnd != nil { senders[index].queuedFrames -= 1 }
            inSocket += chunk.bytes
            var left = chunk.bytes
            while left > 0 {
                let part = min(1448, left)
                left -= part
                written += part
                put(Packet(flow: 0, payload: part, left: part + 52, end: written))
            }
            chunks.append((chunk, written))
            lastWrite = max(Int64(now) * 1000, lastWrite + LinkSimulation.writeTime)
            uplink.wrote(chunk.bytes, at: MonotonicInstant(microseconds: lastWrite))
            uplink.queueChanged(senders[index].queuedBytes, of: senders[index].id)
            isAny = true
        }
        return isAny
    }

    private func nextChunk() -> (Int, Chunk)? {
        for offset in senders.indices {
            let index = (turn + offset) % senders.count
            guard let chunk = senders[index].queue.first else { continue }
            turn = (index + 1) % senders.count
            return (index, chunk)
        }
        return nil
    }

    // MARK: Receiver

    func left(_ packet: Packet) { inSocket -= packet.payload }

    func timeOnPath(at now: Int) -> Int { delay }

    func arrived(_ packet: Packet, at now: Int) {
        // The receiver's clock has another origin.
        let instant = MonotonicInstant(microseconds: Int64(now) * 1000 + 77_000_000)
        while let next = chunks.first, next.end <= packet.end {
            chunks.removeFirst()
            let chunk = next.chunk
            schedule.received(chunk.bytes, at: instant)
            schedule.chunkEnded(
                AcknowledgementSchedule.Chunk(
                    trackAlias: UInt32(chunk.track + 1),
                    frameNumber: chunk.frame,
                    isFirst: chunk.isFirst,
                    isLast: chunk.frameEnd != nil,
                    sentTime: chunk.sent
                )
            )
            guard var frame = chunk.frameEnd else { continue }
            frame.arrived = now
            arrivals[chunk.track].append(frame)
        }
    }

    func acknowledge(at now: Int) {
        let instant = MonotonicInstant(microseconds: Int64(now) * 1000 + 77_000_000)
        guard let value = schedule.acknowledgement(at: instant) else { return }
        returning.append((now + delay, value))
    }
}
