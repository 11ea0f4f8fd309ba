import MediaCore
import TestTools
import Testing

@testable import RoomKit

@Suite("Relay backlog")
struct RelayBacklogTests {
    /// A backlog, what it has dropped, and the time, which passes by hand.
    private struct Bench {
        var backlog = RelayBacklog()
        var now = MonotonicInstant(nanoseconds: 1_000_000_000)
        var dropped: [UInt64: FrameDropReason] = [:]
        private var ticket: UInt64 = 0

        init(isActive: Bool = true) {
            if isActive { setActive(true) }
        }

        /// Adds a frame of `size` bytes, and lets `milliseconds` pass.
        mutating func add(_ milliseconds: Int = 33, key: Bool = false, size: Int = 100) {
            let frame = bareFrame(UInt32(ticket), key: key, size: size).frame
            var drops: [(UInt64, FrameDropReason)] = []
            backlog.append(frame, ticket: ticket, at: now) { drops.append(($0, $1)) }
            note(drops)
            ticket += 1
            now += .milliseconds(milliseconds)
        }

        mutating func setActive(_ isActive: Bool) {
            var drops: [(UInt64, FrameDropReason)] = []
            backlog.setActive(isActive, at: now) { drops.append(($0, $1)) }
            note(drops)
        }

        mutating func expire() {
            var drops: [(UInt64, FrameDropReason)] = []
            backlog.expire(at: now) { drops.append(($0, $1)) }
            note(drops)
        }

        mutating func breakOff() {
            var drops: [(UInt64, FrameDropReason)] = []
            backlog.breakOff(.network) { drops.append(($0, $1)) }
            note(drops)
        }

        /// Whether the source is asked for a keyframe after this time.
        mutating func asks(after milliseconds: Int = 0) -> Bool {
            backlog.takeRequest(at: now + .milliseconds(milliseconds))
        }

        private mutating func note(_ drops: [(UInt64, FrameDropReason)]) {
            for (ticket, reason) in drops {
                #expect(dropped[ticket] == nil, "frame \(ticket) is dropped once")
                dropped[ticket] = reason
            }
        }

        /// The numbers of the frames that can be sent, which are taken out.
        mutating func takeAll() -> [UInt32] {
            var numbers: [UInt32] = []
            while let entry = backlog.removeFirst() { numbers.append(entry.number) }
            return numbers
        }
    }

    @Test("Frames go out in their order, from the first keyframe on")
    func order() {
        var bench = Bench()
        for index in 0..<6 { bench.add(key: index == 2) }
        #expect(bench.takeAll() == [2, 3, 4, 5])
        #expect(bench.dropped == [0: .notWanted, 1: .notWanted])
        bench.add()
        #expect(bench.takeAll() == [6])
    }

    @Test("Frames that wait too long are given up together, and then all up to the next keyframe, for that reason")
    func late() {
        var bench = Bench()
        bench.add(key: true)
        #expect(bench.takeAll() == [0])
        for _ in 1..<20 { bench.add() }
        #expect(bench.backlog.entries.isEmpty)
        for _ in 20..<25 { bench.add() }
        #expect(bench.dropped == Dictionary(uniqueKeysWithValues: (1..<25).map { ($0, .network) }))
        bench.add(key: true)
        bench.add()
        #expect(bench.takeAll() == [25, 26])
    }

    @Test("If a keyframe waits, only what comes before it is given up")
    func waitingKeyframe() {
        var bench = Bench()
        for index in 0..<10 { bench.add(key: index == 0 || index == 8) }
        bench.now += .milliseconds(100)
        bench.expire()
        #expect(bench.takeAll() == [8, 9])
        #expect(bench.dropped.count == 8)
        bench.add()
        #expect(bench.takeAll() == [10], "it goes on after the frames before it")
    }

    @Test("After frames that were given up elsewhere, it goes on with the newest keyframe")
    func broken() {
        var bench = Bench()
        for index in 0..<4 { bench.add(key: index != 1) }
        bench.breakOff()
        #expect(bench.takeAll() == [3])
        bench.add(key: true)
        bench.add()
        bench.breakOff()
        bench.add()
        #expect(bench.takeAll() == [4, 5, 6], "a keyframe refers to nothing that was given up")
        bench.add()
        bench.breakOff()
        bench.add()
        #expect(bench.takeAll() == [])
        #expect(bench.dropped.keys.sorted() == [0, 1, 2, 7, 8])
    }

    @Test("A subscriber begins with the last keyframe if that is fresh, and else with the next one")
    func joining() {
        var fresh = Bench(isActive: false)
        for index in 0..<9 { fresh.add(key: index == 1 || index == 4) }
        fresh.setActive(true)
        #expect(fresh.takeAll() == [4, 5, 6, 7, 8])
        #expect(fresh.dropped.keys.sorted() == [0, 1, 2, 3])
        var old = Bench(isActive: false)
        for index in 0..<20 { old.add(key: index == 1) }
        old.setActive(true)
        #expect(old.takeAll() == [])
        old.add(key: true)
        #expect(old.takeAll() == [20])
        #expect(old.dropped.values.allSatisfy { $0 == .notWanted } && old.dropped.count == 20)
    }

    @Test("When nobody receives the track any more, what waits is dropped, and the next to come needs a keyframe")
    func leaving() {
        var bench = Bench()
        bench.add(key: true)
        bench.add()
        bench.setActive(false)
        bench.add()
        bench.setActive(true)
        bench.add()
        #expect(bench.takeAll() == [])
        #expect(bench.dropped == [0: .notWanted, 1: .notWanted, 2: .notWanted, 3: .notWanted])
    }

    @Test("The source is asked for a keyframe while one is needed, and once a second at most")
    func requests() {
        var bench = Bench(isActive: false)
        #expect(bench.asks() == false, "nobody receives it")
        bench.setActive(true)
        #expect(bench.asks() == true)
        #expect(bench.asks(after: 999) == false)
        #expect(bench.backlog.nextDeadline == bench.now + .seconds(1))
        #expect(bench.asks(after: 1000) == true)
        bench.add(key: true)
        bench.now += .seconds(5)
        _ = bench.takeAll()
        #expect(bench.asks() == false)
        #expect(bench.backlog.nextDeadline == nil)
        bench.backlog.requestKeyframe()
        #expect(bench.asks() == true)
        bench.add(key: true)
        bench.backlog.requestKeyframe()
        #expect(bench.asks(after: 9000) == false, "a keyframe waits already")
    }

    @Test("A source that comes in all at once fills no memory", arguments: [100, 1 << 20])
    func flood(size: Int) {
        var bench = Bench()
        var (most, bytes) = (0, 0)
        for index in 0..<400 {
            bench.add(0, key: index % 100 == 0, size: size)
            most = max(most, bench.backlog.entries.count)
            bytes = max(bytes, bench.backlog.entries.reduce(0) { $0 + $1.frame.size.bytes })
        }
        #expect(most <= 120 && bytes <= 8 << 20)
        #expect(bench.takeAll().count + bench.dropped.count == 400)
    }

    @Test("Whatever comes, each frame is sent or dropped once, and each that is sent follows the one that it refers to")
    func property() {
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<200 {
            var bench = Bench(isActive: false)
            var (sent, last, keys, added): (Int, UInt32?, Set<UInt32>, UInt32) = (0, nil, [], 0)
            for _ in 0..<200 {
                switch Int.random(in: 0..<20, using: &generator) {
                case 0: bench.setActive(Bool.random(using: &generator))
                case 1: bench.breakOff()
                case 2: bench.now += .milliseconds(Int.random(in: 0...600, using: &generator))
                case 3...6 where bench.backlog.isActive:
                    bench.expire()
                    guard let entry = bench.backlog.removeFirst() else { continue }
                    #expect(keys.contains(entry.number) || last.map { $0 + 1 } == entry.number)
                    (sent, last) = (sent + 1, entry.number)
                default:
                    let isKeyframe = Int.random(in: 0..<8, using: &generator) == 0
                    if isKeyframe { keys.insert(added) }
                    bench.add(Int.random(in: 0...60, using: &generator), key: isKeyframe)
                    added += 1
                }
            }
            #expect(sent + bench.dropped.count + bench.backlog.entries.count == Int(added))
        }
    }

    @Test("The rate of a source is that of its best second lately")
    func rate() {
        var rate = SourceRate()
        var now = MonotonicInstant(nanoseconds: 0)
        for index in 0..<60 {
            rate.count(index < 30 ? 2000 : 500, at: now)
            now += .milliseconds(40)
        }
        let bits = rate.highest?.bitsPerSecond ?? 0
        #expect((300_000...420_000).contains(bits), "\(bits)")
    }
}
