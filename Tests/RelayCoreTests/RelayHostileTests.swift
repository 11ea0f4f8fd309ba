import MediaCore
import RelayCore
import RoomProtocol
import Testing

/// What a hostile participant can send, and what it meets.
@Suite("Relay: hostile peers", .timeLimit(.minutes(1)))
struct RelayHostileTests {
    private func header(
        _ camera: Camera,
        _ number: UInt32,
        length: Int,
        offset: Int = 0,
        payload: Int,
        isKeyframe: Bool = true
    ) -> MediaPacketHeader {
        MediaPacketHeader(
            frame: EncodedFrameInfo(
                number: number,
                timestamp: MonotonicInstant(nanoseconds: 0),
                isKeyframe: isKeyframe
            ),
            trackAlias: camera.track.alias,
            captureTime: RoomTime(microseconds: 0),
            encodeDelay: .zero,
            frameLength: length,
            chunkOffset: offset,
            payloadLength: payload
        )
    }

    private func room() throws -> (bench: RelayBench, camera: Camera, viewer: Peer) {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.pull([viewer, robot])
        return (bench, camera, viewer)
    }

    /// Media was not metered: 755,200 chunks of one byte were taken within 8 s.
    @Test("A chunk that is not the last of its frame has at least 1,024 bytes")
    func tinyChunks() throws {
        let (bench, camera, viewer) = try room()
        bench.receive([makePacket(header(camera, 0, length: 5000, payload: 1024))], from: camera.publisher)
        bench.receive([makePacket(header(camera, 0, length: 5000, offset: 1024, payload: 1))], from: camera.publisher)
        bench.pull([camera.publisher, viewer])
        #expect(camera.publisher.errors == [.malformedMessage] && camera.publisher.close?.code == .malformedMessage)
        #expect(viewer.close == nil)
    }

    @Test("Whole frames of a few bytes meet the packet budget, full ones the byte budget", arguments: [9, 15_000])
    func frameFlood(_ payload: Int) throws {
        let (bench, camera, viewer) = try room()
        var sent = 0
        while camera.publisher.close == nil, sent < 40_000 {
            let number = UInt32(sent)
            let packet = makePacket(header(camera, number, length: payload, payload: payload))
            bench.receive([packet], from: camera.publisher)
            bench.pull([camera.publisher])
            sent += 1
        }
        #expect(camera.publisher.errors == [.limitReached] && camera.publisher.close?.code == .limitReached)
        bench.pull(viewer)
        #expect(viewer.close == nil)
    }

    /// A burst of 2,000 messages was two million texts in a room of 1,000.
    @Test("Signaling is charged by the number of those who hear of it")
    func signalingFlood() throws {
        let bench = RelayBench()
        let flooder = bench.join("flooder")
        let camera = try #require(bench.publish(flooder))
        for index in 0..<400 { _ = bench.join("viewer \(index)", automatic: false) }
        bench.pull(flooder)
        var sent = 0
        while flooder.close == nil, sent < 2000 {
            let id = camera.track.id
            let message =
                sent.isMultiple(of: 2) ? ClientMessage.disable(Disable(trackId: id)) : .enable(Enable(trackId: id))
            bench.send(message, from: flooder)
            bench.pull(flooder)
            sent += 1
        }
        #expect(flooder.errors == [.limitReached] && sent < 200)
    }

    /// Signals overtake packets on the way, so that packets came after `disable`; they were kept and sent on.
    @Test("Packets that come while a track is disabled are dropped, and after it those before a keyframe")
    func disabledPackets() throws {
        let (bench, camera, viewer) = try room()
        bench.run(camera, frames: 3, takers: [viewer])
        bench.send(.disable(Disable(trackId: camera.track.id)), from: camera.publisher)
        camera.wantsKeyframe = true
        bench.run(camera, frames: 3, takers: [viewer])
        #expect(viewer.receiver(camera)?.wholeFrames == [0, 1, 2] && camera.publisher.close == nil)
        #expect(bench.relay.statistics.storedBytes == 0)
        bench.send(.enable(Enable(trackId: camera.track.id)), from: camera.publisher)
        bench.run(camera, frames: 3, takers: [viewer])
        #expect(viewer.receiver(camera)?.wholeFrames == [0, 1, 2])
        #expect(bench.relay.statistics.storedBytes == 0)
        camera.wantsKeyframe = true
        bench.run(camera, frames: 2, takers: [viewer])
        #expect(viewer.receiver(camera)?.wholeFrames == [0, 1, 2, 9, 10] && viewer.allProblems.isEmpty)
    }

    @Test("A publisher may abandon a frame that it has begun")
    func abandoned() throws {
        let (bench, camera, viewer) = try room()
        bench.run(camera, frames: 3, takers: [viewer])
        let packet = makePacket(header(camera, 3, length: 5000, payload: 1024))
        bench.receive([packet], from: camera.publisher)
        let next = makePacket(header(camera, 4, length: 100, payload: 100))
        bench.receive([next], from: camera.publisher)
        bench.pull([camera.publisher, viewer])
        #expect(camera.publisher.close == nil && viewer.close == nil)
    }

    /// 64 characters were taken from it, each of which can be as long as its author likes.
    @Test("A line of the log is bounded and printable, whatever a peer calls itself")
    func notices() {
        let long = String(repeating: "e" + String(repeating: "\u{301}", count: 1000), count: 64)
        let line = RelayNotice.joined(identity: "a\u{202E}b\u{2028}c", room: "r\u{0}", client: long).description
        #expect(line.utf8.count < 1000)
        #expect(line.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x202E && $0.value != 0x2028 })
    }

    /// The deadline of a need that was met stayed, and the driver was woken for nothing.
    @Test("A keyframe that came withdraws the deadline of its request")
    func withdrawnDeadline() throws {
        let (bench, camera, viewer) = try room()
        #expect(bench.relay.nextDeadline != nil)
        bench.frame(camera)
        bench.pull(viewer)
        #expect(bench.relay.nextDeadline == nil)
    }
}
