import MediaCore
import RelayCore
import RoomProtocol
import TestTools
import Testing

/// A relay with its driver: a clock that stands until it is moved, and sockets that take what they are told to.
final class RelayBench {
    var relay: Relay
    var now = MonotonicInstant(nanoseconds: 1_000_000_000)
    var generator: SeededGenerator
    var cameras: [UInt32: Camera] = [:]
    /// The cameras of the other encodings of a track, by its alias and in order of their numbers.
    var furtherCameras: [UInt32: [Camera]] = [:]
    private var awakened: [SlotID] = []
    private var overdue: [SlotID] = []
    /// When the relay wants to be called.
    private var deadline: MonotonicInstant?
    private var awake: Set<SlotID> = []
    /// Packets that all peers together have taken.
    var mediaTaken = 0
    private(set) var notices: [RelayNotice] = []
    /// Pings that the relay has asked for, of all connections.
    private(set) var pings = 0
    /// Connections whose peers answer no ping.
    var unreachable: Set<SlotID> = []

    init(seed: UInt64 = 1, videoCodecs: [String] = [VideoCodec.vp8], _ change: (inout RelaySettings) -> Void = { _ in })
    {
        var settings = RelaySettings()
        change(&settings)
        relay = Relay(settings: settings, videoCodecs: videoCodecs, bootID: "boot", serverName: "bench")
        generator = SeededGenerator(seed: seed)
    }

    // MARK: Peers

    func open(subprotocol: String? = WireFormat.subprotocol, path: String = "/") -> Peer {
        Peer(id: relay.connectionOpened(subprotocol: subprotocol, path: path, at: now))
    }

    func send(_ message: ClientMessage, from peer: Peer) { send(text: message.text, from: peer) }

    func send(text: String, from peer: Peer) {
        peer.bytesSent += text.utf8.count
        relay.receive(text, from: peer.id, at: now, using: &generator)
    }

    /// The peer acknowledges what it has been sent so far, or `bytes`.
    func acknowledge(_ peer: Peer, bytes: Int? = nil, receivedAt time: MonotonicInstant? = nil) {
        let body = MediaAcknowledgement(
            cumulativeBytes: UInt64(bytes ?? peer.bytesTaken),
            receiveTime: .init(microseconds: UInt64((time ?? now).microseconds)),
            trackAlias: 0,
            frameNumber: 0
        )
        send(body, from: peer)
    }

    func send(_ body: MediaAcknowledgement, from peer: Peer) {
        let packet = PacketBuffer(capacity: MediaAcknowledgement.length)
        packet.count = MediaAcknowledgement.length
        packet.withMutableBytes { body.write(to: &$0) }
        receive([packet], from: peer)
    }

    /// Joins, and takes what the relay says.
    func join(_ identity: String, room: String = "room", automatic: Bool? = nil) -> Peer {
        let peer = enter(identity, room: room, automatic: automatic)
        pull(peer)
        return peer
    }

    /// Joins, and takes nothing.
    func enter(_ identity: String, room: String = "room", automatic: Bool? = nil) -> Peer {
        let peer = open()
        send(.join(Join(room: room, identity: identity, automaticSubscription: automatic)), from: peer)
        return peer
    }

    func close(_ peer: Peer) { relay.connectionClosed(peer.id, at: now) }

    // MARK: Time

    /// Moves the clock, stopping at each deadline on the way.
    func advance(_ duration: Duration) {
        let end = now + duration
        takeEffects()
        while let due = deadline, due <= end {
            now = max(now, due)
            relay.deadlineReached(at: now)
            takeEffects()
            // Otherwise a driver's loop would spin.
            if let next = deadline, next <= now { Issue.record("still due at \(next) of \(now)") }
        }
        now = end
    }

    /// Whether the relay has woken the connection of `peer` since that was last sent everything.
    ///
    /// A driver asks for messages only then.
    func isAwake(_ peer: Peer) -> Bool {
        takeEffects()
        return awake.contains(peer.id)
    }

    func fallAsleep(_ peer: Peer) { awake.remove(peer.id) }

    func takeAwakened() -> [SlotID] {
        takeEffects()
        defer { awakened = [] }
        return awakened
    }

    func takeOverdue() -> [SlotID] {
        takeEffects()
        defer { overdue = [] }
        return overdue
    }

    func takeEffects() {
        while let effect = relay.nextEffect() {
            switch effect {
            case .wake(let id, _, _):
                awakened.append(id)
                awake.insert(id)
            case .cut(let id): overdue.append(id)
            case .ping(let id):
                pings += 1
                if !unreachable.contains(id) { relay.answered(id, at: now) }
            case .log(let notice): notices.append(notice)
            case .callBack(let time):
                // A driver would call back at once, and again and again while nothing else happens.
                if let time, time <= now { Issue.record("to be called back at \(time), at \(now)") }
                deadline = time
            }
        }
    }
}
