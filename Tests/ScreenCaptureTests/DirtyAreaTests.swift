import MediaCore
import Testing

@testable import ScreenCapture

/// What is fetched again; a value.
@Suite("A dirty area")
struct DirtyAreaTests {
    private let size = Dimensions(width: 640, height: 480)

    private func clean() -> DirtyArea {
        var dirty = DirtyArea(whole: size)
        dirty.removeAll()
        return dirty
    }

    @Test("A part is expanded to even sides, and what is outside the picture is left out")
    func even() {
        var dirty = clean()
        dirty.add(area(11, 21, 3, 4))
        #expect(dirty.parts == [area(10, 20, 4, 6)])
        dirty.add(area(-20, -20, 25, 25))
        #expect(dirty.parts == [area(10, 20, 4, 6), area(0, 0, 6, 6)])
        dirty.add(area(639, 479, 100, 100))
        #expect(dirty.parts.last == area(638, 478, 2, 2))
        dirty.add(area(640, 0, 10, 10))
        dirty.add(area(5, 5, 0, 10))
        #expect(dirty.parts.count == 3)
    }

    @Test("A part inside another one is not fetched twice")
    func contained() {
        var dirty = clean()
        dirty.add(area(10, 10, 100, 100))
        dirty.add(area(20, 20, 10, 10))
        #expect(dirty.parts == [area(10, 10, 100, 100)])
        dirty.add(area(0, 0, 200, 200))
        #expect(dirty.parts == [area(0, 0, 200, 200)])
        dirty.addAll()
        #expect(dirty.isWhole)
        dirty.add(area(1, 1, 1, 1))
        #expect(dirty.isWhole)
    }

    @Test("Many parts become one that covers them")
    func merged() {
        var dirty = clean()
        for step in 0..<30 { dirty.add(area(10 + 20 * step, 100, 2, 2)) }
        #expect(dirty.parts.count <= 12)
        for step in 0..<30 {
            let part = area(10 + 20 * step, 100, 2, 2)
            #expect(dirty.parts.contains { $0.intersection(part) == part })
        }
    }
}

/// When a still picture is delivered again; a value.
@Suite("A repeat schedule")
struct RepeatScheduleTests {
    @Test("A picture is repeated 15 times after 130 ms each, then once a second; a request makes it begin anew at once")
    func times() {
        var schedule = RepeatSchedule()
        let tick = Duration.milliseconds(10)
        var now = MonotonicInstant(nanoseconds: 1_000_000_000)
        #expect(!schedule.isDue(at: now, tick: tick), "there is no picture yet")
        schedule.delivered(at: now)
        var gaps: [Int] = []
        while gaps.count < 17 {
            var gap = 0
            while !schedule.isDue(at: now, tick: tick) {
                now = now + tick
                gap += 10
            }
            schedule.repeated(at: now)
            gaps.append(gap)
        }
        #expect(gaps == Array(repeating: 130, count: 15) + [1000, 1000])
        schedule.request()
        #expect(schedule.isDue(at: now, tick: tick))
        schedule.repeated(at: now)
        #expect(!schedule.isDue(at: now, tick: tick))
        // It may have been a keyframe, which is coarse.
        #expect(schedule.isDue(at: now + .milliseconds(130), tick: tick))
    }
}
