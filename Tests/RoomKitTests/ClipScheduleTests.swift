import MediaCore
import Testing

@testable import RoomKit

@Suite("Clip schedule")
struct ClipScheduleTests {
    private let start = MonotonicInstant(nanoseconds: 7_000_000_000)

    /// When frames with these times are due, in milliseconds after the first, if the program is never late.
    private func due(_ times: [Int]) -> [Int64] {
        var schedule = ClipSchedule(interval: .milliseconds(40))
        var now = start
        return times.map { time in
            now = max(now, schedule.due(.milliseconds(time), at: now))
            return now.duration(since: start).wholeNanoseconds / 1_000_000
        }
    }

    @Test("Frames follow one another as their times do, whatever the first is")
    func times() {
        #expect(due([500, 533, 600, 650, 700]) == [0, 33, 100, 150, 200])
    }

    @Test("Times that go back or leap count as the usual time between frames")
    func leaps() {
        #expect(due([0, 40, 10, 50, 9_000_000, 9_000_030]) == [0, 40, 80, 120, 160, 190])
    }

    // A file whose frames all have the same time played as fast as it could be read.
    @Test("Frames with equal times follow one another at the usual interval, and the clip keeps its length")
    func equalTimes() {
        #expect(due([0, 0, 0, 0]) == [0, 40, 80, 120])
        #expect(due([0, 0, 80, 80, 160]) == [0, 40, 80, 120, 160])
        #expect(due([0, 30, 30, 30, 120, 150]) == [0, 30, 60, 90, 120, 150])
        #expect(due([0, 0, 41, 41, 41]) == [0, 40, 41, 81, 121], "a step that was shared is not the usual interval")
    }

    @Test("A repeated clip goes on without a gap")
    func rewound() {
        var schedule = ClipSchedule()
        _ = schedule.due(.milliseconds(0), at: start)
        _ = schedule.due(.milliseconds(50), at: start)
        schedule.rewind()
        #expect(schedule.due(.milliseconds(0), at: start) == start + .milliseconds(100))
    }

    @Test("After a long pause the clip goes on where it was, and a short one is made up for")
    func pauses() {
        var schedule = ClipSchedule()
        _ = schedule.due(.zero, at: start)
        #expect(schedule.due(.milliseconds(40), at: start + .milliseconds(150)) == start + .milliseconds(40))
        #expect(schedule.due(.milliseconds(80), at: start + .seconds(9)) == start + .seconds(9))
        #expect(schedule.due(.milliseconds(120), at: start + .seconds(9)) == start + .milliseconds(9040))
    }
}
