import FoundationEssentials
import Glibc
import MediaCore
import RoomKit
import TestSupport
import Testing

@Suite("room-client verify", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct VerifyTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    // The frames that a file lacked were nowhere counted, and had their latencies all the same.
    @Test(
        "A good dump, and one whose log is cut as a kill leaves it, are fine; one without frames of its log is not",
        arguments: [TrackRecorder.Format.webm, .ivf, .y4m]
    )
    func goodAndCut(format: TrackRecorder.Format) async throws {
        let base = try await recordDump(format, in: directory)
        let path = "\(base).\(format.rawValue)"
        let whole = try await verify(path)
        #expect(whole.ending == .exit(0), "\(whole.errors)")
        let frames = try #require(whole.events.first?.number("frames"))
        #expect(frames >= 20)
        #expect(whole.events.first?.number("lost") == 0)
        #expect(whole.events.first?.string("clock") == "same-host")
        #expect(whole.events.last?.string("clock") == "same-host")
        let file = try bytes(of: path)
        let log = "\(base).frames.jsonl"
        let lines = try text(of: log).split(separator: "\n").map { "\($0)\n" }
        #expect(Double(lines.count) == frames)
        // The frames that the log lacks at a kill, and one more.
        let endings: [(notLogged: Int, ending: Program.Ending)] = [(0, .exit(0)), (1, .exit(0)), (2, .exit(65))]
        for part in [0.9, 0.6] {
            try store(file.prefix(Int(Double(file.count) * part)), at: path)
            try store(Array(lines.joined().utf8), at: log)
            let surplus = try await verify(path)
            #expect(surplus.ending == .exit(65), "\(part)")
            let left = Int(try #require(surplus.events.first?.number("frames")))
            #expect(left > 2 && left < lines.count)
            #expect(surplus.events.map { $0.string("event") } == ["file", "failure", "summary"])
            for event in surplus.events where event.string("event") != "failure" {
                #expect(event.number("notInFile") == Double(lines.count - left))
            }
            for (notLogged, ending) in endings {
                // The last line is cut, too.
                let logged = lines.prefix(left - notLogged).joined() + lines[left].dropLast(9)
                try store(Array(logged.utf8), at: log)
                let cut = try await verify(path)
                #expect(cut.ending == ending, "\(part), \(notLogged): \(cut.errors)")
                #expect(cut.events.first?.number("notInLog") == Double(notLogged))
                #expect(cut.events.first?.number("notInFile") == 0)
            }
        }
    }

    // The size of the file's header was told: a track published as 3840x2160 is sent as 2560x1440.
    @Test("The size is that of the pictures, and the one as published is told beside it")
    func sizeOfPictures() async throws {
        let path = "\(try await recordDump(.ivf, in: directory)).ivf"
        let sent = try #require(try await verify(path).events.first)
        #expect(sent.number("width") == sent.number("publishedWidth"))
        var file = try bytes(of: path)
        // The header of IVF has the width at byte 12 and the height at byte 14.
        file.replaceSubrange(12..<16, with: [0, 15, 0x70, 8])
        try store(file, at: path)
        let other = try #require(try await verify(path).events.first)
        #expect(other.number("width") == sent.number("width") && other.number("height") == sent.number("height"))
        #expect(other.number("publishedWidth") == 3840 && other.number("publishedHeight") == 2160)
        let program = try Program("room-client", ["verify", path])
        #expect(try await program.end() == .exit(0))
        #expect(program.text.contains(" (published as 3840x2160), "), "\(program.text)")
    }

    @Test("A frame that is not decodable is named with its file")
    func undecodableFrame() async throws {
        let path = "\(try await recordDump(.ivf, in: directory)).ivf"
        var file = try bytes(of: path)
        // The first frame begins after the file's header of 32 bytes and its own of 12. In it, the start code of a
        // keyframe is at byte 3 (RFC 6386, section 9.1).
        file.replaceSubrange(47..<50, with: [0, 0, 0])
        try store(file, at: path)
        let program = try Program("room-client", ["verify", path])
        #expect(try await program.end() == .exit(65))
        #expect(program.errors.contains("\(path): frame 1 is not decodable"), "\(program.errors)")
    }

    @Test("Latencies are those of the frames in the file")
    func latenciesOfCutFile() async throws {
        let base = try await recordDump(.ivf, in: directory)
        let log = "\(base).frames.jsonl"
        var lines = try text(of: log).split(separator: "\n").map { "\($0)\n" }
        let last = try #require(FrameLogEntry.read(lines[lines.count - 1]).first)
        // An hour after it was captured.
        let decoded = try #require(last.decoded)
        let old = "\"decoded\":\(decoded)"
        lines[lines.count - 1].replace(old, with: "\"decoded\":\(decoded + 3_600_000_000)")
        try store(Array(lines.joined().utf8), at: log)
        let whole = try await verify("\(base).ivf")
        #expect(try #require(whole.events.first?.object("latencyMs")?.number("max")) > 3_600_000)
        let file = try bytes(of: "\(base).ivf")
        try store(file.dropLast(10), at: "\(base).ivf")
        let cut = try await verify("\(base).ivf")
        #expect(cut.ending == .exit(65))
        #expect(try #require(cut.events.first?.object("latencyMs")?.number("max")) < 3_600_000)
    }

    @Test("The report of missing frames says what is missing, and that of an age says by which clock")
    func words() async throws {
        let base = try await recordDump(.ivf, in: directory)
        let file = try bytes(of: "\(base).ivf")
        try store(file.dropLast(10), at: "\(base).ivf")
        let program = try Program("room-client", ["verify", "\(base).ivf"])
        #expect(try await program.end() == .exit(65))
        #expect(program.text.contains(", 1 of the log not in the file"), "\(program.text)")
        #expect(program.text.contains(" ms, same clock\n"), "\(program.text)")
    }

    @Test("A dump without a frame is no good dump, whatever its format")
    func noFrames() async throws {
        let ivf = try await recordDump(.ivf, in: directory)
        try store(bytes(of: "\(ivf).ivf").prefix(32), at: directory("begun.ivf"))
        try store(Array("YUV4MPEG2 W64 H48 F30:1 Ip C420jpeg\n".utf8), at: directory("begun.y4m"))
        for name in ["begun.ivf", "begun.y4m"] {
            let begun = try await verify(directory(name))
            #expect(begun.ending == .exit(65), "\(name): \(begun.errors)")
            let event = try #require(begun.events.first)
            #expect(event.number("frames") == 0 && event.fields["error"] == .null)
            for key in ["clock", "clockErrorMs", "latencyMs", "freezeCount"] {
                #expect(event.fields[key] == .null, "\(key)")
            }
            #expect(begun.events.last?.number("filesEmpty") == 1)
            let inWords = try Program("room-client", ["verify", directory(name)])
            #expect(try await inWords.end() == .exit(65))
            #expect(inWords.text.contains(" 0 frames, ") && !inWords.text.contains("barcode"), "\(inWords.text)")
            #expect(inWords.text.contains("files without a frame: 1"), "\(inWords.text)")
        }
    }

    // Opening the pipe waited for a writer, for ever.
    @Test("A pipe or a device in place of a dump or its log is refused, and not waited for")
    func pipes() async throws {
        #expect(mkfifo(directory("pipe.webm"), 0o600) == 0)
        #expect(symlink("/dev/zero", directory("zero.y4m")) == 0)
        for name in directory.names {
            let refused = try await verify(directory(name))
            #expect(refused.ending == .exit(64), "\(name): \(refused.errors)")
            #expect(refused.errors.contains("\(name) is a pipe or a device; store"), "\(refused.errors)")
        }
        let base = try await recordDump(.ivf, in: directory)
        #expect(unlink("\(base).frames.jsonl") == 0 && mkfifo("\(base).frames.jsonl", 0o600) == 0)
        let noLog = try await verify("\(base).ivf")
        #expect(noLog.ending == .exit(74))
        #expect(noLog.errors.contains("move it away to verify without it"), "\(noLog.errors)")
        let drawing = try Program("room-client", ["verify", "\(base).ivf", "--plot", directory("a.svg")])
        #expect(try await drawing.end() == .exit(74))
    }

    @Test("A dump that may not be read ends with 77, one that does not exist with 66")
    func forbidden() async throws {
        // Not even root may read it.
        let forbidden = "/proc/sys/net/ipv4/route/flush"
        let (ending, _, errors) = try await verify(forbidden)
        #expect(ending == .exit(77), "\(errors)")
        #expect(errors.contains("permission denied"), "\(errors)")
        #expect(symlink(forbidden, directory("dump.webm")) == 0)
        #expect(try await verify(directory.path).ending == .exit(77))
        let base = try await recordDump(.ivf, in: directory)
        #expect(rename("\(base).frames.jsonl", "\(base).moved") == 0)
        #expect(symlink(forbidden, "\(base).frames.jsonl") == 0)
        #expect(try await verify("\(base).ivf").ending == .exit(77))
        try store(Array("neither nor".utf8), at: directory("other.webm"))
        let damaged = try await verify(directory.path)
        #expect(damaged.ending == .exit(65), "content counts more")
        #expect(damaged.errors.contains("it is damaged, or another kind of file"), "\(damaged.errors)")
        #expect(symlink(directory("nowhere"), directory("gone.webm")) == 0)
        #expect(try await verify(directory("gone.webm")).ending == .exit(66))
    }

    @Test("A result that is lost ends with 74, whatever it was")
    func lostResult() async throws {
        let base = try await recordDump(.ivf, in: directory)
        let command = "exec \(Program.path(of: "room-client")) verify \(base).ivf > /dev/full"
        let program = try Program("sh", ["-c", command])
        #expect(try await program.end() == .exit(74))
        #expect(program.errors.contains("standard output"), "\(program.errors)")
    }

    @Test("A file that is damaged, empty or no dump ends with 65; one that does not exist with 66")
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
        #expect(all.events.count == directory.names.count + 2)
        #expect(all.events.last?.number("filesUnreadable") == Double(directory.names.count))
        let other = try TemporaryDirectory()
        let empty = try await verify(other.path)
        #expect(empty.ending == .exit(66))
        #expect(empty.events.map { $0.string("event") } == ["failure"])
        try store([1], at: other("readme.txt"))
        #expect(try await verify(other.path).ending == .exit(66))
        #expect(try await verify(other("missing.webm")).ending == .exit(66))
        #expect(try await verify(other("readme.txt")).ending == .exit(65))
    }

    @Test("A log, a picture or a folder of pictures in place of a dump is reported, and no result looks like a pass")
    func otherParts() async throws {
        try store([], at: directory("dump.frames.jsonl"))
        try store([1], at: directory("dump-000001.png"))
        try store(Array("garbage".utf8), at: directory("garbage.ivf"))
        for (name, code, words) in [
            ("dump.frames.jsonl", 64, "is the log beside a dump; name the dump"),
            ("dump-000001.png", 64, "PNG files cannot be checked"),
            ("garbage.ivf", 65, "it is damaged, or another kind of file"),
        ] {
            let (ending, events, errors) = try await verify(directory(name))
            #expect(ending == .exit(Int32(code)) && errors.contains(words), "\(errors)")
            #expect(events.map { $0.string("event") } == ["file", "failure", "summary"])
            let program = try Program("room-client", ["verify", directory(name)])
            _ = try await program.end()
            #expect(program.text == "1 file could not be read.\n")
        }
        #expect(unlink(directory("garbage.ivf")) == 0)
        let pictures = try await verify(directory.path)
        #expect(pictures.ending == .exit(66) && pictures.errors.contains("PNG files cannot be checked"))
    }
}

/// Some bytes that mean nothing.
private enum SeededBytesPrefix {
    static var bytes: [UInt8] {
        var random = SeededBytes(seed: 9)
        return random.next(500)
    }
}
