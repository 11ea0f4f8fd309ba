import Glibc
import RoomKit
import TestSupport
import Testing

@Suite("What room-client verify finds in dumps", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct VerifyFaultTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func words(of path: String) async throws -> String {
        let program = try Program("room-client", ["verify", path])
        _ = try await program.end()
        return program.text
    }

    // They counted as restarts, which are no fault, and what came after them as not sent.
    @Test("Pictures of long ago are out of order, with a log and without", arguments: ["dump.y4m", "dump.ivf"])
    func stale(name: String) async throws {
        let numbers = Array(500..<520) + [20, 21] + Array(520..<530)
        let dump = try PatternDump(name, in: directory, numbers: numbers)
        for isLogged in [true, false] {
            if !isLogged { try #require(unlink(dump.logPath) == 0) }
            let verified = try await verify(dump.path)
            #expect(verified.ending == .exit(65), "\(isLogged)")
            let result = try #require(verified.events.first)
            #expect(result.number("reordered") == 2 && result.number("notSent") == 0, "\(result)")
        }
    }

    // `connect --fps 0.5` sends repeats between its pictures.
    @Test("Repeats of a picture that stands still are not doubled; the same pictures without that word are")
    func repeats() async throws {
        var dump = try PatternDump(in: directory, numbers: [0, 1, 2, 2, 2, 3, 4, 4, 5])
        for index in [3, 4, 7] { dump.log[index].repeated = true }
        try dump.storeLog()
        let still = try await verify(dump.path)
        #expect(still.ending == .exit(0), "\(still.events)")
        #expect(still.events.first?.number("repeated") == 3 && still.events.first?.number("duplicated") == 0)
        for index in [3, 4, 7] { dump.log[index].repeated = false }
        try dump.storeLog()
        let doubled = try await verify(dump.path)
        #expect(doubled.ending == .exit(65) && doubled.events.first?.number("duplicated") == 3)
    }

    // They were said to be lost, so that the next frame could not be decoded, though it was.
    @Test("What a dump of raw pictures lacks is not recorded, and not lost")
    func notRecorded() async throws {
        let numbers = Array(0..<10) + Array(13..<24)
        var raw = try PatternDump("dump.y4m", in: directory, numbers: numbers)
        var compressed = try PatternDump("other.ivf", in: directory, numbers: numbers)
        for index in 10..<numbers.count {
            raw.log[index].number += 3
            raw.log[index].base += 3
            compressed.log[index].number += 3
            compressed.log[index].base += 3
        }
        try raw.storeLog()
        try compressed.storeLog()
        let verified = try await verify(raw.path)
        let result = try #require(verified.events.first)
        #expect(verified.ending == .exit(0), "\(result)")
        #expect(result.number("notRecorded") == 3 && result.number("lost") == 0 && result.number("notSent") == 0)
        #expect(result.objects("simulcastLayers").map { $0.number("notRecorded") } == [3])
        #expect(try await words(of: raw.path).contains(" 0 torn, 3 not recorded, "))
        let lost = try await verify(compressed.path)
        #expect(lost.ending == .exit(65))
        #expect(lost.events.first?.number("notRecorded") == 0 && lost.events.first?.number("lost") == 3)
    }

    // Nothing was said of what was not read, and without a log it was no fault.
    @Test("A file that is cut off says so; that is a fault if no log says what it lacks")
    func cutOff() async throws {
        for name in ["dump.ivf", "dump.webm", "dump.y4m"] {
            var dump = try PatternDump(name, in: directory)
            let content = try bytes(of: dump.path)
            let size = content.count
            let whole = try await verify(dump.path)
            #expect(whole.ending == .exit(0) && whole.events.first?.fields["unreadFrom"] == .null, "\(name)")
            #expect(whole.events.last?.number("filesCut") == 0)
            try store(bytes(of: dump.path).prefix(size * 2 / 3), at: dump.path)
            let frames = Int(try #require(try await verify(dump.path).events.first?.number("frames")))
            #expect((2..<dump.log.count).contains(frames), "\(name)")
            dump.log = Array(dump.log.prefix(frames))
            try dump.storeLog()
            for isLogged in [true, false] {
                if !isLogged { try #require(unlink(dump.logPath) == 0) }
                let cut = try await verify(dump.path)
                #expect(cut.ending == .exit(isLogged ? 0 : 65), "\(name)")
                let offset = Int(try #require(cut.events.first?.number("unreadFrom")))
                #expect((size / 3..<size * 2 / 3).contains(offset), "\(name)")
                // The frame that lacks its end begins there.
                try store(bytes(of: dump.path).prefix(offset), at: dump.path)
                let shortened = try await verify(dump.path)
                #expect(shortened.events.first?.fields["unreadFrom"] == .null, "\(name)")
                #expect(shortened.events.first?.number("frames") == Double(frames), "\(name)")
                try store(content.prefix(size * 2 / 3), at: dump.path)
                #expect(cut.events.last?.number("filesCut") == 1)
                let words = try await words(of: dump.path)
                #expect(words.contains(", cut off at byte \(offset) after \(frames) frames"), "\(words)")
                #expect(words.contains(", files not read to their end: 1"), "\(words)")
            }
        }
    }

    @Test("A length that reaches beyond the end of the file is no end of it")
    func falseLength() async throws {
        let dump = try PatternDump(in: directory)
        var file = try bytes(of: dump.path)
        // A frame has a header of 12 bytes, which begins with its length.
        let start = 32 + dump.log.prefix(10).map { $0.bytes + 12 }.reduce(0, +)
        file.replaceSubrange(start..<start + 3, with: [0xFF, 0xFF, 0xFF])
        try store(file, at: dump.path)
        let logged = try await verify(dump.path)
        #expect(logged.ending == .exit(65) && logged.events.first?.number("notInFile") == 14)
        try #require(unlink(dump.logPath) == 0)
        let verified = try await verify(dump.path)
        #expect(verified.ending == .exit(65))
        #expect(verified.events.first?.number("unreadFrom") == Double(start))
        #expect(verified.events.first?.number("frames") == 10)
    }

    // The second file was passed over in silence.
    @Test("A file that was appended to another one is a fault")
    func appended() async throws {
        let dump = try PatternDump("dump.webm", in: directory)
        let file = try bytes(of: dump.path)
        try store(file + file, at: dump.path)
        let verified = try await verify(dump.path)
        #expect(verified.ending == .exit(65))
        #expect(verified.events.first?.number("unreadFrom") == Double(file.count))
        #expect(verified.events.first?.number("frames") == Double(dump.log.count))
        let words = try await words(of: dump.path)
        #expect(words.contains(", another file begins at byte \(file.count) and was not read"), "\(words)")
    }

    // Only the number of frames was compared.
    @Test("A file with as many frames as its log, but other ones, is a fault", arguments: ["dump.ivf", "dump.webm"])
    func otherFrames(name: String) async throws {
        let dump = try PatternDump(name, in: directory)
        #expect(try await verify(dump.path).ending == .exit(0))
        let changes: [(inout FrameLogEntry) -> Void] = [{ $0.bytes += 1 }, { $0.key = true }]
        for change in changes {
            var changed = dump
            change(&changed.log[11])
            try changed.storeLog()
            let verified = try await verify(dump.path)
            #expect(verified.ending == .exit(65))
            #expect(verified.events.first?.number("notAsLogged") == 1)
            #expect(verified.events.last?.number("notAsLogged") == 1)
            let words = try await words(of: dump.path)
            #expect(words.contains(", 1 not as in the log, first frame 12"), "\(words)")
            #expect(words.contains(", 1 not as in their logs"), "\(words)")
        }
    }

    @Test("A log whose lines end as on Windows is read, and the ending of a dump's name may be in capitals")
    func foreignNames() async throws {
        let dump = try PatternDump("DUMP.Y4M", in: directory)
        try dump.storeLog(lineEnd: "\r\n")
        for path in [dump.path, directory.path] {
            let verified = try await verify(path)
            #expect(verified.ending == .exit(0), "\(verified.errors)")
            #expect(verified.events.first?.number("frames") == Double(dump.log.count))
            #expect(verified.events.first?.number("notInLog") == 0)
        }
    }
}
