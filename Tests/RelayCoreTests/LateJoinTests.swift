import MediaCore
import RelayCore
import RoomProtocol
import Testing

/// Late joiners behind links that carry a little or much more than the track's rate.
@Suite("Relay: late joiners", .timeLimit(.minutes(1)))
struct LateJoinTests {
    private static let rate = 1_000_000.0
    /// One way, in milliseconds.
    private static let delay = 50.0

    /// What joiners see, and what they cost.
    private struct Outcome {
        var room: EmulatedRoom
        var joiners: [EmulatedViewer]
        var keyframes: Int
        var joined: Int

        func shown(_ joiner: EmulatedViewer) -> [EmulatedViewer.Frame] { joiner.shownFrames(of: room.camera) }
    }

    /// Viewers join a room with one healthy viewer, `age` milliseconds after a keyframe.
    private func join(
        _ links: [Double],
        age: Int,
        every pause: Int = 0,
        delay: Duration = .milliseconds(50),
        acknowledges: Bool = true,
        temporalLayers: Int = 1,
        seconds: Int = 8
    ) throws -> Outcome {
        var room = try EmulatedRoom(cap: Self.rate, temporalLayers: temporalLayers) {
            [EmulatedViewer($0, "healthy", bitsPerSecond: 50_000_000, delay: .milliseconds(5))]
        }
        room.run(5000)
        room.camera.wantsKeyframe = true
        room.run(33 + age)
        let (before, joined) = (room.camera.keyframes.count, room.milliseconds)
        var joiners: [EmulatedViewer] = []
        for (number, link) in links.enumerated() {
            let joiner = EmulatedViewer(
                room.bench,
                "late \(number)",
                bitsPerSecond: link * Self.rate,
                delay: delay,
                acknowledges: acknowledges,
                socketBytes: 32_000,
                countsParts: true
            )
            joiners.append(joiner)
            room.viewers.append(joiner)
            room.run(pause)
        }
        room.run(seconds * 1000)
        let keyframes = room.camera.keyframes.count - before
        return Outcome(room: room, joiners: joiners, keyframes: keyframes, joined: joined)
    }

    private func expectNoProblems(_ outcome: Outcome) {
        for viewer in outcome.room.viewers {
            #expect(viewer.peer.allProblems.isEmpty, "\(viewer.peer.allProblems.prefix(3))")
        }
    }

    // A cached keyframe of 2 s was followed by pictures that were 1.8 s late, and by a keyframe some seconds later.
    @Test(
        "On a link of 1.2 times the rate, the first picture shown is live, at the cost of at most one keyframe",
        arguments: [50, 100, 200, 300, 600, 1000, 1500, 2000, 2500, 2900, 3500]
    )
    func thinLink(age: Int) throws {
        let outcome = try join([1.2], age: age)
        let first = try #require(outcome.shown(outcome.joiners[0]).first)
        let own = Double(first.bytes) * 8 / (1200)
        // What comes behind a short cache is live a moment later, and a client waits for that (`OpeningGate`).
        let catchUp = age < 300 ? 200.0 : 0
        #expect(first.age <= 100 + Self.delay + own + catchUp, "\(first.age) ms, of which \(own) for its own bytes")
        #expect(first.time - outcome.joined < 1000)
        #expect(outcome.keyframes <= 1)
        if age > 3000 { #expect(outcome.keyframes == 1) }
        expectNoProblems(outcome)
    }

    @Test("A cache that is too old costs exactly one keyframe, however many join with it")
    func oldCache() throws {
        let outcome = try join([1.2, 20, 1.2, 2, 50, 1.2], age: 3500, every: 10)
        #expect(outcome.keyframes == 1)
        for joiner in outcome.joiners { #expect(!outcome.shown(joiner).isEmpty) }
        expectNoProblems(outcome)
    }

    @Test("A keyframe for one late joiner serves those who are catching up from an older one")
    func shared() throws {
        let outcome = try join([1.2, 1.2, 1.2], age: 2000, every: 60)
        #expect(outcome.keyframes == 1)
        for joiner in outcome.joiners { #expect(outcome.shown(joiner).first?.age ?? .infinity < 300) }
        expectNoProblems(outcome)
    }

    @Test("On a wide path the cache is enough", arguments: [100, 1000, 2000, 2900])
    func widePath(age: Int) throws {
        let outcome = try join([100], age: age, delay: .milliseconds(5))
        #expect(outcome.keyframes == 0)
        #expect(outcome.shown(outcome.joiners[0]).first?.age ?? .infinity < 100)
        expectNoProblems(outcome)
    }

    // The frames of the higher layers counted, none of which a late joiner is sent.
    @Test(
        "Of three temporal layers, only the lowest stands between a late joiner and the live picture",
        arguments: [1000, 2000, 2800],
        [2.5, 3, 4, 5]
    )
    func temporalLayers(age: Int, link: Double) throws {
        let outcome = try join([link], age: age, delay: .milliseconds(5), temporalLayers: 3)
        #expect(outcome.keyframes == 0)
        let first = try #require(outcome.shown(outcome.joiners[0]).first)
        #expect(first.time - outcome.joined < 600 && first.age < 300, "\(first)")
        expectNoProblems(outcome)
    }

    // It gave the cache up for a keyframe that never came, and saw nothing.
    @Test(
        "Where requests are not answered, a late joiner keeps the cached frames",
        arguments: [400, 700, 1000, 1400],
        [1.2, 1.5, 2, 4]
    )
    func unanswered(age: Int, link: Double) throws {
        var room = try EmulatedRoom(cap: Self.rate) {
            [EmulatedViewer($0, "healthy", bitsPerSecond: 50_000_000, delay: .milliseconds(5))]
        }
        room.run(5000)
        room.camera.wantsKeyframe = true
        room.camera.answersRequests = false
        room.run(33 + age)
        // The first one may ask: nobody knows yet that there is no answer.
        room.viewers.append(lateJoiner(in: room, "first", link: 1.2))
        room.run(1500)
        let keyframe = try #require(room.camera.keyframes.last)
        let cached = room.camera.framesSent - Int(keyframe)
        let joiner = lateJoiner(in: room, "second", link: link)
        room.viewers.append(joiner)
        room.run(15_000)
        #expect(room.camera.publisher.keyframeRequests > 0)
        #expect(room.camera.keyframes.last == keyframe)
        let frames = joiner.frames.map(\.number)
        #expect(frames.first == keyframe)
        #expect(frames == Array(keyframe..<keyframe + UInt32(frames.count)))
        #expect(frames.count >= cached)
        #expect(joiner.peer.allProblems.isEmpty)
        // On a fast link, also all that follow: frames are kept for 6 s, in which it must have come to the live ones.
        guard Double(cached) / 30 * link / (link - 1) < 4.4 else { return }
        #expect(frames.count >= room.camera.framesSent - Int(keyframe) - 10)
    }

    // With each keyframe of its own, the source counted as one that answers: the next joiner waited for the one after it.
    @Test("Where a source makes keyframes of its own only, late joiners keep the cached frames", arguments: [1, 2])
    func ownKeyframes(seconds: Int) throws {
        var room = try EmulatedRoom(cap: Self.rate) {
            [EmulatedViewer($0, "healthy", bitsPerSecond: 50_000_000, delay: .milliseconds(5))]
        }
        room.run(5000)
        room.camera.wantsKeyframe = true
        room.camera.answersRequests = false
        room.run(1500)
        // It asks in vain.
        room.viewers.append(lateJoiner(in: room, "first", link: 1.2))
        room.run(4000)
        room.camera.wantsKeyframe = true
        room.run(33 + seconds * 1000)
        let keyframe = try #require(room.camera.keyframes.last)
        let joiner = lateJoiner(in: room, "second", link: 1.5)
        room.viewers.append(joiner)
        room.run(3000)
        let frames = joiner.frames.map(\.number)
        #expect(frames.first == keyframe && frames.count > 60)
        #expect(frames == Array(keyframe..<keyframe + UInt32(frames.count)))
    }

    private func lateJoiner(in room: EmulatedRoom, _ name: String, link: Double) -> EmulatedViewer {
        EmulatedViewer(
            room.bench,
            name,
            bitsPerSecond: link * Self.rate,
            socketBytes: 32_000,
            countsParts: true
        )
    }

    @Test("A joiner that does not acknowledge costs at most two keyframes", arguments: [1000, 2000, 2900])
    func mute(age: Int) throws {
        let outcome = try join([1.2], age: age, acknowledges: false)
        #expect(outcome.keyframes <= 2)
        #expect(outcome.shown(outcome.joiners[0]).count > 100)
        expectNoProblems(outcome)
    }

    // MARK: The choice

    private func load(waiting: Int, underway: Int = 0, pause: Duration = .zero) -> CatchUpChoice.Load {
        CatchUpChoice.Load(
            waiting: waiting,
            underway: underway,
            roundTrip: 0.1,
            keyframe: 16_000,
            production: 1_000_000,
            pause: pause
        )
    }

    /// The choice of a subscriber that was delivered `rate` bits per second for 100 ms.
    private func delay(at rate: Double, _ load: CatchUpChoice.Load) -> Duration? {
        var choice = CatchUpChoice(fromCache: true)
        let first = choice.delayOfKeyframe(acknowledged: 500, at: .init(microseconds: 7_000_000), load)
        #expect(first == nil, "one acknowledgement tells no rate")
        let bytes = 500 + Int64(rate / 80)
        let delay = choice.delayOfKeyframe(acknowledged: bytes, at: .init(microseconds: 7_100_000), load)
        #expect(choice.isOpen == (delay == nil))
        return delay
    }

    @Test("The sooner of cache and keyframe is chosen, and what is on its way is waited for")
    func choice() {
        #expect(delay(at: 1_200_000, load(waiting: 250_000)) == .zero)
        #expect(delay(at: 900_000, load(waiting: 50_000)) == .zero, "the path carries less than the track")
        #expect(delay(at: 20_000_000, load(waiting: 250_000)) == nil)
        #expect(delay(at: 1_200_000, load(waiting: 10_000)) == nil, "as good as live")
        // 45 kB take 300 ms, of which the acknowledgement's way is 100 ms.
        let pause = delay(at: 1_200_000, load(waiting: 250_000, underway: 45_000)) ?? .zero
        #expect((.milliseconds(95) ... .milliseconds(105)).contains(pause), "\(pause)")
        #expect(delay(at: 2_000_000, load(waiting: 100_000, pause: .seconds(1))) == nil, "no request for a second")
    }

    // It gave up the cached pictures for a keyframe that it could not have for half a minute, and saw nothing until then.
    @Test("A viewer that pauses often behind a thin link does not give up a fresh cache for a keyframe far off")
    func pausesAgain() throws {
        var room = try EmulatedRoom(cap: Self.rate) {
            [
                EmulatedViewer($0, "healthy", bitsPerSecond: 50_000_000, delay: .milliseconds(5)),
                EmulatedViewer($0, "thin", bitsPerSecond: 1.2 * Self.rate, socketBytes: 32_000, countsParts: true),
            ]
        }
        room.run(5000)
        func setPaused(_ isPaused: Bool) {
            var request = Subscribe(trackId: room.camera.track.id)
            request.paused = isPaused
            room.bench.send(.subscribe(request), from: room.viewers[1].peer)
        }
        var live = 0
        for cycle in 0..<16 {
            setPaused(true)
            room.run(300)
            if cycle % 2 == 0 { room.camera.wantsKeyframe = true }
            room.run(200)
            setPaused(false)
            let resumed = room.milliseconds
            room.run(2500)
            let last = room.viewers[1].shownFrames(of: room.camera).last { $0.time > resumed }
            if cycle % 2 == 0, let last, last.age < 200 { live += 1 }
        }
        #expect(live >= 7)
        for viewer in room.viewers { #expect(viewer.peer.allProblems.isEmpty) }
    }

    @Test("Acknowledgements that lie ask for one keyframe at most")
    func lies() {
        var choice = CatchUpChoice(fromCache: true)
        var keyframes = 0
        for (index, microseconds) in [UInt64.max, 0, 1 << 62, 1, .max, 5_000_000, 6_000_000].enumerated() {
            for bytes in [Int64.max, 0, Int64(index)] {
                let delay = choice.delayOfKeyframe(
                    acknowledged: bytes,
                    at: .init(microseconds: microseconds),
                    load(waiting: .max / 16, underway: .max / 16)
                )
                if let delay {
                    keyframes += 1
                    #expect((.zero ... .seconds(5)).contains(delay))
                }
            }
        }
        #expect(keyframes <= 1)
    }
}
