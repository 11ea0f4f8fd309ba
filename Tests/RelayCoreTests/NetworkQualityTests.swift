import MediaCore
import RelayCore
import RoomProtocol
import TestTools
import Testing

@Suite("Relay: network quality", .timeLimit(.minutes(1)))
struct NetworkQualityTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000)

    private func switches(_ peer: Peer) -> [String] {
        peer.messages.compactMap { message in
            switch message {
            case .trackSwitchedOff(let body): "off \(body.reason)"
            case .trackSwitchedOn: "on"
            default: nil
            }
        }
    }

    @Test("A worse level counts at once, a better one after five seconds, and none changes twice within two")
    func meter() {
        var meter = NetworkQualityMeter()
        let latest = [5, 3, 1, 1, 5, 5, 4, 5, 5, 5]
        let levels = latest.indices.map { second in
            meter.update(latest[second], at: start + .seconds(second))
            return meter.level
        }
        #expect(levels == [5, 3, 3, 1, 1, 1, 1, 1, 1, 4])
    }

    @Test("The delay of an uplink is what exceeds the smallest one, whatever the clocks say")
    func uplink() {
        var delay = UplinkDelay()
        #expect(delay.takeExcess() == nil)
        for frame in 0..<30 { delay.note(sent: Int64(frame) * 33_000 - 7_000_000_000, at: Int64(frame) * 33_000) }
        #expect(delay.takeExcess() == .zero)
        delay.note(sent: 1_000_000 - 7_000_000_000, at: 1_250_000)
        #expect(delay.takeExcess() == .milliseconds(250))
        delay.note(sent: .min, at: .max)
        delay.note(sent: .max, at: .min)
        #expect(delay.takeExcess() != nil)
    }

    // The smallest delay of before the pause counted after it, however long it was.
    @Test("After a pause of a minute, the delays from before it count no more")
    func uplinkAfterPause() {
        var delay = UplinkDelay()
        for frame in 0..<3000 { delay.note(sent: Int64(frame) * 33_000, at: Int64(frame) * 33_000 + 10_000) }
        _ = delay.takeExcess()
        let later: Int64 = 1_000_000_000
        for frame in 0..<30 {
            // The clocks have drifted apart by a second.
            delay.note(sent: later + Int64(frame) * 33_000, at: later + Int64(frame) * 33_000 + 1_010_000)
        }
        #expect(delay.takeExcess() == .zero)
    }

    /// A room with a publisher whose frames come late after the first seconds.
    private func lateRoom(seconds: Int) throws -> (bench: RelayBench, camera: Camera, viewer: Peer) {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.pull([robot, viewer])
        for frame in 0..<seconds * 30 {
            let lateness: Duration = frame < 60 ? .zero : .milliseconds(900)
            bench.receive(camera.nextFrame(captured: bench.now - lateness), from: robot)
            bench.pull([robot, viewer])
            bench.advance(.milliseconds(33))
        }
        return (bench, camera, viewer)
    }

    // Levels went out on change only: a newcomer took a publisher at 2 for 5.
    @Test("A newcomer is told the level of those who publish over a bad network, and of nobody else")
    func newcomer() throws {
        let (bench, camera, viewer) = try lateRoom(seconds: 6)
        let id = try #require(camera.publisher.joined?.participant.id)
        #expect(levels(of: id, at: viewer) == [2])
        let before = bench.relay.work.encodings
        let late = bench.join("late")
        #expect(levels(of: id, at: late) == [2])
        #expect(late.messages.count { if case .networkQuality = $0 { true } else { false } } == 1)
        #expect(bench.relay.work.encodings - before <= 4, "the level is encoded once for all newcomers")
    }

    @Test("Others learn of a bad network when its participant publishes, and of its end in any case")
    func beginsToPublish() throws {
        let (bench, camera, viewer) = try lateRoom(seconds: 6)
        let robot = camera.publisher
        let id = try #require(robot.joined?.participant.id)
        bench.send(.unpublish(Unpublish(trackId: camera.track.id)), from: robot)
        bench.advance(.seconds(20))
        bench.pull([robot, viewer])
        #expect(levels(of: id, at: robot).last == 5)
        #expect(levels(of: id, at: viewer).last == 5)

        // A viewer on a thin link is at 4 or less, which concerns nobody until it publishes.
        var room = try EmulatedRoom(cap: 1_500_000) {
            [
                EmulatedViewer($0, "thin", bitsPerSecond: 800_000),
                EmulatedViewer($0, "other", bitsPerSecond: 50_000_000),
            ]
        }
        room.run(10_000)
        let (thin, other) = (room.viewers[0].peer, room.viewers[1].peer)
        let name = try #require(thin.joined?.participant.id)
        let level = try #require(levels(of: name, at: thin).last)
        #expect(level < 5 && levels(of: name, at: other).isEmpty)
        let request = Publish(
            requestId: 1,
            name: "own",
            source: "camera",
            codec: VideoCodec.vp8,
            width: 64,
            height: 64,
            frameRate: 30
        )
        room.bench.send(.publish(request), from: thin)
        room.run(100)
        #expect(levels(of: name, at: other) == [level])
    }

    // It was told that its own network does not carry the track.
    @Test("A subscriber that waits for a keyframe that the publisher does not send is not told that its network is bad")
    func missingKeyframe() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewers = (0..<2).map { bench.join("viewer \($0)") }
        let camera = try #require(bench.publish(robot))
        bench.pull(viewers + [robot])
        bench.run(camera, frames: 150, takers: viewers)
        bench.send(.keyframeRequest(KeyframeRequest(trackId: camera.track.id)), from: viewers[0])
        for _ in 0..<300 {
            bench.pull([robot])
            camera.wantsKeyframe = false
            bench.frame(camera)
            bench.pull(viewers)
            bench.advance(.milliseconds(33))
        }
        #expect(switches(viewers[0]) == [] && switches(viewers[1]) == [])
        let name = try #require(viewers[0].joined?.participant.id)
        #expect(levels(of: name, at: viewers[0]).isEmpty)
        camera.wantsKeyframe = true
        bench.run(camera, frames: 30, takers: viewers)
        #expect(viewers[0].allProblems.isEmpty && (viewers[0].receiver(camera)?.wholeFrames.count ?? 0) > 170)
    }

    // It was said behind the first packet, and not before the rest of the link's queue was gone.
    @Test("That a track is sent again is said before the keyframe with which it goes on", arguments: [8, 20])
    func switchedOnFirst(stall: Int) throws {
        var room = try EmulatedRoom(cap: 1_500_000) { [EmulatedViewer($0, "viewer", bitsPerSecond: 8_000_000)] }
        let viewer = room.viewers[0]
        room.run(5000)
        viewer.isReading = false
        room.run(stall * 1000)
        viewer.isReading = true
        room.run(3000)
        #expect(switches(viewer.peer).first == "off network" && switches(viewer.peer).last == "on")
        let order = viewer.peer.order
        for (index, entry) in order.enumerated() where entry == .switchedOff {
            let next = order[(index + 1)...].first
            #expect(next == .switchedOn, "\(String(describing: next)) follows the end")
        }
        let begin = try #require(order.firstIndex(of: .switchedOn))
        #expect(order[begin + 1] == .keyframe)
        #expect(viewer.peer.allProblems.isEmpty)
    }

    // It was told "off", and then got pictures without a word.
    @Test("A viewer that pauses a track that is switched off is told that this state is over")
    func pausedWhileOff() throws {
        var room = try EmulatedRoom(cap: 1_500_000) { [EmulatedViewer($0, "viewer", bitsPerSecond: 8_000_000)] }
        let viewer = room.viewers[0]
        room.run(5000)
        viewer.isReading = false
        room.run(4000)
        let track = room.camera.track.id
        room.bench.send(.subscribe(Subscribe(trackId: track, paused: true)), from: viewer.peer)
        viewer.isReading = true
        room.run(1000)
        room.bench.send(.subscribe(Subscribe(trackId: track, paused: false)), from: viewer.peer)
        room.run(2000)
        let told = switches(viewer.peer)
        let (on, off) = (told.count { $0 == "on" }, told.count { $0 == "off network" })
        #expect(off > 0 && on == off && told.last == "on", "\(told)")
    }

    @Test("A room in which nothing is late is told nothing")
    func quiet() throws {
        var room = try EmulatedRoom(cap: 1_000_000) {
            [EmulatedViewer($0, "viewer", bitsPerSecond: 50_000_000, delay: .milliseconds(5))]
        }
        room.run(10_000)
        for peer in [room.viewers[0].peer, room.camera.publisher] {
            #expect(!peer.messages.contains { if case .networkQuality = $0 { true } else { false } })
        }
    }

    // What it was told while its link was broken came when that was over, and delayed the first picture.
    @Test("A viewer on a thin link is told 4 or less; of an outage it hears afterwards, and 5 in the end")
    func viewer() throws {
        var room = try EmulatedRoom(cap: 1_500_000) { [EmulatedViewer($0, "viewer", bitsPerSecond: 800_000)] }
        let viewer = room.viewers[0]
        room.run(10_000)
        let id = viewer.peer.joined?.participant.id
        #expect(levels(of: id, at: viewer.peer).last ?? 5 <= 4)
        #expect(switches(viewer.peer) == [])
        viewer.isReading = false
        room.run(500)
        let before = viewer.peer.messages.count
        room.run(3000)
        room.bench.send(.timeSync(TimeSync(clientTime: 1)), from: viewer.peer)
        room.run(4500)
        #expect(viewer.peer.messages.count == before)
        viewer.isReading = true
        viewer.bitsPerSecond = 50_000_000
        room.run(2000)
        #expect(levels(of: id, at: viewer.peer).contains { $0 <= 1 })
        room.bench.send(.timeSync(TimeSync(clientTime: 2)), from: viewer.peer)
        room.run(40_000)
        let answers = viewer.peer.messages.compactMap { message in
            if case .timeSync(let body) = message { body.clientTime } else { nil }
        }
        #expect(answers == [2])
        #expect(switches(viewer.peer) == [])
        #expect(levels(of: id, at: viewer.peer).last == 5)
        #expect(levels(of: id, at: room.camera.publisher).isEmpty, "a viewer's network concerns nobody else")
        #expect(viewer.peer.allProblems.isEmpty)
    }

    @Test("The level of a publisher goes to all, at most once in two seconds")
    func publisher() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.pull([robot, viewer])
        func send(_ seconds: Int, lateness: Duration) {
            for _ in 0..<seconds * 30 {
                let packets = camera.nextFrame(captured: bench.now - lateness)
                bench.receive(packets, from: robot)
                bench.pull([robot, viewer])
                bench.advance(.milliseconds(33))
            }
        }
        send(4, lateness: .zero)
        let id = robot.joined?.participant.id
        #expect(levels(of: id, at: viewer).isEmpty)
        send(4, lateness: .milliseconds(900))
        send(20, lateness: .zero)
        #expect(levels(of: id, at: viewer) == [2, 5])
        #expect(levels(of: id, at: robot) == [2, 5])
    }
}
