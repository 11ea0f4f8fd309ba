package import Adaptation
package import MediaCore
import RoomProtocol

/// A publisher with one encoding and the receiver that acknowledges to it, over a link that it may share with others.
package final class SimulatedFlow: LinkUser {
    /// What the flow is.
    package struct Configuration: Sendable {
        /// The controller's settings.
        package var settings = UplinkController.Settings()
        /// The encoding.
        package var lane = UplinkController.Lane(
            largestDimensions: Dimensions(width: 1280, height: 720),
            frameRate: FrameRate(30),
            highestBitrate: .kilobitsPerSecond(2500)
        )
        /// What is filmed.
        package var floor = 0.02
        /// How many bits per pixel its pictures have at most.
        package var ceiling = 0.6
        /// The time from the sender to the receiver and back beside the queue, each, in milliseconds.
        package var delay = 20
        /// What `delay` becomes at a time in seconds; `nil` if it stays.
        package var laterDelay: (milliseconds: Int, from: Double)?
        /// The rate at which pictures come, if it is not the one that the encoding states.
        package var cameraFrameRate: FrameRate?
        /// When it begins, in seconds.
        package var start = 0.0
        /// What subscribers want, from when on; at first one that can use everything.
        package var wishes: [Wish] = []
        /// Bytes that the socket takes before the link has carried them.
        package var socketBytes = 131_072
        /// Whether the receiver counts a message when it is whole, as the server does.
        package var countsWholeMessages = true
        /// The longest time between two acknowledgements, in milliseconds; the server thins none, subscribers to 500.
        package var thinnestAcknowledgements = 0
        /// Whether the receiver acknowledges at all.
        package var acknowledges = true
        /// What delays acknowledgements, and nothing else, beside `delay`.
        package var lateness = Lateness.none
        /// The part of the packets that are lost once and come again after a round trip; those behind wait for them.
        package var lostPart = 0.0
        /// The seed of the encoder.
        package var seed: UInt64 = 100

        package init() {}
    }

    /// How the way of the acknowledgements differs from that of the media.
    package enum Lateness: Sendable {
        /// It does not.
        case none
        /// It becomes longer by so many milliseconds at a time in seconds.
        case step(Int, from: Double)
        /// From the eighth second on, it becomes longer by so many milliseconds within three seconds, again and again.
        case sawtooth(Int)
        /// It carries all that waits at once, every so many milliseconds.
        case bursts(Int)

        /// When an acknowledgement arrives that would without this; milliseconds.
        func arrival(of time: Int) -> Int {
            switch self {
            case .none: time
            case .step(let milliseconds, let start): Double(time) < start * 1000 ? time : time + milliseconds
            case .sawtooth(let milliseconds): time < 8000 ? time : time + time % 3000 * milliseconds / 3000
            case .bursts(let milliseconds): (time + milliseconds - 1) / milliseconds * milliseconds
            }
        }
    }

    /// What subscribers want from a time on.
    package struct Wish: Sendable {
        var seconds: Double
        var bounds: LayerBounds?

        /// Subscribers want `bounds` from `seconds` on; `nil` if there are none.
        package init(from seconds: Double, _ bounds: LayerBounds?) {
            self.seconds = seconds
            self.bounds = bounds
        }
    }

    /// A frame that arrived.
    package struct Arrival: Hashable, Sendable {
        /// Bytes.
        package var size: Int
        /// Milliseconds.
        package var captured: Int
        /// Milliseconds.
        package var arrived: Int
        package var isKeyframe: Bool
        package var dimensions: Dimensions
    }

    /// The controller's state at a time, in milliseconds.
    package struct State: Hashable, Sendable {
        package var time: Int
        package var rate: Int
        package var capacity: Int
        package var queue: Int
        package var target: String
    }

    private struct Frame {
        var end: Int
        var arrival: Arrival
    }

    private struct Chunk {
        var bytes: Int
        var frame: UInt32
        var isFirst: Bool
        var isLast: Bool
        var sent: Int64
    }

    package let configuration: Configuration
    package private(set) var uplink: UplinkController
    /// Frames that arrived, in their order.
    package private(set) var arrivals: [Arrival] = []
    /// Ten times a second.
    package private(set) var states: [State] = []
    /// Captured pictures that were left out for a newer one.
    package private(set) var picturesLeftOut = 0
    /// Acknowledgements that were sent.
    package private(set) var acknowledgements = 0
    private let id: Int
    private let index: Int
    private var encoder: SimulatedEncoder
    private var losses: SimulationRandom
    private var schedule: AcknowledgementSchedule
    private var nextFrame: Double
    private var held: Int?
    private var keyframeDue = true
    private var queue = Fifo<Chunk>()
    private var queuedBytes = 0
    private var inSocket = 0
    private var written = 0
    private var frameNumber: UInt32 = 0
    private var frames = Fifo<Frame>()
    private var chunks = Fifo<(chunk: Chunk, end: Int)>()
    private var receivedBytes = 0
    private var returning = Fifo<(at: Int, value: MediaAcknowledgement)>()
    private var lastReturn = 0
    /// When the socket took the last message, in microseconds.
    private var lastWrite: Int64 = 0
    private var isStarted = false
    private var wanted: LayerBounds?

    init(_ configuration: Configuration, index: Int, log: Bool) {
        self.configuration = configuration
        self.index = index
        var content = SimulatedEncoder.Content()
        content.floor = configuration.floor
        content.ceiling = configuration.ceiling
        encoder = SimulatedEncoder(content, seed: configuration.seed)
        losses = SimulationRandom(seed: configuration.seed + 7)
        var settings = AcknowledgementSchedule.Settings()
        settings.longestInterval = Int64(configuration.thinnestAcknowledgements) * 1000
        schedule = AcknowledgementSchedule(settings)
        uplink = UplinkController(configuration.settings)
        uplink.isRecording = log
        id = uplink.add(configuration.lane, at: MonotonicInstant(microseconds: 0))
        nextFrame = configuration.start * 1000 + Double(index) * 1.3
    }

    /// The inputs that were recorded.
    package func takeLog() -> [AdaptationLog.Entry] {
        var entries: [AdaptationLog.Entry] = []
        uplink.takeRecords(into: &entries)
        return entries
    }

    // MARK: Sender

    func send(at now: Int, put: (Packet) -> Void) {
        guard Double(now) >= configuration.start * 1000 else { return }
        let instant = MonotonicInstant(microseconds: Int64(now) * 1000)
        noteWanted(at: instant)
        var isNudged = takeAcknowledgements(at: now)
        var isNew = false
        if Double(now) >= nextFrame {
            nextFrame += 1000 / cameraFrameRate.framesPerSecond
            if held != nil { picturesLeftOut += 1 }
            held = now
            isNew = true
        }
        if let captured = held, isNew || isNudged { encode(captured, isNew: isNew, at: now) }
        isNudged = write(at: now, put: put)
        if isNudged, let captured = held { encode(captured, isNew: false, at: now) }
        _ = write(at: now, put: put)
        if now % 100 == 0 { note(at: now) }
    }

    private var cameraFrameRate: FrameRate { configuration.cameraFrameRate ?? configuration.lane.frameRate }

    private func noteWanted(at now: MonotonicInstant) {
        let seconds = Double(now.microseconds) / 1e6
        var bounds: LayerBounds? = LayerBounds(temporalLayers: 1)
        for wish in configuration.wishes where wish.seconds <= seconds { bounds = wish.bounds }
        guard !isStarted || bounds != wanted else { return }
        if wanted == nil { keyframeDue = true }
        isStarted = true
        wanted = bounds
        uplink.setWanted(bounds, of: id, at: now)
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

    private func encode(_ captured: Int, isNew: Bool, at now: Int) {
        let instant = MonotonicInstant(microseconds: Int64(now) * 1000)
        let decision = uplink.decide(id, isNewFrame: isNew, keyframeDue: keyframeDue, at: instant)
        guard case .encode(let target) = decision else { return }
        held = nil
        guard var report = encoder.encode(target, at: cameraFrameRate, forceKeyframe: keyframeDue) else {
            return uplink.encoded(nil, of: id, at: instant)
        }
        keyframeDue = false
        queueChunks(of: &report, captured: captured, at: now)
        uplink.encoded(report, of: id, at: instant)
        uplink.queueChanged(queuedBytes, of: id)
    }

    private func queueChunks(of report: inout EncodingReport, captured: Int, at now: Int) {
        let payload = report.bytes
        var left = payload
        var bytes = 0
        while left > 0 {
            let part = min(left, WireFormat.maximumBinaryMessage.bytes - MediaPacketHeader.fixedLength)
            queue.append(
                Chunk(
                    bytes: part + MediaPacketHeader.fixedLength,
                    frame: frameNumber,
                    isFirst: left == payload,
                    isLast: left == part,
                    sent: Int64(now) * 1000
                )
            )
            bytes += part + MediaPacketHeader.fixedLength
            left -= part
        }
        frameNumber &+= 1
        report.bytes = bytes
        queuedBytes += bytes
        let arrival = Arrival(
            size: bytes,
            captured: captured,
            arrived: 0,
            isKeyframe: report.isKeyframe,
            dimensions: report.dimensions
        )
        frames.append(Frame(end: written + queuedBytes, arrival: arrival))
    }

    /// Writes what the socket takes; returns whether it took anything.
    private func write(at now: Int, put: (Packet) -> Void) -> Bool {
        var isAny = false
        while let chunk = queue.first, inSocket < configuration.socketBytes {
            queue.removeFirst()
            queuedBytes -= chunk.bytes
            inSocket += chunk.bytes
            var left = chunk.bytes
            while left > 0 {
                let part = min(1448, left)
                left -= part
                written += part
                put(Packet(flow: index, payload: part, left: part + 52, end: written))
            }
            chunks.append((chunk, written))
            lastWrite = max(Int64(now) * 1000, lastWrite + LinkSimulation.writeTime)
            uplink.wrote(chunk.bytes, at: MonotonicInstant(microseconds: lastWrite))
            uplink.queueChanged(queuedBytes, of: id)
            isAny = true
        }
        return isAny
    }

    private func note(at now: Int) {
        let status = uplink.status
        states.append(
            State(
                time: now,
                rate: status.rate.bitsPerSecond,
                capacity: status.capacity.bitsPerSecond,
                queue: Int((status.queueDelay ?? .zero).wholeMicroseconds),
                target: status.lanes[0].target.map { "\($0.dimensions) at \($0.frameRate)" } ?? "-"
            )
        )
    }

    // MARK: Receiver

    func left(_ packet: Packet) { inSocket -= packet.payload }

    /// The milliseconds from the link to the receiver for the next packet, without the wait for those before.
    func timeOnPath(at now: Int) -> Int {
        let isLost = configuration.lostPart > 0 && losses.uniform() < configuration.lostPart
        return isLost ? 3 * delay(at: now) : delay(at: now)
    }

    private func delay(at now: Int) -> Int {
        guard let later = configuration.laterDelay, Double(now) >= later.from * 1000 else { return configuration.delay }
        return later.milliseconds
    }

    func arrived(_ packet: Packet, at now: Int) {
        // The receiver's clock has another origin.
        let instant = MonotonicInstant(microseconds: Int64(now) * 1000 + 77_000_000)
        if !configuration.countsWholeMessages { schedule.received(packet.end - receivedBytes, at: instant) }
        receivedBytes = packet.end
        while let next = chunks.first, next.end <= receivedBytes {
            chunks.removeFirst()
            if configuration.countsWholeMessages { schedule.received(next.chunk.bytes, at: instant) }
            let chunk = next.chunk
            schedule.chunkEnded(
                AcknowledgementSchedule.Chunk(
                    trackAlias: 1,
                    frameNumber: chunk.frame,
                    isFirst: chunk.isFirst,
                    isLast: chunk.isLast,
                    sentTime: chunk.sent
                )
            )
        }
        while let frame = frames.first, frame.end <= receivedBytes {
            frames.removeFirst()
            var arrival = frame.arrival
            arrival.arrived = now
            arrivals.append(arrival)
        }
    }

    func acknowledge(at now: Int) {
        let instant = MonotonicInstant(microseconds: Int64(now) * 1000 + 77_000_000)
        guard configuration.acknowledges, let value = schedule.acknowledgement(at: instant) else { return }
        acknowledgements += 1
        // None overtakes another.
        lastReturn = max(lastReturn, configuration.lateness.arrival(of: now + delay(at: now)))
        returning.append((lastReturn, value))
    }
}

/// A packet on the link.
struct Packet {
    var flow: Int
    /// Bytes of the stream in it.
    var payload: Int
    /// Bytes of the packet that the link has still to carry.
    var left: Int
    /// Bytes of the stream up to its end.
    var end: Int
}
