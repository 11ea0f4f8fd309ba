import MediaCore
import Testing

@testable import Capture

@Suite("Slot schedule", .timeLimit(.minutes(1)))
struct SlotScheduleTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)

    @Test("A million slots at 29.97 frames a second end where they should, to the nanosecond")
    func noDrift() {
        var schedule = SlotSchedule(rate: FrameRate(numerator: 30000, denominator: 1001), start: start)
        for _ in 0..<30_000 { #expect(schedule.takeSlot(at: schedule.nextDeadline) == 0) }
        #expect(schedule.nextDeadline == start + .seconds(1001))
    }

    @Test("Lateness of less than an interval skips nothing and is not passed on")
    func slightlyLate() {
        var schedule = SlotSchedule(rate: FrameRate(10), start: start)
        #expect(schedule.takeSlot(at: start + .milliseconds(99)) == 0)
        #expect(schedule.nextDeadline == start + .milliseconds(100))
    }

    @Test("Slots missed by an interval are skipped", arguments: [(100, 1), (199, 1), (200, 2), (86_400_000, 864_000)])
    func late(milliseconds: Int, missed: Int) {
        var schedule = SlotSchedule(rate: FrameRate(10), start: start)
        #expect(schedule.takeSlot(at: start + .milliseconds(milliseconds)) == missed)
        #expect(schedule.nextDeadline == start + .milliseconds((missed + 1) * 100))
    }

    @Test("Another rate goes on from the slot taken up last")
    func rateChange() {
        var schedule = SlotSchedule(rate: FrameRate(10), start: start)
        _ = schedule.takeSlot(at: start)
        _ = schedule.takeSlot(at: start + .milliseconds(100))
        schedule.change(to: FrameRate(50), at: start + .milliseconds(100))
        #expect(schedule.nextDeadline == start + .milliseconds(120))
        #expect(schedule.takeSlot(at: start + .milliseconds(120)) == 0)
        #expect(schedule.nextDeadline == start + .milliseconds(140))
    }

    // Eight seconds of a picture every ten seconds are no pictures missed at 30 a second.
    @Test("A higher rate that comes late in a long slot has its next slot at once, and nothing has been missed")
    func raisedLate() {
        var schedule = SlotSchedule(rate: FrameRate(numerator: 1, denominator: 10), start: start)
        _ = schedule.takeSlot(at: start)
        let now = start + .seconds(8)
        schedule.change(to: FrameRate(30), at: now)
        #expect(schedule.nextDeadline == now)
        #expect(schedule.takeSlot(at: now + .milliseconds(1)) == 0)
        #expect(schedule.nextDeadline == now + .nanoseconds(33_333_333))
    }

    @Test(
        "Absurd rates are brought to sensible ones",
        arguments: [
            (Int.max, 1), (1, Int.max), (Int.max, Int.max), (Int.max, Int.max / 30), (1000, 1),
            (10_000_000, 35_990_000_000),
        ]
    )
    func absurdRates(numerator: Int, denominator: Int) {
        let rate = FrameRate(numerator: numerator, denominator: denominator)
        var schedule = SlotSchedule(rate: rate, start: start)
        #expect(schedule.takeSlot(at: start + .seconds(36_000)) >= 0)
        #expect((1.0 / 3600...240).contains(schedule.rate.framesPerSecond))
    }

    // It was shown for ten seconds.
    @Test("A slide show has each picture for its minute")
    func slides() {
        var schedule = SlotSchedule(rate: FrameRate(numerator: 1, denominator: 60), start: start)
        #expect(schedule.takeSlot(at: start) == 0)
        #expect(schedule.nextDeadline == start + .seconds(60))
    }
}
