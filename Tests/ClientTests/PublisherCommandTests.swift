import ArgumentParser
import TestTools
import Testing
import Threading

@testable import RoomKit
@testable import room_client

@Suite("Summary of a publisher")
struct PublisherSummaryTests {
    @Test("It has what the source measured, and no delay where none was measured")
    func delay() {
        var statistics = LocalVideoTrackStatistics()
        #expect(PublisherSummary(statistics, elapsed: .seconds(1)).captureDelayMs == nil)
        statistics.captureDelay = .microseconds(12_500)
        statistics.captureDuration = .seconds(3)
        let summary = PublisherSummary(statistics, elapsed: .seconds(4))
        #expect(summary.captureDelayMs == 12.5 && summary.captureSeconds == 3 && summary.seconds == 4)
    }
}

@Suite("What a publisher's program reports of its room", .timeLimit(.minutes(1)))
struct PublisherReportTests {
    @Test("A track that fails is reported at once and once, and not at the end of the session")
    func failedTrack() async throws {
        let lines = Monitor([String]())
        let reporter = Reporter(isJSON: true, writeJSON: { line in lines.withLock { $0.append(line) } })
        let (events, continuation) = AsyncStream.makeStream(of: RoomEvent.self)
        let command = try ConnectCommand.parse(["--room", "r", "--json"])
        let reporting = Task { await command.report(events, to: reporter, endingWith: StopReasons()) }
        let track = LocalVideoTrack(source: PushedSource(), name: "camera")
        let failure = RoomEvent.localTrackFailed(track, RoomError(.encodingFailed, "The picture is too large."))
        continuation.yield(failure)
        let line = try await eventual("it is reported") { lines.withLock { $0.first } }
        for part in [#""event":"failure""#, #""code":"encodingFailed""#, #""track":"camera""#] {
            #expect(line.contains(part), "\(line)")
        }
        continuation.yield(failure)
        continuation.finish()
        await reporting.value
        #expect(lines.withLock { $0 } == [line])
    }
}

@Suite("Commands from standard input")
struct PublisherCommandTests {
    @Test("A camera is named by all words up to the format")
    func camera() throws {
        guard case .camera(let name, let request) = try PublisherCommand(" device HD Pro = C920  size=hd720 fps=12.5 ")
        else {
            Issue.record("it is a camera")
            return
        }
        #expect(name == "HD Pro = C920")
        #expect(request.dimensions == Dimensions(width: 1280, height: 720))
        #expect(request.frameRate == FrameRate(numerator: 12_500, denominator: 1000) && request.pixelFormat == nil)
        guard case .camera("", let format) = try PublisherCommand("format pixel-format=MJPG") else {
            Issue.record("it is a format")
            return
        }
        #expect(format == VideoFormatRequest(pixelFormat: .mjpeg))
    }

    // The advice for `control` shows a value in quotes, as a shell takes it.
    @Test("Names and values may stand in quotes", arguments: ["control line=\"50 Hz\"", "control \"line=50 Hz\""])
    func quotes(line: String) throws {
        guard case .controls(let controls) = try PublisherCommand(line) else {
            Issue.record("a control")
            return
        }
        #expect(controls.settings.map(\.name) == ["line"] && controls.settings.map(\.value) == ["50 Hz"])
    }

    @Test("Turns and controls are read")
    func others() throws {
        guard case .transform(.rotation(.clockwise270)) = try PublisherCommand("rotate 270"),
            case .controls(let controls) = try PublisherCommand("control power_line_frequency=50 Hz,gain=2")
        else {
            Issue.record("a turn and a control")
            return
        }
        #expect(controls.settings.map(\.name) == ["power_line_frequency", "gain"])
        #expect(controls.settings.map(\.value) == ["50 Hz", "2"])
    }

    @Test("Bitrates, priorities, preferences, crops and mirrorings are read, and what takes them back")
    func changes() throws {
        let lines = [
            "mute", "unmute", "bitrate 800k", "bitrate default", "min-bitrate 0.1M", "min-bitrate off", "priority high",
            "degradation resolution", "mirror on", "mirror off", "crop 320x240", "crop off",
        ]
        let size = Dimensions(width: 320, height: 240)
        let commands: [PublisherCommand] = [
            .enabled(false), .enabled(true), .encoding(.maxBitrate(.kilobitsPerSecond(800))),
            .encoding(.maxBitrate(nil)), .encoding(.minBitrate(.kilobitsPerSecond(100))), .encoding(.minBitrate(nil)),
            .encoding(.priority(.high)), .encoding(.degradation(.resolution)), .transform(.mirroring(true)),
            .transform(.mirroring(false)), .transform(.crop(size)), .transform(.crop(nil)),
        ]
        for (line, command) in zip(lines, commands) {
            #expect("\(try PublisherCommand(line))" == "\(command)", "\(line)")
        }
    }

    @Test(
        "The error for an unknown command lists the commands",
        arguments: [
            ("zoom 2", "device NAME"), ("device", "needs a camera"), ("device size=640x480", "needs a camera"),
            ("format", "format takes"), ("format 640x480", "format takes"), ("device C920 size=big", "give width"),
            ("rotate", "0, 90"), ("rotate 45", "0, 90"), ("rotate 90 90", "0, 90"),
            ("control brightness", "give a name"), ("mute now", "mute takes nothing else"),
            ("bitrate", "one value, or default"), ("bitrate 5", "from 10k to 40M, such as 800k or 2M, or default"),
            ("min-bitrate 1 2", "one value, or off"), ("min-bitrate none", "such as 800k or 2M, or off"),
            ("priority", "takes low, standard or high"), ("priority urgent", "takes low, standard or high"),
            ("degradation size", "takes balanced, framerate or resolution"), ("mirror", "mirror takes on or off"),
            ("mirror yes", "mirror takes on or off"), ("crop", "one value, or off"), ("crop big", ", or off"),
        ]
    )
    func mistakes(line: String, advice: String) {
        let error = #expect(throws: ValidationError.self) { try PublisherCommand(line) }
        #expect(error?.message.contains(advice) == true, "\(error?.message ?? "")")
    }
}

@Suite("The option for commands from standard input")
struct CommandsOptionTests {
    private func parse(_ options: [String]) throws {
        _ = try RoomClientCommand.parseAsRoot(["connect", "--room", "r", "--commands"] + options)
    }

    // It was for cameras only.
    @Test(
        "It goes with every source",
        arguments: ["camera", "screen", "pattern", "noise", "file:a.y4m", "vp8:a.ivf"]
    )
    func sources(source: String) throws {
        try parse(["--source", source])
    }

    @Test("Standard input cannot be the clip too", arguments: ["file:-", "vp8:-"])
    func standardInput(source: String) {
        let error = #expect(throws: (any Error).self) { try parse(["--source", source]) }
        #expect(error.map { RoomClientCommand.message(for: $0).contains("both need standard input") } == true)
    }
}
