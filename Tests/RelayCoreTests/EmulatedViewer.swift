import Adaptation
import MediaCore
import RelayCore
import RoomProtocol

/// A subscriber behind an emulated link: a socket buffer, a rate, a delay each way, and acknowledgements.
final class EmulatedViewer {
    /// A message on its way to the viewer.
    private struct Message {
        var header: MediaPacketHeader?
        var bytes: Int
        var left: Double
        /// Whole bytes that the link has carried.
        var carried = 0
    }

    /// Bytes of a message that arrive, and the message if they are its last.
    private struct Part {
        var time: MonotonicInstant
        var bytes: Int
        var message: Message?
    }

    /// A frame that has arrived.
    struct Frame {
        var trackAlias: UInt32
        var number: UInt32
        var layer: Int
        var isKeyframe: Bool
        /// When it was whole, in milliseconds of the room.
        var time: Int
        /// Since the relay got its last packet's first byte, in milliseconds.
        var age: Double
        var bytes: Int
    }

    let peer: Peer
    /// Bytes that the socket takes before the link has carried them: what the kernel holds unsent, and in flight.
    private let socketBytes: Int
    /// Whether it acknowledges parts of messages, and not only whole messages.
    private let countsParts: Bool
    /// What the link carries, in bits per second.
    var bitsPerSecond: Double
    /// Whether TCP holds back what is sent, to measure the round trip: four packets are on their way then, as with BBR.
    var isHeld = false
    /// Whether the relay's socket can say so.
    var saysWhenHeld = true
    /// While TCP repeats packets that the link lost, what comes behind them arrives together after such times, in
    /// milliseconds.
    var repetition: Int?
    /// Whether the viewer reads and acknowledges.
    var isReading = true
    /// Whether the viewer acknowledges at all.
    let acknowledges: Bool
    private(set) var frames: [Frame] = []
    /// The ages of frames since the relay got them, in milliseconds, by the time at which they were whole.
    var ages: [(time: Int, age: Double)] { frames.map { ($0.time, $0.age) } }
    /// The simulcast layers of these frames.
    var layers: [Int] { frames.map(\.layer) }
    /// Bytes of media that have arrived.
    private(set) var bytesReceived = 0
    private let bench: RelayBench
    private let delay: Duration
    private var schedule = AcknowledgementSchedule(EmulatedViewer.acknowledging)
    /// Our client's, which has no timer.
    private static let acknowledging = {
        var settings = AcknowledgementSchedule.Settings()
        settings.coalescing = 0
        return settings
    }()
    private var link: [Message] = []
    private var arriving: [Part] = []
    private var bytesUnderway = 0
    private var returning: [(time: MonotonicInstant, body: MediaAcknowledgement)] = []
    private(set) var acknowledgementsSent = 0

    init(
        _ bench: RelayBench,
        _ identity: String,
        bitsPerSecond: Double,
        delay: Duration = .milliseconds(50),
        acknowledges: Bool = true,
        socketBytes: Int = 64_000,
        countsParts: Bool = false
    ) {
        self.bench = bench
        self.socketBytes = socketBytes
        self.countsParts = countsParts
        self.bitsPerSecond = bitsPerSecond
        self.delay = delay
        self.acknowledges = acknowledges
        peer = bench.enter(identity)
    }

    /// The frames that a client shows: all but those from the relay's cache.
    func shownFrames(of camera: Camera) -> [Frame] {
        let receiver = peer.receiver(camera)
        return frames.filter { frame in
            guard let through = receiver?.catchUpThrough, frame.layer == receiver?.firstLayer else { return true }
            return frame.number > through
        }
    }

    /// A millisecond passes, which ends at the bench's time.
    func tick(at milliseconds: Int) {
        takeFromRelay()
        carry(at: milliseconds)
        let count = isReading ? arriving.prefix { $0.time <= bench.now }.count : 0
        for part in arriving.prefix(count) { receive(part, at: milliseconds) }
        arriving.removeFirst(count)
        if isReading, countsParts { acknowledgeWithinFrame() }
        while let first = returning.first, first.time <= bench.now {
            returning.removeFirst()
            if isHeld, saysWhenHeld { bench.relay.pathIsHeld(to: peer.id, at: bench.now) }
            bench.send(first.body, from: peer)
        }
    }

    private func takeFromRelay() {
        while bytesUnderway < socketBytes, bench.isAwake(peer) {
            let (bytes, packets) = (peer.bytesTaken, peer.packets.count)
            bench.pull(peer, limit: 1)
            guard peer.bytesTaken > bytes else { return }
            bytesUnderway += peer.bytesTaken - bytes
            let packet = peer.packets.count > packets ? peer.packets.last : nil
            let media = packet?.count ?? 0
            let text = peer.bytesTaken - bytes - media
            if text > 0 { link.append(Message(header: nil, bytes: text, left: Double(text))) }
            if let packet { link.append(Message(header: try? packet.header(), bytes: media, left: Double(media))) }
        }
    }

    private func arrival(at milliseconds: Int) -> MonotonicInstant {
        guard let repetition else { return bench.now + delay }
        return bench.now + delay + .milliseconds(repetition - milliseconds % repetition)
    }

    private func carry(at milliseconds: Int) {
        let roundTrip = 2 * delay.milliseconds
        var budget = isHeld ? min(bitsPerSecond / 8000, 4 * 1448 / roundTrip) : bitsPerSecond / 8000
        while budget > 0, !link.isEmpty {
            let part = min(budget, link[0].left)
            link[0].left -= part
            budget -= part
            let isWhole = link[0].left <= 0
            let carried = isWhole ? link[0].bytes : link[0].bytes - Int(link[0].left.rounded(.up))
            let bytes = carried - link[0].carried
            link[0].carried = carried
            let message = isWhole ? link.removeFirst() : nil
            if bytes > 0 { arriving.append(Part(time: arrival(at: milliseconds), bytes: bytes, message: message)) }
        }
    }

    private func receive(_ part: Part, at milliseconds: Int) {
        bytesUnderway -= part.bytes
        if countsParts { schedule.received(part.bytes, at: bench.now) }
        guard let message = part.message else { return countsParts ? acknowledgeWithinFrame() : () }
        if !countsParts { schedule.received(message.bytes, at: bench.now) }
        receive(message, at: milliseconds)
        acknowledgeIfDue()
    }

    private func receive(_ message: Message, at milliseconds: Int) {
        guard let header = message.header, let relayTime = header.relayTime else {
            return schedule.messageEnded(isAcknowledgement: false)
        }
        bytesReceived += message.bytes
        schedule.chunkEnded(AcknowledgementSchedule.Chunk(header, sentTime: relayTime.microseconds))
        guard header.isLastChunk else { return }
        let frame = Frame(
            trackAlias: header.trackAlias,
            number: header.frameNumber,
            layer: Int(header.simulcastLayer),
            isKeyframe: header.isKeyframe,
            time: milliseconds,
            age: Double(bench.now.microseconds - relayTime.microseconds) / 1000,
            bytes: Int(header.frameLength)
        )
        frames.append(frame)
    }

    private func acknowledgeWithinFrame() {
        if schedule.isDueWithinFrame(at: bench.now) { acknowledgeIfDue() }
    }

    private func acknowledgeIfDue() {
        guard acknowledges, let body = schedule.acknowledgement(at: bench.now) else { return }
        acknowledgementsSent += 1
        returning.append((bench.now + delay, body))
    }
}

/// A camera that follows what the relay wants of it, and viewers behind links.
struct EmulatedRoom {
    let bench: RelayBench
    let camera: Camera
    var viewers: [EmulatedViewer]
    /// The camera's highest rate, in bits per second.
    let cap: Double
    private(set) var milliseconds = 0
    /// The time from one frame to the next, in milliseconds; what the camera announces stays 30 frames a second.
    var frameInterval = 33
    /// The encodings that the camera sends if they are wanted.
    var sendsLayer: (Int) -> Bool = { _ in true }
    /// What is captured instead of a moving picture.
    var screen: EmulatedScreen?

    init(
        cap: Double,
        temporalLayers: Int = 1,
        layers: [SimulcastLayer]? = nil,
        _ makeViewers: (RelayBench) -> [EmulatedViewer]
    ) throws {
        bench = RelayBench()
        let robot = bench.join("robot")
        viewers = makeViewers(bench)
        guard let camera = bench.publish(robot, layers: layers) else { throw MalformedPacket("no track") }
        self.camera = camera
        self.cap = cap
        for encoding in bench.encodings(of: camera) { encoding.temporalLayerCount = temporalLayers }
    }

    /// The numbers of the encodings that are wanted.
    var wanted: [Int] { bench.encodings(of: camera).filter { $0.wanted != nil }.map(\.simulcastLayer) }

    /// The camera's rate at present, in bits per second.
    var rate: Double { min(cap, camera.wanted?.bitrate.map(Double.init) ?? cap) }

    mutating func run(_ duration: Int, everyMillisecond body: (Int) -> Void = { _ in }) {
        for _ in 0..<duration {
            bench.advance(.milliseconds(1))
            milliseconds += 1
            if milliseconds % frameInterval == 0 { sendFrames() }
            for viewer in viewers { viewer.tick(at: milliseconds) }
            bench.pull(camera.publisher)
            body(milliseconds)
        }
    }

    private mutating func sendFrames() {
        let announced = camera.track.simulcastLayers ?? []
        for encoding in bench.encodings(of: camera) where sendsLayer(encoding.simulcastLayer) {
            guard let wanted = encoding.wanted else { continue }
            let most = announced.isEmpty ? cap : announced[encoding.simulcastLayer].bitrate.map(Double.init) ?? cap
            let rate = min(most, wanted.bitrate.map(Double.init) ?? most)
            if screen != nil {
                let bytes = screen?.prepare(encoding, rate: rate, at: milliseconds)
                guard let bytes else { continue }
                encoding.bytesPerFrame = bytes
                bench.frame(encoding)
                continue
            }
            encoding.bytesPerFrame = max(200, Int(rate * Double(frameInterval) / 8000) - 48)
            bench.frame(encoding)
        }
    }
}
