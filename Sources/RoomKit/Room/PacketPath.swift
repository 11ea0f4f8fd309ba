import Adaptation
import MediaCore
import RoomProtocol
import Threading
import WebSockets

/// The handler of a room's connection: it sends and receives packets itself, and passes everything else to the room.
///
/// Confined to the loop's thread. It is not part of the actor, because this code runs for every packet, and entering an
/// actor from a callback (`assumeIsolated`) allocates memory each time.
final class PacketPath {
    /// A track that is received.
    private final class Reception {
        var assembler = FrameAssembler()
        var continuity = BaseLayerContinuity()
        /// How many frames of another simulcast layer have come since the last frame of the received one.
        var foreignInARow = 0
        let receiver: VideoReceiver

        init(_ receiver: VideoReceiver) {
            self.receiver = receiver
        }
    }

    /// The room, from its request for a connection to the connection's end; a joined room stays alive until then.
    var room: Room?
    /// The room's connection, while there is one.
    private(set) var connection: WebSocketConnection?

    /// Decides what the connection carries; it gets a report of what is sent and what the server acknowledges.
    private let uplink: Uplink
    /// Signaling messages that wait to be sent; they go out before packets.
    private var signals: [OutgoingMessage] = []
    private var lanes: [EncodingLane] = []
    private var turns = RoundRobin()
    private var receptions: [UInt32: Reception] = [:]
    private let packets = PacketBufferPool()
    /// Counts what the connection delivers, and decides when to acknowledge it.
    private var arrivals = AcknowledgementSchedule(acknowledgementSettings)
    /// The acknowledgement that is to be sent; there is never more than one.
    private var isAcknowledgementDue = false
    private var hasReceivedMedia = false

    /// The end of a frame is acknowledged at once, because that needs no timer; many tracks stay within
    /// `media.participantAcknowledgements` of the server.
    private static let acknowledgementSettings: AcknowledgementSchedule.Settings = {
        var settings = AcknowledgementSchedule.Settings()
        settings.coalescing = 0
        return settings
    }()

    /// This many frames of another simulcast layer in a row mean that the server has changed to it.
    ///
    /// Fewer may come between frames of the received one.
    private static let foreignFramesOfChange = 5

    /// A path that reports to `uplink`.
    init(uplink: Uplink) {
        self.uplink = uplink
    }

    /// Tells the connection that there is something to send, so that it asks for the next message.
    func requestWrite() {
        connection?.requestWrite()
    }

    /// Drops the connection and the signaling messages that were still to be sent.
    private func connectionEnded() {
        connection = nil
        uplink.setDeliveredPackets(nil)
        signals = []
    }

    // MARK: Sending

    /// Sends `signal` before all packets.
    func send(_ signal: OutgoingMessage) {
        signals.append(signal)
        requestWrite()
    }

    /// Sends packets of `lane` too; all lanes take turns.
    func add(_ lane: EncodingLane) {
        lanes.append(lane)
    }

    /// Takes no more packets of `lane`.
    func remove(_ lane: EncodingLane) {
        lanes.removeAll { $0 === lane }
    }

    /// Whether anything waits to be sent.
    private var hasMessage: Bool {
        isAcknowledgementDue || !signals.isEmpty || lanes.contains { !$0.sendQueue.isEmpty }
    }

    /// Takes the message to send next, which counts as written; `nil` if nothing waits.
    private func takeMessage(at now: MonotonicInstant) -> OutgoingMessage? {
        // Behind other messages, an acknowledgement would show a queue that is our own.
        if isAcknowledgementDue, let acknowledgement = acknowledgement(at: now) {
            uplink.wroteAcknowledgement(acknowledgement.count)
            return .exclusive(acknowledgement)
        }
        if !signals.isEmpty {
            let signal = signals.removeFirst()
            if case .text(let text) = signal { uplink.wroteText(text.utf8.count) }
            return signal
        }
        for offset in lanes.indices {
            let index = turns.index(offset, of: lanes.count)
            let lane = lanes[index]
            let step = lane.sendQueue.take(at: now)
            if let packet = step.packet {
                turns.served(index)
                uplink.wrote(packet.count, of: lane.seat)
                return .exclusive(packet)
            }
            if step.hasGivenUp { uplink.gaveUp(of: lane.seat) }
        }
        return nil
    }

    private func acknowledgement(at now: MonotonicInstant) -> PacketBuffer? {
        isAcknowledgementDue = false
        guard let acknowledgement = arrivals.acknowledgement(at: now) else { return nil }
        let packet = packets.take(count: MediaAcknowledgement.length)
        packet.withMutableBytes { acknowledgement.write(to: &$0) }
        return packet
    }

    // MARK: Receiving

    /// Notes that a text message is whole, which an acknowledgement of media covers as well.
    private func textEnded(at now: MonotonicInstant) {
        arrivals.messageEnded(isAcknowledgement: false)
        acknowledgeIfDue(at: now)
    }

    private func acknowledgeIfDue(at now: MonotonicInstant) {
        // Without media there is nothing to estimate.
        guard hasReceivedMedia, !isAcknowledgementDue, arrivals.isDue(at: now) else { return }
        isAcknowledgementDue = true
        requestWrite()
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
    private func receive(_ packet: PacketBuffer) throws(MalformedPacket) {
        let now = MonotonicClock.now
        let kind = packet.withBytes { binaryMessageKind(of: $0) }
        guard kind == .video else {
            arrivals.messageEnded(isAcknowledgement: kind == .acknowledgement)
            if kind == .acknowledgement { try receiveAcknowledgement(packet) }
            return
        }
        let header: MediaPacketHeader
        do throws(MalformedPacket) {
            header = try packet.withBytes { bytes throws(MalformedPacket) in try MediaPacketHeader(reading: bytes) }
        } catch {
            arrivals.messageEnded(isAcknowledgement: false)
            throw error
        }
        note(header, at: now)
        guard let reception = receptions[header.trackAlias] else { return }
        switch try reception.assembler.receive(packet, header: header, makeBuffer: { packets.take(count: $0) }) {
        case .incomplete: break
        case .foreign: noteForeignFrame(of: reception)
        case .encrypted: reception.receiver.receiveEncrypted()
        case .frame(let frame):
            reception.foreignInARow = 0
            let isAfterLoss = reception.continuity.noteFrame(frame.header)
            reception.receiver.receive(frame, isAfterLoss: isAfterLoss, at: now)
        }
    }

    /// Requests a keyframe, once, if the server has changed to another simulcast layer without one.
    private func noteForeignFrame(of reception: Reception) {
        reception.foreignInARow += 1
        guard reception.foreignInARow == Self.foreignFramesOfChange else { return }
        reception.receiver.track.requestKeyframe()
    }

    private func receiveAcknowledgement(_ packet: PacketBuffer) throws(MalformedPacket) {
        let acknowledgement = try packet.withBytes { bytes throws(MalformedPacket) in
            try MediaAcknowledgement(reading: bytes)
        }
        uplink.acknowledged(acknowledgement)
    }

    /// Notes a packet for the acknowledgements, also one of a track that is not received any more.
    private func note(_ header: MediaPacketHeader, at now: MonotonicInstant) {
        hasReceivedMedia = true
        arrivals.chunkEnded(AcknowledgementSchedule.Chunk(header, sentTime: header.relayTime?.microseconds))
        acknowledgeIfDue(at: now)
    }
}

extension PacketPath: WebSocketHandler {
    func opened(_ connection: WebSocketConnection) {
        self.connection = connection
        let path = connection.path
        uplink.setDeliveredPackets { path.deliveredPackets }
        room?.assumeIsolated { $0.connectionOpened() }
    }

    func receivedBytes(_ count: Int, from connection: WebSocketConnection, at now: MonotonicInstant) {
        arrivals.received(count, at: now)
        guard arrivals.isDueWithinFrame(at: now) else { return }
        acknowledgeIfDue(at: now)
    }

    func receivedText(_ text: String, from connection: WebSocketConnection) {
        textEnded(at: MonotonicClock.now)
        room?.assumeIsolated { $0.received(text) }
    }

    func receivedBinary(_ message: PacketBuffer, from connection: WebSocketConnection) {
        // A packet that breaks the wire format is dropped, with its frame. Later packets may be good.
        try? receive(message)
    }

    func nextMessage(for connection: WebSocketConnection, at now: MonotonicInstant) -> OutgoingMessage.Turn? {
        takeMessage(at: now).map { (message: $0, isLast: !hasMessage) }
    }

    func closed(_ connection: WebSocketConnection, _ closure: WebSocketClosure) {
        connectionEnded()
        // From here on, only the application keeps the room.
        guard let room else { return }
        self.room = nil
        room.assumeIsolated { $0.connectionClosed(closure) }
    }
}
