import Foundation
import Glibc
import MediaCore
import TestSupport
import TestTools
import Testing

@Suite("Programs that cannot do what they are asked", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct ProgramOptionTests {
    /// Runs the client to its end.
    private func run(_ arguments: [String]) async throws -> (ending: Program.Ending, errors: String) {
        let program = try Program("room-client", arguments, areLeaksSought: false)
        return (try await program.end(), program.errors)
    }

    @Test("Without a server, both commands end with 69 and name the URL", arguments: ["connect", "subscribe"])
    func noServer(command: String) async throws {
        let port = try SilentServer().port
        let source = command == "connect" ? ["--source", "pattern"] : []
        let (ending, errors) = try await run([command, "--room", "r", "--url", "ws://127.0.0.1:\(port)"] + source)
        #expect(ending == .exit(69))
        #expect(errors.contains("127.0.0.1:\(port)"), "\(errors)")
        #expect(errors.hasPrefix("room-client: ") && errors.split(separator: "\n").count <= 2, "\(errors)")
    }

    @Test("With something else on the port, both commands end with 69", arguments: ["connect", "subscribe"])
    func somethingElse(command: String) async throws {
        let server = try SilentServer()
        let serving = Task.detached { server.answer(Array("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".utf8)) }
        let source = command == "connect" ? ["--source", "pattern"] : []
        let (ending, errors) = try await run(
            [command, "--room", "r", "--url", "ws://127.0.0.1:\(server.port)"] + source
        )
        await serving.value
        #expect(ending == .exit(69))
        #expect(errors.contains("127.0.0.1:\(server.port)"), "\(errors)")
    }

    @Test("A log of the rate control that exists already is left alone, and the program ends with 74")
    func existingLog() async throws {
        let directory = try TemporaryDirectory()
        try Data("mine".utf8).write(to: URL(filePath: directory("log")))
        let options = ["connect", "--room", "r", "--source", "pattern", "--adapt-log", directory("log")]
        let program = try Program("room-client", options)
        #expect(try await program.end() == .exit(74), "\(program.errors)")
        #expect(program.errors.contains(directory("log")), "\(program.errors)")
        #expect(try Data(contentsOf: URL(filePath: directory("log"))) == Data("mine".utf8))
    }

    // It was 74 for every reason, and 69 for the display.
    @Test("A log of the rate control without a directory ends the program with 66, a display that is none with 64")
    func exitCodes() async throws {
        let directory = try TemporaryDirectory()
        let url = "ws://127.0.0.1:\(try SilentServer().port)"
        var cases: [(options: [String], code: Int32, word: String)] = [
            (["--source", "pattern", "--adapt-log", directory("no/log")], 66, "create that first (mkdir -p)"),
            (["--source", "screen", "--display", "foo"], 64, "this is no name of a display"),
            (["--source", "screen", "--display", ":7654"], 69, "there is no X server"),
        ]
        if let forbidden = ForbiddenDirectory.path {
            cases.append((["--source", "pattern", "--adapt-log", "\(forbidden)/log"], 77, "permission denied"))
        }
        for (options, code, word) in cases {
            let (ending, errors) = try await run(["connect", "--room", "r", "--url", url] + options)
            #expect(ending == .exit(code) && errors.contains(word), "\(options): \(errors)")
        }
    }

    /// Options that cannot be used, whatever the server.
    private static let badOptions: [[String]] = [
        ["--size", "0x0"], ["--size", "100000x100000"], ["--size", "320"], ["--size", "-1x5"], ["--size", "1x"],
        ["--fps", "0"], ["--fps", "-1"], ["--fps", "1e9"], ["--fps", "nan"], ["--fps", "30/0"], ["--fps", "1/0/1"],
        ["--fps", "1000"], ["--fps", "241/1"], ["--fps", "0.01"], ["--max-bitrate", "5k"], ["--max-bitrate", "41M"],
        ["--size", "16383x16383"], ["--size", "7680x4320"], ["--size", "4097x4097"],
        ["--source", "camera", "--size", "7680x4320"], ["--source", "noise", "--size", "16383x16383"],
        ["--loop"], ["--source", "noise", "--loop"], ["--source", "file:-", "--loop"],
        ["--max-bitrate", "0"], ["--max-bitrate", "-1"], ["--max-bitrate", "x"], ["--max-bitrate", "1e99M"],
        ["--min-bitrate", "5k"], ["--min-bitrate", "2M", "--max-bitrate", "1M"], ["--simulcast", "yes"],
        ["--simulcast", ""], ["--degradation", "x"], ["--degradation", ""],
        ["--degradation", "size"],
        ["--duration", "-1"], ["--duration", "0"], ["--duration", "inf"], ["--duration", "1e300"],
        ["--source", "unknown"], ["--source", "file:"], ["--source", ""], ["--rotate", "45"],
        ["--pixel-format", "YUYV"], ["--pixel-format", "TOOLONG"], ["--control", "brightness=1"],
        ["--source", "camera", "--loop"], ["--size", "hd"], ["--size", "721p"], ["--orientation", "left"],
        ["--room", ""], ["--identity", ""], ["--url", "http://x"], ["--url", ""], ["--nonsense"],
    ]

    @Test("Options that cannot be used end with 64 and a word about them")
    func badOptions() async throws {
        // Several at a time: most of the time goes into starting them. All at once would be too slow on a busy machine.
        for first in stride(from: 0, to: Self.badOptions.count, by: 8) {
            let programs = try Self.badOptions[first...].prefix(8).map { arguments in
                let room = arguments.contains("--room") ? [] : ["--room", "r"]
                let source = arguments.contains("--source") ? [] : ["--source", "pattern"]
                let all = ["connect"] + room + source + arguments
                return (arguments, try Program("room-client", all, areLeaksSought: false))
            }
            for (arguments, program) in programs {
                #expect(try await program.end() == .exit(64), "\(arguments): \(program.errors)")
                #expect(!program.errors.isEmpty, "\(arguments)")
            }
        }
        for arguments in [
            ["--format", "mp4"], ["--duration", "0"], ["--room", ""], ["--source", "pattern"], ["--format", "ivf"],
            ["--dump", ""], ["--snapshot", ""],
        ] {
            let room = arguments.contains("--room") ? [] : ["--room", "r"]
            #expect(try await run(["subscribe"] + room + arguments).ending == .exit(64), "\(arguments)")
        }
        #expect(try await run([]).ending == .exit(0))
        #expect(try await run(["connect"]).ending == .exit(64))
        #expect(try await run(["nonsense"]).ending == .exit(64))
    }

    @Test("An empty ROOM_URL is none")
    func emptyVariable() async throws {
        let command = "ROOM_URL= exec \"$0\" subscribe --room r --duration 0.1"
        let program = try Program("sh", ["-c", command, Program.path(of: "room-client")])
        // There may be a server at the default port.
        #expect([.exit(0), .exit(69)].contains(try await program.end()), "\(program.errors)")
        let port = try SilentServer().port
        let other = "ROOM_URL=ws://127.0.0.1:\(port) exec \"$0\" subscribe --room r"
        let follower = try Program("sh", ["-c", other, Program.path(of: "room-client")])
        #expect(try await follower.end() == .exit(69))
        #expect(follower.errors.contains("127.0.0.1:\(port)"), "\(follower.errors)")
    }

    @Test("Clips that are missing, none, empty or cut: 66, 65, 65, and 65 after the last whole picture")
    func clips() async throws {
        let directory = try TemporaryDirectory()
        let server = try await ServerProgram()
        try store(Array("this is no clip".utf8), at: directory("none.y4m"))
        try store([], at: directory("empty.y4m"))
        let header = Array("YUV4MPEG2 W16 H16 F30:1 C420mpeg2\n".utf8)
        try store(header, at: directory("header.y4m"))
        let picture = Array("FRAME\n".utf8) + [UInt8](repeating: 100, count: 384)
        try store(header + picture + picture + picture.dropLast(10), at: directory("cut.y4m"))
        try store(header + picture + picture, at: directory("whole.y4m"))
        let dot = "YUV4MPEG2 W1 H1 F30:1 C420mpeg2\nFRAME\nabc"
        try store(Array(dot.utf8), at: directory("dot.y4m"))
        let whole = "file:\(directory("whole.y4m"))"
        let faster = try Program("room-client", ["connect", "--room", "r", "--source", whole, "--fps", "60"])
        #expect(try await faster.end() == .exit(64))
        #expect(faster.errors.contains("the clip's own 30"), "\(faster.errors)")
        #expect(faster.errors.count(where: { $0 == "\n" }) == 1, "no usage: \(faster.errors)")
        let expected = ["missing": 66, "none": 65, "empty": 65, "header": 65, "dot": 65, "cut": 65, "whole": 0]
        for (name, code) in expected {
            let program = try server.client("connect", ["--source", "file:\(directory(name)).y4m", "--json"])
            #expect(try await program.end() == .exit(Int32(code)), "\(name): \(program.errors)")
            if code != 0 {
                #expect(program.errors.contains("y4m") || program.errors.contains("clip"), "\(program.errors)")
            }
            let events = try program.events()
            if name == "cut" || name == "whole" {
                #expect(events.last?.string("event") == "summary", "\(name)")
                #expect(events.last?.number("framesCaptured") == 2, "\(name)")
            } else {
                #expect(events.map { $0.string("event") } == ["failure"], "\(name): nobody joins a room for it")
            }
        }
        // A source that fails later is reported while the room is still joined.
        let second = Array(repeating: picture, count: 60).flatMap { $0 }
        try store(header + second + picture.dropLast(10), at: directory("later.y4m"))
        let later = try server.client("connect", ["--source", "file:\(directory("later.y4m"))", "--json"])
        #expect(try await later.end() == .exit(65))
        let order = try later.events().compactMap { $0.string("event") }
        #expect(order == ["connected", "published", "failure", "disconnected", "summary"], "\(order)")
        // It is that of the track, and not the one with which the program ends.
        let named = try later.events().filter { ["published", "failure"].contains($0.string("event")) }
        #expect(named.count == 2 && named.allSatisfy { $0.string("track") == "file" }, "\(later.text)")
        // The pictures of standard input, which is empty here, come only once: the room is joined before.
        let program = try server.client("connect", ["--source", "file:-", "--json"])
        #expect(try await program.end() == .exit(65))
        #expect(try program.events().map { $0.string("event") } == ["connected", "disconnected", "failure", "summary"])
        #expect(program.errors.contains("the standard input: nothing came"), "\(program.errors)")
        #expect(try await end([server.program], with: 15) == [.exit(0)])
    }

    // They were tried when the first picture came, if one did.
    @Test("Where nothing can be written, subscribe says so at once, with a code and a word about what to do")
    func badOutputs() async throws {
        let directory = try TemporaryDirectory()
        try store([1], at: directory("file"))
        #expect(mkfifo(directory("f.png"), 0o600) == 0)
        #expect(symlink(directory("file"), directory("l.png")) == 0)
        // Nobody listens: 69 would mean that it connected first.
        let url = "ws://127.0.0.1:\(try SilentServer().port)"
        mkdir(directory("d.png"), 0o700)
        let cases: [(arguments: [String], code: Int32, word: String)] = [
            (["--dump", directory("file")], 74, "\(directory("file")): it, or a directory above it, is a file; "),
            (["--dump", directory("file/x")], 74, "it, or a directory above it, is a file; "),
            (["--snapshot", directory("no/s.png")], 66, "\(directory("no/s.png")): its directory does not exist"),
            (
                ["--snapshot", directory("f.png")], 74,
                "\(directory("f.png")): it is a link, a pipe or a device; name another"
            ),
            (["--snapshot", directory("l.png")], 74, "it is a link, a pipe or a device; name another"),
            (["--snapshot", directory("d.png")], 74, "it is a directory; name a file in it"),
        ]
        for (arguments, code, word) in cases {
            let (ending, errors) = try await run(["subscribe", "--room", "r", "--url", url] + arguments)
            #expect(ending == .exit(code), "\(arguments): \(errors)")
            #expect(errors.contains(word) && errors.split(separator: "\n").count == 1, "\(errors)")
        }
        #expect(directory.names == ["d.png", "f.png", "file", "l.png"])
    }

    @Test(
        "Where nobody may write, subscribe says so at once, with 77",
        .enabled(if: ForbiddenDirectory.path != nil, ForbiddenDirectory.absence)
    )
    func forbiddenOutput() async throws {
        let path = try #require(ForbiddenDirectory.path) + "/x"
        let url = "ws://127.0.0.1:\(try SilentServer().port)"
        let (ending, errors) = try await run(["subscribe", "--room", "r", "--url", url, "--dump", path])
        #expect(ending == .exit(77), "\(errors)")
        #expect(errors.contains("Cannot make the directory \(path): permission denied; "), "\(errors)")
    }

    @Test("A clip is cut and scaled down to the size that is asked for, and the dump has it")
    func clipSize() async throws {
        let directory = try TemporaryDirectory()
        let server = try await ServerProgram()
        let picture = Array("FRAME\n".utf8) + [UInt8](repeating: 100, count: 128 * 72 * 3 / 2)
        try store(Array("YUV4MPEG2 W128 H72 F30:1 C420mpeg2\n".utf8) + picture + picture, at: directory("clip.y4m"))
        let clip = ["--source", "file:\(directory("clip.y4m"))", "--loop", "--size", "70x50", "--json"]
        let publisher = try await server.publisher(clip)
        let published = try publisher.events().first { $0.string("event") == "published" }
        #expect(published?.number("width") == 70 && published?.number("height") == 50)
        let subscriber = try await server.subscriber(["--dump", directory.path])
        let dump = try await recorded(5, in: directory.path)
        #expect(try await end([publisher, subscriber], with: 2) == [.exit(0), .exit(0)])
        let reading = try DumpReading("\(dump).webm")
        #expect(reading.dimensions == Dimensions(width: 70, height: 50) && reading.pictureSizes == [reading.dimensions])
        #expect(try await end([server.program], with: 15) == [.exit(0)])
    }

    // The encoder left the odd row and column out, and the size as announced was not the size as sent.
    @Test(
        "A size can be given by its name, and odd sides are made even before they are announced",
        arguments: [("pattern", "cif", 352.0, 288.0), ("pattern", "101x75", 100, 74), ("noise", "3x3", 2, 2)]
    )
    func namedSize(source: String, size: String, width: Double, height: Double) async throws {
        let server = try await ServerProgram()
        let publisher = try await server.publisher(["--source", source, "--size", size, "--json"])
        let directory = try TemporaryDirectory()
        let subscriber = try await server.subscriber(["--dump", directory.path])
        _ = try await recorded(3, in: directory.path)
        let published = try publisher.events().first { $0.string("event") == "published" }
        #expect(published?.number("width") == width && published?.number("height") == height)
        #expect(try await end([publisher, subscriber], with: 2) == [.exit(0), .exit(0)])
        let sent = try publisher.events().last?.objects("layers").first
        #expect(sent?.number("width") == width && sent?.number("height") == height, "\(publisher.text)")
        #expect(try await end([server.program], with: 15) == [.exit(0)])
    }

    /// What a command line is told, all of which end with 64 before anything is connected.
    private static let adviceCases: [(arguments: [String], words: String)] = [
        (["connect", "--room", "r", "--size", "20000x20000"], "give width and height"),
        (["connect", "--room", "r", "--source", "pattern", "--size", "16383x1"], "with 2 to 16383 pixels a side"),
        (["connect", "--room", "r", "--size", "-1x5"], "or one of cif, vga, hd720, hd1080, low, medium, high"),
        (["connect", "--room", "r", "--fps", "0"], "give frames per second from 0.01 to 1000"),
        (["connect", "--room", "r", "--fps", "-1"], "give frames per second"),
        (["connect", "--room", "r", "--duration", "0"], "a number of seconds above 0"),
        (["connect", "--room", "r", "--duration", "1s"], "without a unit"),
        (["connect", "--room", "r", "--duration", "1e9"], "above 0 and at most 100000000 (three years)"),
        (["connect", "--room", "r", "--duration", "0x10"], "a number of seconds above 0"),
        (["connect", "--room", "r", "--fps", "0x1E"], "give frames per second from 0.01 to 1000"),
        (["connect", "--room", "r", "--max-bitrate", "0x10k"], "such as 800k or 2M"),
        (["connect", "--room", "r", "--camera-wait", "-1"], "give a number of seconds from 0 to 100000000"),
        (["subscribe", "--room", "r", "--json", "--status-interval", "1e30"], "seconds from 0.1 to 100000000"),
        (["subscribe", "--room", "r", "--json", "--status-interval", "0.01"], "seconds from 0.1 to 100000000"),
        (["subscribe", "--room", "r", "--duration", "-1"], "a number of seconds above 0"),
        (["connect", "--room", "r", "--max-bitrate", "-1"], "such as 800k or 2M"),
        (["connect", "--room", "r", "--max-bitrate", "1M", "--min-bitrate", "2M"], "give a lower one"),
        (["connect", "--room", "r", "--pixel-format", "motion-jpeg"], "such as YUYV or MJPG"),
        (["connect", "--room", "r", "--size", "721p"], "360p, 480p, 720p, 1080p"),
        (["connect", "--room", "r", "--source", "clip.y4m"], "say file:clip.y4m"),
        (["connect", "--room", "r", "--source", "patern"], "give camera, screen, pattern, noise"),
        (["connect", "--room", "r", "--source", "pattern", "--track-name", ""], "--track-name is empty"),
        (["publish", "--room", "r"], "did you mean connect?"), (["conect", "--room", "r"], "did you mean connect?"),
        (["connect", "--room", "r", "--source", "pattern", "--source=noise"], "--source is given more than once"),
        (["nonsense"], "There is no command"), (["help", "conect"], "did you mean connect?"),
        (["help", "nonsense"], "say connect, subscribe"), (["adapt", "polt"], "did you mean adapt plot?"),
        (["help", "adapt", "polt"], "did you mean adapt plot?"), (["help", "record"], "did you mean subscribe?"),
        (["subscribe", "--room", String(repeating: "x", count: 10_000)], "--room has 10000 bytes; 128 are allowed"),
        (["subscribe", "--room", "r", "--identity", String(repeating: "é", count: 65)], "--identity has 130 bytes"),
        (["connect", "--room", "a\nb"], "--room has control characters"),
        (["subscribe", "--room", "r", "--url", "ws://127.0.0.1:1/rooms/x"], "names the room \"x\", not \"r\""),
        (["subscribe", "--room", "r", "--snapshot", "x.jpg"], "a name that ends in .png"),
        (["subscribe", "--room", "r", "--dump", "-"], "Only raw pictures can be piped: add --format y4m or raw"),
        (["subscribe", "--room", "r", "--dump", "-", "--format", "webm"], "Only raw pictures can be piped"),
        (["subscribe", "--room", "r", "--dump", "d", "--format", "raw"], "--format raw is for a pipe: --dump -"),
        (["subscribe", "--room", "r", "--track", ""], "--track needs a name"),
        (["view", "--room", "r", "--dump", "x"], "Unknown option '--dump'. See 'room-client view --help'"),
        (["connect", "--rom", "r"], "Unknown option '--rom'. Did you mean '--room'?"),
        (["connect", "--source", "pattern"], "Missing expected argument '--room <room>'"),
        (["subscribe", "--room", "r", "--dmp", "x"], "Unknown option '--dmp'. Did you mean '--dump'?"),
    ]

    @Test("An unusable command line gets one sentence that says what to do, and with --json a failure with it")
    func advice() async throws {
        // A few at a time: most of the time goes into starting them, and all at once take longer than a test waits.
        var waiting = Self.adviceCases[...]
        while !waiting.isEmpty {
            let cases = waiting.prefix(6)
            waiting = waiting.dropFirst(cases.count)
            let programs = try cases.map {
                try Program("room-client", $0.arguments + ["--json"], areLeaksSought: false)
            }
            for (program, (arguments, words)) in zip(programs, cases) {
                #expect(try await program.end() == .exit(64), "\(arguments.prefix(6)): \(program.errors)")
                #expect(program.errors.contains(words), "\(program.errors)")
                #expect(program.errors.hasPrefix("room-client: ") && program.errors.count(where: { $0 == "\n" }) == 1)
                let events = try program.events()
                #expect(events.map { $0.string("event") } == ["failure"], "\(arguments.prefix(6))")
                #expect(events.first?.string("error")?.contains(words) == true)
            }
        }
    }

    // Another file was named in the error, and another identity was taken.
    @Test(
        "An argument that is not UTF-8 is refused",
        arguments: [
            "room-client subscribe --room r --identity", "room-view --room r --identity", "room-server --host-name",
        ]
    )
    func encoding(command: String) async throws {
        let words = command.split(separator: " ").map(String.init)
        let script = "exec \"$@\" \"$(printf 'a\\377b')\""
        let program = try Program("sh", ["-c", script, "sh", Program.path(of: words[0])] + words.dropFirst())
        #expect(try await program.end() == .exit(64))
        let sentence = "\(words[0]): Argument \(words.count) is not valid UTF-8; give names and paths in UTF-8."
        #expect(program.errors.hasPrefix(sentence), "\(program.errors)")
    }

    @Test("The program of the window says in one line what is wrong with its options")
    func windowOptions() async throws {
        for arguments in [["--room", "r", "--dump", "x"], ["--dump", "x"]] {
            let program = try Program("room-view", arguments, areLeaksSought: false)
            #expect(try await program.end() == .exit(64))
            let sentence = "room-view: Unknown option '--dump'. See 'room-view --help' for more information.\n"
            #expect(program.errors == sentence)
        }
    }

    @Test("Without a camera, connect and devices say why there is none", .enabled(if: access("/dev/video0", F_OK) != 0))
    func noCamera() async throws {
        let publisher = try Program("room-client", ["connect", "--room", "r", "--json"])
        #expect(try await publisher.end() == .exit(66))
        #expect(try publisher.events().map { $0.string("event") } == ["failure"])
        #expect(try publisher.events().first?.string("code") == "noSuchDevice")
        #expect(
            publisher.errors.contains("no /dev/video node exists") && publisher.errors.contains("--source pattern")
        )
        let devices = try Program("room-client", ["devices"])
        #expect(try await devices.end() == .exit(0))
        #expect(devices.text.contains("no /dev/video node exists"), "\(devices.text)")
        // Standard output was empty, as if the program had not run.
        let listing = try Program("room-client", ["devices", "--json"])
        #expect(try await listing.end() == .exit(0))
        let summary = try #require(try listing.events().last)
        #expect(try listing.events().count == 1 && summary.string("event") == "summary", "\(listing.text)")
        #expect(summary.number("cameras") == 0 && summary.string("code") == "noSuchDevice", "\(listing.text)")
    }

    @Test("No line of a help screen is broken but between words, and only the first screen has the exit codes")
    func help() async throws {
        let commands = [
            ["room-client"], ["room-client", "connect"], ["room-client", "subscribe"], ["room-client", "view"],
            ["room-client", "devices"], ["room-client", "doctor"], ["room-client", "verify"],
            ["room-client", "adapt", "plot"], ["room-client", "adapt", "replay"], ["room-view"],
        ]
        for command in commands {
            let program = try Program(command[0], command.dropFirst() + ["--help"], areLeaksSought: false)
            #expect(try await program.end() == .exit(0))
            try expectWrappedOnce(program)
            let isFirst = command == ["room-client"]
            #expect(program.text.contains("an internal fault") == isFirst, "\(command)")
            #expect(program.text.contains("Exit codes: room-client --help") == !isFirst, "\(command)")
        }
        let server = try Program("room-server", ["--help"], areLeaksSought: false)
        #expect(try await server.end() == .exit(0))
        try expectWrappedOnce(server)
    }

    /// Checks that each paragraph was wrapped once: a line that is not its last could not take the next word.
    private func expectWrappedOnce(_ program: Program) throws {
        let overview = try #require(program.text.split(separator: "USAGE:").first)
        for paragraph in overview.split(separator: "\n\n") {
            let lines = paragraph.split(separator: "\n")
            for (line, next) in zip(lines, lines.dropFirst()) where !line.hasPrefix(" ") && !next.hasPrefix(" ") {
                let word = next.prefix { $0 != " " }
                #expect(line.hasSuffix(":") || line.count + 1 + word.count > 79, "\(line)\n\(next)")
            }
            for line in lines { #expect(line.count <= 80, "\(line)") }
        }
    }
}
