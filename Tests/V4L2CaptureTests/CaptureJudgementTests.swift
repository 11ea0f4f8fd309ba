import CV4L2
import Capture
import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import V4L2Capture

private let lost = CameraScript.Event.trouble([.failed, .gone], status: ENODEV)
private let tenHours = Int64(36_000_000_000_000)

private func instant(milliseconds: Int64) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: milliseconds * 1_000_000)
}

/// When a camera counts as failed, and when its frames count as captured.
@Suite("Judging a camera", .timeLimit(.minutes(1)))
struct CaptureJudgementTests {
    // Frames were counted as they came, and not as they could be used.
    @Test("A camera that goes on giving nothing but damage fails after its patience, and one good frame saves it")
    func damage() {
        var watchdog = CaptureWatchdog(
            patience: .seconds(5),
            interval: .milliseconds(33),
            start: instant(milliseconds: 0)
        )
        for milliseconds in stride(from: Int64(100), to: 5000, by: 100) {
            watchdog.deviceGave(at: instant(milliseconds: milliseconds))
            watchdog.damaged(at: instant(milliseconds: milliseconds))
            #expect(!watchdog.isOver(at: instant(milliseconds: milliseconds)))
        }
        var saved = watchdog
        saved.delivered(at: instant(milliseconds: 5050))
        saved.damaged(at: instant(milliseconds: 5100))
        #expect(!saved.isOver(at: instant(milliseconds: 5100)))
        watchdog.damaged(at: instant(milliseconds: 5100))
        #expect(watchdog.isOver(at: instant(milliseconds: 5100)))
    }

    // At a frame in ten seconds, a good camera failed after five.
    @Test(
        "Below 0.6 frames a second the patience is three frame intervals",
        arguments: [(30, 5), (1, 5), (2, 6), (10, 30)]
    )
    func slowCameras(interval: Int, patience: Int) {
        let interval = interval == 30 ? Duration.milliseconds(33) : .seconds(interval)
        let watchdog = CaptureWatchdog(patience: .seconds(5), interval: interval, start: instant(milliseconds: 0))
        #expect(watchdog.patience == .seconds(patience))
        #expect(!watchdog.isOver(at: instant(milliseconds: Int64(patience) * 1000 - 1)))
        #expect(watchdog.isOver(at: instant(milliseconds: Int64(patience) * 1000)))
    }

    @Test("A second without a good frame is an interruption, which the next good frame ends")
    func interruption() {
        var watchdog = CaptureWatchdog(
            patience: .seconds(5),
            interval: .milliseconds(33),
            start: instant(milliseconds: 0)
        )
        // The first frame may take long, but that is told once.
        #expect(watchdog.nextDeadline == instant(milliseconds: 2000))
        #expect(watchdog.change(at: instant(milliseconds: 1999)) == nil)
        #expect(watchdog.change(at: instant(milliseconds: 2000)) == .noFramesYet)
        #expect(watchdog.change(at: instant(milliseconds: 3000)) == nil)
        #expect(watchdog.nextDeadline == instant(milliseconds: 5000))
        watchdog.deviceGave(at: instant(milliseconds: 3000))
        watchdog.delivered(at: instant(milliseconds: 3000))
        #expect(watchdog.nextDeadline == instant(milliseconds: 4000))
        #expect(watchdog.change(at: instant(milliseconds: 3999)) == nil)
        #expect(watchdog.change(at: instant(milliseconds: 4000)) == .interrupted)
        #expect(watchdog.change(at: instant(milliseconds: 4500)) == nil)
        #expect(watchdog.nextDeadline == instant(milliseconds: 8000))
        // A damaged frame does not help, and neither does one that nobody looks at.
        watchdog.deviceGave(at: instant(milliseconds: 4600))
        watchdog.damaged(at: instant(milliseconds: 4600))
        watchdog.notWanted(hasSink: true, at: instant(milliseconds: 4700))
        #expect(watchdog.change(at: instant(milliseconds: 4700)) == nil)
        watchdog.delivered(at: instant(milliseconds: 4800))
        #expect(watchdog.change(at: instant(milliseconds: 4800)) == .interruptionEnded)
        #expect(watchdog.change(at: instant(milliseconds: 4900)) == nil)
    }

    @Test("Frames that are left out for a lower rate are no interruption, and neither is a slow camera")
    func noInterruption() {
        var watchdog = CaptureWatchdog(
            patience: .seconds(5),
            interval: .milliseconds(33),
            start: instant(milliseconds: 0)
        )
        watchdog.delivered(at: instant(milliseconds: 33))
        for milliseconds in stride(from: Int64(66), to: 5000, by: 33) {
            watchdog.notWanted(hasSink: true, at: instant(milliseconds: milliseconds))
            #expect(watchdog.change(at: instant(milliseconds: milliseconds)) == nil)
        }
        var slow = CaptureWatchdog(patience: .seconds(5), interval: .seconds(1), start: instant(milliseconds: 0))
        slow.delivered(at: instant(milliseconds: 1000))
        #expect(slow.change(at: instant(milliseconds: 3900)) == nil)
        #expect(slow.change(at: instant(milliseconds: 4000)) == .interrupted)
    }

    // The limit followed from the stated rate alone, and every frame ended an interruption.
    @Test("A camera that gives fewer frames than its driver states is not interrupted by each of them")
    func slowerThanStated() {
        var watchdog = CaptureWatchdog(
            patience: .seconds(5),
            interval: .milliseconds(33),
            start: instant(milliseconds: 0)
        )
        for milliseconds in stride(from: Int64(1200), through: 2400, by: 1200) {
            watchdog.deviceGave(at: instant(milliseconds: milliseconds))
            watchdog.delivered(at: instant(milliseconds: milliseconds))
        }
        #expect(watchdog.interruption == .milliseconds(3600) && watchdog.patience == .seconds(5))
        #expect(watchdog.change(at: instant(milliseconds: 5999)) == nil)
        #expect(watchdog.change(at: instant(milliseconds: 6000)) == .interrupted)
        // The frames are as fast as stated again, and the longest interval was that of the interruption.
        for milliseconds in stride(from: Int64(7000), to: 7400, by: 33) {
            watchdog.deviceGave(at: instant(milliseconds: milliseconds))
            watchdog.delivered(at: instant(milliseconds: milliseconds))
        }
        #expect(watchdog.change(at: instant(milliseconds: 7400)) == .interruptionEnded)
        #expect(watchdog.interruption == .seconds(1))
        // A single long interval changes nothing.
        watchdog.deviceGave(at: instant(milliseconds: 9400))
        #expect(watchdog.interruption == .seconds(1))
    }

    @Test("A feed of a frame in 1.2 s, whose driver states 30 a second, gets slates at its beginning only")
    func slowFeed() async throws {
        let events = (0..<20).flatMap { number -> [CameraScript.Event] in
            [.pause(1.2), .frames([.init(sequence: UInt32(number), nanoseconds: 0)])]
        }
        let sink = RecordingSink()
        let source = makeSource(ScriptedSystem(CameraScript(events: events)), outageLimit: nil)
        source.sink = sink
        try await source.startCapture()
        _ = sink.received.waitPatiently { $0.timestamps.count - $0.substitutes >= 20 ? true : nil }
        #expect(source.captureStatistics.interruptions == 1 && sink.slates == 1)
        await source.stopCapture()
    }

    // The events were public, and no source had a cause to send them.
    @Test("A camera that falls silent for two seconds and goes on says so, both times")
    func interruptionEvents() async throws {
        let events = CameraScript.steady(5) + [.pause(2)] + CameraScript.steady(5) + [lost]
        let source = makeSource(ScriptedSystem(CameraScript(events: events)))
        let sink = RecordingSink()
        source.sink = sink
        let reports = source.captureEvents()
        try await source.startCapture()
        var told: [String] = []
        for await event in reports {
            switch event {
            case .interrupted(let error):
                told.append("interrupted: \((error as? CameraError)?.code.name ?? "\(error)")")
            case .interruptionEnded: told.append("goes on")
            case .failed(let error): told.append("failed: \((error as? CameraError)?.code.name ?? "\(error)")")
            case .finished: told.append("finished")
            case .noFramesCaptured, .warning: told.append("a warning")
            }
            if told.count == 3 { break }
        }
        #expect(told == ["interrupted: noFrames", "goes on", "failed: deviceLost"])
    }

    /// The words for interruptions, failures and missing first frames of a camera that gives `events`, then nothing.
    private func words(
        _ events: [CameraScript.Event],
        rate: Int = 30,
        outageLimit: Duration,
        count: Int
    ) async throws -> [String] {
        var script = CameraScript(events: events + [.silence])
        script.formats[0].rates = .discrete([rate])
        let system = ScriptedSystem(script)
        let source = makeSource(system, outageLimit: outageLimit)
        let reports = source.captureEvents()
        try await source.startCapture()
        var words: [String] = []
        for await event in reports {
            switch event {
            case .interrupted(let error), .failed(let error), .noFramesCaptured(let error): words.append("\(error)")
            case .interruptionEnded, .finished, .warning: break
            }
            if words.count == count { break }
        }
        await source.stopCapture()
        return words
    }

    // After three seconds it said that no frame had come for five.
    @Test("What is said of a silent camera counts from its last frame, and promises no more than is waited for")
    func statedTimes() async throws {
        let limited = try await words(CameraScript.steady(5), outageLimit: .seconds(2), count: 2)
        #expect(limited.first?.contains("no frame came for 1.0 s") == true, "\(limited)")
        #expect(limited.first?.contains("if it delivers again within 2.0 s") == true, "\(limited)")
        #expect(limited.last?.contains("no frame came for 3.0 s") == true, "\(limited)")
        #expect(limited.last?.contains("no picture came within 2.0 s") == true, "\(limited)")
        let unlimited = try await words(CameraScript.steady(5), outageLimit: .seconds(60), count: 1)
        #expect(unlimited.first?.contains("if it delivers again within 4.0 s") == true, "\(unlimited)")
        let slow = try await words([], rate: 1, outageLimit: .seconds(2), count: 2)
        #expect(slow.first?.contains("no frame came for 3.0 s") == true, "\(slow)")
        #expect(slow.first?.contains("if it delivers again within 2.0 s") == true, "\(slow)")
        #expect(slow.last?.contains("no frame came for 5.0 s") == true, "\(slow)")
    }

    @Test("A camera that damages every other frame goes on; one that damages all of them fails")
    func damagedStream() async throws {
        let frames = { (isGood: @escaping (Int) -> Bool) -> [CameraScript.Event] in
            (0..<400).map { number in
                .frames([
                    .init(
                        sequence: UInt32(number),
                        nanoseconds: Int64(number + 1) * 33_333_333,
                        fill: isGood(number) ? 0xFF : 0
                    )
                ])
            }
        }
        let format = CameraScript.Format(pixelFormat: .mjpeg, isCompressed: true)
        let half = try await captureToTheEnd(CameraScript(formats: [format], events: frames { $0 % 2 == 0 } + [lost]))
        #expect(half.failure?.code == .deviceLost && half.statistics.framesDropped[.corrupt] == 200)
        let none = try await captureToTheEnd(CameraScript(formats: [format], events: frames { $0 < 10 } + [lost]))
        #expect(none.failure?.code == .noFrames && "\(none.failure, default: "")".contains("damaged"))
        #expect(none.statistics.framesCaptured == 10 + none.statistics.framesDropped.total)
    }

    // A stamp hours old went out as the frame's age.
    @Test("A stamp that is hours old is replaced by the time at which the frame was taken, and counted")
    func oldStamps() async throws {
        let sink = RecordingSink()
        let events = (0..<20).map { number in
            // The camera's clock begins anew with the sixth frame.
            let stamp = tenHours + Int64(number + 1) * 33_333_333
            return CameraScript.Event.frames([
                .init(sequence: UInt32(number), nanoseconds: number < 5 ? stamp : stamp - tenHours)
            ])
        }
        let system = ScriptedSystem(CameraScript(events: events + [lost]))
        system.record.withLock { $0.clock = tenHours }
        let source = makeSource(system, request: VideoFormatRequest(frameRate: FrameRate(30)))
        source.sink = sink
        var failures = source.failures().makeAsyncIterator()
        try await source.startCapture()
        _ = await failures.next()
        // It froze here, as no frame was due until the old time came again.
        #expect(sink.count == 20)
        #expect(source.captureStatistics.timestampsReplaced == 15)
        #expect(sink.timestamps.allSatisfy { $0.nanoseconds >= tenHours })
        #expect(zip(sink.timestamps, sink.timestamps.dropFirst()).allSatisfy { $0 <= $1 })
    }

    @Test("Frames that waited while the program was held up keep their stamps; a stamp before that is none")
    func heldUp() {
        var check = TimestampCheck(interval: .milliseconds(33), start: instant(milliseconds: 0))
        let first = check.instant(for: instant(milliseconds: 100), takenAt: instant(milliseconds: 130))
        #expect(first.instant == instant(milliseconds: 100) && !first.isReplaced)
        check.emptied(at: instant(milliseconds: 131))
        let late = check.instant(for: instant(milliseconds: 200), takenAt: instant(milliseconds: 20_000))
        #expect(late.instant == instant(milliseconds: 200) && !late.isReplaced)
        check.emptied(at: instant(milliseconds: 20_001))
        let old = check.instant(for: instant(milliseconds: 300), takenAt: instant(milliseconds: 20_030))
        #expect(old.instant == instant(milliseconds: 20_030) && old.isReplaced)
    }

    @Test("A stamp shortly ahead becomes the present, and one that jumps back costs one frame its stamp")
    func smallJumps() {
        var check = TimestampCheck(interval: .milliseconds(33), start: instant(milliseconds: 0))
        let ahead = check.instant(for: instant(milliseconds: 126), takenAt: instant(milliseconds: 100))
        #expect(ahead.instant == instant(milliseconds: 100) && !ahead.isReplaced)
        let back = check.instant(for: instant(milliseconds: 50), takenAt: instant(milliseconds: 133))
        #expect(back.instant == instant(milliseconds: 133) && back.isReplaced)
        let next = check.instant(for: instant(milliseconds: 83), takenAt: instant(milliseconds: 166))
        #expect(next.instant == instant(milliseconds: 133) && !next.isReplaced)
        let without = check.instant(for: nil, takenAt: instant(milliseconds: 200))
        #expect(without.instant == instant(milliseconds: 200) && without.isReplaced)
    }
}

/// Which camera a source opens after others were plugged in.
@Suite("The identity of a camera", .timeLimit(.minutes(1)))
struct CameraIdentityTests {
    private let front = CameraScript(card: "Front", busInfo: "usb-1", events: CameraScript.steady(2) + [lost])
    private let back = CameraScript(card: "Back", busInfo: "usb-2", events: CameraScript.steady(2) + [lost])

    private func source(_ device: CaptureDevice, _ system: ScriptedSystem) -> CameraSource {
        makeSource(system, device: device)
    }

    /// Starts and stops.
    ///
    /// - Returns: The error of the start.
    private func attempt(_ source: CameraSource) async -> CameraError? {
        do {
            try await source.startCapture()
            await source.stopCapture()
            return nil
        } catch {
            return error as? CameraError
        }
    }

    // Whatever had the old /dev/videoN was opened: another room could go out under the old name.
    @Test("Another camera that has the old node is not opened, and the own one is found under its new node")
    func replug() async throws {
        let system = ScriptedSystem(["/dev/video0": front])
        let device = try #require(CameraDirectory(system: system).devices().first)
        let source = source(device, system)
        #expect(await attempt(source) == nil)
        system.plug(["/dev/video0": back])
        let error = try #require(await attempt(source))
        #expect(error.code == .noSuchDevice && "\(error)".contains("Front (usb-1)"))
        #expect(system.isAllClosed && system.calls(cv4l2_STREAMON) == 1)
        system.plug(["/dev/video0": back, "/dev/video1": front])
        #expect(await attempt(source) == nil)
        #expect(system.calls(cv4l2_STREAMON) == 2)
    }

    @Test("Two cameras of one make are told apart by their bus")
    func twins() async throws {
        var twin = front
        twin.busInfo = "usb-9"
        let system = ScriptedSystem(["/dev/video0": front, "/dev/video1": twin])
        let device = try #require(CameraDirectory(system: system).devices().first)
        let source = source(device, system)
        system.plug(["/dev/video0": twin])
        #expect(await attempt(source)?.code == .noSuchDevice)
        system.plug(["/dev/video0": twin, "/dev/video3": front])
        #expect(await attempt(source) == nil)
    }

    @Test("A camera with a name of its own is found by that in any port, and by nothing else")
    func stableLink() async throws {
        let link = "/dev/v4l/by-id/usb-Front_1234-video-index0"
        let system = ScriptedSystem(["/dev/video0": front], links: [StableLink(path: link, node: "/dev/video0")])
        let device = try #require(CameraDirectory(system: system).devices().first)
        #expect(device.stableLinks == [link])
        let source = source(device, system)
        var moved = front
        moved.busInfo = "usb-7"
        let hardware = CameraHardware(place: "/usb/7", index: 0, interfaceNumber: "00", serialNumber: "1234")
        system.plug(
            ["/dev/video0": back, "/dev/video5": moved],
            links: [StableLink(path: link, node: "/dev/video5")],
            hardware: ["/dev/video5": hardware]
        )
        #expect(await attempt(source) == nil)
        // Another one of the same make in the same port: it has another serial number, and so another name.
        system.plug(["/dev/video0": front])
        #expect(await attempt(source)?.code == .noSuchDevice)
        // The name leads to a camera of another make.
        system.plug(["/dev/video0": back], links: [StableLink(path: link, node: "/dev/video0")])
        #expect(await attempt(source)?.code == .noSuchDevice)
        #expect(system.calls(cv4l2_STREAMON) == 1)
    }
}
