import MediaCore
import RoomProtocol
import Threading
import WebSockets

/// What a room sends and receives; confined to its loop's thread.
///
/// It stands beside the actor because entering an actor from a callback (`assumeIsolated`) allocates, twice each time
/// (measured), and this is done for every packet.
final class PacketPath {
    /// A track that is received.
    private final class Reception {
        var assembler = FrameAssembler()
        var continuity = BaseLayerContinuity()
        let receiver: VideoReceiver

        init(_ receiver: VideoReceiver) {
            self.receiver = receiver
        }
    }

    /// The room's connection, while there is one.
    var connection: WebSocketConnection?

    /// What is to be sent besides packets, and before them.
    private var signals: [OutgoingMessage] = []
    private var queues: [SendQueue] = []
    private var turn = 0
    private var receptions: [UInt32: Reception] = [:]
    private let packets = PacketBufferPool()

    /// Makes the connection ask for messages.
    func requestWrite() {
        connection?.requestWrite()
    }

    /// Lets go of the connection, and of what it was to be told.
    func connectionEnded() {
        connection = nil
        signals = []
    }

    // MARK: Sending

    /// Sends `signal` before all packets.
    func send(_ signal: OutgoingMessage) {
        signals.append(signal)
        requestWrite()
    }

    /// Takes packets from `queue`, too, by turns.
    func add(_ queue: SendQueue) {
        queues.append(queue)
    }

    /// Takes no more packets from `queue`.
    func remove(_ queue: SendQueue) {
        queues.removeAll { $0 === queue }
    }

    /// Whether anything waits to be sent.
    var hasMessage: Bool { !signals.isEmpty || queues.contains { !$0.isEmpty } }

    /// What is sent next.
    func nextMessage(at now: MonotonicInstant) -> OutgoingMessage? {
        if !signals.isEmpty { return signals.removeFirst() }
        for offset in queues.indices {
            let index = (turn + offset) % queues.count
            if let packet = queues[index].next(at: now) {
                turn = index + 1
                return .exclusive(packet)
            }
        }
        return nil
    }

    // MARK: Receiving

    /// Whether packets with `alias` are received.
    func receives(_ alias: UInt32) -> Bool { receptions[alias] != nil }

    /// Hands frames of the track with `alias` to `receiver`.
    func begin(_ receiver: VideoReceiver, alias: UInt32) {
        receptions[alias] = Reception(receiver)
    }

    /// Hands out no more frames of the track with `alias`; returns what has taken them.
    func endReception(of alias: UInt32) -> VideoReceiver? {
        receptions.removeValue(forKey: alias)?.receiver
    }

    /// Takes a binary message.
    func receive(_ packet: PacketBuffer) throws(MalformedPacket) {
        guard packet.withBytes({ binaryMessageKind(of: $0) }) == .video else { return }
        let header = try packet.withBytes { bytes throws(MalformedPacket) in try MediaPacketHeader(reading: bytes) }
        guard let reception = receptions[header.trackAlias] else { return }
        let frame = try reception.assembler.receive(packet, header: header) { count in packets.take(count: count) }
        guard let frame else { return }
        let isAfterLoss = reception.continuity.isLoss(before: frame.header)
        reception.receiver.receive(frame, isAfterLoss: isAfterLoss, at: MonotonicClock.now)
    }
}
