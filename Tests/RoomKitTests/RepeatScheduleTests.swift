import MediaCore
import TestTools
import Testing
import Threading
import VideoProcessing

@testable import RoomKit

@Suite("When the newest picture is shown again")
struct RepeatScheduleTests {
    @Test("A picture is shown again once nothing newer came for a while, soon until it is sharp, and then seldom")
    func settling() {
        var repeats = RepeatSchedule()
        #expect(repeats.time == nil)
        repeats.encoded(isRepeat: false, isSharp: false, standsStill: true, at: timestamp(at: 0))
        #expect(repeats.time == timestamp(at: 0) + RepeatSchedule.settling)
        repeats.encoded(isRepeat: true, isSharp: false, standsStill: true, at: timestamp(at: 50))
        #expect(repeats.time == timestamp(at: 50) + RepeatSchedule.sharpening)
        repeats.encoded(isRepeat: true, isSharp: true, standsStill: true, at: timestamp(at: 60))
        #expect(repeats.time == timestamp(at: 60) + RepeatSchedule.standstill)
    }

    @Test("A picture of a feed that has stalled is shown again only to who needs a keyframe")
    func stalled() {
        var repeats = RepeatSchedule()
        repeats.encoded(isRepeat: false, isSharp: false, standsStill: false, at: timestamp(at: 0))
        #expect(repeats.time == nil)
        repeats.demanded(at: timestamp(at: 5))
        #expect(repeats.time == timestamp(at: 5) + RepeatSchedule.patience)
        repeats.encoded(isRepeat: true, isSharp: false, standsStill: false, at: timestamp(at: 20))
        #expect(repeats.time == nil)
    }

    @Test("The last picture of a steady feed is old after a long silence, unless pictures stand still by nature")
    func feed() throws {
        let shape = Monitor(PictureShape())
        let (camera, screen) = (NewestPicture(shape: shape), NewestPicture(shape: shape, isStillByNature: true))
        var now = timestamp(at: 0)
        func keep(_ count: Int, every milliseconds: Int) {
            for _ in 0..<count {
                now += .milliseconds(milliseconds)
                for newest in [camera, screen] {
                    var frame = picture(16, 16)
                    frame.timestamp = now
                    newest.keep(ShapedFrame(frame, in: PictureShape()), at: now)
                }
            }
        }
        func isPresent(_ newest: NewestPicture, after silence: Duration) throws -> Bool {
            let (before, again) = (now, try #require(newest.again(at: now + silence)).frame)
            #expect(again.isRepeat == newest.standsStill(at: now + silence))
            guard again.isRepeat else {
                #expect(again.timestamp > before && again.timestamp < before + .milliseconds(1))
                return false
            }
            #expect(again.timestamp == before + silence)
            return true
        }
        #expect(camera.again(at: now) == nil)
        keep(29, every: 500)
        #expect(try isPresent(camera, after: .seconds(60)))
        keep(1, every: 500)
        #expect(try isPresent(camera, after: .seconds(3)))
        for _ in 0..<3 { #expect(try !isPresent(camera, after: .milliseconds(3001))) }
        #expect(try isPresent(screen, after: .seconds(60)))
        keep(1, every: 501)
        #expect(try isPresent(camera, after: .seconds(60)))
        keep(29, every: 33)
        #expect(try !isPresent(camera, after: .seconds(60)) && isPresent(screen, after: .seconds(60)))
        camera.forget()
        #expect(camera.again(at: now) == nil)
    }

    // A display that answered no more was shown as the present one, each second, for as long as it hung.
    @Test("A source that repeats itself has stalled when it stops that, and one that says that nothing comes at once")
    func silent() throws {
        let newest = NewestPicture(shape: Monitor(PictureShape()), isStillByNature: true)
        var now = timestamp(at: 0)
        func keep(after seconds: Int, isRepeat: Bool = false) {
            now += .seconds(seconds)
            var frame = picture(16, 16)
            (frame.timestamp, frame.isRepeat) = (now, isRepeat)
            newest.keep(ShapedFrame(frame, in: PictureShape()), at: now)
        }
        keep(after: 0)
        #expect(newest.standsStill(at: now + .seconds(60)))
        keep(after: 1, isRepeat: true)
        #expect(newest.standsStill(at: now + .seconds(3)) && !newest.standsStill(at: now + .milliseconds(3001)))
        #expect(newest.again(at: now + .seconds(60))?.frame.isRepeat == false)
        // One that repeats itself each ten seconds is waited for.
        keep(after: 10)
        #expect(newest.standsStill(at: now + .seconds(30)) && !newest.standsStill(at: now + .milliseconds(30_001)))
        // A picture that came after the interruption is the application's own for that time.
        newest.interrupt(since: now - .milliseconds(1))
        #expect(newest.standsStill(at: now))
        newest.interrupt(since: now + .milliseconds(1))
        #expect(!newest.standsStill(at: now))
        newest.interrupt(since: nil)
        #expect(newest.standsStill(at: now))
        newest.interrupt(since: now + .milliseconds(1))
        let old = try #require(newest.again(at: now + .seconds(1))).frame
        #expect(!old.isRepeat && old.timestamp < now + .milliseconds(1))
        keep(after: 1)
        #expect(newest.standsStill(at: now + .seconds(1)))
    }

    @Test("Who needs a keyframe waits no longer than that, however often it is asked for")
    func demand() {
        var repeats = RepeatSchedule()
        repeats.demanded(at: timestamp(at: 0))
        repeats.demanded(at: timestamp(at: 5))
        #expect(repeats.time == timestamp(at: 0) + RepeatSchedule.patience)
        repeats.encoded(isRepeat: false, isSharp: true, standsStill: true, at: timestamp(at: 10))
        repeats.demanded(at: timestamp(at: 11))
        #expect(repeats.time == timestamp(at: 11) + RepeatSchedule.patience)
        // A repeat that could not be the keyframe yet leaves somebody waiting.
        repeats.encoded(isRepeat: true, isSharp: true, standsStill: true, at: timestamp(at: 20))
        repeats.demanded(at: timestamp(at: 20))
        #expect(repeats.time == timestamp(at: 20) + RepeatSchedule.patience)
        repeats.pause()
        #expect(repeats.time == nil)
    }
}
