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
    }

    /// Bytes that the socket takes before the link has carried them: what the kernel holds unsent, and in flight.
    private static let socketBytes = 64_000

    let peer: Peer
    /// What the link carries, in bits per second.
    var bitsPerSecond: Double
    /// Whether the viewer reads and acknowledges.
    var isReading = true
    /// Whether the viewer acknowledges at all.
    let acknowledges: Bool
    /// The ages of frames since the relay got them, in milliseconds, by the time at which they were whole.
    private(set) var ages: [(time: Int, age: Double)] = []
    /// The simulcast layers of these frames.
    private(set) var layers: [Int] = []
    /// Bytes of media that have arrived.
    private(set) var bytesReceived = 0
    private let bench: RelayBench
    private let delay: Duration
    private var schedule = AcknowledgementSchedule()
    private var link: [Message] = []
    private var arriving: [(time: MonotonicInstant, message: Message)] = []
    private var returning: [(time: MonotonicInstant, body: MediaAcknowledgement)] = []
    private(set) var acknowledgementsSent = 0

    init(
        _ bench: RelayBench,
        _ identity: String,
        bitsPerSecond: Double,
        delay: Duration = .milliseconds(50),
        acknowledges: Bool = true
    ) {
        self.bench = bench
        self.bitsPerSecond = bitsPerSecond
        self.delay = delay
        self.acknowledges = acknowledges
        peer = bench.enter(identity)
    }

    /// Bytes that were handed to the socket and have not reached the viewer's machine.
    private var bytesUnderway: Int {
        link.reduce(0) { $0 + $1.bytes } + arriving.reduce(0) { $0 + ($1.time > bench.now ? $1.message.bytes : 0) }
    }

    /// A millisecond passes, which ends at the bench's time.
    func tick(at milliseconds: Int) {
        takeFromRelay()
        carry()
        while isReading, let first = arriving.first, first.time <= bench.now {
            arriving.removeFirst()
            receive(first.message, at: milliseconds)
        }
        while let first = returning.first, first.time <= bench.now {
            returning.removeFirst()
            bench.send(first.body, from: peer)
        }
    }

    private func takeFromRelay() {
        while bytesUnderway < Self.socketBytes {
            let (bytes, packets) = (peer.bytesTaken, peer.packets.count)
            bench.pull(peer, limit: 1)
            guard peer.bytesTaken > bytes else { return }
            let packet = peer.packets.count > packets ? peer.packets.last : nil
            let media = packet?.count ?? 0
            let text = peer.bytesTaken - bytes - media
            if text > 0 { link.append(Message(header: nil, bytes: text, left: Double(text))) }
            if let packet { link.append(Message(header: try? packet.header(), bytes: media, left: Double(media))) }
        }
    }

    private func carry() {
        var budget = bitsPerSecond / 8000
        while budget > 0, !link.isEmpty {
            let part = min(budget, link[0].left)
            link[0].left -= part
            budget -= part
            guard link[0].left <= 0 else { return }
            arriving.append((bench.now + delay, link.removeFirst()))
        }
    }

    private func receive(_ message: Message, at milliseconds: Int) {
        schedule.received(message.bytes, at: bench.now)
        if let header = message.header, let relayTime = header.relayTime {
            bytesReceived += message.bytes
            let age = bench.now.microseconds - relayTime.microseconds
            schedule.chunkEnded(AcknowledgementSchedule.Chunk(header, sentTime: relayTime.microseconds))
            if header.isLastChunk {
                ages.append((milliseconds, Double(age) / 1000))
                layers.append(Int(header.simulcastLayer))
            }
        } else {
            schedule.messageEnded(isAcknowledgement: false)
        }
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
    /// The encodings that the camera sends if they are wanted.
    var sendsLayer: (Int) -> Bool = { _ in true }

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
            if milliseconds % 33 == 0 { sendFrames() }
            for viewer in viewers { viewer.tick(at: milliseconds) }
            bench.pull(camera.publisher)
            body(milliseconds)
        }
    }

    private func sendFrames() {
        let announced = camera.track.simulcastLayers ?? []
        for encoding in bench.encodings(of: camera) where sendsLayer(encoding.simulcastLayer) {
            guard let wanted = encoding.wanted else { continue }
            let most = announced.isEmpty ? cap : announced[encoding.simulcastLayer].bitrate.map(Double.init) ?? cap
            let rate = min(most, wanted.bitrate.map(Double.init) ?? most)
            encoding.bytesPerFrame = max(200, Int(rate * 0.033 / 8) - 48)
            bench.frame(encoding)
        }
    }
}
