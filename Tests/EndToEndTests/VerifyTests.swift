import FoundationEssentials
import Glibc
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

    // The frames that a file lacked were nowhere counted, and had their latencies all the same.
    @Test(
        "A good dump, and one whose log is cut as a kill leaves it, are fine; one without frames of its log is not",
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

    @Test("--plot draws the frame logs of all dumps, and replaces a drawing")
    func plot() async throws {
        let base = try await record(.webm)
        let drawing = "\(directory.path)/out.svg"
        try store(Array("old".utf8), at: drawing)
        let program = try Program("room-client", ["verify", directory.path, "--plot", drawing, "--json"])
        let ending = try await program.end()
        #expect(ending == .exit(0), "\(program.errors)")
        #expect(try program.events().first?.string("event") == "plot")
        let svg = try text(of: drawing)
        let name = try #require(base.split(separator: "/").last)
        for part in ["<svg ", "\(name).webm", "Frame age, ms", "Rate, kbit/s", "Shown frames, 1/s", "class=\"curve\""] {
            #expect(svg.contains(part), "\(part)")
        }
    }

    @Test("--plot says when there is nothing to draw, and replaces no directory")
    func nothingToPlot() async throws {
        let base = try await record(.ivf)
        #expect(mkdir(directory("d.svg"), 0o700) == 0)
        let nowhere = try Program("room-client", ["verify", "\(base).ivf", "--plot", directory("d.svg")])
        #expect(try await nowhere.end() == .exit(74))
        #expect(nowhere.errors.contains("it is a directory"), "\(nowhere.errors)")
        try store([UInt8](), at: "\(base).frames.jsonl")
        let nothing = try Program("room-client", ["verify", "\(base).ivf", "--plot", "\(directory.path)/a.svg"])
        #expect(try await nothing.end() == .exit(66))
        #expect(nothing.errors.contains("nothing to draw"), "\(nothing.errors)")
        try store(Array("{}\n".utf8), at: "\(base).frames.jsonl")
        let foreign = try Program("room-client", ["verify", "\(base).ivf", "--plot", "\(directory.path)/a.svg"])
        #expect(try await foreign.end() == .exit(65))
    }

    @Test("A drawing replaces no dump")
    func plotOverDump() async throws {
        let base = try await record(.ivf)
        let program = try Program("room-client", ["verify", "\(base).ivf", "--plot", "\(base).ivf"])
        #expect(try await program.end() == .exit(64))
        #expect(program.errors.contains("ends in .svg"), "\(program.errors)")
        #expect(try await verify("\(base).ivf").ending == .exit(0))
    }

    @Test("Latencies are those of the frames in the file")
    func latenciesOfCutFile() async throws {
        let base = try await record(.ivf)
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

    @Test("A log with the largest and smallest numbers is judged, not a crash")
    func extremeNumbers() async throws {
        let base = try await record(.ivf)
        let log = "\(base).frames.jsonl"
        let lines = try text(of: log).split(separator: "\n").map { "\($0)\n" }
        var extremes: [String] = []
        for (index, line) in lines.enumerated() {
            let entry = try #require(FrameLogEntry.read(line).first)
            var extreme = line
            extreme.replace("\"number\":\(entry.number),", with: "\"number\":\(index % 3 == 0 ? 0 : UInt32.max),")
            extreme.replace("\"base\":\(entry.base),", with: "\"base\":\(index % 2 == 0 ? Int.min : Int.max),")
            extremes.append(extreme)
        }
        try store(Array(extremes.joined().utf8), at: log)
        let verified = try await verify("\(base).ivf")
        #expect(verified.ending == .exit(65))
        #expect(try #require(verified.events.first?.number("duplicated")) > 0)
    }

    @Test("Whoever reads that frames are missing, or an age, reads of what, and by which clock")
    func words() async throws {
        let base = try await record(.ivf)
        let file = try bytes(of: "\(base).ivf")
        try store(file.dropLast(10), at: "\(base).ivf")
        let program = try Program("room-client", ["verify", "\(base).ivf"])
        #expect(try await program.end() == .exit(65))
        #expect(program.text.contains(", 1 of the log not in the file"), "\(program.text)")
        #expect(program.text.contains(" ms, same clock\n"), "\(program.text)")
        // The header alone.
        try store(file.prefix(32), at: directory("begun.ivf"))
        let begun = try Program("room-client", ["verify", directory("begun.ivf"), "--json"])
        #expect(try await begun.end() == .exit(0))
        let event = try #require(try begun.events().first)
        for key in ["clock", "clockErrorMs", "latencyMs"] { #expect(event.fields[key] == .null, "\(key)") }
        let inWords = try Program("room-client", ["verify", directory("begun.ivf")])
        #expect(try await inWords.end() == .exit(0))
        #expect(inWords.text.contains(" 0 frames, ") && !inWords.text.contains("barcode"), "\(inWords.text)")
    }

    @Test("What may not be read ends with 77, what is not there with 66")
    func forbidden() async throws {
        // Not even root may read it.
        let forbidden = "/proc/sys/net/ipv4/route/flush"
        let (ending, _, errors) = try await verify(forbidden)
        #expect(ending == .exit(77), "\(errors)")
        #expect(errors.contains("permission denied"), "\(errors)")
        #expect(symlink(forbidden, directory("dump.webm")) == 0)
        #expect(try await verify(directory.path).ending == .exit(77))
        let base = try await record(.ivf)
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
        let base = try await record(.ivf)
        let command = "exec \(Program.path(of: "room-client")) verify \(base).ivf > /dev/full"
        let program = try Program("sh", ["-c", command])
        #expect(try await program.end() == .exit(74))
        #expect(program.errors.contains("standard output"), "\(program.errors)")
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

    @Test("Who names a log, a picture or a folder of pictures is told so, and no result looks like a pass")
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

    /// The lines of the log beside a dump, with even times, of which nothing was shown late.
    private func evenLog(_ base: String) throws -> [FrameLogEntry] {
        var entries = try FrameLogEntry.read(text(of: "\(base).frames.jsonl"))
        for index in entries.indices {
            entries[index].captured = 1_000_000 + 33_333 * Int64(index)
            entries[index].decoded = entries[index].captured + 10_000
            entries[index].catchUp = false
            entries[index].shown = true
            entries[index].clock = "estimated"
        }
        return entries
    }

    private func verify(_ base: String, with entries: [FrameLogEntry]) async throws -> (Program.Ending, JSONObject) {
        let encoder = JSONEncoder()
        let lines = try entries.map { String(decoding: try encoder.encode($0), as: UTF8.self) + "\n" }
        try store(Array(lines.joined().utf8), at: "\(base).frames.jsonl")
        let verified = try await verify("\(base).ivf")
        return (verified.ending, try #require(verified.events.first))
    }

    // Numbers of two layers were compared with each other.
    @Test("Frames are counted in each simulcast layer, and another layer begins with a keyframe")
    func simulcastLayers() async throws {
        let base = try await record(.ivf)
        let whole = try evenLog(base)
        var switched = whole
        for index in whole.indices {
            // The other layer's numbers and indices are lower, and go on while this one is received.
            let isOther = (6..<12).contains(index)
            switched[index].simulcastLayer = isOther ? 1 : 0
            if isOther {
                switched[index].number = UInt32(index - 6)
                switched[index].base = index - 6
                switched[index].layer = 0
            }
            if index == 6 || index == 12 { switched[index].key = true }
        }
        let (ending, good) = try await verify(base, with: switched)
        #expect(ending == .exit(0), "\(good)")
        #expect(good.number("simulcastSwitches") == 2 && good.number("lost") == 0 && good.number("reordered") == 0)
        let layers = good.objects("simulcastLayers")
        #expect(layers.map { $0.number("simulcastLayer") } == [0, 1])
        #expect(layers.map { $0.number("frames") } == [Double(whole.count - 6), 6])
        // Without the keyframe it begins with, at least that is missing.
        var headless = switched
        headless[6].key = false
        #expect(try await verify(base, with: headless).0 == .exit(65))
        // A frame that is missing within the other layer.
        var missing = switched
        for index in 9..<12 {
            missing[index].number += 1
            missing[index].base += 1
        }
        let (lossEnding, loss) = try await verify(base, with: missing)
        #expect(lossEnding == .exit(65))
        #expect(loss.objects("simulcastLayers").map { $0.number("lost") } == [0, 1])
    }

    @Test("Changes of the size, freezes and ages are in the result; what was not shown has none")
    func smoothness() async throws {
        let base = try await record(.ivf)
        var entries = try evenLog(base)
        let (_, smooth) = try await verify(base, with: entries)
        #expect(smooth.number("freezeCount") == 0 && smooth.number("totalFreezesDuration") == 0)
        #expect(smooth.number("sizeChanges") == 0 && smooth.number("notShown") == 0)
        for index in entries.indices where index >= 10 {
            entries[index].decoded? += 500_000
            entries[index].width = 16
        }
        entries[12].shown = false
        entries[12].decoded = entries[12].captured + 9_000_000
        let (ending, frozen) = try await verify(base, with: entries)
        #expect(ending == .exit(0))
        #expect(frozen.number("freezeCount") == 1 && frozen.number("sizeChanges") == 1)
        #expect(abs((frozen.number("totalFreezesDuration") ?? 0) - 0.533) < 0.001)
        #expect(frozen.number("notShown") == 1)
        #expect(frozen.object("latencyMs")?.number("max") == 510)
        let program = try Program("room-client", ["verify", "\(base).ivf"])
        #expect(try await program.end() == .exit(0))
        #expect(program.text.contains(", size changes: 1, freezes: 1 (0.53 s)"), "\(program.text)")
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
        let damaged = try await verify("\(base).webm")
        #expect(damaged.ending == .exit(65))
        #expect(damaged.errors.contains("Cannot read \(log): "), "\(damaged.errors)")
    }
}

/// Some bytes that mean nothing.
private enum SeededBytesPrefix {
    static var bytes: [UInt8] {
        var random = SeededBytes(seed: 9)
        return random.next(500)
    }
}
