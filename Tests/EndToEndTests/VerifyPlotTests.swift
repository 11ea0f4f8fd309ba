import FoundationEssentials
import Glibc
import RoomKit
import TestSupport
import Testing

@Suite("room-client verify --plot", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct VerifyPlotTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test("--plot draws the frame logs of all dumps, and replaces a drawing")
    func plot() async throws {
        let base = try await recordDump(.webm, in: directory)
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
        let base = try await recordDump(.ivf, in: directory)
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

    // Dumps of two sessions were a dot each at the two ends of an axis of days.
    @Test("Dumps that were recorded at the same time share an axis; the days between others are left out")
    func sessions() async throws {
        _ = try PatternDump("a.ivf", in: directory)
        let original = try PatternDump("b.ivf", in: directory)
        func drawing(later microseconds: Int64) async throws -> String {
            var dump = original
            for index in dump.log.indices {
                dump.log[index].captured += microseconds
                dump.log[index].received += microseconds
                dump.log[index].decoded? += microseconds
            }
            try dump.storeLog()
            let program = try Program("room-client", ["verify", directory.path, "--plot", directory("out.svg")])
            #expect(try await program.end() == .exit(0), "\(program.errors)")
            return try text(of: directory("out.svg"))
        }
        let day: Int64 = 86_400_000_000
        #expect(try await drawing(later: day) == drawing(later: 2 * day))
        #expect(try await drawing(later: 100_000) != drawing(later: 200_000))
    }

    // One damaged log of many kept all of them from being drawn and checked.
    @Test("A dump whose log is damaged is left out of the drawing, and named")
    func oneDamagedLog() async throws {
        let base = try await recordDump(.ivf, in: directory)
        try store(bytes(of: "\(base).ivf"), at: directory("a.ivf"))
        try store(Array("{}\n".utf8), at: directory("a.frames.jsonl"))
        let program = try Program("room-client", ["verify", directory.path, "--plot", directory("out.svg"), "--json"])
        #expect(try await program.end() == .exit(65))
        #expect(program.errors.contains("a.frames.jsonl"), "\(program.errors)")
        #expect(try program.events().map { $0.string("event") } == ["plot", "file", "file", "failure", "summary"])
        let name = try #require(base.split(separator: "/").last)
        let svg = try text(of: directory("out.svg"))
        #expect(svg.contains("\(name).ivf") && !svg.contains(">a.ivf"))
    }

    @Test("A drawing replaces no dump")
    func plotOverDump() async throws {
        let base = try await recordDump(.ivf, in: directory)
        let program = try Program("room-client", ["verify", "\(base).ivf", "--plot", "\(base).ivf"])
        #expect(try await program.end() == .exit(64))
        #expect(program.errors.contains("ends in .svg"), "\(program.errors)")
        #expect(try await verify("\(base).ivf").ending == .exit(0))
    }
}
