import MediaCore
import RoomKit
import RoomProtocol
import TestSupport
import Testing
import Threading
import WebSockets

/// RoomKit against a server that answers `join` well and then sends what it likes.
@Suite("Hostile servers of RoomKit", .timeLimit(.minutes(2)))
struct HostileServerTests {
    /// Joins `server`, and gives the connection's other end.
    private func join(
        _ server: ScriptedServer,
        change: (inout ConnectOptions) -> Void = { _ in }
    ) async throws -> (member: Member, peer: SocketPeer) {
        var options = ConnectOptions(roomName: "stage")
        options.url = server.url
        options.identity = "victim"
        change(&options)
        return (try await Member(options), try await server.peer())
    }

    /// Shows that the session goes on: a participant that comes is noticed.
    private func expectAlive(_ member: Member, _ peer: SocketPeer) async throws {
        peer.tell(
            .participantConnected(
                ParticipantConnected(participant: ParticipantInfo(id: "PA_probe", identity: "probe", tracks: []))
            )
        )
        _ = try await member.event("the session goes on") { event -> Bool? in
            switch event {
            case .participantConnected(let who) where who.sid == "PA_probe": true
            case .disconnected(let error): throw TestFailure("it ended: \(String(describing: error))")
            default: nil
            }
        }
        await member.room.disconnect()
    }

    @Test(
        "Messages that cannot be read end the session with an error",
        arguments: [
            "", "null", "{", "[]", "{\"type\":3}", "{\"type\":\"subscribed\"}",
            TestText(String(repeating: "[", count: 100_000)),
            "{\"type\":\"joined\",\"version\":1}",
            "{\"type\":\"layersWanted\",\"trackId\":\"x\",\"simulcastLayers\":[1e99]}",
            "{\"type\":\"timeSync\",\"clientTime\":99999999999999999999}",
        ]
    )
    func malformed(_ message: TestText) async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let (member, peer) = try await join(server)
        peer.send(message.text)
        let error = try #require(try await member.ending())
        #expect(error.code == .protocolViolation, "\(error)")
        #expect("\(error)".count < 400)
        await member.room.disconnect()
    }

    @Test(
        "An answer to join that is none ends the joining with an error",
        arguments: [
            "{", "{\"type\":\"published\",\"requestId\":1}", "{\"type\":\"leave\",\"reason\":\"no\"}",
            "{\"type\":\"error\",\"code\":4999,\"name\":\"x\",\"message\":\"no\",\"fatal\":true}",
            "{\"type\":\"participantDisconnected\",\"participantId\":\"x\"}",
        ]
    )
    func badWelcome(text: String) async throws {
        let server = try ScriptedServer { peer, _ in peer.send(text) }
        defer { server.stop() }
        var options = ConnectOptions(roomName: "stage")
        options.url = server.url
        let error = await #expect(throws: RoomError.self) { try await RoomClient.connect(options: options) }
        let code = try #require(error).code
        #expect(code == .protocolViolation || code == .refused || code == .connectionLost, "\(code)")
    }

    @Test("Unknown types, and news of what nobody knows, are passed over")
    func unknown() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let (member, peer) = try await join(server)
        let own = TrackInfo(
            id: "TR_x",
            alias: 9,
            name: "x",
            source: "x",
            codec: VideoCodec.vp8,
            width: 0,
            height: -1,
            frameRate: 0
        )
        for text in ["{\"type\":\"somethingNew\",\"x\":[1]}", "{\"type\":\"\"}"] { peer.send(text) }
        for number in 0..<2000 {
            let id = "TR_\(number)"
            peer.tell(.layersWanted(LayersWanted(trackId: id, simulcastLayers: [0, -1, .max])))
            peer.tell(.keyframeRequest(KeyframeRequest(trackId: id)))
            peer.tell(.published(Published(requestId: number, track: own)))
            peer.tell(.subscribed(Subscribed(trackId: id, alias: 7, catchUpThrough: .max)))
            peer.tell(.unsubscribed(Unsubscribed(trackId: id)))
            peer.tell(.trackUnpublished(TrackUnpublished(participantId: "PA_theirs", trackId: id)))
            peer.tell(.trackEnabled(TrackEnabled(participantId: "PA_nobody", trackId: id)))
            peer.tell(.participantDisconnected(ParticipantDisconnected(participantId: id)))
        }
        try await expectAlive(member, peer)
    }

    // A single character of 45,000 bytes stood in the line of a preview, and was drawn anew with every status.
    @Test("Names are cut at the length that the protocol allows")
    func longNames() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let (member, peer) = try await join(server)
        let long = "a" + String(repeating: "\u{FE0F}", count: 5000)
        let track = TrackInfo(
            id: "TR_y",
            alias: 9,
            name: long,
            source: "camera",
            codec: VideoCodec.vp8,
            width: 640,
            height: 480,
            frameRate: 30
        )
        let participant = ParticipantInfo(id: "PA_y", identity: long, tracks: [track])
        peer.tell(.participantConnected(ParticipantConnected(participant: participant)))
        let shown = try await eventual("the participant") {
            await member.room.remoteParticipants.first { $0.sid == "PA_y" }
        }
        let remote = try #require(shown.videoTracks.first)
        let limit = WireFormat.maximumNameBytes
        #expect(shown.identity.utf8.count <= limit && shown.identity.unicodeScalars.count > 40)
        #expect(remote.name.utf8.count <= limit && remote.publisherIdentity == shown.identity)
        await member.room.disconnect()
    }

    @Test("Packets that break the wire format, and of tracks that nobody knows, are passed over")
    func badPackets() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let (member, peer) = try await join(server)
        let track = try await member.subscribedTrack()
        // No keyframe: too many of those that cannot be decoded end the subscription.
        let good = try #require(makeVideoPackets(alias: 7, number: 1, payload: [0, 1, 2, 3], isKeyframe: false).first)
        for length in 0..<good.count { peer.send(Array(good.prefix(length))) }
        var random = SeededBytes(seed: 3)
        for length in 0..<300 { peer.send([1, 0] + random.next(length)) }
        for index in 0..<48 {
            var bad = good
            bad[index] ^= 0xFF
            peer.send(bad)
        }
        for packet in makeVideoPackets(alias: 8, number: 1, payload: [0]) { peer.send(packet) }
        // A frame whose chunks do not fit together.
        var pieces = makeVideoPackets(alias: 7, number: 2, payload: [UInt8](repeating: 0, count: 60_000))
        pieces.remove(at: 1)
        for packet in pieces { peer.send(packet) }
        var pattern = try EncodedPattern(alias: 7)
        for packet in try pattern.next() { peer.send(packet) }
        try await eventually("a good frame is decoded") { track.statistics.framesDecoded >= 1 }
        try await expectAlive(member, peer)
    }

    // Each left a decoder that was never told to stop, and the track never ended.
    @Test("Of many subscriptions to one track the last counts, and the track ends once")
    func subscribedAgain() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let (member, peer) = try await join(server)
        let track = try await member.subscribedTrack()
        // Fewer than the decoders that may still be ending: on a busy machine, all of them are.
        for alias in UInt32(8)...60 {
            peer.tell(.subscribed(Subscribed(trackId: track.sid, alias: alias, catchUpThrough: nil)))
        }
        var pattern = try EncodedPattern(alias: 60)
        try await eventually("the last one is received") {
            for packet in try pattern.next() { peer.send(packet) }
            return track.statistics.framesDecoded >= 1
        }
        peer.tell(.trackUnpublished(TrackUnpublished(participantId: "PA_theirs", trackId: track.sid)))
        let hasEnded = Monitor(false)
        let ending = Task {
            await track.ended()
            hasEnded.withLock { $0 = true }
        }
        try await eventually("the track ends") { hasEnded.withLock { $0 } }
        _ = await ending.value
        try await expectAlive(member, peer)
    }

    @Test("Frames that do not decode cost a keyframe request, and a keyframe brings the track back")
    func undecodable() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let (member, peer) = try await join(server)
        let track = try await member.subscribedTrack()
        let directory = try TemporaryDirectory()
        let recorder = try TrackRecorder(track: track, directory: directory.path, recorderID: "x", format: .webm)
        let renderer = CountingRenderer()
        track.addRenderer(renderer)
        var random = SeededBytes(seed: 5)
        for number in 0..<40 {
            // Some of them claim to be keyframes, fewer than end the subscription.
            let isKeyframe = number % 8 == 0
            let head: [UInt8] = isKeyframe ? [0x10, 2, 0, 0x9D, 1, 0x2A, 64, 0, 48, 0] : [1]
            let payload = head + random.next(200)
            for packet in makeVideoPackets(alias: 7, number: UInt32(number), payload: payload, isKeyframe: isKeyframe) {
                peer.send(packet)
            }
        }
        try await eventually("a keyframe is asked for") {
            peer.texts.contains { if case .keyframeRequest? = try? ClientMessage(reading: $0) { true } else { false } }
        }
        var pattern = try EncodedPattern(alias: 7)
        try await eventually("the track is back") {
            for var packet in try pattern.next() {
                // After the numbers above.
                packet[14] = 1
                peer.send(packet)
            }
            return renderer.sizes.contains(testSize) && renderer.frames >= 5
        }
        let asked = peer.texts.count {
            if case .keyframeRequest? = try? ClientMessage(reading: $0) { true } else { false }
        }
        #expect(asked <= 41)
        try await expectAlive(member, peer)
        recorder.stop()
        #expect(recorder.statistics.error == nil)
    }

    @Test("A picture across a loss of layer 0 is not shown: a keyframe is asked for")
    func lossOfBaseLayer() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let (member, peer) = try await join(server)
        let track = try await member.subscribedTrack()
        var pattern = try EncodedPattern(alias: 7)
        var frames: [[[UInt8]]] = []
        for _ in 0..<12 { frames.append(try pattern.next()) }
        // Frame 4 is of layer 0, and goes missing without a word.
        for (number, packets) in frames.enumerated() where number != 4 { for packet in packets { peer.send(packet) } }
        try await eventually("a keyframe is asked for") {
            peer.texts.contains { if case .keyframeRequest? = try? ClientMessage(reading: $0) { true } else { false } }
        }
        try await eventually("the frames are taken") { track.statistics.framesReceived == 11 }
        try await eventually("they are dropped, and those before are decoded") {
            track.statistics.framesDropped == 7 && track.statistics.framesDecoded == 4
        }
        try await expectAlive(member, peer)
    }

    @Test("A frame of 4 MiB in chunks is put together, and one byte more is not")
    func largeFrame() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let (member, peer) = try await join(server)
        let track = try await member.subscribedTrack()
        let largest = [UInt8](repeating: 0, count: 4 << 20)
        for packet in makeVideoPackets(alias: 7, number: 0, payload: largest) { peer.send(packet) }
        for packet in makeVideoPackets(alias: 7, number: 1, payload: largest + [0]) { peer.send(packet) }
        try await eventually("it is received") { track.statistics.framesReceived == 1 }
        #expect(track.statistics.bytes == 4 << 20)
        try await expectAlive(member, peer)
    }

    @Test("Catch-up frames without end are decoded within bounds, and never shown")
    func endlessCatchUp() async throws {
        let server = try ScriptedServer { peer, text in
            guard case .join(let join)? = try? ClientMessage(reading: text) else { return }
            peer.tell(.joined(ScriptedServer.joined(join)))
            peer.tell(.subscribed(Subscribed(trackId: "TR_theirs", alias: 7, catchUpThrough: .max)))
        }
        defer { server.stop() }
        let (member, peer) = try await join(server)
        let track = try await member.subscribedTrack()
        let renderer = CountingRenderer()
        track.addRenderer(renderer)
        var pattern = try EncodedPattern(alias: 7)
        var packets: [[UInt8]] = []
        for _ in 0..<300 { packets += try pattern.next() }
        // All at once: what arrives 10 s after the first frame is shown.
        for packet in packets { peer.send(packet) }
        try await eventually("all are dealt with") {
            track.statistics.framesReceived == 300
                && track.statistics.framesDecoded + track.statistics.framesDropped == 300
        }
        #expect(renderer.frames == 0)
        #expect(track.statistics.frameAge == nil)
        try await expectAlive(member, peer)
    }

    @Test("Absurd times are survived, in ages as in dumps", arguments: [Int64.max, .min, 0, -1, .max / 1000, 1 << 52])
    func absurdTimes(time: Int64) async throws {
        let server = try ScriptedServer { peer, text in
            switch try? ClientMessage(reading: text) {
            case .join(let join): peer.tell(.joined(ScriptedServer.joined(join, serverTime: time)))
            case .timeSync(let body):
                peer.tell(.timeSync(TimeSync(clientTime: body.clientTime, serverTime: time)))
                peer.tell(.timeSync(TimeSync(clientTime: time, serverTime: body.clientTime)))
                peer.tell(.timeSync(TimeSync(clientTime: time, serverTime: nil)))
            default: return
            }
        }
        defer { server.stop() }
        let (member, peer) = try await join(server) { $0.videoTracks = [] }
        peer.tell(.subscribed(Subscribed(trackId: "TR_theirs", alias: 7, catchUpThrough: nil)))
        let track = try await member.subscribedTrack()
        let directory = try TemporaryDirectory()
        let recorders = try TrackRecorder.Format.allCases.map {
            try TrackRecorder(track: track, directory: directory($0.rawValue), recorderID: "x", format: $0)
        }
        var pattern = try EncodedPattern(alias: 7)
        var decoded = 0
        let times: [UInt64] = [0, 1, .max, UInt64(bitPattern: time), 5, 1 << 62, 1 << 40]
        for captureTime in times {
            for var packet in try pattern.next() {
                for index in 0..<8 {
                    packet[16 + index] = UInt8(truncatingIfNeeded: captureTime >> (56 - 8 * UInt64(index)))
                }
                for index in 0..<8 {
                    packet[40 + index] = UInt8(truncatingIfNeeded: captureTime >> (8 * UInt64(index)))
                }
                peer.send(packet)
            }
            decoded += 1
            try await eventually("frame \(decoded) is decoded") { track.statistics.framesDecoded == decoded }
        }
        _ = track.statistics
        try await expectAlive(member, peer)
        for recorder in recorders {
            recorder.stop()
            #expect(recorder.statistics.error == nil)
        }
    }

    @Test("However much happens at once, the end of the session is told, and why")
    func flood() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        var options = ConnectOptions(roomName: "stage")
        options.url = server.url
        let room = try await RoomClient.connect(options: options)
        let peer = try await server.peer()
        for number in 0..<3000 {
            let info = ParticipantInfo(id: "PA_\(number)", identity: "\(number)", tracks: [])
            peer.tell(.participantConnected(ParticipantConnected(participant: info)))
        }
        peer.tell(.error(ErrorMessage(.tooSlow, "enough", fatal: true)))
        try await eventually("the session ends") { await room.state == .disconnected }
        var ending: RoomError?
        var (count, missed) = (0, 0)
        for await event in room.events {
            count += 1
            if case .eventsMissed(let number) = event { missed += number }
            if case .disconnected(let error) = event { ending = error }
        }
        #expect(ending?.serverCode == 4414)
        // Those that waited, the news of those that were left out, and the last.
        #expect(count <= 1026)
        #expect(missed + count >= 3002 && missed > 0, "\(missed) and \(count)")
    }

    @Test("A server that says it ends the session and does not hang up is hung up on")
    func lingeringServer() async throws {
        for last in [ServerMessage.error(ErrorMessage(.internalError, "x", fatal: true)), .leave(Leave(reason: "x"))] {
            let server = try ScriptedServer()
            defer { server.stop() }
            let (member, peer) = try await join(server)
            peer.tell(last)
            _ = try await member.ending()
            try await eventually("the connection is closed") { peer.closure != nil }
        }
    }

    @Test("A publication that the server answers with nonsense ends with an error, and nothing runs on")
    func badPublication() async throws {
        let server = try ScriptedServer { peer, text in
            switch try? ClientMessage(reading: text) {
            case .join: ScriptedServer.welcome(peer, text)
            case .publish: peer.send("{\"type\":\"published\"}")
            default: break
            }
        }
        defer { server.stop() }
        let (member, _) = try await join(server)
        let track = makePattern()
        let error = await #expect(throws: RoomError.self) { try await member.room.localParticipant.publish(track) }
        #expect(error?.code == .protocolViolation)
        #expect(track.statistics.unaccounted == 0)
        #expect(try await member.ending()?.code == .protocolViolation)
    }

    @Test("A server that wants encodings by the dozen gets the one there is")
    func strangeWishes() async throws {
        let server = try ScriptedServer { peer, text in
            switch try? ClientMessage(reading: text) {
            case .join: ScriptedServer.welcome(peer, text)
            case .publish(let request):
                let info = TrackInfo(
                    id: "TR_own",
                    alias: .max,
                    name: request.name,
                    source: "x",
                    codec: VideoCodec.vp8,
                    width: 1,
                    height: 1,
                    frameRate: 1
                )
                // Wanted before it is there, and wanted again.
                peer.tell(.layersWanted(LayersWanted(trackId: "TR_own", simulcastLayers: [0])))
                peer.tell(.published(Published(requestId: request.requestId, track: info)))
                peer.tell(.layersWanted(LayersWanted(trackId: "TR_own", simulcastLayers: [3, 2, 1, 0, -5])))
                for _ in 0..<1000 { peer.tell(.keyframeRequest(KeyframeRequest(trackId: "TR_own"))) }
            default: break
            }
        }
        defer { server.stop() }
        let (member, peer) = try await join(server)
        let track = makePattern()
        try await member.room.localParticipant.publish(track)
        try await eventually("frames arrive") { peer.packets.count { $0.isLastChunk } >= 10 }
        #expect(peer.packets.allSatisfy { $0.trackAlias == .max })
        try await expectAlive(member, peer)
        #expect(track.statistics.unaccounted == 0)
    }
}
