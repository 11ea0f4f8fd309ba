import MediaCore
import RoomKit
import RoomProtocol
import ScreenCapture
import TestSupport
import TestTools
import Testing
import WebSockets

@testable import Diagnosis

@Suite("The check of a machine", .timeLimit(.minutes(1)))
struct MachineCheckTests {
    @Test("A display that is there is ok, with its size and what the server can do")
    func display() async throws {
        let server = try await XServer(Dimensions(width: 320, height: 200))
        let findings = await ScreenCheck.of(display: server.display, isWanted: true).findings()
        #expect(findings.map(\.level) == [.ok], "\(findings)")
        for word in ["320x200", "Composite", "MIT-SHM", "Damage"] {
            #expect(findings[0].found.contains(word), "\(findings)")
        }
        let source = ScreenSource(display: server.display)
        let measurement = try await CaptureMeasurement(of: source, for: .milliseconds(100))
        #expect(measurement?.dimensions == Dimensions(width: 320, height: 200))
        #expect(!source.isCapturing)
    }

    @Test("A display that is none is a problem, whether or not one is wanted")
    func noDisplay() async {
        let findings = await ScreenCheck.of(display: ":9871", isWanted: false).findings()
        #expect(findings.map(\.code) == ["displayUnreachable"] && findings[0].level == .problem)
        #expect(findings[0].advice?.contains("XAUTHORITY") == true)
    }

    @Test("The versions of all five libraries are known as they are loaded")
    func libraries() {
        let versions = LoadedLibraries().versions
        for name in ["libvpx", "libwebsockets", "libyuv", "libjpeg-turbo", "libv4l"] {
            let version = versions.first { $0.hasPrefix("\(name) ") }?.dropFirst(name.count + 1)
            #expect(version?.first?.isNumber == true, "\(versions)")
        }
    }

    @Test("A library that no package owns has the version of its file's name")
    func foreignLibrary() throws {
        let directory = try TemporaryDirectory()
        let lines = "7f00-7f01 r-xp 00000000 fe:00 1   /opt/lib/libyuv.so.0.0.1900\n7f01-7f02 rw-p 00000000 00:00 0\n"
        try store(lines.utf8, at: directory("maps"))
        let versions = LoadedLibraries(maps: directory("maps"), packages: directory("dpkg")).versions
        #expect(versions.contains("libyuv 0.0.1900") && versions.count == 3)
    }

    @Test("A window program that is absent or lacks a library is a note, and a network library that fails a problem")
    func window() {
        let libraries = LoadedLibraries()
        let levels = [LibraryCheck.Window.runs("/a"), .fails("/a", code: 127), .absent].map { window in
            LibraryCheck(libraries: libraries, networkFailure: nil, window: window).findings().map(\.level)
        }
        #expect(levels == [[.ok, .ok], [.ok, .note], [.ok, .note]])
        let failure = WebSocketError(.systemFailure, attempted: "start a network loop", advice: "libev is missing.")
        let failed = LibraryCheck(libraries: libraries, networkFailure: failure, window: .absent).findings()
        #expect(failed.contains { $0.level == .problem && $0.advice?.contains("libwebsockets-evlib-ev") == true })
    }

    @Test("The encoder is measured, and one that is too slow gets a rate that it keeps")
    func encoder() async throws {
        let size = Dimensions(width: 64, height: 48)
        let measured = try #require(await EncodingMeasurement.measure(size, FrameRate(30)))
        #expect(measured.meanTime > .zero && measured.dimensions == size)
        let slow = EncodingMeasurement(dimensions: .vga, frameRate: FrameRate(30), meanTime: .milliseconds(80))
        for isWanted in [true, false] {
            let findings = EncodingMeasurement.findings([slow], processors: 1, isWanted: isWanted)
            #expect(findings.map(\.level) == [isWanted ? .problem : .note])
            #expect(findings[0].advice?.contains("--fps 10") == true, "\(findings)")
        }
    }

    // The pictures were painted before the limit began: in the largest size that there is, 4 GB of them.
    @Test("The limit holds for painting too, and no picture is painted for a size that cannot be encoded")
    func endlessPainting() async {
        final class NeverPainted: VideoSource {
            let sinks = VideoSinks()
        }
        let source = NeverPainted()
        let measured = await EncodingMeasurement.measure(source, .vga, FrameRate(30), within: .milliseconds(50))
        #expect(measured == nil)
        for size in [Dimensions(width: 20_000, height: 20_000), Dimensions(width: 16_383, height: 2_000)] {
            #expect(await EncodingMeasurement.measure(size, FrameRate(30)) == nil)
        }
        #expect(EncodingMeasurement.pictureCount(.vga) == 10)
        #expect(EncodingMeasurement.pictureCount(Dimensions(width: 4096, height: 4096)) == 3)
    }

    @Test("An encoder without a result is a problem")
    func failedEncoder() {
        let finding = EncodingMeasurement.failure(.vga)
        #expect(finding.level == .problem && finding.code == "encoderFailed" && finding.found.contains("640x480"))
    }

    @Test("A call that never ends is given up, also if it ignores that it is cancelled")
    func endless() async {
        let gate = Task.detached { try? await Task.sleep(for: .seconds(3600)) }
        let result = await BlockingCall.runTask(within: .milliseconds(10)) {
            await gate.value
            return true
        }
        #expect(result == nil)
        let caller = Task {
            await BlockingCall.runTask(within: .seconds(3600)) {
                await gate.value
                return true
            }
        }
        caller.cancel()
        #expect(await caller.value == nil)
        gate.cancel()
        #expect(await BlockingCall.runTask(within: .seconds(60)) { true } == true)
    }

    @Test("Limits that are too low are notes with the command that raises them")
    func limits() throws {
        let directory = try TemporaryDirectory()
        for (name, text) in [("pids.max", "40"), ("pids.current", "30"), ("cpu.max", "50000 100000")] {
            try store("\(text)\n".utf8, at: directory(name))
        }
        let read = LimitCheck(group: directory.path, kernel: directory.path)
        #expect(read.threadsLeft == 10 && read.processorQuota == 0.5 && read.sendBuffer == nil && read.openFiles > 0)
        let low = LimitCheck(openFiles: 64, threadsLeft: 10, processorQuota: 0.5, sendBuffer: 65_536).findings()
        #expect(low.map(\.code) == ["openFiles", "threads", "processorQuota", "sendBuffer"])
        #expect(low.allSatisfy { $0.level == .note && $0.advice != nil })
        try store("max\n".utf8, at: directory("pids.max"))
        #expect(LimitCheck(group: directory.path, kernel: directory.path).threadsLeft == nil)
        #expect(LimitCheck(openFiles: 1024).findings().map(\.level) == [.ok])
    }

    @Test("A clock that is known badly, or that nothing sets, is a note")
    func clock() {
        let exact = ClockEstimate(basis: .sameHost, offset: .zero, errorBound: .zero)
        let good = ClockEstimate(basis: .estimated, offset: .zero, errorBound: .milliseconds(1))
        let bad = ClockEstimate(basis: .estimated, offset: .zero, errorBound: .milliseconds(80))
        let levels = [exact, good, bad].map { estimate in
            ClockCheck(estimate: estimate, isSynchronized: true).findings().map(\.level)
        }
        #expect(levels == [[.ok, .ok], [.ok, .ok], [.note, .ok]])
        #expect(ClockCheck(estimate: nil, isSynchronized: false).findings().map(\.code) == ["unsynchronized"])
        #expect(ClockCheck(estimate: nil, isSynchronized: nil).findings().map(\.code) == ["unknown"])
    }
}
