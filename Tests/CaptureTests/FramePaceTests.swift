import MediaCore
import TestTools
import Testing

@testable import Capture

@Suite("Frame pace", .timeLimit(.minutes(1)))
struct FramePaceTests {
    private func admitted(source: Double, limit: FrameRate?, seconds: Int, jitter: Int64 = 0) -> Int {
        var pace = FramePace()
        var random = SeededGenerator(seed: 7)
        return (0..<Int(source * Double(seconds))).count { number in
            let shift = jitter == 0 ? 0 : Int64.random(in: -jitter...jitter, using: &random)
            return pace.admits(
                MonotonicInstant(nanoseconds: Int64(Double(number + 1) * 1e9 / source) + shift),
                limit: limit
            )
        }
    }

    @Test(
        "As many frames pass as the limit allows",
        arguments: [(30, 15, 150), (30, 20, 200), (30, 30, 300), (30, 60, 300), (60, 25, 250), (30, 1, 10)]
    )
    func decimation(source: Int, limit: Int, expected: Int) {
        let count = admitted(source: Double(source), limit: FrameRate(limit), seconds: 10)
        #expect(abs(count - expected) <= 1)
    }

    @Test("A source that has just the limit's rate loses nothing to jitter")
    func jitter() {
        #expect(admitted(source: 30, limit: FrameRate(30), seconds: 10, jitter: 8_000_000) == 300)
    }

    @Test("Without a limit everything passes, and after a pause there is no burst")
    func pause() {
        #expect(admitted(source: 30, limit: nil, seconds: 1) == 30)
        var pace = FramePace()
        var passed = 0
        for nanoseconds in [Int64(0), 5_000_000_000, 5_010_000_000, 5_020_000_000]
        where pace.admits(MonotonicInstant(nanoseconds: nanoseconds), limit: FrameRate(10)) {
            passed += 1
        }
        #expect(passed == 2)
    }

    // A stamp that jumped back left no frame out any more until the old due time: for hours, a frozen picture.
    @Test("Stamps that jump back let frames pass at once, at the same rate", arguments: [1, 3600])
    func jumpBack(seconds: Int64) {
        var pace = FramePace()
        let start = Int64(10_000_000_000_000)
        func passed(from origin: Int64) -> Int {
            (0..<30).count { number in
                let instant = MonotonicInstant(nanoseconds: origin + Int64(number) * 33_333_333)
                return pace.admits(instant, limit: FrameRate(15))
            }
        }
        #expect((14...16).contains(passed(from: start)))
        #expect((14...16).contains(passed(from: start - seconds * 1_000_000_000)))
    }
}
