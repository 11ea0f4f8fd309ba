import MediaCore
import RelayCore
import RoomProtocol
import Testing

@Suite("Relay: paths, pauses and answers", .timeLimit(.minutes(1)))
struct RelayWireTests {
    @Test(
        "The room of the URL and that of `join` must agree",
        arguments: [
            ("/", "lab", true), ("/rooms/lab", "lab", true), ("/rooms/caf%C3%A9", "cafe\u{301}", true),
            ("/rooms/lab", "other", false), ("/rooms/lab?x=1", "lab", true),
        ]
    )
    func paths(path: String, room: String, isAdmitted: Bool) {
        let bench = RelayBench()
        let peer = bench.open(path: path)
        bench.send(.join(Join(room: room, identity: "robot")), from: peer)
        bench.pull(peer)
        #expect((peer.joined != nil) == isAdmitted)
        #expect(peer.errors == (isAdmitted ? [] : [.invalidArgument]))
        #expect(peer.close?.code == (isAdmitted ? nil : .invalidArgument))
    }

    @Test("A path that names no room ends the session at once", arguments: ["/rooms/", "/x", "/rooms/%", "/rooms/a/b"])
    func wrongPaths(path: String) {
        let bench = RelayBench()
        let peer = bench.open(path: path)
        bench.send(.join(Join(room: "lab", identity: "robot")), from: peer)
        bench.pull(peer)
        #expect(peer.errors == [.invalidArgument] && peer.close?.code == .invalidArgument && peer.joined == nil)
    }

    @Test("The number of a request comes back in its answer, and with the track in its error")
    func requestNumbers() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer", automatic: false)
        let camera = try #require(bench.publish(robot))
        bench.pull(viewer)
        viewer.forgetMessages()
        let id = camera.track.id
        bench.send(.subscribe(Subscribe(trackId: id, requestId: 5)), from: viewer)
        bench.send(.unsubscribe(Unsubscribe(trackId: id, requestId: 6)), from: viewer)
        bench.pull(viewer)
        #expect(
            viewer.messages == [
                .subscribed(
                    Subscribed(
                        trackId: id,
                        alias: camera.track.alias,
                        simulcastLayer: 0,
                        catchUpThrough: nil,
                        requestId: 5
                    )
                ), .unsubscribed(Unsubscribed(trackId: id, requestId: 6)),
            ]
        )
        viewer.forgetMessages()
        bench.send(.subscribe(Subscribe(trackId: "TR_1", requestId: 1)), from: viewer)
        bench.send(.unsubscribe(Unsubscribe(trackId: "TR_2", requestId: 2)), from: viewer)
        bench.send(.unpublish(Unpublish(trackId: "TR_3", requestId: 3)), from: viewer)
        bench.send(.enable(Enable(trackId: "TR_4", requestId: 4)), from: viewer)
        bench.send(.disable(Disable(trackId: "TR_5", requestId: 5)), from: viewer)
        bench.send(.keyframeRequest(KeyframeRequest(trackId: "TR_6", requestId: 6)), from: viewer)
        bench.send(.updateTrack(UpdateTrack(trackId: "TR_7", bitrates: [1], requestId: 7)), from: viewer)
        bench.pull(viewer)
        let errors = viewer.messages.compactMap { if case .error(let error) = $0 { error } else { nil } }
        #expect(errors.map(\.requestId) == [1, 2, 3, 4, 5, 6, 7])
        #expect(errors.map(\.trackId) == (1...7).map { "TR_\($0)" })
        #expect(errors.allSatisfy { $0.code == RoomErrorCode.notFound.rawValue && !$0.fatal })
    }

    @Test("A paused subscription gets nothing and does not count as wanted; it is resumed as a late joiner's")
    func pausing() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.pull(viewer)
        bench.run(camera, frames: 40, takers: [viewer])
        viewer.forgetMessages()
        bench.frame(camera)
        bench.send(.subscribe(Subscribe(trackId: camera.track.id, paused: true, requestId: 7)), from: viewer)
        bench.send(.subscribe(Subscribe(trackId: camera.track.id, paused: true)), from: viewer)
        bench.pull([viewer, robot])
        let paused = Subscribed(
            trackId: camera.track.id,
            alias: camera.track.alias,
            simulcastLayer: 0,
            catchUpThrough: nil,
            paused: true,
            requestId: 7
        )
        #expect(viewer.messages == [.subscribed(paused)])
        #expect(robot.layersWanted.last == [])
        // Asking for a keyframe of what is paused does nothing.
        bench.send(.keyframeRequest(KeyframeRequest(trackId: camera.track.id)), from: viewer)
        bench.run(camera, frames: 10, takers: [viewer])
        #expect(viewer.receiver(camera)?.wholeFrames.isEmpty == true, "the receiver begins anew with each `subscribed`")
        #expect(robot.keyframeRequests == 0 && viewer.errors.isEmpty)
        #expect(bench.relay.statistics.storedBytes == 0)
        bench.send(.subscribe(Subscribe(trackId: camera.track.id)), from: viewer)
        bench.pull([viewer, robot])
        #expect(robot.layersWanted.last == [0])
        bench.run(camera, frames: 5, takers: [viewer])
        #expect(viewer.receiver(camera)?.wholeFrames == Array(51..<56) && viewer.allProblems.isEmpty)
        let counts = try #require(bench.counts(camera, viewer))
        #expect(counts.forwarded == viewer.packets.count && counts.waiting == 0)
        #expect(counts.received == counts.forwarded + counts.dropped.total && counts.dropped[.ended] == 1)
    }

    @Test("One viewer's pause is nothing to the others, and its track may go meanwhile")
    func pauseOfOne() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewers = [bench.join("one"), bench.join("two", automatic: false)]
        let camera = try #require(bench.publish(robot))
        bench.send(.subscribe(Subscribe(trackId: camera.track.id, paused: true)), from: viewers[1])
        bench.pull(viewers)
        bench.run(camera, frames: 10, takers: viewers)
        #expect(viewers[0].receiver(camera)?.wholeFrames == Array(0..<10) && viewers[1].packets.isEmpty)
        bench.send(.subscribe(Subscribe(trackId: camera.track.id, paused: false)), from: viewers[1])
        bench.pull(viewers[1])
        #expect(viewers[1].receiver(camera)?.catchUpThrough == 8)
        bench.send(.subscribe(Subscribe(trackId: camera.track.id, paused: true)), from: viewers[1])
        bench.send(.unpublish(Unpublish(trackId: camera.track.id)), from: robot)
        bench.pull(viewers)
        bench.send(.subscribe(Subscribe(trackId: camera.track.id)), from: viewers[1])
        bench.pull(viewers[1])
        #expect(viewers[1].errors == [.notFound] && viewers.allSatisfy { $0.allProblems.isEmpty })
        for peer in viewers + [robot] { bench.close(peer) }
        #expect(bench.relay.statistics == RelayStatistics() && bench.relay.nextDeadline == nil)
    }

    @Test(
        "Other media are refused as not supported, with or without the fields of video",
        arguments: ["audio", "data"]
    )
    func otherMedia(kind: String) {
        let bench = RelayBench()
        let robot = bench.join("robot")
        bench.send(text: #"{"type":"publish","requestId":3,"name":"","kind":"\#(kind)","source":"mic"}"#, from: robot)
        bench.pull(robot)
        #expect(robot.errors == [.notSupported] && robot.close == nil)
    }

    // MARK: Abandoned frames

    private func room() throws -> (bench: RelayBench, camera: Camera, viewer: Peer) {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot, bytesPerFrame: 20_000))
        bench.pull([robot, viewer])
        bench.run(camera, frames: 8, takers: [viewer])
        return (bench, camera, viewer)
    }

    @Test(
        "An abandoned keyframe is none: late joiners get the one before, and one that was asked for is still missing",
        arguments: [true, false]
    )
    func abandonedKeyframe(isTakenAsItComes: Bool) throws {
        let (bench, camera, viewer) = try room()
        bench.advance(.seconds(1))
        bench.send(.keyframeRequest(KeyframeRequest(trackId: camera.track.id)), from: viewer)
        bench.pull(camera.publisher)
        #expect(camera.publisher.keyframeRequests == 1)
        let keyframe = camera.nextFrame()
        #expect(keyframe.count == 6)
        bench.receive(Array(keyframe[..<4]), from: camera.publisher)
        if isTakenAsItComes { bench.pull(viewer) }
        // The next frame is one that may not follow: it refers to what was abandoned.
        bench.frame(camera)
        bench.pull(viewer)
        let late = bench.join("late")
        #expect(late.receiver(camera)?.catchUpThrough == 4)
        #expect(late.receiver(camera)?.wholeFrames == [0, 4])
        bench.advance(.seconds(1))
        bench.pull(camera.publisher)
        #expect(camera.publisher.keyframeRequests == 2)
        bench.run(camera, frames: 5, takers: [viewer, late])
        #expect(viewer.receiver(camera)?.wholeFrames == Array(0...7) + Array(10...14))
        #expect(late.receiver(camera)?.wholeFrames == [0, 4] + Array(10...14))
        #expect(viewer.allProblems.isEmpty && late.allProblems.isEmpty && camera.publisher.close == nil)
        let counts = try #require(bench.counts(camera, viewer))
        #expect(counts.dropped[.abandoned] == (isTakenAsItComes ? 0 : 4))
        #expect(counts.received == counts.forwarded + counts.dropped.total)
    }

    @Test("After an abandoned frame that others refer to, the publisher is asked for a keyframe if none comes")
    func abandonedBase() throws {
        let (bench, camera, viewer) = try room()
        let base = camera.nextFrame()
        bench.receive([base[0]], from: camera.publisher)
        bench.pull(viewer)
        bench.run(camera, frames: 3, takers: [viewer])
        #expect(viewer.receiver(camera)?.wholeFrames == Array(0...7))
        bench.advance(.seconds(1))
        bench.pull(camera.publisher)
        #expect(camera.publisher.keyframeRequests == 1)
        bench.run(camera, frames: 3, takers: [viewer])
        #expect(viewer.receiver(camera)?.wholeFrames == Array(0...7) + [12, 13, 14] && viewer.allProblems.isEmpty)
    }

    // Nobody asked for it any more, and whoever came got the frames before it and nothing else.
    @Test("After an abandoned frame whoever comes within the second gets a keyframe, too", arguments: [true, false])
    func abandonedBaseAndBack(isSameViewer: Bool) throws {
        let (bench, camera, viewer) = try room()
        let base = camera.nextFrame()
        bench.receive([base[0]], from: camera.publisher)
        bench.pull(viewer)
        bench.run(camera, frames: 3, takers: [viewer])
        bench.send(.unsubscribe(Unsubscribe(trackId: camera.track.id)), from: viewer)
        bench.advance(.milliseconds(200))
        if isSameViewer {
            bench.send(.subscribe(Subscribe(trackId: camera.track.id)), from: viewer)
        } else {
            _ = bench.join("other")
        }
        bench.run(camera, frames: 3, takers: [viewer])
        bench.advance(.seconds(1))
        bench.pull(camera.publisher)
        #expect(camera.publisher.keyframeRequests == 1)
    }

    @Test("Those who come one after the other do not put off the keyframe that is expected")
    func abandonedBaseAndCrowd() throws {
        let (bench, camera, viewer) = try room()
        let base = camera.nextFrame()
        bench.receive([base[0]], from: camera.publisher)
        bench.pull(viewer)
        bench.run(camera, frames: 3, takers: [viewer])
        for index in 0..<8 {
            _ = bench.join("late \(index)")
            bench.advance(.milliseconds(200))
        }
        bench.pull(camera.publisher)
        #expect(camera.publisher.keyframeRequests >= 1)
    }

    @Test("After an abandoned frame that nothing refers to, everything goes on")
    func abandonedDiscardable() throws {
        let (bench, camera, viewer) = try room()
        bench.run(camera, frames: 1, takers: [viewer])
        let top = camera.nextFrame()
        bench.receive([top[0]], from: camera.publisher)
        bench.pull(viewer)
        bench.run(camera, frames: 6, takers: [viewer])
        #expect(viewer.receiver(camera)?.wholeFrames == Array(0...8) + Array(10...15))
        bench.advance(.seconds(2))
        bench.pull(camera.publisher)
        #expect(viewer.allProblems.isEmpty && camera.publisher.keyframeRequests == 0)
    }

    // The publisher was asked for a keyframe, each second, although it rightly went on with the layers below.
    @Test("After an abandoned frame of a higher layer, the layers that are intact go on without a keyframe")
    func abandonedMiddle() throws {
        let (bench, camera, viewer) = try room()
        bench.run(camera, frames: 2, takers: [viewer])
        let middle = camera.nextFrame()
        #expect(try middle[0].header().temporalLayer == 1)
        bench.receive([middle[0]], from: camera.publisher)
        bench.pull(viewer)
        // 18 has layer sync; until then, the publisher leaves out what refers to the abandoned frame.
        let intact: Set<UInt32> = [12, 16, 18, 19]
        for number in UInt32(11)...19 {
            let packets = camera.nextFrame()
            bench.advance(.milliseconds(500))
            if intact.contains(number) { bench.receive(packets, from: camera.publisher) }
            bench.pull([viewer, camera.publisher])
        }
        #expect(viewer.receiver(camera)?.wholeFrames == Array(0...9) + intact.sorted())
        #expect(viewer.allProblems.isEmpty && camera.publisher.keyframeRequests == 0)
    }

    /// The header of the last packet was kept across `disable`, and the rest of its frame demanded.
    @Test("A frame may be abandoned by disabling its track")
    func abandonedByDisabling() throws {
        let (bench, camera, viewer) = try room()
        camera.wantsKeyframe = true
        bench.receive([camera.nextFrame()[0]], from: camera.publisher)
        bench.pull(viewer)
        bench.send(.disable(Disable(trackId: camera.track.id)), from: camera.publisher)
        bench.send(.enable(Enable(trackId: camera.track.id)), from: camera.publisher)
        camera.wantsKeyframe = true
        bench.run(camera, frames: 3, takers: [viewer])
        #expect(viewer.receiver(camera)?.wholeFrames == Array(0...7) + [9, 10, 11])
        #expect(viewer.allProblems.isEmpty && camera.publisher.close == nil)
    }

    @Test("A packet of a simulcast layer that was not announced ends the session, and says so")
    func otherEncodings() throws {
        let (bench, camera, viewer) = try room()
        let info = EncodedFrameInfo(number: 0, simulcastLayer: 1, timestamp: bench.now, isKeyframe: true)
        let header = MediaPacketHeader(
            frame: info,
            trackAlias: camera.track.alias,
            captureTime: RoomTime(microseconds: 0),
            encodeDelay: .zero,
            frameLength: 9,
            chunkOffset: 0,
            payloadLength: 9
        )
        bench.receive([makePacket(header)], from: camera.publisher)
        bench.pull(camera.publisher)
        #expect(camera.publisher.close?.code == .malformedMessage)
        #expect(camera.publisher.close?.reason.contains("simulcast layer 1") == true)
        #expect(viewer.allProblems.isEmpty && viewer.close == nil)
    }
}
