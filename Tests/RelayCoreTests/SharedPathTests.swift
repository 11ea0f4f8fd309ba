import MediaCore
import RelayCore
import RoomProtocol
import Testing

/// Several tracks over the path of one subscriber, while another one receives everything.
///
/// The other one keeps the publishers from adapting to the path: priorities then count only in what is forwarded.
@Suite("Relay: tracks that share a subscriber's path", .timeLimit(.minutes(2)))
struct SharedPathTests {
    private static let start = 10_000

    private func room(
        _ priorities: [String],
        caps: [Double],
        temporalLayers: Int,
        bitsPerSecond: Double = 500_000
    ) throws -> SharedPathRoom {
        var room = try SharedPathRoom(priorities, caps: caps, temporalLayers, bitsPerSecond: bitsPerSecond)
        room.run(60_000)
        #expect(room.viewer.peer.allProblems.isEmpty)
        return room
    }

    // Tracks took turns packet by packet, whatever their priority: both arrived with 245 kbit/s, 0.5 s old.
    @Test(
        "The track of high priority gets more of a path that does not carry all, and is younger",
        arguments: [(300_000.0, 1), (600_000.0, 3)]
    )
    func highBesideLow(cap: Double, temporalLayers: Int) throws {
        let room = try room(["high", "low"], caps: [cap, cap], temporalLayers: temporalLayers)
        let (high, low) = (room.result(0, from: Self.start), room.result(1, from: Self.start))
        #expect(high.bytes > 2.5 * low.bytes, "\(high) and \(low)")
        #expect(high.lateAge < 500 && high.lateAge < 0.6 * low.lateAge, "\(high) and \(low)")
        #expect(high.frames > 20 * 50 && high.longestGap < 300, "\(high)")
        #expect(low.longestGap < 5000, "\(low)")
    }

    // The path was used to a fifth: what waited behind the keyframes of both counted as a backlog at once.
    @Test("Tracks of one layer that are too large for a path use it all the same, by priority")
    func tooLarge() throws {
        let room = try room(["high", "low"], caps: [600_000, 600_000], temporalLayers: 1)
        let (high, low) = (room.result(0, from: Self.start), room.result(1, from: Self.start))
        #expect(high.bytes > 2.5 * low.bytes, "\(high) and \(low)")
        #expect(high.frames > 8 * 50 && high.lateAge < 650, "\(high)")
        #expect(low.longestGap < 5000, "\(low)")
    }

    @Test(
        "Three priorities: each gets less than the one above it, and none is starved",
        arguments: [300_000.0, 600_000]
    )
    func threePriorities(cap: Double) throws {
        let room = try room(["low", "high", "standard"], caps: [cap, cap, cap], temporalLayers: 3)
        let results = room.cameras.indices.map { room.result($0, from: Self.start) }
        #expect(results[1].bytes > 1.6 * results[2].bytes && results[2].bytes > 1.6 * results[0].bytes, "\(results)")
        #expect(results[1].lateAge < results[2].lateAge && results[2].lateAge < results[0].lateAge, "\(results)")
        #expect(results.allSatisfy { $0.longestGap < 5000 }, "\(results)")
    }

    // A peer that may be thinning was sent everything: what was on its way made frames of all tracks 1.2 s late.
    @Test(
        "Tracks of equal priority get the same, and none is much older than the other",
        arguments: [(300_000.0, 450.0), (600_000.0, 700.0)],
        [250_000.0, 500_000, 1_000_000]
    )
    func equal(_ load: (cap: Double, oldest: Double), bitsPerSecond: Double) throws {
        let cap = load.cap * bitsPerSecond / 500_000
        let room = try room(
            ["standard", "standard"],
            caps: [cap, cap],
            temporalLayers: 3,
            bitsPerSecond: bitsPerSecond
        )
        let (first, second) = (room.result(0, from: Self.start), room.result(1, from: Self.start))
        #expect((0.95...1.05).contains(first.bytes / second.bytes), "\(first) and \(second)")
        #expect(max(first.oldest, second.oldest) < load.oldest, "\(first) and \(second)")
    }

    // Without temporal layers a track that is left out waits for a keyframe, and the other has the path meanwhile.
    @Test(
        "Tracks of one layer and equal priority: neither is starved",
        arguments: [280_000.0, 300_000, 330_000, 360_000],
        [400_000.0, 450_000, 500_000, 550_000]
    )
    func equalWithoutLayers(cap: Double, bitsPerSecond: Double) throws {
        let room = try room(
            ["standard", "standard"],
            caps: [cap, cap],
            temporalLayers: 1,
            bitsPerSecond: bitsPerSecond
        )
        let (first, second) = (room.result(0, from: Self.start), room.result(1, from: Self.start))
        #expect(max(first.longestGap, second.longestGap) < 5000, "\(first) and \(second)")
        #expect(max(first.oldest, second.oldest) < 850, "\(first) and \(second)")
        #expect((first.bytes + second.bytes) * 8 / 50 > 0.8 * bitsPerSecond, "\(first) and \(second)")
    }

    @Test("What a track of high priority does not use goes to the one of low priority", arguments: [1, 3])
    func modestHigh(temporalLayers: Int) throws {
        let room = try room(["high", "low"], caps: [80_000, 330_000], temporalLayers: temporalLayers)
        let (high, low) = (room.result(0, from: Self.start), room.result(1, from: Self.start))
        #expect(high.frames > 29 * 50 && high.lateAge < 200, "\(high)")
        #expect(low.frames > 29 * 50, "\(low)")
        let narrow = try self.room(["high", "low"], caps: [80_000, 600_000], temporalLayers: temporalLayers)
        #expect(narrow.result(0, from: Self.start).frames > 29 * 50)
        #expect(narrow.result(0, from: Self.start).lateAge < narrow.result(1, from: Self.start).lateAge)
    }

    @Test("A track that is paused changes nothing for the other one", arguments: [1, 3])
    func besidePaused(temporalLayers: Int) throws {
        var alone = try SharedPathRoom(["standard"], caps: [600_000], temporalLayers, bitsPerSecond: 500_000)
        var beside = try SharedPathRoom(
            ["standard", "standard"],
            caps: [600_000, 600_000],
            temporalLayers,
            bitsPerSecond: 500_000
        )
        beside.pause(1)
        alone.run(30_000)
        beside.run(30_000)
        let (one, other) = (alone.result(0, from: 5000), beside.result(0, from: 5000))
        // The texts about the other track take their time, too.
        #expect(abs(one.frames - other.frames) <= 5 && abs(one.lateAge - other.lateAge) < 40, "\(one) and \(other)")
        #expect(beside.result(1, from: 1000).frames == 0)
    }

    // Each of the tracks that wait for a keyframe was found by looking at all of them again.
    @Test("The next packet of many tracks costs no more than looking at each of them twice")
    func manyTracks() throws {
        let count = 60
        var room = try SharedPathRoom(
            Array(repeating: "standard", count: count),
            caps: Array(repeating: 100_000, count: count),
            1,
            bitsPerSecond: 1_000_000
        )
        room.run(5000)
        let before = room.bench.relay.work
        room.run(10_000)
        let work = room.bench.relay.work - before
        #expect(work.shareSearches > 1000 && work.shareSteps <= 2 * count * work.shareSearches)
    }

    @Test("A path that becomes good again carries everything soon", arguments: [1, 3])
    func recovers(temporalLayers: Int) throws {
        var room = try room(["high", "low"], caps: [600_000, 600_000], temporalLayers: temporalLayers)
        room.viewer.bitsPerSecond = 5_000_000
        room.run(6000)
        let now = room.milliseconds
        room.run(4000)
        for index in 0..<2 {
            let result = room.result(index, from: now)
            #expect(result.frames > 29 * 4 && result.oldest < 150, "\(result)")
        }
    }
}

/// Cameras of different publishers, each with one encoding, and a viewer behind a link that does not carry all of them.
struct SharedPathRoom {
    /// What arrived of a track: whole frames, their bytes, their ages and the time between two, in milliseconds.
    struct Result {
        var frames = 0
        var bytes = 0.0
        var lateAge = Double.infinity
        var oldest = Double.infinity
        var longestGap = Int.max
    }

    let bench = RelayBench()
    let cameras: [Camera]
    let viewer: EmulatedViewer
    private let fast: EmulatedViewer
    /// The cameras' highest rates, in bits per second.
    private let caps: [Double]
    private(set) var milliseconds = 0

    init(_ priorities: [String], caps: [Double], _ temporalLayers: Int, bitsPerSecond: Double) throws {
        self.caps = caps
        let robots = Self.robots(caps.count, bench)
        viewer = EmulatedViewer(
            bench,
            "limited",
            bitsPerSecond: bitsPerSecond,
            delay: .milliseconds(30),
            countsParts: true
        )
        fast = EmulatedViewer(bench, "fast", bitsPerSecond: 50_000_000, delay: .milliseconds(5))
        var cameras: [Camera] = []
        for robot in robots {
            guard let camera = bench.publish(robot) else { throw MalformedPacket("no track") }
            camera.temporalLayerCount = temporalLayers
            cameras.append(camera)
        }
        self.cameras = cameras
        for (camera, priority) in zip(cameras, priorities) {
            bench.send(.subscribe(Subscribe(trackId: camera.track.id, priority: priority)), from: viewer.peer)
        }
    }

    private static func robots(_ count: Int, _ bench: RelayBench) -> [Peer] {
        (0..<count).map { bench.join("robot \($0)", automatic: false) }
    }

    mutating func run(_ duration: Int) {
        for _ in 0..<duration {
            bench.advance(.milliseconds(1))
            milliseconds += 1
            for (index, camera) in cameras.enumerated()
            where (milliseconds + index * 11) % 33 == 0 && camera.wanted != nil {
                let rate = min(caps[index], camera.wanted?.bitrate.map(Double.init) ?? caps[index])
                camera.bytesPerFrame = max(200, Int(rate * 33 / 8000) - 48)
                bench.frame(camera)
            }
            viewer.tick(at: milliseconds)
            fast.tick(at: milliseconds)
            for camera in cameras { bench.pull(camera.publisher) }
        }
    }

    /// The viewer pauses its subscription to the track of camera `index`.
    func pause(_ index: Int) {
        bench.send(.subscribe(Subscribe(trackId: cameras[index].track.id, paused: true)), from: viewer.peer)
    }

    /// What arrived of the track of camera `index` since `start`.
    func result(_ index: Int, from start: Int) -> Result {
        let frames = viewer.frames.filter { $0.trackAlias == cameras[index].track.alias && $0.time >= start }
        let ages = frames.map(\.age).sorted()
        guard let oldest = ages.last else { return Result() }
        let times = [start] + frames.map(\.time) + [milliseconds]
        return Result(
            frames: frames.count,
            bytes: Double(frames.map(\.bytes).reduce(0, +)),
            lateAge: ages[ages.count * 95 / 100],
            oldest: oldest,
            longestGap: zip(times.dropFirst(), times).map { $0 - $1 }.max() ?? .max
        )
    }
}
