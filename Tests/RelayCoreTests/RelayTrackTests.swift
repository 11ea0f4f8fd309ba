import MediaCore
import RelayCore
import RoomProtocol
import Testing

/// A publication of VP8, which the relay of the tests relays.
private func vp8(_ name: String, source: String, width: Int, height: Int, frameRate: Double) -> Publish {
    Publish(
        requestId: 9,
        name: name,
        source: source,
        codec: VideoCodec.vp8,
        width: width,
        height: height,
        frameRate: frameRate
    )
}

@Suite("Relay: tracks", .timeLimit(.minutes(1)))
struct RelayTrackTests {
    private func publish(_ change: (inout Publish) -> Void = { _ in }) -> Publish {
        var body = vp8("front", source: "camera", width: 640, height: 480, frameRate: 30)
        change(&body)
        return body
    }

    @Test("Publishing is answered, announced and subscribed to, and the publisher hears whether anybody receives it")
    func publishing() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let other = bench.join("other", automatic: false)
        let camera = try #require(bench.publish(robot))
        bench.pull([viewer, other])
        let track = camera.track
        #expect(track.id.hasPrefix("TR_") && track.alias > 0 && track.enabled && track.codec == "vp8")
        let robotID = try #require(robot.joined?.participant.id)
        let announcement = ServerMessage.trackPublished(TrackPublished(participantId: robotID, track: track))
        #expect(
            viewer.messages.suffix(2) == [
                announcement,
                .subscribed(Subscribed(trackId: track.id, alias: track.alias, simulcastLayer: 0, catchUpThrough: nil)),
            ]
        )
        #expect(other.messages.last == announcement)
        #expect(robot.layersWanted.last == [0])
    }

    @Test(
        "A publication beyond what the relay takes is refused with its request's number, without harm",
        arguments: [
            (vp8("", source: "camera", width: 640, height: 480, frameRate: 30), .invalidArgument),
            (vp8("a\u{7f}", source: "c", width: 1, height: 1, frameRate: 1), .invalidArgument),
            (vp8("a", source: "b\u{1}", width: 1, height: 1, frameRate: 1), .invalidArgument),
            (vp8("a", source: "", width: 1, height: 1, frameRate: 1), .invalidArgument),
            (vp8("a", source: "c", width: 0, height: 1, frameRate: 1), .invalidArgument),
            (vp8("a", source: "c", width: .max, height: 1, frameRate: 1), .invalidArgument),
            (vp8("a", source: "c", width: 1, height: 16384, frameRate: 1), .invalidArgument),
            (vp8("a", source: "c", width: 1, height: .min, frameRate: 1), .invalidArgument),
            (vp8("a", source: "c", width: 1, height: 1, frameRate: 0), .invalidArgument),
            (vp8("a", source: "c", width: 1, height: 1, frameRate: -1), .invalidArgument),
            (vp8("a", source: "c", width: 1, height: 1, frameRate: 1e300), .invalidArgument),
            (Publish(requestId: 9, name: "a", kind: "audio", source: "c", codec: VideoCodec.vp8), .notSupported),
            (
                Publish(requestId: 9, name: "a", source: "c", codec: "av1", width: 1, height: 1, frameRate: 1),
                .notSupported
            ),
        ] as [(Publish, RoomErrorCode)]
    )
    func refused(_ body: Publish, code: RoomErrorCode) throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        bench.send(.publish(body), from: robot)
        bench.pull(robot)
        guard case .error(let error) = try #require(robot.messages.last) else {
            Issue.record("\(robot.messages)")
            return
        }
        #expect(error.code == code.rawValue && error.requestId == 9 && !error.fatal)
        #expect(robot.close == nil && bench.relay.statistics.tracks == 0)
    }

    @Test("Names are unique in a participant, and tracks are limited in a participant and a room")
    func limits() throws {
        let bench = RelayBench { $0.maximumTracksPerRoom = 20 }
        let robot = bench.join("robot")
        let second = bench.join("second")
        for index in 0..<16 { _ = try #require(bench.publish(robot, name: "\(index)")) }
        #expect(bench.publish(robot, name: "17th") == nil)
        #expect(bench.publish(second, name: "3") != nil)
        #expect(bench.publish(second, name: "3") == nil)
        for index in 4..<7 { _ = try #require(bench.publish(second, name: "\(index)")) }
        #expect(bench.publish(second, name: "21st of the room") == nil)
        #expect(robot.errors == [.limitReached] && second.errors == [.invalidArgument, .limitReached])
        let freed = bench.join("third", room: "other")
        #expect(bench.publish(freed) != nil)
    }

    @Test("A relay takes the codecs that it was given, and names them to whoever publishes another one")
    func codecs() throws {
        let bench = RelayBench(videoCodecs: ["vp8", "av1"])
        let robot = bench.join("robot")
        for codec in ["av1", "vp8", "h264"] {
            bench.send(.publish(publish { ($0.name, $0.codec) = (codec, codec) }), from: robot)
        }
        bench.pull(robot)
        let published = robot.messages.compactMap { message in
            if case .published(let body) = message { body.track.codec } else { nil }
        }
        #expect(published == ["av1", "vp8"])
        let refusals = robot.messages.compactMap { if case .error(let error) = $0 { error } else { nil } }
        #expect(refusals.map(\.code) == [RoomErrorCode.notSupported.rawValue])
        #expect(refusals.first?.message == #"only video of codec "vp8" or "av1" is relayed"#)
    }

    @Test("Aliases and ids are never used again")
    func aliases() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        var tracks: [TrackInfo] = []
        for _ in 0..<20 {
            let camera = try #require(bench.publish(robot))
            tracks.append(camera.track)
            bench.send(.unpublish(Unpublish(trackId: camera.track.id)), from: robot)
        }
        #expect(Set(tracks.map(\.alias)).count == 20 && Set(tracks.map(\.id)).count == 20)
    }

    @Test("Unpublishing is told to all, and packets that were still on their way are passed over")
    func unpublishing() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.run(camera, frames: 3, takers: [viewer])
        viewer.forgetMessages()
        let count = viewer.packets.count
        bench.send(.unpublish(Unpublish(trackId: camera.track.id)), from: robot)
        bench.frame(camera)
        bench.pull([viewer, robot])
        let robotID = try #require(robot.joined?.participant.id)
        #expect(
            viewer.messages
                == [.trackUnpublished(TrackUnpublished(participantId: robotID, trackId: camera.track.id))]
        )
        #expect(viewer.packets.count == count && robot.close == nil && viewer.allProblems.isEmpty)
        #expect(bench.relay.statistics.storedBytes == 0)
        bench.send(.unpublish(Unpublish(trackId: camera.track.id)), from: robot)
        bench.pull(robot)
        #expect(robot.errors == [.notFound])
    }

    @Test("A track can be subscribed to and unsubscribed from by hand, once each")
    func byHand() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer", automatic: false)
        let camera = try #require(bench.publish(robot))
        let id = camera.track.id
        bench.run(camera, frames: 2, takers: [viewer])
        #expect(viewer.packets.isEmpty && robot.layersWanted == [[]])
        bench.send(.subscribe(Subscribe(trackId: id)), from: viewer)
        bench.send(.subscribe(Subscribe(trackId: id)), from: viewer)
        bench.pull([robot, viewer])
        #expect(viewer.messages.count { if case .subscribed = $0 { true } else { false } } == 1)
        #expect(robot.layersWanted == [[], [0]])
        bench.run(camera, frames: 4, takers: [viewer])
        #expect(viewer.receiver(camera)?.wholeFrames == [2, 3, 4, 5])
        bench.run(camera, frames: 30)
        bench.frame(camera)
        bench.send(.unsubscribe(Unsubscribe(trackId: id)), from: viewer)
        bench.send(.unsubscribe(Unsubscribe(trackId: id)), from: viewer)
        bench.pull([robot, viewer])
        let reason = "this participant is not subscribed to the track \"front\" (\(id))"
        #expect(viewer.messages.last == .error(ErrorMessage(.notFound, reason, fatal: false, trackId: id)))
        #expect(robot.layersWanted == [[], [0], []])
        bench.run(camera, frames: 2, takers: [viewer])
        #expect(viewer.allProblems.isEmpty && viewer.receiver(camera)?.wholeFrames.count == 4)
        for track in ["", "TR_none", id + "x"] {
            viewer.forgetMessages()
            bench.send(.subscribe(Subscribe(trackId: track)), from: viewer)
            bench.pull(viewer)
            #expect(viewer.errors == [.notFound])
        }
        bench.send(.subscribe(Subscribe(trackId: id)), from: robot)
        bench.pull(robot)
        #expect(robot.errors == [.notFound])
    }

    private func notFound(_ id: String) -> String {
        "this room has no track \"\(id)\"; use the id of one that is published now"
    }

    // Each was "no such track in the room, or not yours", with the id alone.
    @Test("A refused request says which track it is about, and whose that is")
    func refusals() throws {
        let bench = RelayBench()
        let (robot, viewer) = (bench.join("robot"), bench.join("viewer"))
        let stranger = bench.join("stranger", room: "elsewhere")
        let id = try #require(bench.publish(robot)).track.id
        bench.send(.unsubscribe(Unsubscribe(trackId: id)), from: viewer)
        bench.pull([robot, viewer, stranger])
        let track = "the track \"front\" (\(id))"
        let cases: [(ClientMessage, Peer, String)] = [
            (.unpublish(Unpublish(trackId: id)), viewer, "\(track) can only be changed by its publisher, \"robot\""),
            (.enable(Enable(trackId: id)), viewer, "\(track) can only be changed by its publisher, \"robot\""),
            (.disable(Disable(trackId: id)), viewer, "\(track) can only be changed by its publisher, \"robot\""),
            (.subscribe(Subscribe(trackId: id)), robot, "\(track) is this participant's own; only others"),
            (.unsubscribe(Unsubscribe(trackId: id)), viewer, "this participant is not subscribed to \(track)"),
            (.subscribe(Subscribe(trackId: id)), stranger, notFound(id)),
            (.disable(Disable(trackId: "TR_x")), robot, notFound("TR_x")),
        ]
        for (message, peer, words) in cases {
            bench.send(message, from: peer)
            bench.pull(peer)
            guard case .error(let error)? = peer.messages.last else {
                Issue.record("\(message) is not refused")
                continue
            }
            #expect(error.message.hasPrefix(words), "\(error.message)")
        }
    }

    @Test("A publisher is told when its last subscriber goes and its first comes, and of nobody in between")
    func layersWanted() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let camera = try #require(bench.publish(robot))
        let viewers = (0..<3).map { bench.join("viewer \($0)") }
        bench.pull(robot)
        #expect(robot.layersWanted == [[], [0]])
        bench.close(viewers[0])
        bench.send(.unsubscribe(Unsubscribe(trackId: camera.track.id)), from: viewers[1])
        bench.pull(robot)
        #expect(robot.layersWanted == [[], [0]])
        bench.run(camera, frames: 31, takers: [viewers[2]])
        bench.send(.leave(Leave(reason: "left")), from: viewers[2])
        bench.pull(robot)
        #expect(robot.layersWanted == [[], [0], []])
        _ = bench.join("viewer again")
        bench.pull(robot)
        #expect(robot.layersWanted == [[], [0], [], [0]])
        #expect(robot.keyframeRequests == 0)
    }

    /// Else one subscriber could have a keyframe made as often as it sends two messages.
    @Test("A lone subscriber that comes and goes costs a keyframe a second at most")
    func comingAndGoing() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.pull([robot, viewer])
        var waits = 0
        for _ in 0..<150 {
            bench.run(camera, frames: 1, takers: [viewer])
            bench.send(.unsubscribe(Unsubscribe(trackId: camera.track.id)), from: viewer)
            bench.send(.subscribe(Subscribe(trackId: camera.track.id)), from: viewer)
            bench.pull([robot, viewer])
            if viewer.receiver(camera)?.wholeFrames.isEmpty == true { waits += 1 }
        }
        // A subscriber that comes back gets the cached frames, unless a new keyframe may be requested at once.
        #expect(camera.keyframes.count <= 1 + 5 && waits < camera.keyframes.count && viewer.allProblems.isEmpty)
        bench.send(.unsubscribe(Unsubscribe(trackId: camera.track.id)), from: viewer)
        bench.advance(.seconds(1))
        bench.pull(robot)
        #expect(robot.layersWanted.last == [])
    }

    @Test("Packets that nobody receives are not kept, and those of a publisher that falls silent are not kept for long")
    func keptForNobody() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let camera = try #require(bench.publish(robot))
        bench.run(camera, frames: 30)
        #expect(bench.relay.statistics.storedBytes == 0)
        let viewer = bench.join("viewer")
        bench.pull([robot, viewer])
        bench.run(camera, frames: 30, takers: [viewer])
        #expect(bench.relay.statistics.storedBytes > 0)
        for _ in 0..<8 {
            bench.advance(.seconds(1))
            bench.relay.discardOldPackets(at: bench.now)
        }
        #expect(bench.relay.statistics.storedBytes == 0)
        bench.send(.keyframeRequest(KeyframeRequest(trackId: camera.track.id)), from: viewer)
        bench.pull(robot)
        bench.run(camera, frames: 30, takers: [viewer])
        #expect(viewer.receiver(camera)?.wholeFrames.count == 60 && viewer.allProblems.isEmpty)
    }

    @Test("Disabling forgets the packets; the subscribers go on at the keyframe that follows enabling")
    func pausing() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.pull(robot)
        bench.run(camera, frames: 3, takers: [viewer])
        bench.frame(camera)
        viewer.forgetMessages()
        bench.send(.disable(Disable(trackId: camera.track.id)), from: robot)
        bench.send(.disable(Disable(trackId: camera.track.id)), from: robot)
        bench.pull(viewer)
        let robotID = try #require(robot.joined?.participant.id)
        #expect(
            viewer.messages == [.trackDisabled(TrackDisabled(participantId: robotID, trackId: camera.track.id))]
        )
        #expect(viewer.receiver(camera)?.wholeFrames == [0, 1, 2])
        #expect(bench.relay.statistics.storedBytes == 0)
        // Late joiners hear of the pause.
        let late = bench.join("late")
        #expect(late.joined?.participants.flatMap(\.tracks).map(\.enabled) == [false])
        bench.send(.enable(Enable(trackId: camera.track.id)), from: robot)
        camera.wantsKeyframe = true
        bench.run(camera, frames: 3, takers: [viewer, late])
        #expect(viewer.receiver(camera)?.wholeFrames == [0, 1, 2, 4, 5, 6])
        #expect(late.receiver(camera)?.wholeFrames == [4, 5, 6])
        #expect(viewer.allProblems.isEmpty && late.allProblems.isEmpty)
        #expect(robot.keyframeRequests == 0)
    }

    /// Requests went to a paused publisher each second, and to one that nobody received.
    @Test("Neither a publisher that pauses nor one without subscribers is asked for keyframes")
    func noIdleRequests() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let camera = try #require(bench.publish(robot))
        bench.send(.disable(Disable(trackId: camera.track.id)), from: robot)
        let viewer = bench.join("viewer")
        bench.send(.keyframeRequest(KeyframeRequest(trackId: camera.track.id)), from: viewer)
        let second = bench.join("second")
        bench.advance(.seconds(10))
        bench.pull([robot, viewer, second])
        #expect(robot.keyframeRequests == 0)
        bench.close(viewer)
        bench.close(second)
        bench.send(.enable(Enable(trackId: camera.track.id)), from: robot)
        bench.advance(.seconds(10))
        bench.pull(robot)
        #expect(robot.keyframeRequests == 0 && bench.relay.nextDeadline == nil)
        // Enabled with a subscriber, but silent: asked.
        bench.send(.disable(Disable(trackId: camera.track.id)), from: robot)
        _ = bench.join("viewer")
        bench.send(.enable(Enable(trackId: camera.track.id)), from: robot)
        bench.advance(.milliseconds(2500))
        bench.pull(robot)
        #expect(robot.keyframeRequests == 2)
    }
}
