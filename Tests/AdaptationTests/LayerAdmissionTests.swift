import TestTools
import Testing

@testable import Adaptation

@Suite("Admission of simulcast layers") struct LayerAdmissionTests {
    /// A layer that needs 500 kbit/s, above layers that use 200.
    private struct Bench {
        var admission = LayerAdmission()
        var now: Int64 = 0

        /// Whether the layer is encoded after each of `steps` of 100 ms with `left` bits per second.
        mutating func leave(_ left: Double, steps: Int = 1, used: Double = 200_000) -> [Bool] {
            (0..<steps).map { _ in
                now += 100_000
                return admission.update(
                    left: left,
                    used: used,
                    lowest: 500_000,
                    margin: 1.2,
                    LayerAdmission.Settings(),
                    at: now
                )
            }
        }
    }

    @Test("It begins at once where the rate suffices, and ends at once where it does not")
    func beginning() {
        var enough = Bench()
        #expect(enough.leave(500_000, steps: 3) == [true, true, true])
        #expect(enough.leave(490_000) == [false])
        var little = Bench()
        #expect(little.leave(499_000) == [false])
    }

    @Test("A layer that is paused comes back after two seconds with a margin, and not for a rate that just suffices")
    func hysteresis() {
        var bench = Bench()
        #expect(bench.leave(500_000) == [true])
        #expect(bench.leave(70_000) == [false])
        // 80 kbit/s more than the lower layers use would be the trial.
        #expect(!bench.leave(79_000, steps: 100).contains(true))
        #expect(!bench.leave(600_000, steps: 20).contains(true))
        #expect(bench.leave(600_000) == [true])
    }

    @Test(
        "A rate that varies around the limit pauses the layer ever more rarely",
        arguments: 1...5 as ClosedRange<UInt64>
    )
    func noFlapping(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bench = Bench()
        var changes = 0
        var was = true
        for _ in 0..<600 {
            let left = Double.random(in: 350_000...750_000, using: &random)
            for isAdmitted in bench.leave(left, steps: .random(in: 1...20, using: &random)) where isAdmitted != was {
                changes += 1
                was = isAdmitted
            }
        }
        // Ten minutes.
        #expect(changes < 30, "\(changes)")
    }

    // The server gave the layer up before it was tried.
    @Test("The first attempt is made as soon as there is something to spare")
    func firstAttempt() {
        var bench = Bench()
        #expect(bench.leave(79_000, steps: 2) == [false, false])
        #expect(bench.leave(80_000) == [true])
    }

    @Test("It is tried while the rate ends at what the lower layers need; each failure doubles the wait")
    func trials() {
        var bench = Bench()
        _ = bench.leave(0)
        var waits: [Int] = []
        for _ in 0..<7 {
            var steps = 0
            while bench.leave(90_000) == [false] { steps += 1 }
            waits.append(steps)
            // The trial shows in 4 s that there is not more.
            #expect(bench.leave(90_000, steps: 39).allSatisfy { $0 })
            #expect(bench.leave(90_000, steps: 2).contains(false))
        }
        #expect(zip(waits, waits.dropFirst()).allSatisfy { $1 >= min(599, $0 * 2 - 2) })
        #expect(waits[0] == 0 && waits[1] >= 19 && waits[6] <= 601)
    }

    @Test("A trial ends at once when a queue takes what was to spare, and lasts when the rate grows")
    func results() {
        var bench = Bench()
        _ = bench.leave(0)
        _ = bench.leave(90_000, steps: 20)
        #expect(bench.leave(90_000) == [true])
        #expect(bench.leave(30_000) == [false])
        while bench.leave(90_000) == [false] {}
        _ = bench.leave(300_000, steps: 20)
        #expect(bench.leave(510_000, steps: 600).allSatisfy { $0 })
        // A pause long after an attempt is no failure of it.
        #expect(bench.leave(400_000) == [false])
        #expect(bench.leave(700_000, steps: 21).last == true)
    }

    @Test("When nobody receives it any more, it begins anew")
    func reset() {
        var bench = Bench()
        #expect(bench.leave(0) == [false])
        bench.admission.reset()
        #expect(bench.leave(500_000) == [true])
    }
}
