import MediaCore
import TestTools
import Testing

@testable import V4L2Capture

@Suite("The order of a driver's frames")
struct FrameOrderTests {
    private func stamp(_ number: Int) -> MonotonicInstant { MonotonicInstant(nanoseconds: Int64(number) * 33_000_000) }

    /// A driver whose frames are held up at random, by fewer frames than it has buffers, and which leaves some out.
    @Test("What is kept goes up, and every frame is kept, overtaken or missed", arguments: 0..<200)
    func shuffled(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let buffers = Int.random(in: 2...8, using: &random)
        let start = UInt32.random(in: (UInt32.max - 100)...UInt32.max, using: &random)
        let numbers = (0..<200).filter { $0 == 0 || $0 == 199 || Int.random(in: 0..<10, using: &random) > 0 }
        // Each waits for up to so many later ones; the first and the last are in their places.
        let delayed = numbers.map { number in
            let isEnd = number == 0 || number > 190
            return (number, Double(number) + (isEnd ? 0 : .random(in: 0..<Double(buffers - 1), using: &random)))
        }
        var order = FrameOrder(bufferCount: buffers)
        var (kept, overtaken, missed) = ([Int](), 0, 0)
        for (number, _) in delayed.sorted(by: { $0.1 < $1.1 }) {
            switch order.place(start &+ UInt32(number), stamp: stamp(number)) {
            case .next(let count):
                kept.append(number)
                missed += count
            case .overtaken(let wasMissed):
                overtaken += 1
                missed -= wasMissed ? 1 : 0
            }
        }
        #expect(kept == kept.sorted() && kept.last == 199)
        #expect(kept.count + overtaken == numbers.count)
        #expect(missed == 200 - numbers.count)
    }

    @Test("A counter or a clock that starts again alone makes no frame late")
    func startsAgain() {
        var order = FrameOrder(bufferCount: 4)
        let frames = [(7, 100), (8, 101), (6, 102), (7, 103), (8, 1), (9, 2), (9, 3), (9, 2), (0, 1), (1, 2)]
        for (sequence, time) in frames {
            #expect(order.place(UInt32(sequence), stamp: stamp(time)) == .next(missed: 0), "\(sequence) at \(time)")
        }
    }
}
