import MediaCore
import RelayCore
import RelayServer
import RoomKit
import RoomProtocol
import TestSupport
import Testing
import Threading
import WebSockets

@Suite("Readers that are slow, or not there at all", .timeLimit(.minutes(2)))
struct SlowReaderTests {
    /// The relay gives a lagging reader up after this, and no sooner, so that a busy machine is not taken for one.
    private static let patienceOfRelay: Duration = .seconds(3)

    private func stage(_ change: (inout RelayServer.Options) -> Void = { _ in }) throws -> Stage {
        try Stage { options in
            options.relay.forwarding.dropTopLayerAfter = .milliseconds(2000)
            options.relay.forwarding.dropMiddleLayerAfter = .milliseconds(2400)
            options.relay.forwarding.skipAfter = Self.patienceOfRelay
            options.relay.stream.liveWindow = Self.patienceOfRelay
            change(&options)
        }
    }

    /// Reads at most `rate` until `isOver`.
    private func read(_ peer: RawPeer, rate: Bitrate, until isOver: Monitor<Bool>) -> [UInt8] {
        var bytes: [UInt8] = []
        let start = MonotonicClock.now
        while !isOver.withLock({ $0 }) {
            let allowance = Int(MonotonicClock.now.duration(since: start).seconds * Double(rate.bitsPerSecond) / 8)
            if allowance > bytes.count { bytes += peer.receiveWithoutWaiting(atMost: allowance - bytes.count) }
            _ = isOver.wait(until: MonotonicClock.now + .milliseconds(10)) { $0 ? true : nil }
        }
        return bytes
    }

    @Test("A slow reader and one that never reads cost eighteen others nothing, and the relay little")
    func twoOfTwenty() async throws {
        let stage = try stage()
        let before = try residentBytes()
        // Five times what the slow reader takes.
        let noise = LocalVideoTrack(
            source: NoiseSource(dimensions: Dimensions(width: 160, height: 96), frameRate: FrameRate(30))
        )
        var publishing = VideoPublishOptions()
        publishing.maxBitrate = Bitrate(bitsPerSecond: 1_000_000)
        let author = try await stage.join("author")
        try await author.room.localParticipant.publish(noise, options: publishing)
        let clients = try SocketClients()
        let quick = try (0..<18).map { try clients.join(stage.url, identity: "quick-\($0)") }
        try await eventually("the quick ones receive") { quick.allSatisfy { $0.packets.count >= 3 } }
        let isOver = Monitor(false)
        let slow = try RawPeer(joining: "stage", as: "slow", port: stage.server.port, receiveBuffer: 16_384)
        let still = try RawPeer(joining: "stage", as: "still", port: stage.server.port, receiveBuffer: 4096)
        let reading = Task.detached { [self] in
            read(slow, rate: .kilobitsPerSecond(200), until: isOver)
        }
        var cached = 0
        try await eventually("eight seconds of pictures are sent") {
            cached = max(cached, await stage.server.statistics().storedBytes)
            return noise.statistics.framesSent >= 240
        }
        let (sent, keyframes) = (noise.statistics.framesSent, noise.statistics.keyframes)
        try await eventually("the quick ones have them") {
            quick.allSatisfy { Int($0.packets.last?.frameNumber ?? 0) >= sent - 1 }
        }
        isOver.change { $0 = true }
        let received = await reading.value
        for peer in quick {
            let numbers = peer.packets.filter(\.isFirstChunk).map(\.frameNumber)
            #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $1 == $0 + 1 }, "something was lost")
        }
        // A subscriber that falls behind asks at once, then after 1, 2, 4 … s; here two do, each for some seconds.
        #expect(keyframes <= 1 + 2 * 4, "\(keyframes) keyframes")
        #expect(cached <= 4 << 20)
        // Pictures, packets and what this test itself keeps of them: 20 times 8 s at 1 Mbit/s are 20 MB.
        #expect(try residentGrowth(since: before) < 60_000_000)
        try expectDecodable(received)
        await author.room.disconnect()
        withExtendedLifetime(still) {}
    }

    /// What the slow reader got is no more than it took, and decodes: only what the rules allow was left out.
    private func expectDecodable(_ received: [UInt8]) throws {
        var gate = TemporalLayerGate()
        var frames = 0
        var last: MediaPacketHeader?
        for message in messages(in: received) where message.opcode == 2 {
            let header = try makePacket(message.payload).withBytes { try MediaPacketHeader(reading: $0) }
            guard header.isFirstChunk else { continue }
            frames += 1
            let passes = gate.passes(
                isKeyframe: header.isKeyframe,
                temporalLayer: header.temporalLayer,
                isLayerSync: header.isLayerSync,
                isDiscardable: header.isDiscardable
            )
            #expect(passes, "frame \(header.frameNumber)")
            if let last, !header.isKeyframe {
                let step = header.baseLayerIndex &- last.baseLayerIndex
                #expect(step == (header.temporalLayer == 0 ? 1 : 0), "layer 0 lost before frame \(header.frameNumber)")
            }
            last = header
        }
        #expect(frames >= 5)
    }

    @Test("A client that answers no ping is hung up on, and the others learn of it; one that answers is not")
    func noPong() async throws {
        let stage = try stage { options in
            // The witness answers, though this process may be stopped between a ping and its answer.
            options.idle = IdlePolicy(pingAfter: .milliseconds(300), hangUpAfter: .seconds(4))
        }
        let witness = try await stage.join("witness")
        let dead = try RawPeer(joining: "stage", as: "dead", port: stage.server.port)
        _ = try await witness.event("it comes") { if case .participantConnected = $0 { true } else { nil } }
        _ = try await witness.event("it goes") { if case .participantDisconnected = $0 { true } else { nil } }
        #expect(messages(in: dead.receiveAll()).contains { $0.opcode == 9 })
        #expect(await witness.room.state == .connected)
        await witness.room.disconnect()
    }
}
