import MediaCore
import RelayCore
import RoomProtocol
import Testing

@Suite("Relay: packets", .timeLimit(.minutes(1)))
struct RelayPacketTests {
    @Test("Every subscriber is sent the publisher's own buffers, stamped and else unchanged, extensions among them")
    func bitExact() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewers = [bench.join("one"), bench.join("two")]
        let camera = try #require(bench.publish(robot, bytesPerFrame: 20_000))
        bench.pull(viewers + [robot])
        for extensionBytes in [0, 17] {
            let packets = camera.nextFrame(extensionBytes: extensionBytes)
            let before = packets.map(\.bytes)
            bench.receive(packets, from: robot)
            for viewer in viewers {
                let count = viewer.packets.count
                bench.pull(viewer)
                let received = viewer.packets[count...]
                #expect(received.map(ObjectIdentifier.init) == packets.map(ObjectIdentifier.init))
            }
            let stamp = withUnsafeBytes(of: UInt64(bench.now.microseconds).bigEndian) { Array($0) }
            for (packet, original) in zip(packets, before) {
                let after = packet.bytes
                #expect(Array(after[40..<48]) == stamp)
                #expect(Array(after[..<40]) == Array(original[..<40]) && Array(after[48...]) == Array(original[48...]))
            }
            bench.advance(.milliseconds(33))
        }
        #expect(viewers.allSatisfy { $0.allProblems.isEmpty })
    }

    @Test("Another's alias ends the session of whoever uses it, and harms nobody else")
    func foreignAlias() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let hostile = bench.join("hostile")
        let camera = try #require(bench.publish(robot))
        bench.run(camera, frames: 3, takers: [viewer, hostile])
        let forged = MediaPacketHeader(
            frame: EncodedFrameInfo(number: 3, timestamp: bench.now, isKeyframe: true),
            trackAlias: camera.track.alias,
            captureTime: RoomTime(microseconds: 0),
            encodeDelay: .zero,
            frameLength: 10,
            chunkOffset: 0,
            payloadLength: 10
        )
        bench.receive([makePacket(forged)], from: hostile)
        bench.pull(hostile)
        #expect(hostile.close?.code == .malformedMessage)
        bench.run(camera, frames: 3, takers: [viewer])
        #expect(viewer.receiver(camera)?.wholeFrames == [0, 1, 2, 3, 4, 5] && viewer.allProblems.isEmpty)
    }

    @Test("Media before `join` ends the session")
    func beforeJoin() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let camera = try #require(bench.publish(robot))
        let early = bench.open()
        bench.receive(camera.nextFrame(), from: early)
        bench.receive(camera.nextFrame(), from: early)
        bench.pull(early)
        #expect(early.errors == [.malformedMessage] && early.close?.code == .malformedMessage)
    }

    @Test(
        "Packets that break the order or the format end the publisher's session; its subscribers keep theirs",
        arguments: 0..<5
    )
    func broken(_ kind: Int) throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot, bytesPerFrame: 50_000))
        bench.run(camera, frames: 2, takers: [viewer])
        let packets = camera.nextFrame()
        switch kind {
        case 0: bench.receive([packets[1]], from: robot)
        case 1: bench.receive([packets[0], packets[2]], from: robot)
        case 2: bench.receive([packets[0], packets[0]], from: robot)
        case 3: bench.receive(packets + packets, from: robot)
        default:
            let cut = PacketBuffer(capacity: 30)
            cut.count = 30
            cut.withMutableBytes { bytes in
                for offset in 0..<30 { bytes.storeBytes(of: 0, toByteOffset: offset, as: UInt8.self) }
            }
            bench.receive([cut], from: robot)
        }
        bench.pull([robot, viewer])
        #expect(robot.errors == [.malformedMessage] && robot.close?.code == .malformedMessage)
        #expect(viewer.close == nil && viewer.allProblems.isEmpty)
        #expect(bench.relay.statistics == RelayStatistics(connections: 2, rooms: 1))
    }

    @Test("Kinds of binary message that the relay does not know are passed over, empty ones too")
    func unknownKinds() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        for bytes in [[], [1], [1, 77], [9, 200, 3]] as [[UInt8]] {
            let packet = PacketBuffer(capacity: max(bytes.count, 1))
            packet.count = bytes.count
            packet.withMutableBytes { message in
                for (offset, byte) in bytes.enumerated() {
                    message.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
                }
            }
            bench.receive([packet], from: robot)
        }
        let acknowledgement = PacketBuffer(capacity: MediaAcknowledgement.length)
        acknowledgement.count = MediaAcknowledgement.length
        let body = MediaAcknowledgement(
            cumulativeBytes: 1,
            receiveTime: MediaAcknowledgement.ReceiverTime(microseconds: 1),
            trackAlias: 1,
            frameNumber: 1
        )
        acknowledgement.withMutableBytes { body.write(to: &$0) }
        bench.receive([acknowledgement], from: robot)
        bench.pull(robot)
        #expect(robot.close == nil && robot.errors.isEmpty)
        acknowledgement.count = 20
        bench.receive([acknowledgement], from: robot)
        bench.pull(robot)
        #expect(robot.close?.code == .malformedMessage)
    }

    @Test("Tracks take turns, packet by packet, so that none starves another")
    func turns() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let large = try #require(bench.publish(robot, name: "large", bytesPerFrame: 100_000))
        let small = try #require(bench.publish(robot, name: "small", bytesPerFrame: 20_000))
        bench.pull([viewer, robot])
        bench.frame(large)
        bench.frame(small)
        bench.pull(viewer)
        let aliases = try viewer.packets.map { try $0.header().trackAlias }
        let smallCount = aliases.count { $0 == small.track.alias }
        #expect(smallCount == 6 && aliases.count > 20)
        let first = aliases.prefix(12)
        #expect(first.count { $0 == large.track.alias } == 6)
        #expect(zip(first, first.dropFirst()).allSatisfy { $0 != $1 })
        #expect(viewer.allProblems.isEmpty)
    }

    @Test("Each connection is woken once for what is new, and again after it found nothing")
    func waking() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot, bytesPerFrame: 20_000))
        bench.pull([robot, viewer])
        _ = bench.takeAwakened()
        bench.frame(camera)
        // The publisher's frame is acknowledged.
        #expect(bench.takeAwakened() == [robot.id, viewer.id])
        bench.frame(camera)
        #expect(bench.takeAwakened() == [])
        bench.pull(viewer)
        bench.frame(camera)
        #expect(bench.takeAwakened() == [viewer.id])
        bench.pull(robot)
        bench.send(.timeSync(TimeSync(clientTime: 1)), from: robot)
        #expect(bench.takeAwakened() == [robot.id])
    }

    /// The publisher must hear of a request although it is made while another connection is served.
    @Test("A request that comes about while a subscriber is served wakes the publisher")
    func wakingPublisher() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.run(camera, frames: 3, takers: [viewer])
        bench.frame(camera)
        bench.pull(robot)
        bench.advance(.seconds(2))
        _ = bench.takeAwakened()
        bench.pull(viewer)
        #expect(bench.takeAwakened() == [robot.id])
        bench.pull(robot)
        #expect(robot.keyframeRequests == 1)
    }
}
