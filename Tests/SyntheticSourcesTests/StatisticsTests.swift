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

    private func barcode(_ number: UInt32) -> Barcode {
        Barcode(number: number, timestamp: MonotonicInstant(microseconds: Int64(number)))
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

    @Test("Numbers that begin anew are a restart, not a thousand late pictures")
    func restart() {
        #expect(counts([1000, 1001, 0, 1, 2]) == expected(frames: 5) { $0.restarted = 1 })
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
