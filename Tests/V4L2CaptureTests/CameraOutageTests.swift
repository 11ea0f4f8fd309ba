import MediaCore
import Testing

@testable import V4L2Capture

private func at(_ milliseconds: Int64) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: (100_000 + milliseconds) * 1_000_000)
}

/// What is done while a camera gives no pictures.
@Suite("Outages")
struct CameraOutageTests {
    @Test("A slate is due at once, then twice a second, and none once pictures come")
    func slates() {
        var outage = CameraOutage(limit: nil)
        #expect(outage.takeSlate(at: at(0)) == false)
        #expect(outage.nextSlate == nil)
        #expect(outage.failed(.deviceLost, at: at(0)) == true)
        let due = stride(from: Int64(0), to: 2000, by: 50).filter { outage.takeSlate(at: at($0)) }
        #expect(due == [0, 500, 1000, 1500])
        #expect(outage.recovered(at: at(2000)) == true)
        #expect(outage.takeSlate(at: at(2500)) == false)
        #expect(outage.recovered(at: at(2100)) == false, "it has ended already")
    }

    @Test("Slates that could not be painted in time are not made up for")
    func lateSlates() {
        var outage = CameraOutage(limit: nil)
        _ = outage.failed(.deviceLost, at: at(0))
        #expect(outage.takeSlate(at: at(10_000)) == true)
        let due = stride(from: Int64(10_200), to: 12_000, by: 100).filter { outage.takeSlate(at: at($0)) }
        #expect(due.count <= 4)
    }

    /// When the camera is tried in a minute of `outage` in which each attempt fails with `code`, in milliseconds.
    private func attempts(in outage: inout CameraOutage, failingWith code: CameraError.Code) -> [Int64] {
        _ = outage.failed(.deviceLost, at: at(0))
        return stride(from: Int64(10), through: 60_000, by: 10).filter { now in
            guard outage.isAttemptDue(at: at(now)) else { return false }
            _ = outage.failed(code, at: at(now))
            return true
        }
    }

    @Test("A camera that is not there is looked for at an even pace, so that it is back within a second")
    func absent() {
        var outage = CameraOutage(limit: nil)
        let looks = attempts(in: &outage, failingWith: .noSuchDevice)
        #expect(zip(looks, looks.dropFirst()).allSatisfy { $1 - $0 <= 500 } && (100..<400).contains(looks.count))
    }

    @Test("A loopback device without a writer is looked for as a camera that is not there, and is no news")
    func withoutWriter() {
        var outage = CameraOutage(limit: nil)
        let looks = attempts(in: &outage, failingWith: .notACamera)
        #expect(zip(looks, looks.dropFirst()).allSatisfy { $1 - $0 <= 500 } && (100..<400).contains(looks.count))
        #expect(outage.failed(.notACamera, at: at(61_000)) == false)
    }

    @Test("A camera that is there and refuses is tried less and less often, and at once when it was plugged in anew")
    func refused() {
        var outage = CameraOutage(limit: nil)
        let tries = attempts(in: &outage, failingWith: .busy)
        #expect((10...20).contains(tries.count), "\(tries)")
        #expect(tries.filter { $0 < 2000 }.count >= 2, "one that is free soon is used at once")
        _ = outage.failed(.noSuchDevice, at: at(60_000))
        _ = outage.failed(.permissionDenied, at: at(60_500))
        #expect(outage.isAttemptDue(at: at(60_750)))
    }

    /// It was tried once a second for ever.
    @Test("A camera without permission is tried ever less often, down to every 30 s, and soon at first")
    func access() {
        var outage = CameraOutage(limit: nil)
        let tries = attempts(in: &outage, failingWith: .permissionDenied)
        #expect(tries == [250, 750, 1750, 3750, 7750, 15_750, 31_750], "\(tries)")
        _ = outage.failed(.permissionDenied, at: at(100_000))
        #expect(!outage.isAttemptDue(at: at(129_900)) && outage.isAttemptDue(at: at(130_000)))
    }

    @Test("Where no change of the permissions is told, a camera without permission is tried every 5 s")
    func accessUntold() {
        var outage = CameraOutage(limit: nil)
        outage.isAccessTold = false
        let tries = attempts(in: &outage, failingWith: .permissionDenied)
        #expect(zip(tries, tries.dropFirst()).allSatisfy { $1 - $0 <= 5000 } && tries.count >= 10, "\(tries)")
    }

    @Test("A change of the permissions is followed by tries at once and soon after, at most one in 250 ms")
    func accessChange() {
        var outage = CameraOutage(limit: nil)
        _ = attempts(in: &outage, failingWith: .permissionDenied)
        outage.accessChanged(at: at(60_000))
        #expect(outage.isAttemptDue(at: at(60_000)))
        // The permissions are still being set.
        var tries = 0
        for now in stride(from: Int64(60_000), to: 70_000, by: 10) {
            outage.accessChanged(at: at(now))
            guard outage.isAttemptDue(at: at(now)) else { continue }
            _ = outage.failed(.permissionDenied, at: at(now))
            tries += 1
        }
        #expect(tries == 40)
        // They concern no camera that is busy.
        _ = outage.failed(.busy, at: at(80_000))
        _ = outage.failed(.busy, at: at(80_500))
        outage.accessChanged(at: at(80_500))
        #expect(!outage.isAttemptDue(at: at(80_600)))
    }

    @Test("A camera that comes and goes is not opened all the time")
    func flapping() {
        var outage = CameraOutage(limit: nil)
        var (now, opened) = (Int64(0), 0)
        _ = outage.failed(.driverFailed, at: at(0))
        while now < 60_000 {
            now += 10
            guard outage.isAttemptDue(at: at(now)) else { continue }
            opened += 1
            // One frame comes, and then it breaks.
            _ = outage.recovered(at: at(now + 5))
            _ = outage.failed(.driverFailed, at: at(now + 10))
        }
        #expect(opened < 20)
        _ = outage.recovered(at: at(now))
        _ = outage.failed(.driverFailed, at: at(now + 6000))
        #expect(outage.isAttemptDue(at: at(now + 6250)), "it was good for long")
    }

    @Test("The cause is reported once, and another cause only if it lasts")
    func reports() {
        var outage = CameraOutage(limit: nil)
        #expect(outage.failed(.deviceLost, at: at(0)) == true)
        #expect(outage.failed(.noSuchDevice, at: at(5000)) == false)
        #expect(outage.failed(.permissionDenied, at: at(6000)) == false)
        #expect(outage.failed(.permissionDenied, at: at(7000)) == false)
        #expect(outage.failed(.permissionDenied, at: at(9000)) == true)
        let again = stride(from: Int64(9100), to: 60_000, by: 100).filter {
            outage.failed(.permissionDenied, at: at($0))
        }
        #expect(again.isEmpty)
        _ = outage.recovered(at: at(60_000))
        #expect(outage.failed(.deviceLost, at: at(61_000)) == true, "the next outage is reported anew")
    }

    @Test("The wait ends at its limit; without one it never does, and with zero there is none")
    func limits() {
        var limited = CameraOutage(limit: .seconds(10))
        #expect(limited.isWaiting && !limited.isOver(at: at(0)))
        _ = limited.failed(.deviceLost, at: at(0))
        #expect(!limited.isOver(at: at(9999)) && limited.isOver(at: at(10_000)))
        var endless = CameraOutage(limit: nil)
        _ = endless.failed(.deviceLost, at: at(0))
        #expect(!endless.isOver(at: at(1_000_000_000)))
        var none = CameraOutage(limit: .zero)
        _ = none.failed(.deviceLost, at: at(0))
        #expect(!none.isWaiting && none.nextSlate == nil)
    }

    @Test("Damaged frames are reported after a second, and then once a minute at most")
    func damage() {
        var notice = DamageNotice()
        var reports: [(Int64, Int)] = []
        for now in stride(from: Int64(0), to: 130_000, by: 100) {
            if now != 500 { notice.noted(1, at: at(now)) }
            if let count = notice.due(at: at(now)) { reports.append((now, count)) }
        }
        #expect(reports.map(\.0) == [1000, 61_000, 121_000])
        #expect(reports.first?.1 == 10)
        var quiet = DamageNotice()
        let report = quiet.due(at: at(90_000))
        #expect(report == nil)
    }
}
