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
    @Test("A picture is repeated after 130 ms, then once a second, or up to 15 times a second if that is asked for")
    func times() {
        var schedule = RepeatSchedule()
        let tick = Duration.milliseconds(10)
        var now = MonotonicInstant(nanoseconds: 1_000_000_000)
        #expect(!schedule.isDue(at: now, tick: tick), "there is no picture yet")
        schedule.delivered(at: now)
        func gap(isRequested: Bool) -> Int {
            var gap = 0
            if isRequested { schedule.request() }
            while !schedule.isDue(at: now, tick: tick) {
                now = now + tick
                gap += 10
            }
            schedule.repeated(at: now)
            return gap
        }
        #expect([false, false, false, true, true, false].map(gap) == [130, 1000, 1000, 60, 60, 1000])
        // After a second without a repeat, one is due at once.
        now = now + .milliseconds(500)
        #expect(gap(isRequested: true) == 0)
        schedule.delivered(at: now)
        #expect(gap(isRequested: false) == 130)
    }
}
