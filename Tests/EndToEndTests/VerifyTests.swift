import FoundationEssentials
import MediaCore
import RoomKit
import TestSupport
import Testing

@Suite("room-client verify", .timeLimit(.minutes(2)))
struct VerifyTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func verify(_ path: String) async throws -> (ending: Program.Ending, events: [JSONObject], errors: String) {
        let program = try Program("room-client", ["verify", path, "--json"])
        return (try await program.end(), try program.events(), program.errors)
    }

    /// Records a dump; its path without extension.
    private func record(_ format: TrackRecorder.Format) async throws -> String {
        let stage = try Stage()
        let viewer = try await stage.join("viewer")
        let author = try await stage.join("author") { $0.videoTracks = [makePattern()] }
        let track = try await viewer.subscribedTrack()
        let recorder = try TrackRecorder(track: track, directory: directory.path, recorderID: "x", format: format)
        try await eventually("frames are recorded") { recorder.statistics.framesWritten >= 20 }
        for member in [author, viewer] { await member.room.disconnect() }
        recorder.stop()
        let file = try #require(recorder.statistics.files.first)
        return String(file.dropLast(format.rawValue.count + 1))
    }

    @Test(
        "A good dump, and one that is cut anywhere behind its first frame, are fine",
        arguments: [TrackRecorder.Format.webm, .ivf, .y4m]
    )
    func goodAndCut(format: TrackRecorder.Format) async throws {
        let base = try await record(format)
        let path = "\(base).\(format.rawValue)"
        let whole = try await verify(path)
        #expect(whole.ending == .exit(0), "\(whole.errors)")
        let frames = try #require(whole.events.first?.number("frames"))
        #expect(frames >= 20)
        #expect(whole.events.first?.number("lost") == 0)
        let file = try bytes(of: path)
        for part in [0.9, 0.6] {
            try store(file.prefix(Int(Double(file.count) * part)), at: path)
            let cut = try await verify(path)
            #expect(cut.ending == .exit(0), "\(part): \(cut.errors)")
            let left = try #require(cut.events.first?.number("frames"))
            #expect(left > 0 && left < frames)
        }
    }

    @Test("What is damaged, empty or no dump ends with 65; what is not there with 66")
    func noDumps() async throws {
        try store([], at: directory("empty.webm"))
        try store(Array("no dump at all".utf8), at: directory("text.ivf"))
        try store([0x1A, 0x45, 0xDF, 0xA3] + SeededBytesPrefix.bytes, at: directory("damaged.webm"))
        try store(Array("DKIF".utf8) + SeededBytesPrefix.bytes, at: directory("damaged.ivf"))
        try store(Array("YUV4MPEG2 W0 H0\n".utf8), at: directory("none.y4m"))
        for name in directory.names {
            let (ending, events, errors) = try await verify(directory(name))
            #expect(ending == .exit(65), "\(name): \(errors)")
            #expect(errors.contains(name), "\(errors)")
            #expect(events.first?.string("error") != nil)
        }
        let all = try await verify(directory.path)
        #expect(all.ending == .exit(65))
        #expect(all.events.count == directory.names.count + 1)
        let other = try TemporaryDirectory()
        #expect(try await verify(other.path).ending == .exit(66))
        try store([1], at: other("readme.txt"))
        #expect(try await verify(other.path).ending == .exit(66))
        #expect(try await verify(other("missing.webm")).ending == .exit(66))
        #expect(try await verify(other("readme.txt")).ending == .exit(65))
    }

    @Test("A dump in whose log frames are missing, doubled or in disorder ends with 65")
    func faults() async throws {
        let base = try await record(.webm)
        let log = "\(base).frames.jsonl"
        let lines = try text(of: log).split(separator: "\n").map { "\($0)\n" }
        func check(_ lines: [String], _ key: String) async throws {
            try store(Array(lines.joined().utf8), at: log)
            let (ending, events, _) = try await verify("\(base).webm")
            #expect(ending == .exit(65), "\(key)")
            #expect(events.first?.number(key) ?? 0 > 0, "\(key)")
        }
        // A frame of layer 0, and one of layer 2.
        let base0 = try #require(lines.indices.dropFirst(4).first { lines[$0].contains("\"layer\":0") })
        var missing = lines
        missing.remove(at: base0)
        try await check(missing, "lost")
        try await check(Array(lines[...5] + lines[5...]), "duplicated")
        try await check([lines[0], lines[2], lines[1]] + lines[3...], "reordered")
        try store(Array("no log\n".utf8), at: log)
        #expect(try await verify("\(base).webm").ending == .exit(65))
    }
}

/// Some bytes that mean nothing.
private enum SeededBytesPrefix {
    static var bytes: [UInt8] {
        var random = SeededBytes(seed: 9)
        return random.next(500)
    }
}
