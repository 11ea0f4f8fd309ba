import MediaCore
import RelayCore
import RoomProtocol
import TestTools
import Testing

/// Subscribers get larger encodings only on evidence, and finding it costs them nothing that they see.
@Suite("Relay: going up to a larger encoding", .timeLimit(.minutes(2)))
struct LayerClimbTests {
    private static let rates = [150_000.0, 500_000, 1_700_000]

    /// What a viewer saw from a time on.
    private struct View {
        /// Changes of the encoding.
        var changes = 0
        /// The part of the time in which it got an encoding that came at a clearly higher rate than its link carries.
        var aboveLink = 0.0
        /// Times of more than 250 ms without a frame.
        var freezes = 0
        var oldest = 0.0
        /// The part of its frames in the last seconds that were of the largest encoding that its link carries easily.
        var best = 0.0
    }

    private func view(_ viewer: EmulatedViewer, from start: Int, to end: Int) -> View {
        let frames = zip(viewer.ages, viewer.layers).filter { $0.0.time >= start && $0.0.time < end }
        var view = View()
        for (one, next) in zip(frames, frames.dropFirst()) {
            if one.1 != next.1 { view.changes += 1 }
            if next.0.time - one.0.time > 250 { view.freezes += 1 }
        }
        view.oldest = frames.map(\.0.age).max() ?? .infinity
        let last = frames.filter { $0.0.time >= end - 20_000 }
        let best = Self.rates.lastIndex { $0 * 1.4 < viewer.bitsPerSecond } ?? 0
        view.best = Double(last.count { $0.1 >= best }) / Double(max(1, last.count))
        return view
    }

    /// Runs the room; returns for each viewer the part of the time from `start` on that it got more than its link carries.
    private func run(_ room: inout EmulatedRoom, _ duration: Int, from start: Int) -> [Double] {
        let (bench, camera, viewers) = (room.bench, room.camera, room.viewers)
        var above = viewers.map { _ in 0 }
        var samples = 0
        room.run(duration) { millisecond in
            guard millisecond >= start, millisecond % 100 == 0 else { return }
            samples += 1
            let rates = bench.encodings(of: camera).map { Double($0.bytesPerFrame + 48) * 8 / 0.033 }
            // What follows the rate of a link is above it at times.
            for (index, viewer) in viewers.enumerated()
            where rates[viewer.layers.last ?? 0] > 1.3 * viewer.bitsPerSecond { above[index] += 1 }
        }
        return above.map { Double($0) / Double(max(1, samples)) }
    }

    @Test("Whatever rate a link has, a viewer stays below it without a freeze", arguments: UInt64(1)...8)
    func steadyLinks(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let rates = (0..<2).map { _ in Double.random(in: 200_000...2_400_000, using: &generator) }
        let delays = (0..<2).map { _ in Int.random(in: 5...80, using: &generator) }
        var room = try EmulatedRoom(cap: 1_700_000, layers: SimulcastTests.layers) { bench in
            [EmulatedViewer(bench, "fast", bitsPerSecond: 50_000_000, delay: .milliseconds(5))]
                + zip(rates, delays).enumerated().map { number, link in
                    EmulatedViewer(
                        bench,
                        "slow \(number)",
                        bitsPerSecond: link.0,
                        delay: .milliseconds(link.1)
                    )
                }
        }
        let above = run(&room, 100_000, from: 12_000)
        for (index, (viewer, rate)) in zip(room.viewers.dropFirst(), rates).enumerated() {
            var view = view(viewer, from: 12_000, to: 100_000)
            view.aboveLink = above[index + 1]
            #expect(view.aboveLink < 0.01, "\(rate): \(view)")
            #expect(view.changes <= 4, "\(rate): \(view)")
            #expect(view.freezes == 0 && view.oldest < 400, "\(rate): \(view)")
            #expect(view.best > 0.9, "\(rate): \(view)")
            #expect(viewer.peer.allProblems.isEmpty)
        }
        #expect(view(room.viewers[0], from: 500, to: 100_000).oldest < 30)
    }

    @Test("A viewer goes up soon after its link got better, and only then", arguments: [400_000.0, 900_000, 2e7])
    func betterLink(rate: Double) throws {
        var room = try EmulatedRoom(cap: 1_700_000, layers: SimulcastTests.layers) { bench in
            [
                EmulatedViewer(bench, "fast", bitsPerSecond: 50_000_000, delay: .milliseconds(5)),
                EmulatedViewer(bench, "slow", bitsPerSecond: 250_000),
            ]
        }
        room.run(40_000)
        let slow = room.viewers[1]
        let first = slow.frames.filter { $0.time > 12_000 }
        #expect(first.count > 500 && first.allSatisfy { $0.layer < 2 })
        slow.bitsPerSecond = rate
        let above = run(&room, 60_000, from: 40_000)
        var view = view(slow, from: 40_000, to: 100_000)
        view.aboveLink = above[1]
        #expect(view.aboveLink < 0.01 && view.freezes == 0 && view.oldest < 400, "\(view)")
        #expect(view.best > 0.9 && view.changes <= 2, "\(view)")
    }

    @Test("The trains of a probe: what the path carries passes, what it does not carry fails")
    func trains() {
        /// The finding of a path of `rate` that gets frames of 2,000 bytes, 30 a second, over a link with `jitter`.
        func finding(_ rate: Double, need: Double, jitter: Int64 = 0, thinned: Bool = false) -> PathProbe.Finding {
            var generator = SeededGenerator(seed: 4)
            var probe = PathProbe()
            var (written, linkFree): (UInt64, Int64) = (0, 0)
            var held: [Int64] = []
            var underway: [(arrival: Int64, sent: Int64, end: UInt64)] = []
            for millisecond in 0..<6000 {
                let now = Int64(millisecond) * 1000
                if millisecond == 1000 { probe.begin(need: need, at: now) }
                if millisecond % 33 == 0 { held.append(now) }
                while !held.isEmpty, !probe.holds(at: now) {
                    #expect(now - held.removeFirst() <= 110_000)
                    written += 2000
                    linkFree = max(linkFree, now) + Int64(2000 * 8e6 / rate)
                    let delay = Int64.random(in: 0...max(1, jitter), using: &generator)
                    underway.append((linkFree + 20_000 + delay, now, written))
                    if probe.isRunning { probe.wrote(end: written, at: now) }
                }
                while let first = underway.first, first.arrival <= now {
                    underway.removeFirst()
                    if thinned, let next = underway.first, next.sent == first.sent { continue }
                    let base = 20_000 + Int64(2000 * 8e6 / rate)
                    probe.acknowledged(bytes: first.end, queue: first.arrival - first.sent - base, at: now)
                }
                if probe.finding != .nothing { return probe.finding }
            }
            return .nothing
        }
        for thinned in [false, true] {
            for rate in [500_000.0, 550_000, 700_000, 1_000_000, 1_300_000] {
                #expect(finding(rate, need: 1_700_000, thinned: thinned) == .carriesNot, "\(rate)")
            }
            for rate in [2_500_000.0, 10_000_000, 100_000_000] {
                #expect(finding(rate, need: 1_700_000, thinned: thinned) == .carries, "\(rate)")
                #expect(finding(rate, need: 1_700_000, jitter: 4000, thinned: thinned) == .carries, "\(rate)")
            }
            #expect(finding(900_000, need: 600_000, thinned: thinned) == .carries)
        }
    }

    // After a gap of two seconds frames were held as long.
    @Test("A probe holds frames a fifth of a second at most, whatever gap came before", arguments: [40, 200, 3900])
    func gap(milliseconds: Int64) {
        var probe = PathProbe()
        probe.begin(need: 1_000_000, at: 0)
        probe.wrote(end: 1000, at: 0)
        let now = milliseconds * 1000
        probe.wrote(end: 2000, at: now)
        #expect(probe.holds(at: now) && !probe.holds(at: now + 211_000))
    }

    @Test("A probe of a path that falls silent, or on which nothing is sent, ends")
    func silentProbe() {
        var probe = PathProbe()
        probe.begin(need: 1_000_000, at: 0)
        for frame in 0..<4 { probe.wrote(end: UInt64(frame) * 1000, at: Int64(frame) * 33_000) }
        probe.checkTime(at: 3_000_000)
        #expect(probe.finding == .nothing)
        probe.checkTime(at: 5_000_000)
        #expect(probe.finding == .carriesNot && !probe.isRunning && !probe.holds(at: 5_000_000))
        probe.begin(need: 1_000_000, at: 6_000_000)
        probe.cancel()
        #expect(probe.finding == .nothing && !probe.isRunning)
        // Acknowledgements may tell anything.
        var generator = SeededGenerator(seed: 8)
        probe.begin(need: .infinity, at: 7_000_000)
        var written: UInt64 = 0
        for step in 0..<10_000 {
            written += .random(in: 1...16_000, using: &generator)
            let now = 7_000_000 + Int64(step) * 500
            _ = probe.holds(at: now)
            probe.wrote(end: written, at: now)
            let queue = Int64.random(in: -1_000_000...1_000_000, using: &generator)
            probe.acknowledged(bytes: .random(in: 0...written, using: &generator), queue: queue, at: now)
        }
        #expect(!probe.isRunning)
    }
}
