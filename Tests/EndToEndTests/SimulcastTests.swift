import MediaCore
import RoomKit
import RoomProtocol
import TestSupport
import Testing
import Threading

@Suite("Simulcast of a publisher", .timeLimit(.minutes(2)))
struct SimulcastTests {
    private static let full = Dimensions(width: 640, height: 480)

    /// A server that accepts every track and acknowledges what it gets; it tells what it knows of simulcast.
    private func makeServer(knowsSimulcast: Bool = true) throws -> ScriptedServer {
        try ScriptedServer { peer, text in
            switch try? ClientMessage(reading: text) {
            case .join:
                peer.beginAcknowledging()
                ScriptedServer.welcome(peer, text)
            case .publish(let request):
                var info = ScriptedServer.theirTrack
                (info.id, info.name, info.alias) = ("TR_own", request.name, 9)
                if knowsSimulcast { info.simulcastLayers = request.simulcastLayers }
                peer.tell(.published(Published(requestId: request.requestId, track: info)))
                peer.tell(.layersWanted(LayersWanted(trackId: info.id, simulcastLayers: [])))
            default: break
            }
        }
    }

    private func publish(
        _ size: Dimensions = full,
        to server: ScriptedServer,
        simulcast: Bool? = true
    ) async throws -> (member: Member, track: LocalVideoTrack, peer: SocketPeer) {
        var options = ConnectOptions(roomName: "stage")
        options.url = server.url
        let member = try await Member(options)
        let track = makePattern(size: size)
        var publishing = VideoPublishOptions()
        publishing.simulcast = simulcast
        try await member.room.localParticipant.publish(track, options: publishing)
        return (member, track, try await server.peer())
    }

    private func want(_ layers: [Int], _ peer: SocketPeer) {
        peer.tell(.layersWanted(LayersWanted(trackId: "TR_own", simulcastLayers: layers)))
    }

    /// The first packets of the frames of each encoding.
    private func frames(_ peer: SocketPeer, _ layer: UInt8) -> [MediaPacketHeader] {
        peer.packets.filter { $0.isFirstChunk && $0.simulcastLayer == layer }
    }

    /// What the server was told of the encodings since the track was announced.
    private func told(_ peer: SocketPeer) -> [UpdateTrack] {
        peer.texts.compactMap { text in
            guard case .updateTrack(let body)? = try? ClientMessage(reading: text) else { return nil }
            return body
        }
    }

    private func announced(_ peer: SocketPeer) throws -> Publish {
        let requests = peer.texts.compactMap { text -> Publish? in
            guard case .publish(let request)? = try? ClientMessage(reading: text) else { return nil }
            return request
        }
        return try #require(requests.first)
    }

    @Test("Each encoding is made while it is wanted, and begins with a keyframe; a picture counts once")
    func wanted() async throws {
        let server = try makeServer()
        defer { server.stop() }
        let (member, track, peer) = try await publish(to: server)
        let layers = try #require(try announced(peer).simulcastLayers)
        #expect(layers.map(\.simulcastLayer) == [0, 1])
        #expect(layers.map(\.width) == [320, 640] && layers.map(\.height) == [240, 480])
        let rates = layers.map { $0.bitrate ?? 0 }
        #expect(rates[0] > 0 && rates[0] < rates[1])
        want([1], peer)
        try await eventually("the large one is sent") { frames(peer, 1).count > 15 }
        #expect(frames(peer, 0).isEmpty)
        #expect(track.statistics.layers.map { $0.framesEncoded > 0 } == [false, true])
        want([0, 1], peer)
        try await eventually("both are sent") { frames(peer, 0).count > 15 }
        let both = frames(peer, 0)
        #expect(both[0].isKeyframe && both[0].frameNumber == 0 && both.allSatisfy { $0.trackAlias == 9 })
        // The same picture has the same time in both.
        let times = Set(frames(peer, 1).map(\.captureTime))
        #expect(both.contains { times.contains($0.captureTime) })
        want([0], peer)
        let small = frames(peer, 0).count
        try await eventually("the small one goes on") { frames(peer, 0).count > small + 15 }
        let large = frames(peer, 1).count
        try await eventually("the small one goes on") { frames(peer, 0).count > small + 30 }
        #expect(frames(peer, 1).count == large)
        want([1], peer)
        try await eventually("the large one is back") { frames(peer, 1).count > large }
        let next = frames(peer, 1)[large]
        // The numbers go on, and those of frames that became too late to be sent are missing.
        let missing = Int(next.frameNumber) - large
        #expect(next.isKeyframe && missing >= 0 && missing <= track.statistics.framesExpired, "\(missing) are missing")
        await member.room.disconnect()
        let statistics = track.statistics
        #expect(statistics.unaccounted == 0)
        let encoded = statistics.layers.map(\.framesEncoded)
        #expect(statistics.framesEncoded < encoded[0] + encoded[1], "pictures were counted twice")
        #expect(statistics.layers[0].dimensions.map { $0.fits(Dimensions(width: 320, height: 240)) } == true)
    }

    @Test(
        "A server that chooses among encodings is told other bitrates, and one that has no choice is not",
        arguments: [true, false]
    )
    func otherBitrates(knowsSimulcast: Bool) async throws {
        let server = try makeServer(knowsSimulcast: knowsSimulcast)
        defer { server.stop() }
        let (member, track, peer) = try await publish(to: server)
        var parameters = try #require(track.encodingParameters)
        parameters.priority = .high
        try track.setEncodingParameters(parameters)
        parameters.maxBitrate = .kilobitsPerSecond(300)
        try track.setEncodingParameters(parameters)
        // What comes next over the connection shows that nothing else was sent before.
        await track.setEnabled(false)
        // The sizes are the announced ones.
        let expected = [UpdateTrack(trackId: "TR_own", bitrates: [150_000, 300_000])]
        try await eventually("all has come") {
            let isPaused = peer.texts.contains { $0.contains("\"disable\"") }
            return isPaused && (!knowsSimulcast || told(peer) == expected)
        }
        #expect(told(peer) == (knowsSimulcast ? expected : []))
        await member.room.disconnect()
    }

    @Test("Of bitrates that change all the time, the server is told the last one soon, and few of the others")
    func changingBitrates() async throws {
        let server = try makeServer()
        defer { server.stop() }
        let (member, track, peer) = try await publish(to: server)
        var parameters = try #require(track.encodingParameters)
        for rate in 301...400 {
            parameters.maxBitrate = .kilobitsPerSecond(rate)
            try track.setEncodingParameters(parameters)
            try await Task.sleep(for: .milliseconds(5))
        }
        try await eventually("the last one has come") { told(peer).last?.bitrates?.last == 400_000 }
        #expect(told(peer).count < 50)
        await member.room.disconnect()
    }

    // Larger pictures than announced were sent, and an encoding that nobody received kept its former bitrate.
    @Test("When the pictures become larger or smaller, the server is told the sizes of all encodings, once")
    func otherSizes() async throws {
        let server = try makeServer()
        defer { server.stop() }
        var options = ConnectOptions(roomName: "stage")
        options.url = server.url
        let member = try await Member(options)
        let track = LocalVideoTrack(writtenAs: "window")
        let size = Monitor(Self.full)
        let writer = Task {
            while true {
                let buffer = VideoBuffer(dimensions: size.withLock { $0 })
                buffer.withMutablePlanes { plane, chromaU, chromaV in
                    plane.update(repeating: 128)
                    chromaU.update(repeating: 128)
                    chromaV.update(repeating: 128)
                }
                _ = track.write(VideoFrame(buffer: buffer, timestamp: MonotonicClock.now))
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        defer { writer.cancel() }
        var publishing = VideoPublishOptions()
        publishing.simulcast = true
        try await member.room.localParticipant.publish(track, options: publishing)
        let peer = try await server.peer()
        let announced = try #require(try announced(peer).simulcastLayers)
        want([1], peer)
        let larger = Dimensions(width: 1280, height: 720)
        for next in [larger, Self.full] {
            size.withLock { $0 = next }
            try await eventually("pictures of \(next) are published") { track.dimensions == next }
        }
        try await eventually("it is told twice") { told(peer).count >= 2 }
        let sizes = [larger, Self.full].map { size in
            [2, 1].map { PictureSize(width: size.width / $0, height: size.height / $0) }
        }
        #expect(told(peer).map(\.sizes) == sizes)
        let bitrates = announced.map { $0.bitrate ?? 0 }
        let largerRates = try #require(told(peer)[0].bitrates)
        #expect(zip(largerRates, bitrates).allSatisfy { $0 > $1 } && told(peer)[1].bitrates == bitrates)
        await member.room.disconnect()
    }

    @Test("A keyframe request that names an encoding makes a keyframe of that one alone")
    func keyframeRequest() async throws {
        let server = try makeServer()
        defer { server.stop() }
        let (member, _, peer) = try await publish(to: server)
        want([0, 1], peer)
        try await eventually("both are sent") { frames(peer, 0).count > 3 && frames(peer, 1).count > 3 }
        func keyframes(_ layer: UInt8) -> Int { frames(peer, layer).count { $0.isKeyframe } }
        let before = keyframes(0)
        let number = frames(peer, 1).count
        peer.tell(.keyframeRequest(KeyframeRequest(trackId: "TR_own", simulcastLayer: 0)))
        try await eventually("a keyframe comes") { keyframes(0) > before }
        // A larger size begins with one too; that is no answer.
        #expect(frames(peer, 1)[number...].count { $0.isKeyframe } <= 1)
        await member.room.disconnect()
    }

    @Test("To a server that does not know simulcast, the whole picture goes out as the only encoding")
    func unknownToServer() async throws {
        let server = try makeServer(knowsSimulcast: false)
        defer { server.stop() }
        let (member, track, peer) = try await publish(to: server)
        #expect(try announced(peer).simulcastLayers?.count == 2)
        want([0], peer)
        try await eventually("full size is sent") { track.statistics.layers.first?.dimensions == Self.full }
        #expect(track.statistics.layers.count == 1)
        #expect(peer.packets.allSatisfy { $0.simulcastLayer == 0 })
        await member.room.disconnect()
    }

    @Test(
        "Small pictures have one encoding, and so have all when simulcast is off",
        arguments: [(testSize, Bool?.none), (full, false), (Dimensions(width: 160, height: 120), true)]
    )
    func single(size: Dimensions, simulcast: Bool?) async throws {
        let server = try makeServer()
        defer { server.stop() }
        let (member, track, peer) = try await publish(size, to: server, simulcast: simulcast)
        #expect(try announced(peer).simulcastLayers == nil)
        want([0], peer)
        try await eventually("it is sent") { frames(peer, 0).count > 3 }
        #expect(track.statistics.layers.count == 1)
        await member.room.disconnect()
    }
}

extension Dimensions {
    fileprivate func fits(_ limit: Dimensions) -> Bool { width <= limit.width && height <= limit.height }
}
