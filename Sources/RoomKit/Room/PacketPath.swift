import MediaCore
import RoomProtocol
import Threading
import WebSockets

/// Sends and receives a room's messages and packets; confined to the loop's thread.
///
/// It is not part of the actor, because this code runs for every packet. Entering an actor from a callback
/// (`assumeIsolated`) allocates twice each time (measured).
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

    /// Signaling messages that wait to be sent; they go out before packets.
    private var signals: [OutgoingMessage] = []
    private var queues: [SendQueue] = []
    private var turn = 0
    private var receptions: [UInt32: Reception] = [:]
    private let packets = PacketBufferPool()
    /// What has come over the connection, and when to acknowledge it.
    private var arrivals = AcknowledgementSchedule()

    /// Tells the connection that there is something to send, so that it asks for the next message.
    func requestWrite() {
        connection?.requestWrite()
    }

    /// Drops the connection and the signaling messages that were still to be sent.
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

    /// Sends packets from `queue` too; all queues take turns.
    func add(_ queue: SendQueue) {
        queues.append(queue)
    }

    /// Takes no more packets from `queue`.
    func remove(_ queue: SendQueue) {
        queues.removeAll { $0 === queue }
    }

    /// Whether anything waits to be sent.
    var hasMessage: Bool { arrivals.isDue || !signals.isEmpty || queues.contains { !$0.isEmpty } }

    /// The next message to send; `nil` if nothing waits.
    func nextMessage(at now: MonotonicInstant) -> OutgoingMessage? {
        // Behind other messages an acknowledgement would tell of a queue that is our own.
        if arrivals.isDue { return .exclusive(acknowledgement(at: now)) }
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

    private func acknowledgement(at now: MonotonicInstant) -> PacketBuffer {
        let packet = packets.take(count: MediaAcknowledgement.length)
        let acknowledgement = arrivals.take(at: now)
        packet.withMutableBytes { acknowledgement.write(to: &$0) }
        return packet
    }

    // MARK: Receiving

    /// Counts a text message of `bytes` bytes, which an acknowledgement of media covers as well.
    func receivedText(_ bytes: Int, at now: MonotonicInstant) {
        arrivals.count(bytes, at: now)
        arrivals.receivedText(at: now)
        if arrivals.isDue { requestWrite() }
    }

    /// Whether packets with `alias` are received.
    func receives(_ alias: UInt32) -> Bool { receptions[alias] != nil }

    /// Begins to pass frames of the track with `alias` to `receiver`.
    func begin(_ receiver: VideoReceiver, alias: UInt32) {
        receptions[alias] = Reception(receiver)
    }

    /// Stops passing on frames of the track with `alias`; returns the receiver that took them.
    func endReception(of alias: UInt32) -> VideoReceiver? {
        receptions.removeValue(forKey: alias)?.receiver
    }

    /// Takes a binary message.
    func receive(_ packet: PacketBuffer) throws(MalformedPacket) {
        let now = MonotonicClock.now
        arrivals.count(packet.count, at: now)
        guard packet.withBytes({ binaryMessageKind(of: $0) }) == .video else { return }
        let header = try packet.withBytes { bytes throws(MalformedPacket) in try MediaPacketHeader(reading: bytes) }
        note(header, at: now)
        guard let reception = receptions[header.trackAlias] else { return }
        let frame = try reception.assembler.receive(packet, header: header) { count in packets.take(count: count) }
        guard let frame else { return }
        let isAfterLoss = reception.continuity.isLoss(before: frame.header)
        reception.receiver.receive(frame, isAfterLoss: isAfterLoss, at: now)
    }

    /// Notes a packet for the acknowledgements, also one of a track that is not received any more.
    private func note(_ header: MediaPacketHeader, at now: MonotonicInstant) {
        // The two clocks differ by a constant, which does not matter here.
        let delay = header.relayTime.map { now.microseconds &- $0.microseconds } ?? .max
        arrivals.receivedPacket(header, delay: delay, at: now)
        if arrivals.isDue { requestWrite() }
    }
}
