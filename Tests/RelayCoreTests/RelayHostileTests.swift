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

    // The participant's budget, which is larger, would end the flood as well.
    @Test(
        "Whole frames of a few bytes meet the track's packet budget, full ones its byte budget",
        arguments: [
            (9, "\(RelaySettings().media.trackPackets) packets a second"),
            (15_000, "\(RelaySettings().media.trackRate)"),
        ]
    )
    func frameFlood(_ payload: Int, limit: String) throws {
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
        let sentences = camera.publisher.messages.compactMap { message in
            if case .error(let error) = message { error.message } else { nil }
        }
        #expect(sentences == ["a track may send \(limit)"])
        bench.pull(viewer)
        #expect(viewer.close == nil)
    }

    /// A burst of 2,000 messages was two million texts in a room of 1,000.
    @Test("Signaling is charged by the number of those who hear of it")
    func signalingFlood() throws {
        let bench = RelayBench()
        let flooder = bench.join("flooder")
        let camera = try #require(bench.publish(flooder))
        for index in 0..<400 { _ = bench.enter("viewer \(index)", automatic: false) }
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
        // Only the participants' networks are still to be looked at.
        let steps = bench.relay.work.deadlineSteps
        bench.advance(.seconds(5))
        #expect(bench.relay.work.deadlineSteps == steps)
        bench.pull(camera.publisher)
        #expect(camera.publisher.keyframeRequests == 0)
    }

    // MARK: Keyframes

    @Test("A subscriber that provokes keyframes costs others of the encoding one in four seconds, and nobody else any")
    func provokedKeyframes() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewers = (0..<2).map { bench.join("viewer \($0)") }
        let hostile = bench.join("hostile", automatic: false)
        let camera = try #require(bench.publish(robot))
        bench.send(.subscribe(Subscribe(trackId: camera.track.id)), from: hostile)
        let other = try #require(bench.publish(robot, name: "other"))
        bench.pull([robot, hostile] + viewers)
        for frame in 0..<3600 {
            // It reads now and then only, which looks like an outage, and asks and comes back in between.
            if frame % 22 == 0 { bench.pull(hostile) }
            if frame % 10 == 0 {
                bench.send(.keyframeRequest(KeyframeRequest(trackId: camera.track.id)), from: hostile)
            }
            if frame % 50 == 25 {
                bench.send(.unsubscribe(Unsubscribe(trackId: camera.track.id)), from: hostile)
                bench.send(.subscribe(Subscribe(trackId: camera.track.id)), from: hostile)
            }
            bench.frame(other)
            bench.run(camera, frames: 1, takers: viewers)
        }
        // In 119 s, one each 4 s after outages, and eight of those that are asked for.
        #expect(camera.keyframes.count <= 119 / 4 + 3 + 8, "\(camera.keyframes.count)")
        #expect(other.keyframes.count == 1, "\(other.keyframes.count)")
        for viewer in viewers {
            #expect(viewer.receiver(camera)?.wholeFrames == Array(0..<3600))
            #expect(viewer.receiver(other)?.wholeFrames == Array(0..<3600))
            #expect(viewer.close == nil && viewer.allProblems.isEmpty)
        }
    }

    @Test("The only subscriber of an encoding, asking all the time, costs the subscribers of the others nothing")
    func ownEncoding() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let hostile = bench.join("hostile")
        let camera = try #require(bench.publish(robot, layers: SimulcastTests.layers))
        bench.send(.subscribe(Subscribe(trackId: camera.track.id, width: 320, height: 180)), from: hostile)
        for _ in 0..<900 {
            for encoding in bench.encodings(of: camera) where encoding.wanted != nil { bench.frame(encoding) }
            bench.send(.keyframeRequest(KeyframeRequest(trackId: camera.track.id)), from: hostile)
            bench.pull([robot, viewer, hostile])
            bench.advance(.milliseconds(33))
            bench.pull(robot)
        }
        let encodings = bench.encodings(of: camera)
        #expect((20...31).contains(encodings[0].keyframes.count), "\(encodings[0].keyframes.count)")
        #expect(encodings[2].keyframes.count <= 3, "\(encodings[2].keyframes.count)")
        #expect(viewer.receiver(camera)?.simulcastLayers.last == 2)
        #expect(viewer.allProblems.isEmpty && hostile.allProblems.isEmpty)
    }

    // MARK: Floods

    @Test("The backlog of a stall passes at once: 3 s of the highest rate and 6 MiB, and then the highest rate")
    func backlog() throws {
        let (bench, camera, viewer) = try room()
        let rate = MediaSettings().trackRate.bitsPerSecond / 8
        var number: UInt32 = 0
        func send(bytes: Int) {
            for _ in 0..<bytes / 16_000 {
                let packet = makePacket(header(camera, number, length: 15_952, payload: 15_952))
                bench.receive([packet], from: camera.publisher)
                number += 1
            }
        }
        send(bytes: 6 << 20 + 3 * rate)
        for _ in 0..<20 {
            bench.advance(.milliseconds(100))
            send(bytes: rate / 10)
        }
        bench.pull([camera.publisher, viewer])
        #expect(camera.publisher.close == nil && viewer.close == nil)
        send(bytes: rate)
        bench.pull(camera.publisher)
        #expect(camera.publisher.errors == [.limitReached])
    }

    @Test("60 fps in three encodings, each frame of three packets, never meet the budgets")
    func manyFrames() throws {
        let (bench, camera, _) = try room()
        for number in 0..<UInt32(180 * 20) {
            for offset in stride(from: 0, to: 34_000, by: 15_952) {
                let payload = min(15_952, 34_000 - offset)
                let chunk = header(
                    camera,
                    number,
                    length: 34_000,
                    offset: offset,
                    payload: payload,
                    isKeyframe: number == 0
                )
                bench.receive([makePacket(chunk)], from: camera.publisher)
            }
            bench.advance(.microseconds(5555))
        }
        bench.pull(camera.publisher)
        #expect(camera.publisher.close == nil && camera.publisher.errors.isEmpty)
    }

    @Test("A participant has a budget over all its tracks, and other binary messages are charged too")
    func participantBudget() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let cameras = try (0..<4).map { try #require(bench.publish(robot, name: "\($0)")) }
        for number in 0..<UInt32(5000) where robot.close == nil {
            for camera in cameras {
                bench.receive([makePacket(header(camera, number, length: 15_000, payload: 15_000))], from: robot)
            }
            // Each track alone is well within its own.
            bench.advance(.milliseconds(3))
            bench.pull(robot)
        }
        #expect(robot.errors == [.limitReached])
        let noisy = bench.join("noisy")
        for _ in 0..<40_000 where noisy.close == nil {
            let packet = PacketBuffer(capacity: 2)
            packet.count = 2
            packet.withMutableBytes { $0.storeBytes(of: 77, toByteOffset: 1, as: UInt8.self) }
            bench.receive([packet], from: noisy)
            bench.pull(noisy)
        }
        #expect(noisy.errors == [.limitReached])
    }

    @Test(
        "Frames that are begun and abandoned without end meet the packet budget, and leave no memory or requests behind"
    )
    func abandoningFlood() throws {
        let (bench, camera, viewer) = try room()
        var most = 0
        for number in 0..<UInt32(40_000) where camera.publisher.close == nil {
            let packet = makePacket(header(camera, number, length: 9000, payload: 1024))
            bench.receive([packet], from: camera.publisher)
            bench.pull(camera.publisher)
            if number.isMultiple(of: 100) { bench.advance(.milliseconds(1)) }
            most = max(most, bench.relay.statistics.storedBytes)
        }
        #expect(camera.publisher.errors == [.limitReached] && camera.publisher.keyframeRequests == 0)
        #expect(most <= TrackStreamSettings().maximumBytes.bytes)
        bench.pull(viewer)
        #expect(viewer.close == nil && bench.relay.statistics.storedBytes == 0)
    }

    @Test(
        "Signals without end are refused: subscribing and unsubscribing, publishing and withdrawing, long messages",
        arguments: 0..<3
    )
    func signalFloods(kind: Int) throws {
        let (bench, camera, _) = try room()
        for index in 0..<300 { _ = bench.enter("bystander \(index)", automatic: false) }
        let clean = bench.join("clean", room: "next door")
        let flooder = bench.join("flooder", automatic: false)
        let before = bench.relay.work
        var sent = 0
        while flooder.close == nil, sent < 10_000 {
            switch kind {
            case 0:
                let id = camera.track.id
                let isOdd = sent.isMultiple(of: 2)
                let signal =
                    isOdd ? ClientMessage.subscribe(Subscribe(trackId: id)) : .unsubscribe(Unsubscribe(trackId: id))
                bench.send(signal, from: flooder)
            case 1:
                if let track = bench.publish(flooder, name: "\(sent)")?.track {
                    bench.send(.unpublish(Unpublish(trackId: track.id)), from: flooder)
                }
            default:
                let long = String(repeating: "x", count: 60_000)
                bench.send(text: #"{"type":"timeSync","clientTime":1,"x":"\#(long)"}"#, from: flooder)
            }
            bench.pull(flooder)
            sent += 1
        }
        #expect(flooder.errors == [.limitReached] && flooder.close?.code == .limitReached)
        let work = bench.relay.work - before
        #expect(work.deliveries <= RelaySettings().deliveryBurst + 3 * RelaySettings().messageBurst)
        #expect(kind < 2 || sent < 40)
        bench.pull(clean)
        #expect(clean.close == nil && clean.messages.count == 1)
    }

    @Test("A busy client in a full room stays far from the limits")
    func busyClient() throws {
        let bench = RelayBench { $0.maximumOutbox = .mebibytes(64) }
        let viewers = (0..<990).map { bench.enter("viewer \($0)") }
        bench.discard(viewers)
        // Sixteen tracks, lost and published again, and each paused once a minute.
        for _ in 0..<3 {
            let robot = bench.join("robot")
            let cameras = try (0..<16).map { try #require(bench.publish(robot, name: "\($0)")) }
            for camera in cameras {
                bench.send(.disable(Disable(trackId: camera.track.id)), from: robot)
                bench.send(.enable(Enable(trackId: camera.track.id)), from: robot)
            }
            for _ in 0..<10 {
                bench.advance(.seconds(6))
                bench.send(.disable(Disable(trackId: cameras[0].track.id)), from: robot)
                bench.send(.enable(Enable(trackId: cameras[0].track.id)), from: robot)
            }
            bench.pull(robot)
            #expect(robot.close == nil && robot.errors.isEmpty)
            bench.close(robot)
            bench.discard(viewers)
        }
        // A hundred come within a second, each replacing its own dead connection.
        for index in 0..<100 {
            let peer = bench.join("viewer \(index)")
            bench.advance(.milliseconds(10))
            bench.pull(peer)
            #expect(peer.joined != nil && peer.close == nil)
        }
    }

    // MARK: The server's memory

    @Test("Tracks without number stay within the server's memory, new ones are refused, and a clean room goes on")
    func serverMemory() throws {
        let limit = DataSize.mebibytes(8)
        let bench = RelayBench { $0.maximumStoredBytes = limit }
        let robot = bench.join("robot", room: "clean")
        let viewer = bench.join("viewer", room: "clean")
        let camera = try #require(bench.publish(robot))
        bench.pull([robot, viewer])
        let attackers = (0..<4).map { bench.join("attacker \($0)", room: "hostile") }
        let cameras = try (0..<12).map { try #require(bench.publish(attackers[$0 % 4], name: "\($0)")) }
        var most = 0
        for number in 0..<UInt32(120) {
            for flood in cameras {
                let isKeyframe = number.isMultiple(of: 40)
                let packets = (0..<4).map { part in
                    let offset = part * 15_000
                    return makePacket(
                        header(flood, number, length: 60_000, offset: offset, payload: 15_000, isKeyframe: isKeyframe)
                    )
                }
                bench.receive(packets, from: flood.publisher)
                most = max(most, bench.relay.statistics.storedBytes)
            }
            bench.run(camera, frames: 1, takers: [viewer])
        }
        #expect(most <= limit.bytes && most > limit.bytes / 2)
        #expect(viewer.receiver(camera)?.wholeFrames == Array(0..<120) && viewer.allProblems.isEmpty)
        let counts = try #require(bench.counts(camera, viewer))
        #expect(counts.dropped.total == 0 && robot.keyframeRequests == 0)
        // 12 tracks of 60 kB and 120 frames are 86 MB: passes are few, because each frees an eighth.
        #expect(bench.relay.work.memoryPasses < 250)
        #expect(bench.takeOverdue() == [])
        #expect(bench.notices.contains { if case .memoryUsedUp = $0 { true } else { false } })
        for attacker in attackers { bench.close(attacker) }
        #expect(bench.relay.statistics.storedBytes < 1 << 20)
    }

    @Test("A server whose memory is in use refuses a further track, and takes it when there is memory again")
    func refusedTrack() throws {
        let bench = RelayBench { $0.maximumStoredBytes = .kibibytes(512) }
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot, bytesPerFrame: 10_000))
        bench.pull([robot, viewer])
        // Live packets of some 480 kB, of which none is for late joiners alone.
        for _ in 0..<43 { bench.frame(camera) }
        #expect(bench.publish(robot, name: "second") == nil)
        #expect(robot.errors == [.limitReached] && robot.close == nil)
        // Each refusal sorted all encodings of the server.
        let before = bench.relay.work.memoryPasses
        for _ in 0..<100 { #expect(bench.publish(robot, name: "second") == nil) }
        #expect(bench.relay.work.memoryPasses - before <= 1)
        bench.advance(.seconds(1))
        #expect(bench.publish(robot, name: "second") != nil, "what is for late joiners alone gives way")
        bench.pull(viewer)
        #expect(viewer.close == nil && viewer.allProblems.isEmpty)
    }
}
