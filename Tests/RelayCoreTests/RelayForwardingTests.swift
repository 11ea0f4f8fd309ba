import MediaCore
import RelayCore
import RoomProtocol
import Testing

@Suite("Relay: forwarding", .timeLimit(.minutes(1)))
struct RelayForwardingTests {
    /// A room with a camera and viewers that have heard of each other.
    private func room(
        viewers count: Int,
        bytesPerFrame: Int = 1000,
        _ change: (inout RelaySettings) -> Void = { _ in }
    ) throws -> (bench: RelayBench, camera: Camera, viewers: [Peer]) {
        let bench = RelayBench(change)
        let robot = bench.join("robot")
        let viewers = (0..<count).map { bench.join("viewer \($0)") }
        let camera = try #require(bench.publish(robot, bytesPerFrame: bytesPerFrame))
        bench.pull(viewers + [robot])
        return (bench, camera, viewers)
    }

    /// Sends frames, the first viewer taking all, the second what a socket of `bytesPerSecond` takes.
    private func run(
        _ bench: RelayBench,
        _ camera: Camera,
        _ viewers: [Peer],
        frames: Int,
        bytesPerSecond: Int
    ) {
        for _ in 0..<frames {
            bench.frame(camera)
            for _ in 0..<3 {
                bench.pull([viewers[0], camera.publisher])
                viewers[1].credit += bytesPerSecond * 11 / 1000
                let before = viewers[1].packets.count
                if viewers[1].credit > 0 { bench.pull(viewers[1], limit: viewers[1].credit) }
                viewers[1].credit -= viewers[1].packets[before...].reduce(0) { $0 + $1.count }
                viewers[1].credit = min(viewers[1].credit, 2000)
                bench.advance(.milliseconds(11))
            }
        }
    }

    private func layers(_ peer: Peer, _ camera: Camera, from first: UInt32 = 0) -> [UInt8: Int] {
        var counts: [UInt8: Int] = [:]
        for number in peer.receiver(camera)?.wholeFrames ?? [] where number >= first {
            counts[camera.temporalLayers[number] ?? 99, default: 0] += 1
        }
        return counts
    }

    @Test("The operator's line on a participant that leaves says what it was not sent, and why")
    func leaving() throws {
        let (bench, camera, viewers) = try room(viewers: 2)
        run(bench, camera, viewers, frames: 60, bytesPerSecond: 15_000)
        let lines = try viewers.map { viewer in
            let counts = try #require(bench.counts(camera, viewer))
            bench.close(viewer)
            bench.takeEffects()
            return (line: try #require(bench.notices.last).description, counts: counts)
        }
        #expect(lines[0].counts.forwarded == 60)
        #expect(lines[0].line == "\"viewer 0\" left \"room\"; it was sent 60 packets")
        let (line, counts) = lines[1]
        let late = counts.dropped[.topLayerLate]
        #expect(late > 0 && counts.forwarded > 0)
        let total = counts.dropped.total + counts.waiting
        #expect(
            line.hasPrefix(
                "\"viewer 1\" left \"room\"; it was sent \(counts.forwarded) packets; \(total) were left out: "
                    + "\(late) late in layer 2, "
            )
        )
    }

    @Test("A late joiner is given the keyframe and layer 0 since, then all layers from the sync of each on")
    func lateJoin() throws {
        let (bench, camera, viewers) = try room(viewers: 1)
        bench.run(camera, frames: 31, takers: viewers)
        let late = bench.join("late")
        let receiver = try #require(late.receiver(camera))
        #expect(receiver.catchUpThrough == 28)
        #expect(receiver.wholeFrames == stride(from: 0, through: 28, by: 4).map { UInt32($0) })
        bench.run(camera, frames: 20, takers: viewers + [late])
        let after = try #require(late.receiver(camera)).wholeFrames.filter { $0 > 28 }
        // The sync of layer 1 at 34 brings it and layer 2 in; frame 31 of layer 2 refers to frame 30.
        #expect(after == [32] + Array(34...50))
        #expect(late.allProblems.isEmpty)
        #expect(camera.keyframes == [0] && camera.publisher.keyframeRequests == 0)
        #expect(viewers[0].receiver(camera)?.wholeFrames == Array(0...50))
    }

    // Whoever joined when its beginning was older than 0.6 s left it out and asked for another one.
    @Test(
        "A subscriber that joins while the keyframe comes in is sent it live, and asks for none, however slowly it comes",
        arguments: [0, 700, 2000]
    )
    func joinWithinKeyframe(milliseconds: Int) throws {
        let (bench, camera, viewers) = try room(viewers: 1, bytesPerFrame: 10_000)
        bench.run(camera, frames: 5, takers: viewers)
        camera.wantsKeyframe = true
        let packets = camera.nextFrame()
        #expect(packets.count == 3)
        bench.receive(Array(packets[..<2]), from: camera.publisher)
        for viewer in viewers { bench.pull(viewer) }
        bench.advance(.milliseconds(milliseconds))
        let late = bench.join("late")
        #expect(late.receiver(camera)?.catchUpThrough == nil)
        #expect(late.packets.count == 2)
        bench.receive(Array(packets[2...]), from: camera.publisher)
        bench.pull(late)
        bench.run(camera, frames: 4, takers: viewers + [late])
        #expect(late.receiver(camera)?.wholeFrames == [5, 6, 7, 8, 9] && late.allProblems.isEmpty)
        #expect(camera.publisher.keyframeRequests == 0)
    }

    @Test("A newcomer within a frame of layer 0 or above is sent it as far as that decodes", arguments: [4, 5, 6])
    func joinWithinFrame(_ index: Int) throws {
        let (bench, camera, viewers) = try room(viewers: 1, bytesPerFrame: 20_000)
        bench.run(camera, frames: index, takers: viewers)
        let packets = camera.nextFrame()
        #expect(packets.count == 2)
        bench.receive([packets[0]], from: camera.publisher)
        let late = bench.join("late")
        bench.receive([packets[1]], from: camera.publisher)
        bench.pull(late)
        bench.run(camera, frames: 12, takers: viewers + [late])
        #expect(late.allProblems.isEmpty)
        let receiver = try #require(late.receiver(camera))
        #expect(receiver.catchUpThrough == (index == 4 ? 0 : 4))
        #expect(
            receiver.wholeFrames.contains(4)
                && receiver.wholeFrames.suffix(7) == Array(UInt32(index) + 6...UInt32(index) + 12)
        )
    }

    // A join asked for a keyframe, which was coarse for everybody for half a second.
    @Test("Whoever joins a still screen gets what is cached, however long it has stood, and costs no keyframe")
    func joinStill() throws {
        let (bench, camera, viewers) = try room(viewers: 1)
        bench.run(camera, frames: 31, takers: viewers)
        camera.isStill = true
        for minute in 1...3 {
            for _ in 0..<60 {
                bench.run(camera, frames: 1, takers: viewers)
                bench.advance(.milliseconds(967))
            }
            let late = bench.join("viewer of minute \(minute)")
            let newest = UInt32(camera.framesSent - 1)
            let receiver = try #require(late.receiver(camera))
            #expect(receiver.catchUpThrough == newest && receiver.wholeFrames.last == newest)
            #expect(late.allProblems.isEmpty)
        }
        #expect(camera.keyframes == [0] && camera.publisher.keyframeRequests == 0)
        // Of 213 frames, a newcomer would decode the picture later than a keyframe brings it.
        for _ in 0..<30 {
            bench.run(camera, frames: 1, takers: viewers)
            bench.advance(.milliseconds(967))
        }
        _ = bench.join("late")
        bench.run(camera, frames: 3, takers: viewers)
        #expect(camera.keyframes.count == 2 && camera.publisher.keyframeRequests == 1)
    }

    @Test("A cache that is too old is not handed out: one keyframe is asked for")
    func oldCache() throws {
        let (bench, camera, viewers) = try room(viewers: 1)
        bench.run(camera, frames: 95, takers: viewers)
        let late = bench.join("late")
        #expect(late.receiver(camera)?.catchUpThrough == nil && late.packets.isEmpty)
        bench.run(camera, frames: 5, takers: viewers + [late])
        #expect(camera.keyframes.count == 2 && camera.publisher.keyframeRequests == 1)
        #expect(late.receiver(camera)?.wholeFrames.first == camera.keyframes[1] && late.allProblems.isEmpty)
    }

    @Test("A hundred joins within a second cost at most one keyframe, with a cache or without", arguments: [30, 95])
    func burst(_ framesBefore: Int) throws {
        let (bench, camera, viewers) = try room(viewers: 1)
        bench.run(camera, frames: framesBefore, takers: viewers)
        let before = camera.keyframes.count
        var joiners: [Peer] = []
        for index in 0..<100 {
            joiners.append(bench.join("joiner \(index)"))
            if index % 3 == 0 {
                bench.run(camera, frames: 1, takers: viewers + joiners)
                bench.pull(joiners)
            }
        }
        bench.run(camera, frames: 10, takers: viewers + joiners)
        #expect(camera.keyframes.count - before <= 1 && camera.publisher.keyframeRequests <= 1)
        let newest = UInt32(camera.framesSent - 1)
        for joiner in joiners {
            #expect(joiner.allProblems.isEmpty && joiner.receiver(camera)?.wholeFrames.last == newest)
        }
    }

    @Test("A socket that is a little too slow loses layer 2, a slower one layer 1 too; others lose nothing")
    func slow() throws {
        let all = 1.0...1.0
        let cases: [(Int, [ClosedRange<Double>])] = [
            (120, [all, all, all]), (75, [all, 0.9...1, 0.2...0.75]), (40, [0.95...1, 0...0.75, 0...0.4]),
        ]
        for (share, expected) in cases {
            let (bench, camera, viewers) = try room(viewers: 2, bytesPerFrame: 4000)
            // 30.3 frames a second of 4,048 bytes.
            run(bench, camera, viewers, frames: 400, bytesPerSecond: 122_660 * share / 100)
            let slow = layers(viewers[1], camera)
            for layer in UInt8(0)...2 {
                let whole = Double(layers(viewers[0], camera)[layer] ?? 0)
                let ratio = Double(slow[layer] ?? 0) / whole
                #expect(expected[Int(layer)].contains(ratio), "layer \(layer) at \(share) %: \(ratio)")
            }
            #expect(viewers[0].receiver(camera)?.wholeFrames == Array(0..<400))
            #expect(viewers.allSatisfy { $0.allProblems.isEmpty })
            #expect(camera.publisher.keyframeRequests == 0, "layers are enough at \(share) %")
        }
    }

    @Test(
        "A socket too slow even for layer 0 skips from keyframe to keyframe, which it pays for with longer and longer waits"
    )
    func muchTooSlow() throws {
        let (bench, camera, viewers) = try room(viewers: 2, bytesPerFrame: 4000)
        run(bench, camera, viewers, frames: 1500, bytesPerSecond: 20_000)
        #expect(viewers[0].receiver(camera)?.wholeFrames == Array(0..<1500))
        #expect(viewers.allSatisfy { $0.allProblems.isEmpty })
        // Fifty seconds: waits of 1, 2, 4, 8, 16 s.
        #expect((2...7).contains(camera.publisher.keyframeRequests))
        #expect((viewers[1].receiver(camera)?.wholeFrames.count ?? 0) > 5)
    }

    /// Keyframes that are broken off at 600 ms each never make a picture.
    @Test("A link on which a keyframe takes longer than a second still carries pictures")
    func slowKeyframes() throws {
        let (bench, camera, viewers) = try room(viewers: 2, bytesPerFrame: 10_000)
        // 40 kB take 1.3 s.
        run(bench, camera, viewers, frames: 600, bytesPerSecond: 30_000)
        #expect((viewers[1].receiver(camera)?.wholeFrames.count ?? 0) >= 3)
        #expect(viewers.allSatisfy { $0.allProblems.isEmpty })
    }

    @Test("A subscriber that never reads causes no requests, and neither memory nor others suffer")
    func neverReads() throws {
        let (bench, camera, viewers) = try room(viewers: 2)
        var most = 0
        for _ in 0..<400 {
            bench.run(camera, frames: 1, takers: [viewers[0]])
            most = max(most, bench.relay.statistics.storedBytes)
        }
        #expect(camera.publisher.keyframeRequests == 0 && camera.keyframes == [0])
        #expect(viewers[0].receiver(camera)?.wholeFrames == Array(0..<400))
        // 600 ms, or 3 s of layer 0: never more than some 40 packets.
        #expect(most < 60 * 1500)
        // When it reads again, it is at the live edge with one keyframe.
        bench.pull(viewers[1])
        bench.run(camera, frames: 5, takers: viewers)
        #expect(camera.publisher.keyframeRequests == 1 && camera.keyframes.count == 2)
        #expect(viewers[1].receiver(camera)?.wholeFrames.first == camera.keyframes[1])
        #expect(viewers.allSatisfy { $0.allProblems.isEmpty })
    }

    @Test("A stall in the middle of a frame is overcome, short or long", arguments: [100, 150, 250, 550, 700, 5000])
    func stall(_ milliseconds: Int) throws {
        let (bench, camera, viewers) = try room(viewers: 2, bytesPerFrame: 40_000)
        bench.run(camera, frames: 9, takers: viewers)
        bench.frame(camera)
        bench.pull(viewers[0])
        bench.pull(viewers[1], limit: 16_000)
        for _ in 0..<milliseconds / 25 {
            bench.advance(.milliseconds(25))
            bench.frame(camera)
            bench.pull(viewers[0])
        }
        let end = UInt32(camera.framesSent)
        bench.pull(viewers[1])
        bench.run(camera, frames: 12, takers: viewers)
        let frames = try #require(viewers[1].receiver(camera)).wholeFrames
        #expect(frames.suffix(4) == Array(end + 8...end + 11))
        #expect(viewers[0].receiver(camera)?.wholeFrames == Array(0..<end + 12))
        #expect(viewers.allSatisfy { $0.allProblems.isEmpty })
        #expect(camera.publisher.keyframeRequests == (milliseconds > 600 ? 1 : 0))
        if milliseconds <= 100 { #expect(frames == Array(0..<end + 12)) }
    }

    @Test("A subscriber that has fallen behind goes on at a keyframe that came meanwhile, without another")
    func freshKeyframe() throws {
        let (bench, camera, viewers) = try room(viewers: 2)
        bench.run(camera, frames: 5, takers: viewers)
        bench.run(camera, frames: 25, takers: [viewers[0]])
        camera.wantsKeyframe = true
        bench.run(camera, frames: 3, takers: [viewers[0]])
        bench.run(camera, frames: 3, takers: viewers)
        #expect(viewers[1].receiver(camera)?.wholeFrames == Array(0..<5) + Array(30..<36))
        #expect(viewers[1].allProblems.isEmpty && camera.publisher.keyframeRequests == 0)
    }

    /// Sent the old keyframe first, it would ask for another only then.
    @Test("A subscriber that waits for a keyframe is not sent one that is late by now, but asks for another")
    func staleKeyframe() throws {
        let (bench, camera, viewers) = try room(viewers: 2)
        bench.run(camera, frames: 5, takers: viewers)
        bench.run(camera, frames: 60, takers: [viewers[0]])
        bench.pull(viewers[1])
        bench.pull(camera.publisher)
        // The keyframe comes, and the socket of the one who waits for it stands still for a second.
        bench.run(camera, frames: 30, takers: [viewers[0]])
        #expect(camera.keyframes.count == 2)
        let count = viewers[1].packets.count
        bench.pull(viewers[1])
        #expect(viewers[1].packets.count == count)
        bench.advance(.seconds(1))
        bench.run(camera, frames: 35, takers: viewers)
        #expect(camera.keyframes.count == 3)
        #expect(viewers[1].receiver(camera)?.wholeFrames.dropFirst(5).first == camera.keyframes[2])
        #expect(viewers.allSatisfy { $0.allProblems.isEmpty })
    }

    @Test("Packets that are kept for less time than the policy would send them count as left out")
    func shortWindow() throws {
        let (bench, camera, viewers) = try room(viewers: 2) { $0.stream.liveWindow = .milliseconds(50) }
        for index in 0..<85 {
            bench.run(camera, frames: 1, takers: [viewers[0]])
            if index % 8 == 7 { bench.pull(viewers[1]) }
        }
        #expect(viewers.allSatisfy { $0.allProblems.isEmpty })
        // Each sync of layer 1 was gone by the time it could be sent, so layer 0 is all that decodes.
        #expect(viewers[1].receiver(camera)?.wholeFrames == stride(from: 0, to: 80, by: 4).map { UInt32($0) })
    }

    @Test("Time that stands still or goes back for a moment breaks nothing")
    func oddClock() throws {
        let (bench, camera, viewers) = try room(viewers: 2)
        for index in 0..<200 {
            bench.frame(camera)
            bench.pull([viewers[0], camera.publisher])
            if index % 3 == 0 { bench.pull(viewers[1]) }
            switch index % 5 {
            case 0: bench.now += .milliseconds(100)
            case 1: bench.now = bench.now - .milliseconds(50)
            default: break
            }
        }
        bench.pull(viewers[1])
        #expect(viewers.allSatisfy { $0.allProblems.isEmpty })
        #expect(viewers[0].receiver(camera)?.wholeFrames == Array(0..<200))
    }
}
