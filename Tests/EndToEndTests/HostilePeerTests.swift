import Glibc
import MediaCore
import RelayCore
import RelayServer
import RoomKit
import RoomProtocol
import TestSupport
import Testing
import WebSockets

/// In each test a publisher and a subscriber go on undisturbed, as the numbers on the wire and in the pictures tell.
@Suite("Hostile peers of the relay", .timeLimit(.minutes(2)))
struct HostilePeerTests {
    let stage: Stage
    let bystanders: Bystanders

    init() async throws {
        stage = try Stage { options in
            // So that it is the backlogs that end things here; the meter of messages has its own tests.
            options.relay.messageBurst = 1_000_000
            options.relay.maximumOutbox = .kibibytes(64)
            // Under a sanitizer, a slow machine floods with little more than the usual 2,000 packets a second.
            options.relay.media.trackPackets = 200
            // Longer than this process may be stopped between the parts of a peer's joining.
            options.relay.joinTimeout = .seconds(5)
            options.relay.closeTimeout = .milliseconds(500)
            options.handshakeTimeout = .seconds(5)
        }
        bystanders = try await Bystanders(on: stage)
    }

    private var port: UInt16 { stage.server.port }

    /// A peer that has joined a room where the bystanders are not, and published a track.
    private func publisher(_ identity: String) throws -> (peer: RawPeer, alias: UInt32) {
        let peer = try RawPeer(joining: "hostile", as: identity, port: port)
        return (peer, try #require(peer.publish("camera")))
    }

    /// A pager, Ctrl-S in a terminal, a full pipe: what is logged is often what a peer does.
    @Test(
        "A server whose log nobody reads serves on",
        .enabled(if: Program.isAllowed),
        arguments: [Program.Reading.unread, .closed]
    )
    func unreadLog(errors: Program.Reading) async throws {
        let port = try SilentServer().port
        // A report of leaks would wait for its reader.
        let server = try Program(
            "room-server",
            ["--port", "\(port)", "--verbose"],
            errors: errors,
            areLeaksSought: false
        )
        try await eventually("the server listens") { (try? RawPeer(port: port)) != nil }
        for index in 0..<300 {
            let peer = try RawPeer(joining: "room", as: "guest-\(index)", port: port)
            let joined = peer.message { if case .joined(let body) = $0 { body.participant.identity } else { nil } }
            #expect(joined == "guest-\(index)")
        }
        server.send(SIGTERM)
        #expect(try await server.end() == .exit(0))
    }

    @Test("Bytes that are no WebSocket are hung up on")
    func garbage() async throws {
        var random = SeededBytes(seed: 1)
        let lengths = [1, 10, 100, 1000, 20_000]
        let strangers = try lengths.map { length in
            let peer = try RawPeer(port: port)
            peer.send(random.next(length) + [13, 10, 13, 10])
            return peer
        }
        let liars = try lengths.map { length in
            let peer = try RawPeer(port: port)
            #expect(peer.handshake().contains("101"))
            peer.send(random.next(length))
            return peer
        }
        for peer in strangers {
            #expect(!String(decoding: peer.receiveAll(), as: UTF8.self).contains("101 Switching"))
        }
        // What looks like the beginning of a long message is ended when the time to join is over.
        for peer in liars { _ = peer.receiveAll() }
        let browser = try RawPeer(port: port)
        browser.send(Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
        #expect(String(decoding: browser.receiveAll(), as: UTF8.self).contains("room server"))
        try await bystanders.checkUndisturbed()
    }

    @Test("Half a handshake, half a header and half a message hold nobody up")
    func halves() async throws {
        let peers = try (0..<4).map { _ in try RawPeer(port: port) }
        peers[0].send(Array("GET / HTTP/1.1\r\nHost".utf8))
        for peer in peers[1...] { peer.handshake() }
        peers[1].send([0x82])
        peers[2].send(Array(clientFrame(opcode: 2, [UInt8](repeating: 0, count: 300)).prefix(100)))
        let alive = try RawPeer(joining: "hostile", as: "half", port: port)
        let packet = try #require(makeVideoPackets(alias: 1, number: 0, payload: [0, 0, 0]).first)
        for length in 0..<packet.count { alive.send(clientFrame(opcode: 2, Array(packet.prefix(length)))) }
        #expect(alive.closeCode() == 4400)
        try await bystanders.frames(10)
        try await bystanders.checkUndisturbed()
        withExtendedLifetime(peers) {}
    }

    /// What makes a good header a bad one, and the close code that it meets; `nil` where it is passed over.
    private static let spoilings: [(String, Int?, @Sendable (inout [UInt8]) -> Void)] = [
        ("version 0", 4400, { $0[0] = 0 }),
        ("version 2", 4400, { $0[0] = 2 }),
        ("an unknown kind", nil, { $0[1] = 77 }),
        ("an acknowledgement that is none", 4400, { $0 = [1, 1, 0, 47] + $0[4..<40] }),
        ("a header of 0 bytes", 4400, { $0[2...3] = [0, 0] }),
        ("a header of 47 bytes", 4400, { $0[3] = 47 }),
        ("a header longer than the message", 4400, { $0[2...3] = [255, 255] }),
        ("no payload", 4400, { $0.removeLast($0.count - 48) }),
        ("no first flag", 4400, { $0[4] &= ~4 }),
        ("no last flag", 4400, { $0[4] &= ~8 }),
        ("a keyframe in layer 2", 4400, { $0[6] = 2 }),
        ("an alias of nobody", nil, { $0[8...11] = [255, 255, 255, 255] }),
        ("alias 0", nil, { $0[8...11] = [0, 0, 0, 0] }),
        ("a frame of 0 bytes", 4400, { $0[24...27] = [0, 0, 0, 0] }),
        ("a frame of 4 GiB", 4400, { $0[24...27] = [255, 255, 255, 255] }),
        ("a chunk beyond the frame", 4400, { $0[28...31] = [255, 255, 255, 255] }),
        (
            "a chunk inside of a frame that was not begun", 4400,
            {
                $0[4] &= ~4; $0[28...31] = [0, 0, 0, 1]; $0[27] += 1
            }
        ),
    ]

    @Test("A packet with a wrong header ends the session that sent it, and disturbs nobody")
    func wrongHeaders() async throws {
        let peers = try Self.spoilings.map { name, code, spoil in
            let (peer, alias) = try publisher(name)
            var packet = try #require(makeVideoPackets(alias: alias, number: 5, payload: [0, 1, 2, 3]).first)
            spoil(&packet)
            peer.send(clientFrame(opcode: 2, packet))
            if code == nil { peer.send(text: "{}") }
            return peer
        }
        for (peer, (name, _, _)) in zip(peers, Self.spoilings) { #expect(peer.closeCode() == 4400, "\(name)") }
        try await bystanders.checkUndisturbed()
    }

    @Test("Frames out of order end the session that sent them")
    func wrongOrder() async throws {
        let long = [UInt8](repeating: 0, count: 40_000)
        for (name, numbers) in [("twice", [5, 5]), ("backwards", [5, 4])] as [(String, [UInt32])] {
            let (peer, alias) = try publisher(name)
            for packet in numbers.flatMap({ makeVideoPackets(alias: alias, number: $0, payload: [0]) }) {
                peer.send(clientFrame(opcode: 2, packet))
            }
            #expect(peer.closeCode() == 4400, "\(name)")
        }
        let (peer, alias) = try publisher("a chunk left out")
        var packets = makeVideoPackets(alias: alias, number: 1, payload: long)
        packets.remove(at: 1)
        for packet in packets { peer.send(clientFrame(opcode: 2, packet)) }
        #expect(peer.closeCode() == 4400)
        try await bystanders.checkUndisturbed()
    }

    @Test("A packet of somebody else's track, and one before joining, end the session that sent it")
    func foreignTrack() async throws {
        // The bystanders' track has the first alias.
        let packets = makeVideoPackets(alias: 1, number: .max, payload: [0])
        let (peer, _) = try publisher("thief")
        for packet in packets { peer.send(clientFrame(opcode: 2, packet)) }
        #expect(peer.closeCode() == 4400)
        let stranger = try RawPeer(port: port)
        stranger.handshake()
        for packet in packets { stranger.send(clientFrame(opcode: 2, packet)) }
        #expect(stranger.closeCode() == 4400)
        try await bystanders.checkUndisturbed()
    }

    /// Hundreds of thousands of chunks of one byte were taken, each of which cost the server 1 KiB for a subscriber.
    @Test("A publisher that floods its track is let go, with small chunks, whole small frames and abandoned ones")
    func mediaFlood() async throws {
        let viewer = try RawPeer(joining: "hostile", as: "viewer", port: port)
        let before = try residentBytes()
        let (splitter, splitAlias) = try publisher("splitter")
        let chunks = makeVideoPackets(alias: splitAlias, number: 1, payload: [0]) { $0.frameLength = 100 }
        splitter.send(clientFrame(opcode: 2, chunks[0]))
        #expect(splitter.closeCode() == 4400)
        for (name, payload) in [("sprinkler", 1), ("quitter", 1024)] {
            let (peer, alias) = try publisher(name)
            let bytes = [UInt8](repeating: 0, count: payload)
            // Read at once: who floods on for 3 s after the close message is cut off, and what it has not read is gone.
            var answer: [UInt8] = []
            for number in 0..<UInt32(30_000) {
                let packets = makeVideoPackets(alias: alias, number: number, payload: bytes) {
                    if payload > 1 { $0.frameLength = 9000 }
                }
                guard packets.allSatisfy({ peer.send(clientFrame(opcode: 2, $0)) }) else { break }
                answer += peer.receiveWithoutWaiting(atMost: 4096)
            }
            #expect(peer.closeCode(after: answer) == 4429, "\(name)")
        }
        #expect(try residentGrowth(since: before) < 30_000_000)
        let counts = await stage.server.packetCounts()
        #expect(counts.received == counts.forwarded + counts.waiting + counts.dropped.total)
        try await bystanders.checkUndisturbed()
        withExtendedLifetime(viewer) {}
    }

    @Test("A message of 100 MB, announced or sent, is refused without being gathered", arguments: [1, 2] as [UInt8])
    func hugeMessage(opcode: UInt8) async throws {
        let before = try residentBytes()
        let declared = try RawPeer(joining: "hostile", as: "boaster", port: port)
        declared.send(clientFrame(opcode: opcode, declared: 100_000_000, [UInt8](repeating: 32, count: 20_000)))
        let sent = try RawPeer(joining: "hostile", as: "doer", port: port)
        let sending = Task.detached {
            let chunk = [UInt8](repeating: 32, count: 1_000_000)
            guard sent.send(clientFrame(opcode: opcode, declared: 100_000_000, [])) else { return }
            for _ in 0..<100 { guard sent.send(chunk) else { return } }
        }
        await sending.value
        #expect(try residentGrowth(since: before) < 30_000_000)
        try await eventually("both are thrown out") { await stage.server.statistics().connections == 2 }
        try await bystanders.checkUndisturbed()
        withExtendedLifetime(declared) {}
    }

    @Test("JSON that is deep, long or wrong ends the session that sent it, and disturbs nobody")
    func badJSON() async throws {
        let messages: [TestText] = [
            TestText(String(repeating: "[", count: 60_000)), TestText(String(repeating: "{\"a\":", count: 12_000)),
            "{\"type\":\"join\",\"x\":\(String(repeating: "[", count: 30_000) + String(repeating: "]", count: 30_000))}",
            "", "null", "17", "\"join\"", "[]", "{\"type\":7}", "{\"type\":\"join\"",
            "{\"type\":\"join\",\"version\":1e400}",
            "{\"type\":\"join\",\"version\":1,\"room\":7,\"identity\":\"x\"}", "{\"type\":\"publish\"}",
        ]
        let peers = try messages.map { message in
            let peer = try RawPeer(port: port)
            peer.handshake()
            peer.send(text: message.text)
            return peer
        }
        for (peer, message) in zip(peers, messages) {
            #expect(peer.closeCode() == 4400, "\(message.testDescription)")
        }
        try await bystanders.checkUndisturbed()
    }

    @Test("Ten thousand messages in a row are answered, and disturb nobody")
    func tinyMessages() async throws {
        let clients = try SocketClients()
        let peer = try clients.join(stage.url, identity: "chatterbox", room: "hostile")
        for index in 0..<10_000 { peer.send("{\"type\":\"nonsense \(index)\"}") }
        try await eventually("all are answered, or the peer is thrown out") {
            peer.closure != nil || peer.texts.count > 10_000
        }
        peer.close()
        try await bystanders.checkUndisturbed()
    }

    @Test("A peer that asks and asks and never reads is let go, before or after joining", arguments: [true, false])
    func neverReads(hasJoined: Bool) async throws {
        let before = try residentBytes()
        let peer = try RawPeer(port: port, receiveBuffer: 4096)
        peer.handshake()
        if hasJoined { peer.send(text: ClientMessage.join(Join(room: "hostile", identity: "mute")).text) }
        let question = clientFrame(opcode: 1, Array(ClientMessage.timeSync(TimeSync(clientTime: 1)).text.utf8))
        let questions = Array(repeatElement(question, count: 2000).joined())
        try await eventually("it is let go") {
            _ = peer.sendWithoutWaiting(questions)
            return await stage.server.statistics().connections == 2
        }
        #expect(try residentGrowth(since: before) < 30_000_000)
        try await bystanders.checkUndisturbed()
    }

    @Test("A participant that does not read what the room tells is let go, and the room learns of it")
    func signalingBacklog() async throws {
        // The bystanders have another room: who reads is told as much as who does not, and under a sanitizer this alone
        // makes them late.
        let mute = try RawPeer(joining: "told", as: "mute", port: port, receiveBuffer: 4096)
        let clients = try SocketClients()
        let noisy = try clients.join(stage.url, identity: "noisy", room: "told")
        try await eventually("it has joined") { !noisy.messages.isEmpty }
        var (asked, answered, unpublished) = (0, 0, 0)
        try await eventually("the mute one is let go") {
            let messages = noisy.messages
            var isOver = noisy.closure != nil
            var published: [String] = []
            answered = 0
            for message in messages {
                switch message {
                case .published(let body): published.append(body.track.id)
                case .error: answered += 1
                case .participantDisconnected: isOver = true
                default: break
                }
            }
            answered += published.count
            for id in published[unpublished...] { noisy.send(.unpublish(Unpublish(trackId: id))) }
            unpublished = published.count
            // No faster than it is answered: a flood would be let go itself.
            guard !isOver, asked <= answered else { return isOver }
            for index in 0..<100 {
                noisy.send(.publish(vp8("t\(index)", requestId: index, width: 9, height: 9, frameRate: 9)))
            }
            asked += 100
            return false
        }
        #expect(noisy.closure == nil)
        noisy.close()
        try await bystanders.checkUndisturbed()
        withExtendedLifetime(mute) {}
    }

    @Test("A thousand connections that are opened and closed at once leave nothing behind")
    func thousandConnections() async throws {
        let before = try residentBytes()
        for round in 0..<10 {
            var peers: [RawPeer] = []
            for index in 0..<100 {
                let peer = try RawPeer(port: port)
                switch index % 4 {
                case 0: break
                case 1: peer.send(Array("GET / HTTP/1.1\r\n".utf8))
                case 2: peer.handshake()
                default:
                    peer.handshake()
                    peer.send(text: ClientMessage.join(Join(room: "crowd", identity: "\(round)-\(index)")).text)
                }
                peers.append(peer)
            }
            for (index, peer) in peers.enumerated() where index % 3 == 0 { peer.reset() }
        }
        try await eventually("all are gone") {
            let statistics = await stage.server.statistics()
            return statistics.connections == 2 && statistics.rooms == 1
        }
        #expect(try residentGrowth(since: before) < 60_000_000)
        try await bystanders.checkUndisturbed()
    }

    @Test("Connections that are reset in the middle of a frame leave nothing behind, and their subscribers go on")
    func resets() async throws {
        let viewer = try await stage.join("viewer", room: "hostile")
        for round in 0..<5 {
            let (peer, alias) = try publisher("author-\(round)")
            let packets = makeVideoPackets(alias: alias, number: 0, payload: [UInt8](repeating: 0, count: 50_000))
            peer.send(clientFrame(opcode: 2, packets[0]))
            let subscriber = try RawPeer(joining: "bystanders", as: "viewer-\(round)", port: port)
            _ = subscriber.receive()
            subscriber.reset()
            _ = try await viewer.subscribedTrack("camera", occurrence: round + 1)
            peer.reset()
        }
        try await eventually("all are gone") { await viewer.room.remoteParticipants.isEmpty }
        #expect(await viewer.room.state == .connected)
        await viewer.room.disconnect()
        try await bystanders.checkUndisturbed()
    }

    @Test("Absurd wishes are refused with a code, and end the session only where the page says so")
    func absurdWishes() async throws {
        let clients = try SocketClients()
        let long = String(repeating: "ü", count: 65)
        for (room, identity) in [("", "x"), (long, "x"), ("x", ""), ("x", long), ("a\u{0}", "x"), ("x", "\u{9F}")] {
            let peer = try clients.join(stage.url, identity: identity, room: room)
            #expect(try await eventual("it is refused") { peer.fatalError }.code == 4401)
        }
        let peer = try clients.join(stage.url, identity: "wisher", room: "hostile")
        let sizes = [(0, 1), (1, 0), (-1, 1), (16_384, 1), (1, .max), (.min, 1)]
        for (index, (width, height)) in sizes.enumerated() {
            let name = "size \(index)"
            peer.send(
                .publish(vp8(name, requestId: 1, width: width, height: height, frameRate: 1))
            )
        }
        for (index, rate) in [0, -1, 1001, 1e300].enumerated() {
            peer.send(
                .publish(
                    vp8("rate \(index)", requestId: 1, width: 9, height: 9, frameRate: rate)
                )
            )
        }
        for name in ["", long, "a\nb"] {
            peer.send(.publish(vp8(name, requestId: 1, width: 9, height: 9, frameRate: 9)))
        }
        let refusals = { peer.messages.compactMap { if case .error(let error) = $0 { error } else { nil } } }
        try await eventually("all are refused") { refusals().count == 13 }
        #expect(refusals().allSatisfy { $0.code == 4401 && !$0.fatal && $0.requestId == 1 })
        for index in 0..<20 {
            peer.send(
                .publish(vp8("\(index)", requestId: index, width: 9, height: 9, frameRate: 9))
            )
        }
        try await eventually("the limit is reached") { refusals().count == 17 }
        #expect(refusals().suffix(4).allSatisfy { $0.code == 4429 })
        #expect(peer.closure == nil)
        peer.close()
        try await bystanders.checkUndisturbed()
    }
}

/// A publication of VP8.
private func vp8(_ name: String, requestId: Int, width: Int, height: Int, frameRate: Double) -> Publish {
    Publish(
        requestId: requestId,
        name: name,
        source: "other",
        codec: VideoCodec.vp8,
        width: width,
        height: height,
        frameRate: frameRate
    )
}
