import MediaCore
import TestTools
import Testing

@testable import RoomKit

@Suite("When the newest picture is shown again")
struct RepeatScheduleTests {
    @Test("A picture is shown again once nothing newer came for a while, soon until it is sharp, and then seldom")
    func settling() {
        var repeats = RepeatSchedule()
        #expect(repeats.time == nil)
        repeats.encoded(isRepeat: false, isSharp: false, at: timestamp(at: 0))
        #expect(repeats.time == timestamp(at: 0) + RepeatSchedule.settling)
        repeats.encoded(isRepeat: true, isSharp: false, at: timestamp(at: 50))
        #expect(repeats.time == timestamp(at: 50) + RepeatSchedule.sharpening)
        repeats.encoded(isRepeat: true, isSharp: true, at: timestamp(at: 60))
        #expect(repeats.time == timestamp(at: 60) + RepeatSchedule.standstill)
    }

    @Test("Who needs a keyframe waits no longer than that, however often it is asked for")
    func demand() {
        var repeats = RepeatSchedule()
        repeats.demanded(at: timestamp(at: 0))
        repeats.demanded(at: timestamp(at: 5))
        #expect(repeats.time == timestamp(at: 0) + RepeatSchedule.patience)
        repeats.encoded(isRepeat: false, isSharp: true, at: timestamp(at: 10))
        repeats.demanded(at: timestamp(at: 11))
        #expect(repeats.time == timestamp(at: 11) + RepeatSchedule.patience)
        // A repeat that could not be the keyframe yet leaves somebody waiting.
        repeats.encoded(isRepeat: true, isSharp: true, at: timestamp(at: 20))
        repeats.demanded(at: timestamp(at: 20))
        #expect(repeats.time == timestamp(at: 20) + RepeatSchedule.patience)
        repeats.pause()
        #expect(repeats.time == nil)
    }
}
