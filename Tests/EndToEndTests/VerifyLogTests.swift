import Foundation
import MediaCore
import RoomKit
import TestSupport
import Testing

@Suite("room-client verify and the log beside a dump", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct VerifyLogTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test("A log with the largest and smallest numbers is judged, not a crash")
    func extremeNumbers() async throws {
        let base = try await recordDump(.ivf, in: directory)
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

    private func judge(_ dump: PatternDump, with entries: [FrameLogEntry]) async throws -> (Program.Ending, JSONObject)
    {
        var dump = dump
        dump.log = entries
        try dump.storeLog()
        let verified = try await verify(dump.path)
        return (verified.ending, try #require(verified.events.first))
    }

    // Numbers of two layers were compared with each other.
    @Test("Frames are counted in each simulcast layer, and another layer begins with a keyframe")
    func simulcastLayers() async throws {
        let dump = try PatternDump(in: directory, keyframes: [6, 12])
        let whole = dump.log
        var switched = whole
        for index in whole.indices {
            // The other layer's numbers and indices are lower, and go on while this one is received.
            let isOther = (6..<12).contains(index)
            switched[index].simulcastLayer = isOther ? 1 : 0
            if isOther {
                switched[index].number = UInt32(index - 6)
                switched[index].base = index - 6
            }
        }
        let (ending, good) = try await judge(dump, with: switched)
        #expect(ending == .exit(0), "\(good)")
        #expect(good.number("simulcastSwitches") == 2 && good.number("lost") == 0 && good.number("reordered") == 0)
        let layers = good.objects("simulcastLayers")
        #expect(layers.map { $0.number("simulcastLayer") } == [0, 1])
        #expect(layers.map { $0.number("frames") } == [Double(whole.count - 6), 6])
        // Without the keyframe it begins with, at least that is missing.
        var headless = switched
        headless[6].key = false
        #expect(try await judge(dump, with: headless).1.number("lost") == 1)
        // A frame that is missing within the other layer.
        var missing = switched
        for index in 9..<12 {
            missing[index].number += 1
            missing[index].base += 1
        }
        let (lossEnding, loss) = try await judge(dump, with: missing)
        #expect(lossEnding == .exit(65))
        #expect(loss.objects("simulcastLayers").map { $0.number("lost") } == [0, 1])
    }

    // Each frame of the relay's cache that had been received before the pause counted as reordered or doubled.
    @Test("A recording that was paused and goes on with frames that it has already is in order")
    func resumed() async throws {
        let dump = try PatternDump(in: directory, keyframes: [10])
        var entries = dump.log
        for index in 10..<entries.count {
            // The frames from the seventh on come again.
            entries[index].number = entries[6].number + UInt32(index - 10)
            entries[index].base = entries[6].base + index - 10
            entries[index].captured = entries[6].captured + 33_333 * Int64(index - 10)
            entries[index].catchUp = index < 14
        }
        let (ending, good) = try await judge(dump, with: entries)
        #expect(ending == .exit(0), "\(good)")
        #expect(good.number("reordered") == 0 && good.number("duplicated") == 0 && good.number("lost") == 0)
        // Within such a repetition the order counts.
        entries.swapAt(11, 12)
        #expect(try await judge(dump, with: entries).1.number("reordered") == 1)
        entries.swapAt(11, 12)
        entries[10].key = false
        #expect(try await judge(dump, with: entries).1.number("reordered") ?? 0 > 0)
    }

    @Test("Changes of the size, freezes and ages are in the result; what was not shown has none")
    func smoothness() async throws {
        let dump = try PatternDump(in: directory)
        var entries = dump.log
        let (_, smooth) = try await judge(dump, with: entries)
        #expect(smooth.number("freezeCount") == 0 && smooth.number("totalFreezesDuration") == 0)
        #expect(smooth.number("sizeChanges") == 0 && smooth.number("notShown") == 0)
        for index in entries.indices where index >= 10 {
            entries[index].decoded? += 500_000
            entries[index].width = 16
        }
        entries[12].shown = false
        entries[12].decoded = entries[12].captured + 9_000_000
        let (ending, frozen) = try await judge(dump, with: entries)
        #expect(ending == .exit(0))
        #expect(frozen.number("freezeCount") == 1 && frozen.number("sizeChanges") == 1)
        #expect(abs((frozen.number("totalFreezesDuration") ?? 0) - 0.533) < 0.001)
        #expect(frozen.number("notShown") == 1)
        #expect(frozen.object("latencyMs")?.number("max") == 510)
        let program = try Program("room-client", ["verify", dump.path])
        #expect(try await program.end() == .exit(0))
        #expect(program.text.contains(", size changes: 1, freezes: 1 (0.53 s)"), "\(program.text)")
    }

    @Test("A dump in whose log frames are missing, doubled or in disorder ends with 65")
    func faults() async throws {
        let base = try await recordDump(.webm, in: directory)
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

    // What the relay leaves out because it is late was reported as lost, and ended with 65.
    @Test("A gap that ends at a keyframe was left out on purpose; the same gap without a keyframe is a loss")
    func skipped() async throws {
        let dump = try PatternDump(in: directory, keyframes: [10])
        var entries = dump.log
        for index in entries.indices where index >= 10 {
            entries[index].number += 25
            entries[index].base += 25
        }
        let (ending, skipped) = try await judge(dump, with: entries)
        #expect(ending == .exit(0), "\(skipped)")
        #expect(skipped.number("skipped") == 25 && skipped.number("lost") == 0)
        #expect(skipped.objects("simulcastLayers").map { $0.number("skipped") } == [25])
        let program = try Program("room-client", ["verify", dump.path])
        #expect(try await program.end() == .exit(0))
        #expect(program.text.contains(" 0 lost, 25 left out, "), "\(program.text)")
        entries[10].key = false
        let (lossEnding, loss) = try await judge(dump, with: entries)
        #expect(lossEnding == .exit(65))
        #expect(loss.number("lost") == 25 && loss.number("skipped") == 0)
    }

    @Test("A log of a program that decodes nothing is judged by its numbers; freezes and ages are not known")
    func notDecoded() async throws {
        let dump = try PatternDump(in: directory)
        var entries = dump.log
        for index in entries.indices { entries[index].decoded = nil }
        let (ending, result) = try await judge(dump, with: entries)
        #expect(ending == .exit(0), "\(result)")
        #expect(result.number("notDecoded") == Double(entries.count) && result.number("notShown") == 0)
        for key in ["freezeCount", "totalFreezesDuration", "latencyMs", "clock", "clockErrorMs"] {
            #expect(result.fields[key] == .null, "\(key)")
        }
    }
}
