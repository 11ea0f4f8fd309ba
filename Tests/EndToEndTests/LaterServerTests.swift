import MediaCore
import RoomKit
import RoomProtocol
import TestSupport
import TestTools
import Testing
import Threading

/// RoomKit against a server of a later release, which sends what this one does not know.
@Suite("A server of a later release", .timeLimit(.minutes(3)))
struct LaterServerTests {
    private static let smallSize = Dimensions(width: 160, height: 90)

    /// A robot with a microphone, an AV1 camera, and a VP8 camera in two simulcast layers.
    @Sendable private static func welcome(_ peer: SocketPeer, _ text: String) {
        guard case .join(let join)? = try? ClientMessage(reading: text) else { return }
        var joined = ScriptedServer.joined(join)
        joined.participants[0].tracks[0].simulcastLayers = [
            SimulcastLayer(simulcastLayer: 0, width: 160, height: 90),
            SimulcastLayer(simulcastLayer: 1, width: 320, height: 180, bitrate: 300_000),
        ]
        joined.participants[0].tracks += [
            TrackInfo(id: "TR_mic", alias: 3, name: "mic", kind: "audio", source: "microphone", codec: nil),
            TrackInfo(
                id: "TR_av1",
                alias: 4,
                name: "hd",
                source: "camera",
                codec: "av1",
                width: 64,
                height: 48,
                frameRate: 9
            ),
        ]
        peer.tell(.joined(joined))
        for (id, alias) in [("TR_mic", UInt32(3)), ("TR_av1", 4), ("TR_theirs", 7)] {
            peer.tell(.subscribed(Subscribed(trackId: id, alias: alias, simulcastLayer: 0, catchUpThrough: nil)))
        }
    }

    /// The packets of a frame as if they belonged to simulcast layer 1, with numbers of their own.
    private func inLayerOne(_ packets: [[UInt8]]) -> [[UInt8]] {
        packets.map { packet in
            var packet = packet
            packet[5] = 1
            packet[12] = 0x40
            return packet
        }
    }

    /// The packets of a frame with extensions of unknown types in the first, captured now: a picture that becomes later
    /// with each of them, as on a slow machine, would not be shown.
    private func extended(_ packets: [[UInt8]]) -> [[UInt8]] {
        let now = UInt64(MonotonicClock.now.microseconds)
        let packets = packets.map { packet in
            var packet = packet
            for index in 0..<8 { packet[16 + index] = UInt8(truncatingIfNeeded: now >> (56 - 8 * UInt64(index))) }
            return packet
        }
        var first = packets[0]
        first.insert(contentsOf: [0, 77, 3, 1, 2, 3, 4, 12] + [UInt8](repeating: 9, count: 12), at: 48)
        first[3] = UInt8(48 + 20)
        return [first] + packets.dropFirst()
    }

    @Test("Other media, other codecs, simulcast layers and extensions do no harm to the track that can be shown")
    func everythingAtOnce() async throws {
        let server = try ScriptedServer(answer: Self.welcome)
        defer { server.stop() }
        let member = try await Member(at: server.url)
        let peer = try await server.peer()
        let track = try await member.subscribedTrack("pattern")
        let renderer = CountingRenderer()
        track.addRenderer(renderer)

        var large = try EncodedPattern(alias: 7)
        var small = try EncodedPattern(alias: 7, size: Self.smallSize)
        var sent = 0
        func send(_ packets: [[UInt8]], counts: Bool = true) async throws {
            // An audio packet and AV1 come between, as from a server that has not yet read "unsubscribe".
            peer.send([2, 2, 0, 8, 0, 0, 0, 3, 1, 2, 3])
            for packet in makeVideoPackets(alias: 4, number: UInt32(sent), payload: [1, 2, 3]) { peer.send(packet) }
            for packet in extended(packets) { peer.send(packet) }
            if counts { sent += 1 }
            let expected = sent
            // Each picture is shown before the next is sent: a renderer that does not get the processor misses
            // pictures.
            try await eventually("frame \(expected) is shown") { renderer.frames == expected }
            #expect(track.statistics.framesDecoded == expected)
        }
        for _ in 0..<5 { try await send(large.next()) }
        // A picture that is not newer than the one on the screen would not be shown.
        for _ in 0..<6 { _ = try small.next() }
        // Frames of the other layer cannot be decoded before its keyframe comes.
        let keyframe = inLayerOne(try small.next(isKeyframe: true))
        try await send(inLayerOne(try small.next()), counts: false)
        try await send(keyframe)
        for _ in 0..<5 {
            try await send(inLayerOne(try small.next()))
            try await send(large.next(), counts: false)
        }
        #expect(renderer.sizes == [testSize, Self.smallSize])

        let asked = peer.texts.compactMap { try? ClientMessage(reading: $0) }
        #expect(asked.contains(.unsubscribe(Unsubscribe(trackId: "TR_mic"))))
        #expect(asked.contains(.unsubscribe(Unsubscribe(trackId: "TR_av1"))))
        #expect(!asked.contains { if case .keyframeRequest = $0 { true } else { false } })
        let failed = try await member.event("the AV1 track fails") { event -> RoomError? in
            guard case .trackSubscriptionFailed(let track, _, let error) = event, track.name == "hd" else { return nil }
            return error
        }
        #expect(failed.code == .unsupportedTrack)
        #expect(failed.description.contains("av1"))
        let names = await member.room.remoteParticipants.flatMap { $0.videoTracks.map(\.name) }
        #expect(Set(names) == ["pattern", "hd"])
        // Visible, and said to be of no use here.
        let tracks = await member.room.remoteParticipants.flatMap(\.videoTracks)
        #expect(tracks.filter(\.isSupported).map(\.name) == ["pattern"])
        #expect(tracks.first { !$0.isSupported }?.codec == "av1")
        #expect(await member.room.state == .connected)
        await member.room.disconnect()
    }

    // libwebsockets makes 1002 of them, which kept a service away for good.
    @Test("Closing with the code of a restart, overload or gateway allows a return", arguments: [1012, 1013, 1014])
    func passingCloseCodes(code: UInt16) async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let member = try await Member(at: server.url)
        try await server.peer().close(code)
        let error = try await member.ending()
        #expect(error?.code == .connectionLost && error?.isTemporary == true, "\(String(describing: error))")
    }

    @Test("A room that has moved is left as any other that its server ends, and not followed")
    func moved() async throws {
        let (server, other) = (try ScriptedServer(), try SilentServer())
        defer { server.stop() }
        let member = try await Member(at: server.url)
        let url = "ws://127.0.0.1:\(other.port)/rooms/stage"
        try await server.peer().tell(.leave(Leave(reason: "moved", reconnect: true, url: url)))
        let error = try await member.ending()
        #expect(error?.code == .connectionLost && error?.isTemporary == true)
        // The first who connects there is this test.
        let own = try RawPeer(port: other.port)
        own.send("test")
        #expect(other.accept().receive() == Array("test".utf8))
    }
}
