import Glibc
import RoomKit
import TestSupport
import Testing

@Suite("Dumps of the programs", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct ProgramDumpTests {
    let server: ServerProgram
    let directory: TemporaryDirectory

    init() async throws {
        server = try await ServerProgram()
        directory = try TemporaryDirectory()
    }

    @Test("A subscriber that is killed leaves a dump that plays up to then", arguments: ["webm", "ivf", "y4m"])
    func killed(format: String) async throws {
        let publisher = try await server.publisher()
        let subscriber = try await server.subscriber(["--dump", directory.path, "--format", format])
        let dump = try await recorded(15, in: directory.path)
        #expect(try await end([subscriber], with: SIGKILL) == [.signal(SIGKILL)])
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
        let (ending, events, _) = try await verify("\(dump).\(format)")
        #expect(ending == .exit(0), "\(events)")
        #expect(try #require(events.last).number("frames") ?? 0 >= 15)
        let player =
            format == "ivf"
            ? try Program("vpxdec", ["--md5", "\(dump).ivf"])
            : try Program(
                "ffprobe",
                ["-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames", "\(dump).\(format)"]
            )
        #expect(try await player.end() == .exit(0), "\(player.errors)")
        if format != "ivf" {
            let count = Int(player.text.filter(\.isNumber)) ?? 0
            #expect(count >= 15, "\(player.text) \(player.errors)")
        }
    }

    // The dump went on into files that nobody could ever open, and ended with 0.
    @Test("A subscriber whose dump is removed says so at once, and ends with 74", arguments: ["webm", "ivf", "y4m"])
    func removed(format: String) async throws {
        let publisher = try await server.publisher()
        let subscriber = try await server.subscriber(["--dump", directory("dump"), "--format", format])
        _ = try await recorded(8, in: directory("dump"))
        for name in fileNames(in: directory("dump")) { unlink("\(directory("dump"))/\(name)") }
        try #require(rmdir(directory("dump")) == 0)
        #expect(try await subscriber.end() == .exit(74))
        #expect(subscriber.errors.contains("was removed meanwhile"), "\(subscriber.errors)")
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
    }

    // It was said when the program ended, which may be an hour later.
    @Test("A snapshot that cannot be written is reported while the program runs, and once")
    func lostSnapshot() async throws {
        try #require(mkdir(directory("pictures"), 0o700) == 0)
        let path = directory("pictures/now.png")
        let subscriber = try server.client("subscribe", ["--snapshot", path])
        try await subscriber.says("Nobody publishes")
        try #require(rmdir(directory("pictures")) == 0)
        let publisher = try await server.publisher()
        try await subscriber.complains("\(path): its directory does not exist")
        #expect(subscriber.isRunning)
        #expect(try await end([subscriber, publisher], with: SIGINT) == [.exit(66), .exit(0)])
        #expect(subscriber.errors.ranges(of: path).count == 1, "\(subscriber.errors)")
    }

    // Each track that had ended kept a thread and two descriptors.
    @Test("Tracks that have ended leave no threads and descriptors behind in a subscriber that dumps them")
    func endedTracks() async throws {
        let staying = try await server.publisher(["--size", "160x90", "--identity", "staying"])
        let subscriber = try await server.subscriber(["--dump", directory.path, "--json"])
        let process = "/proc/\(subscriber.identifier)"
        var before = (threads: 0, descriptors: 0)
        let rounds = 8
        for round in 1...rounds {
            let publisher = try await server.publisher(["--size", "160x90", "--identity", "robot-\(round)"])
            try await eventually("its dump begins") {
                fileNames(in: directory.path).contains { $0.hasPrefix("robot-\(round)-") }
            }
            #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
            try await eventually("it ends") { subscriber.text.ranges(of: "\"recordingEnded\"").count == round }
            if round == 2 {
                before = (fileNames(in: "\(process)/task").count, fileNames(in: "\(process)/fd").count)
            }
        }
        #expect(before.threads > 0 && before.descriptors > 0)
        // The runtime may have made another thread of its own for each core.
        try await eventually("threads and descriptors are given back") {
            fileNames(in: "\(process)/task").count < before.threads + rounds - 2
                && fileNames(in: "\(process)/fd").count <= before.descriptors
        }
        #expect(try await end([subscriber, staying], with: SIGINT) == [.exit(0), .exit(0)])
    }

    @Test("All formats of dumps are written", arguments: TrackRecorder.Format.allCases)
    func formats(format: TrackRecorder.Format) async throws {
        let publisher = try await server.publisher(["--size", "160x90", "--identity", "robot"])
        let subscriber = try await server.subscriber(["--dump", directory("a/b"), "--format", format.rawValue])
        let dump = try await recorded(8, in: directory("a/b"))
        #expect(try await end([subscriber, publisher], with: SIGINT) == [.exit(0), .exit(0)])
        let names = fileNames(in: directory("a/b"))
        if format == .png {
            let pictures = names.filter { $0.hasSuffix(".png") }.sorted()
            #expect(pictures.count >= 8)
            // Only the first one was named.
            let last = "\(directory("a/b"))/\(try #require(pictures.last))"
            let words = "-> \(dump)-000001.png to \(last) (\(pictures.count) files)"
            #expect(subscriber.text.contains(words), "\(subscriber.text)")
            let first = "\(dump)-000001.png"
            let player = try Program(
                "ffprobe",
                ["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", first]
            )
            #expect(try await player.end() == .exit(0))
            #expect(player.text == "160,90\n")
        } else {
            #expect(names.contains { $0.hasPrefix("robot-pattern-PA_") && $0.hasSuffix(".\(format.rawValue)") })
            let (ending, events, _) = try await verify("\(dump).\(format.rawValue)")
            #expect(ending == .exit(0))
            #expect(events.first?.number("unreadable") == 0)
        }
    }

    @Test(
        "Names of any kind stay in the dump's directory, and their files can be verified",
        arguments: [
            "../../up", "/etc/x", "..", ".", "a/\u{301}b", "-rf", "a b", "\u{202E}x",
            String(repeating: "n", count: 128), String(repeating: "é", count: 64),
        ]
    )
    func names(name: String) async throws {
        let inner = directory("inner")
        let publisher = try await server.publisher(["--identity=\(name)", "--track-name=\(name)"])
        let subscriber = try await server.subscriber(["--dump", inner])
        let dump = try await recorded(3, in: inner)
        #expect(try await end([subscriber, publisher], with: SIGINT) == [.exit(0), .exit(0)])
        #expect(subscriber.errors == "")
        #expect(directory.names == ["inner"])
        #expect(fileNames(in: inner).count == 2)
        #expect(fileNames(in: inner).allSatisfy { !$0.hasPrefix(".") && $0.utf8.count <= 255 })
        #expect(try await verify("\(dump).webm").ending == .exit(0))
    }

    @Test("Only what is asked for by name is received")
    func selection() async throws {
        let publishers = [
            try await server.publisher(["--identity", "one", "--track-name", "left"]),
            try await server.publisher(["--identity", "two", "--track-name", "left"]),
        ]
        let subscriber = try await server.subscriber([
            "--participant", "two", "--track", "left", "--dump", directory.path, "--json",
        ])
        _ = try await recorded(5, in: directory.path)
        #expect(try await end([subscriber] + publishers, with: SIGINT) == [.exit(0), .exit(0), .exit(0)])
        let tracks = try #require(try subscriber.events().last).objects("tracks")
        #expect(tracks.map { $0.string("participant") } == ["two"])
        #expect(publishers[0].text.contains(" 0 encoded"), "\(publishers[0].text)")
    }

    @Test("Closing a program's output early does not stop its work", arguments: ["", "--json"])
    func closedOutput(option: String) async throws {
        let options = option.isEmpty ? [] : [option]
        let publisher = try server.client(
            "connect",
            ["--source", "pattern", "--size", "320x180"] + options,
            output: .closed
        )
        let subscriber = try server.client("subscribe", ["--dump", directory.path] + options, output: .closed)
        let dump = try await recorded(10, in: directory.path)
        #expect(try await end([subscriber, publisher], with: SIGINT) == [.exit(0), .exit(0)])
        #expect(try DumpReading("\(dump).webm").faults == [])
    }

    // It went on for ever, as in: room-client subscribe --room r --json | head -1
    @Test("A subscriber that only writes lines ends with their reader", arguments: [[], ["--json", "--verbose"]])
    func closedLines(options: [String]) async throws {
        let publisher = try await server.publisher()
        let subscriber = try server.client("subscribe", options, output: .closed)
        #expect(try await subscriber.end() == .exit(0), "\(subscriber.errors)")
        #expect(subscriber.errors == "")
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
    }

    // All threads of tasks could wait for the reader: nothing was recorded, and neither the time nor a signal ended it.
    @Test("A program whose output nobody reads records all the same, and ends in time", arguments: [false, true])
    func unreadOutput(isSignalled: Bool) async throws {
        let time = isSignalled ? [] : ["--duration", "4"]
        let subscriber = try server.client(
            "subscribe",
            ["--json", "--status-interval", "0.1", "--verbose", "--dump", directory.path] + time,
            output: .unread
        )
        // Its output is full before there is a track.
        for number in 0..<20 {
            let visitor = try server.client("subscribe", ["--identity", "visitor-\(number)", "--duration", "0.01"])
            #expect(try await visitor.end() == .exit(0))
        }
        let publisher = isSignalled ? try await server.publisher() : nil
        if isSignalled {
            _ = try await recorded(10, in: directory.path)
            subscriber.send(SIGTERM)
        }
        #expect(try await subscriber.end() == .exit(74))
        #expect(subscriber.errors.contains("standard output: nobody read the last lines"), "\(subscriber.errors)")
        if let publisher { #expect(try await end([publisher], with: SIGINT) == [.exit(0)]) }
    }

    // The error came only at the end, behind the summary, and nobody looked before.
    @Test(
        "A full disk under the lines is said at once, and a failure before the summary once there is room again",
        .enabled(if: canMount, "only root can mount a small file system")
    )
    func fullDiskForLines() async throws {
        let small = try SmallDisk(at: directory("small"), bytes: 256 << 10)
        try store([UInt8](repeating: 0, count: 252 << 10), at: "\(small.path)/filler")
        let publisher = try await server.publisher()
        let options = "--room stage --url \(server.url) --json --status-interval 0.1"
        let script = "exec \"$0\" subscribe \(options) >\(small.path)/log.json"
        let subscriber = try Program("sh", ["-c", script, Program.path(of: "room-client")])
        try await subscriber.complains("standard output: ")
        #expect(subscriber.isRunning)
        try #require(unlink("\(small.path)/filler") == 0)
        #expect(try await end([subscriber], with: SIGTERM) == [.exit(74)])
        #expect(subscriber.errors.split(separator: "standard output: ").count == 2, "\(subscriber.errors)")
        let lines = try text(of: "\(small.path)/log.json").split(separator: "\n")
        let events = lines.compactMap { try? JSONObject(reading: $0) }
        #expect(events.count == lines.count - 1, "only the line that was cut is none: \(lines)")
        let failures = events.filter { $0.string("event") == "failure" }
        #expect(failures.contains { $0.string("code") == "storageFull" }, "\(failures)")
        #expect(events.last?.string("event") == "summary", "\(lines)")
        #expect(try await end([publisher], with: SIGINT) == [.exit(0)])
    }

    @Test(
        "A full disk ends a dump with 74 and a clear word; the dump plays, and others go on",
        .enabled(if: canMount, "only root can mount a small file system")
    )
    func fullDisk() async throws {
        let small = try SmallDisk(at: directory("small"), bytes: 256 << 10)
        let large = directory("large")
        let publisher = try await server.publisher(["--source", "noise", "--size", "320x180", "--max-bitrate", "3M"])
        let victim = try await server.subscriber(["--dump", small.path])
        let other = try await server.subscriber(["--dump", large])
        #expect(try await victim.end() == .exit(74))
        #expect(victim.errors.contains("space") || victim.errors.contains("full"), "\(victim.errors)")
        #expect(victim.errors.contains(small.path), "\(victim.errors)")
        #expect(victim.text.contains("frames received"), "a summary all the same")
        let lines = try bytes(of: try await recorded(1, in: large) + ".frames.jsonl").count { $0 == 10 }
        _ = try await recorded(lines + 20, in: large)
        #expect(try await end([other, publisher], with: SIGINT) == [.exit(0), .exit(0)])
        let dump = try #require(fileNames(in: small.path).first { $0.hasSuffix(".webm") })
        let player = try Program(
            "ffprobe",
            ["-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames", "\(small.path)/\(dump)"]
        )
        #expect(try await player.end() == .exit(0))
        #expect(player.errors == "")
        #expect(try await verify("\(small.path)/\(dump)").ending == .exit(0))
    }
}

/// Whether file systems can be mounted.
private let canMount: Bool = {
    guard geteuid() == 0, let directory = try? TemporaryDirectory() else { return false }
    return (try? SmallDisk(at: directory("probe"), bytes: 65_536)) != nil
}()

/// A file system of few bytes, until the last reference goes.
private final class SmallDisk: Sendable {
    let path: String

    init(at path: String, bytes: Int) throws {
        self.path = path
        mkdir(path, 0o755)
        guard mount("none", path, "tmpfs", 0, "size=\(bytes)") == 0 else {
            throw TestFailure("no file system: errno \(errno)")
        }
    }

    deinit {
        umount2(path, Int32(MNT_DETACH))
    }
}
