import MediaCore
import TestTools
import Testing

@testable import SyntheticSources

@Suite("Frame sequence", .timeLimit(.minutes(1)))
struct FrameSequenceTests {
    /// A number is a readable picture, `nil` one without a barcode.
    private func counts(_ numbers: [UInt32?], frozenAfter: Int = 15) -> FrameSequenceChecker.Counts {
        var checker = FrameSequenceChecker(frozenAfter: frozenAfter)
        for number in numbers { checker.observe(number.map { .value(barcode($0)) } ?? .none) }
        return checker.counts
    }

    // The mark of a picture whose capture time wraps around where its number does; `start` is the time at which its
    // source was started.
    private func barcode(_ number: UInt32, start: Duration = .zero) -> Barcode {
        let time = Int64(Int32(bitPattern: number)) + start.wholeNanoseconds / 1000
        return Barcode(number: number, timestamp: MonotonicInstant(microseconds: time))
    }

    private func expected(
        frames: Int,
        _ change: (inout FrameSequenceChecker.Counts) -> Void = { _ in }
    ) -> FrameSequenceChecker.Counts {
        var counts = FrameSequenceChecker.Counts()
        counts.frames = frames
        change(&counts)
        return counts
    }

    @Test("A whole sequence has nothing to complain of, wherever it begins and also when numbers wrap around")
    func whole() {
        #expect(counts([7, 8, 9, 10]) == expected(frames: 4))
        #expect(counts([.max - 1, .max, 0, 1]) == expected(frames: 4))
    }

    @Test("Gaps are counted by their length")
    func gaps() {
        #expect(counts([1, 2, 5, 6, 8]) == expected(frames: 5) { $0.notSent = 3 })
        #expect(counts([0, 1000]) == expected(frames: 2) { $0.notSent = 999 })
    }

    @Test("An unreadable picture accounts for one missing number")
    func unreadable() {
        #expect(counts([1, nil, 3]) == expected(frames: 3) { $0.unreadable = 1 })
        #expect(
            counts([nil, 1, nil, 5])
                == expected(frames: 4) {
                    $0.unreadable = 2; $0.notSent = 2
                }
        )
    }

    @Test("Repeated, late and late repeated pictures are told apart")
    func disorder() {
        #expect(counts([1, 1, 2]) == expected(frames: 3) { $0.duplicated = 1 })
        #expect(counts([1, 3, 2, 4]) == expected(frames: 4) { $0.reordered = 1 })
        #expect(
            counts([1, 3, 2, 2, 1, 4])
                == expected(frames: 6) {
                    $0.reordered = 1; $0.duplicated = 2
                }
        )
        #expect(
            counts([1, 100, 2])
                == expected(frames: 3) {
                    $0.reordered = 1; $0.notSent = 98
                }
        )
    }

    @Test("A picture that stands still counts as frozen once")
    func frozen() {
        #expect(
            counts([1, 1, 1, 1, 1, 2], frozenAfter: 4)
                == expected(frames: 6) {
                    $0.duplicated = 4; $0.frozen = 1
                }
        )
        #expect(counts([1, 1, 1, 2, 2, 2], frozenAfter: 4) == expected(frames: 6) { $0.duplicated = 4 })
    }

    @Test("Numbers that begin anew with later times are a restart, also after few", arguments: [20, 1000])
    func restart(last: UInt32) {
        var checker = FrameSequenceChecker()
        for number in [last - 1, last] { checker.observe(.value(barcode(number))) }
        for number in 0...2 as ClosedRange<UInt32> { checker.observe(.value(barcode(number, start: .seconds(60)))) }
        #expect(checker.counts == expected(frames: 5) { $0.restarted = 1 })
    }

    // Pictures more than 300 numbers old counted as restarts, and what came after them as not sent.
    @Test("An old picture is late, not a restart, and makes no gap after it", arguments: [63, 64, 301, 420, 5000])
    func stale(age: UInt32) {
        let numbers = [10_000, 10_001, 10_001 - age, 10_002 - age, 10_002, 10_003]
        #expect(counts(numbers) == expected(frames: 6) { $0.reordered = 2 })
    }

    @Test("A late picture from before a restart is late, though its number is higher")
    func staleAfterRestart() {
        var checker = FrameSequenceChecker()
        checker.observe(.value(barcode(900)))
        for number in 0...2 as ClosedRange<UInt32> { checker.observe(.value(barcode(number, start: .seconds(60)))) }
        checker.observe(.value(barcode(901)))
        checker.observe(.value(barcode(3, start: .seconds(60))))
        #expect(checker.counts == expected(frames: 6) { ($0.restarted, $0.reordered) = (1, 1) })
    }

    // Repeats of a picture that stands still counted as doubled.
    @Test("A repeat of the newest picture is neither doubled nor frozen; that of another one is judged as any picture")
    func repeats() {
        var checker = FrameSequenceChecker(frozenAfter: 2)
        checker.observe(.value(barcode(5)))
        for _ in 0..<4 { checker.observe(.value(barcode(5)), isRepeat: true) }
        checker.observe(.value(barcode(6)))
        #expect(checker.counts == expected(frames: 6))
        // The picture that it repeats did not arrive.
        checker.observe(.value(barcode(7)), isRepeat: true)
        checker.observe(.value(barcode(8)))
        #expect(checker.counts == expected(frames: 8))
        checker.observe(.value(barcode(6)), isRepeat: true)
        #expect(checker.counts == expected(frames: 9) { $0.duplicated = 1 })
    }

    @Test("A torn picture counts as torn, and both its frames as seen")
    func torn() {
        var checker = FrameSequenceChecker()
        checker.observe(.value(barcode(1)))
        checker.observe(.torn(top: barcode(3), bottom: barcode(2)))
        checker.observe(.value(barcode(4)))
        #expect(checker.counts == expected(frames: 3) { $0.torn = 1 })
    }
}
