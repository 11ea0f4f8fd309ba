import Glibc
import MediaCore
import RoomKit
import TestSupport
import TestTools
import Testing
import Threading

/// Keeps the size of the last picture.
private final class LastSize: VideoRenderer {
    private let last = Monitor<Dimensions?>(nil)

    func render(_ frame: VideoFrame) {
        last.withLock { $0 = frame.dimensions }
    }

    func shows(_ width: Int, _ height: Int) async throws {
        let size = Dimensions(width: width, height: height)
        try await eventually("\(size) is shown") { last.withLock { $0 } == size }
    }
}

@Suite("Commands to connect, whatever the source", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct ProgramCommandTests {
    private let directory: TemporaryDirectory
    private let stage: Stage
    private let pipe: String

    init() throws {
        directory = try TemporaryDirectory()
        stage = try Stage()
        pipe = directory("commands")
        try #require(mkfifo(pipe, 0o600) == 0)
    }

    /// Starts `room-client connect`, which obeys what comes through the pipe.
    private func publish(_ options: [String]) throws -> Program {
        let room = ["connect", "--url", stage.url, "--room", "stage", "--commands", "--json", "--verbose"]
        // The shell opens the pipe for writing too, so that there is no end of the input.
        let command = [Program.path(of: "room-client")] + room + options
        return try Program("sh", ["-c", "exec \"$@\" <>\"$0\"", pipe] + command)
    }

    /// Gives a command.
    ///
    /// - Returns: What is wrong with it; `nil` if it took effect.
    private func give(_ line: String, to publisher: Program) async throws -> String? {
        try store("\(line)\n".utf8, at: pipe)
        return try await eventual("\"\(line)\" is answered") {
            try publisher.events().last { $0.string("event") == "command" && $0.string("command") == line }
        }
        .string("error")
    }

    @Test("A pattern is muted, encoded in another way, cropped, turned and mirrored, and nobody subscribes again")
    func pattern() async throws {
        let viewer = try await stage.join("viewer")
        // On a machine that is busy with other tests, the size is not what the CPU takes.
        let options = ["--size", "320x240", "--simulcast", "off", "--degradation", "resolution"]
        let publisher = try publish(["--source", "pattern"] + options)
        let track = try await viewer.subscribedTrack()
        let size = LastSize()
        track.addRenderer(size)
        try await size.shows(320, 240)
        for line in ["min-bitrate 50k", "bitrate 100k", "priority low"] {
            #expect(try await give(line, to: publisher) == nil)
        }
        try await eventually("the encoder aims at the lower bitrate") {
            let layer = try publisher.events().last { $0.string("event") == "status" }?.objects("layers").first
            return layer?.number("targetBitrate").map { $0 <= 100_000 } ?? false
        }
        let excess = try await give("min-bitrate 200k", to: publisher)
        #expect(excess == "the lowest bitrate of 200 kbit/s would be more than the highest of 100 kbit/s")
        for line in ["bitrate default", "min-bitrate off", "degradation resolution"] {
            #expect(try await give(line, to: publisher) == nil)
        }
        #expect(try await give("rotate 90", to: publisher) == nil)
        try await size.shows(240, 320)
        #expect(try await give("crop 160x120", to: publisher) == nil)
        try await size.shows(120, 160)
        #expect(try await give("mirror on", to: publisher) == nil)
        #expect(try await give("crop off", to: publisher) == nil)
        #expect(try await give("rotate 0", to: publisher) == nil)
        try await size.shows(320, 240)
        #expect(try await give("mute", to: publisher) == nil)
        try await eventually("the track is disabled") { !track.isEnabled }
        #expect(try await give("unmute", to: publisher) == nil)
        try await eventually("the track is enabled") { track.isEnabled }
        for line in ["device 0", "format fps=5", "control brightness=1"] {
            let verb = line.prefix { $0 != " " }
            #expect(try await give(line, to: publisher) == "\(verb) is for cameras, and this source is none")
        }
        #expect(track.isSubscribed, "it is the same track")
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
        await viewer.room.disconnect()
    }

    // The options were refused, although the commands did the same.
    @Test("Options crop and turn a pattern from the start, and commands turn it afterwards", arguments: [false, true])
    func optionsOfEverySource(isCommanded: Bool) async throws {
        let viewer = try await stage.join("viewer")
        let turn = ["--crop", "160x120", "--rotate", "90", "--mirror"]
        let arguments = ["--source", "pattern", "--size", "320x240", "--degradation", "resolution"] + turn
        let room = ["connect", "--url", stage.url, "--room", "stage", "--json"]
        let publisher = isCommanded ? try publish(arguments) : try Program("room-client", room + arguments)
        let size = LastSize()
        try await viewer.subscribedTrack().addRenderer(size)
        try await size.shows(120, 160)
        if isCommanded {
            #expect(try await give("rotate 0", to: publisher) == nil)
            try await size.shows(160, 120)
        }
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
        await viewer.room.disconnect()
    }

    @Test("VP8 frames are turned by their viewers, and what would need pictures is refused")
    func relayed() async throws {
        let clip = try await EncodedClip(directory("clip.ivf"), frames: 45, keyframeInterval: 15)
        let viewer = try await stage.join("viewer")
        let publisher = try publish(["--source", "vp8:\(clip.path)", "--loop"])
        let size = LastSize()
        try await viewer.subscribedTrack().addRenderer(size)
        try await size.shows(320, 180)
        for line in ["bitrate 800k", "min-bitrate 20k", "degradation balanced", "crop 64x64"] {
            let verb = line.prefix { $0 != " " }
            let problem = try await give(line, to: publisher)
            #expect(problem == "\(verb) needs pictures; frames of vp8: are sent as they are")
        }
        #expect(try await give("priority high", to: publisher) == nil)
        #expect(try await give("rotate 270", to: publisher) == nil)
        try await size.shows(180, 320)
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
        await viewer.room.disconnect()
    }
}
