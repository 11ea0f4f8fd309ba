import MediaCore
import MediaFiles
import RoomKit
import TestSupport
import TestTools
import Testing
import Threading

@testable import ScreenCapture

/// A real display as the source of a track, through a relay to a subscriber.
@Suite("A published screen", .serialized, .timeLimit(.minutes(3)))
struct PublishedScreenTests {
    @Test("A window that grows and shrinks while it is published stays published, and ends with the reason when closed")
    func resized() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(0, 0, 320, 240), title: "Slides", colour: 0x2030D0)
        let stage = try Stage()
        let (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
        let track = LocalVideoTrack(source: ScreenSource(target: .window("Slides"), display: display.name))
        try await robot.room.localParticipant.publish(track)
        let remote = try await viewer.subscribedTrack()
        let small = Dimensions(width: 160, height: 120)
        try display.resize(window, small)
        try await eventually("the small window is shown") { remote.statistics.dimensions == small }
        // It was scaled down to the size that the track began with, and could not be read.
        let large = Dimensions(width: 640, height: 480)
        try display.resize(window, large)
        try await eventually("the large window is shown") { remote.statistics.dimensions == large }
        try display.close(window)
        let (failed, error) = try await robot.event("it is told") { event -> (LocalVideoTrack, any Error)? in
            if case .localTrackFailed(let track, let error) = event { (track, error) } else { nil }
        }
        #expect(failed === track && (error as? ScreenError)?.code == .windowClosed)
        await robot.room.disconnect()
        await viewer.room.disconnect()
    }

    @Test("A screen above 1920x1080 is scaled down to that, with a warning, unless more is requested")
    func large() async throws {
        let own = Dimensions(width: 2560, height: 1440)
        let display = try await VirtualDisplay(own)
        let stage = try Stage()
        let robot = try await stage.join("robot")
        let source = ScreenSource(target: .screen, display: display.name)
        let track = LocalVideoTrack(source: source)
        try await robot.room.localParticipant.publish(track)
        let limit = Dimensions(width: 1920, height: 1080)
        #expect(track.dimensions == limit)
        let warning = try await robot.event("it is told") { event -> (any Error)? in
            if case .localTrackWarning(_, let error) = event { error } else { nil }
        }
        #expect((warning as? ScreenError)?.code == .formatLimited)
        #expect("\(warning)".contains("Cannot deliver all of the screen") && "\(warning)".contains("2560x1440"))
        let small = Dimensions(width: 640, height: 360)
        source.requestOutputFormat(VideoFormatRequest(dimensions: small))
        try await eventually("the requested size") { track.dimensions == small }
        source.resetOutputFormat()
        try await eventually("the way back") { track.dimensions == limit }
        await robot.room.disconnect()
        // A sink that is added meanwhile is asked, too, and more is delivered to one that is asked for more.
        source.requestOutputFormat(VideoFormatRequest(dimensions: own))
        let other = try await stage.join("other")
        let whole = LocalVideoTrack(source: source, name: "whole")
        try await other.room.localParticipant.publish(whole)
        #expect(whole.dimensions == own)
        await other.room.disconnect()
        let warnings = robot.events.count { if case .localTrackWarning = $0 { true } else { false } }
        #expect(warnings == 1)
    }

    // It warned of a size that nobody got.
    @Test("A screen above 1920x1080 is no news while its only sink has a size of its own, and is told once it has none")
    func ownSize() async throws {
        let display = try await VirtualDisplay(Dimensions(width: 2560, height: 1440))
        let window = try display.makeWindow(area(0, 0, 100, 100), colour: 0x2030D0)
        let source = ScreenSource(target: .screen, display: display.name)
        let sink = LastFrame()
        let warnings = Monitor(0)
        let events = source.captureEvents()
        Task { for await event in events { if case .warning = event { warnings.change { $0 += 1 } } } }
        source.sinks.add(sink)
        source.sinks.request(VideoFormatRequest(dimensions: Dimensions(width: 640, height: 360)), for: sink)
        try await source.startCapture()
        try await sink.shows(0x2030D0, at: 50, 50, "the window")
        try display.fill(window, area(0, 0, 100, 100), 0x10C030)
        try await sink.shows(0x10C030, at: 50, 50, "another colour")
        #expect(warnings.withLock { $0 } == 0)
        source.sinks.resetRequest(for: sink)
        try display.fill(window, area(0, 0, 100, 100), 0x2030D0)
        try await eventually("a warning") { warnings.withLock { $0 } == 1 }
        await source.stopCapture()
    }

    // The publisher spoke of a slate, and the viewer waited in vain for a picture.
    @Test(
        "A viewer who joins while a window is hidden sees its last picture, and connect says so",
        .enabled(if: Program.isAllowed)
    )
    func hidden() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(0, 0, 320, 240), title: "Slides", colour: 0x2030D0)
        let server = try await ServerProgram()
        let options = ["--source", "screen", "--display", display.name, "--window", "Slides", "--json"]
        let publisher = try server.client("connect", options)
        try await publisher.says("\"published\"")
        try display.hide(window)
        try await publisher.says("\"interrupted\"")
        let event = try #require(publisher.events().last { $0.string("event") == "interrupted" })
        #expect(event.string("code") == "windowHidden")
        try await eventually("a sentence") { publisher.errors.contains("The last picture is shown meanwhile.") }
        #expect(!publisher.errors.contains("slate"), "\(publisher.errors)")

        // What the server keeps for late joiners has become too old.
        try await Task.sleep(for: .seconds(4))
        let directory = try TemporaryDirectory()
        let snapshot = ["--snapshot", directory("late.png"), "--duration", "5", "--json"]
        let viewer = try server.client("subscribe", snapshot)
        #expect(try await viewer.end() == .exit(0))
        let received = try #require(viewer.events().last?.objects("tracks").first)
        #expect(received.number("frameWidth") == 320 && received.number("frameHeight") == 240)

        try display.show(window)
        try await publisher.says("\"interruptionEnded\"")
        #expect(try await end([publisher, server.program], with: 2) == [.exit(0), .exit(0)])
        let summary = try #require(publisher.events().last)
        #expect(summary.number("interruptions") == 1 && summary.number("framesSubstituted") == 0)
    }

    /// Counts of `verify`'s summary: frames, repeats, freezes and their seconds.
    private func verified(_ path: String) async throws -> (frames: Double, repeats: Double, frozen: Double) {
        let program = try Program("room-client", ["verify", path, "--json"])
        #expect(try await program.end() == .exit(0))
        let summary = try #require(program.events().last)
        return (
            try #require(summary.number("frames")), try #require(summary.number("repeated")),
            try #require(summary.number("totalFreezesDuration"))
        )
    }

    // Each pause of a screen was a freeze for verify, and nothing in the log told a repeat from a change.
    @Test(
        "Repeats are marked in the subscriber's log, and counted apart at both ends; standing still is no freeze",
        .enabled(if: Program.isAllowed)
    )
    func repeats() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(0, 0, 320, 240), title: "Slides", colour: 0x2030D0)
        let server = try await ServerProgram()
        let options = ["--source", "screen", "--display", display.name, "--window", "Slides", "--json"]
        let publisher = try server.client("connect", options)
        try await publisher.says("\"published\"")
        let directory = try TemporaryDirectory()
        let viewer = try await server.subscriber(["--json", "--dump", directory("dumps")])
        for round in 0..<2 {
            for step in 0..<30 {
                try display.fill(window, area(8 * step, 20 + 40 * round, 8, 8), 0xFFFFFF)
                try await Task.sleep(for: .milliseconds(70))
            }
            let before = try repeatsLogged(in: directory("dumps"))
            // The last four of these are a second apart.
            try await eventually("19 repeats") { try repeatsLogged(in: directory("dumps")) >= before + 19 }
        }
        #expect(try await end([viewer, publisher, server.program], with: 2) == [.exit(0), .exit(0), .exit(0)])

        let log = try #require(fileNames(in: directory("dumps")).first { $0.hasSuffix(".frames.jsonl") })
        let entries = try FrameLogEntry.read(text(of: directory("dumps/\(log)")))
        let repeats = entries.count { $0.repeated == true }
        #expect(repeats >= 38 && entries.count { $0.repeated == false } >= 20)
        #expect(zip(entries, entries.dropFirst()).allSatisfy { $0.captured < $1.captured }, "stamped when looked at")
        let received = try #require(viewer.events().last?.objects("tracks").first)
        #expect(received.number("framesRepeated") == Double(repeats))
        let sent = try #require(publisher.events().last)
        #expect(try #require(sent.number("framesRepeated")) >= Double(repeats) && sent.number("interruptions") == 0)
        let marked = try await verified(directory("dumps"))
        #expect(marked.repeats == Double(repeats) && marked.frames == Double(entries.count))
        // Without the marks, the same log shows the pauses as freezes.
        let written = try text(of: directory("dumps/\(log)"))
        try store(written.replacing("\"repeated\":true,", with: "").utf8, at: directory("dumps/\(log)"))
        #expect(try await verified(directory("dumps")).frozen >= marked.frozen + 4)
    }

    private func repeatsLogged(in directory: String) throws -> Int {
        guard let log = fileNames(in: directory).first(where: { $0.hasSuffix(".frames.jsonl") }) else { return 0 }
        return try text(of: "\(directory)/\(log)").ranges(of: "\"repeated\":true").count
    }

    @Test(
        "connect publishes a window, says why it ends when that is closed, and devices lists it",
        .enabled(if: Program.isAllowed)
    )
    func program() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(0, 0, 320, 240), title: "Slides", colour: 0x2030D0)
        let list = try Program("room-client", ["devices", "--screens", "--display", display.name, "--json"])
        #expect(try await list.end() == .exit(0))
        let listed = try list.events()
        #expect(listed.map { $0.string("event") } == ["monitor", "window", "summary"])
        #expect(listed.dropLast().last?.string("title") == "Slides")
        #expect(listed.dropLast().last?.number("width") == 320)
        #expect(listed.last?.number("windows") == 1 && listed.last?.number("monitors") == 1)
        let server = try await ServerProgram()
        let options = ["--source", "screen", "--display", display.name, "--window", "Slides", "--json"]
        let client = try server.client("connect", options)
        try await client.says("\"published\"")
        let viewer = try await server.subscriber(["--json"])
        try display.close(window)
        #expect(try await client.end() == .exit(69))
        #expect(client.errors.contains("the window was closed") || client.text.contains("the window was closed"))
        let summary = try #require(client.events().last)
        #expect(summary.string("event") == "summary" && summary.number("framesRepeated") != nil)
        #expect(try await end([viewer, server.program], with: 2) == [.exit(0), .exit(0)])
    }

    // It joined, and said that the source gave no picture in 0.0 s.
    @Test("A window that is not there ends `connect` before it asks the server", .enabled(if: Program.isAllowed))
    func absentWindow() async throws {
        let display = try await VirtualDisplay()
        let url = "ws://127.0.0.1:\(try SilentServer().port)"
        let options = ["--source", "screen", "--display", display.name, "--window", "Slides"]
        let client = try Program("room-client", ["connect", "--room", "r", "--url", url] + options)
        #expect(try await client.end() == .exit(66))
        #expect(client.errors.contains("Slides") && client.text.isEmpty, "\(client.errors)")
    }
}
