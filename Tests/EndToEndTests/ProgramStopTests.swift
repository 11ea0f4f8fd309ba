import Glibc
import TestSupport
import Testing

@Suite("Programs that wait for something that does not come", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct ProgramStopTests {
    let server: ServerProgram
    let directory: TemporaryDirectory

    init() async throws {
        server = try await ServerProgram()
        directory = try TemporaryDirectory()
    }

    /// Makes a named pipe; `isKeptOpen` has this process at both of its ends, so that it is never over.
    private func makePipe(_ name: String, isKeptOpen: Bool) throws -> Int32 {
        try #require(mkfifo(directory(name), 0o600) == 0)
        guard isKeptOpen else { return -1 }
        let number = open(directory(name), O_RDWR | O_NONBLOCK | O_CLOEXEC)
        try #require(number >= 0)
        return number
    }

    // The source's thread stood in open() or read(), where nothing but the pipe's other end could wake it, and the
    // leaving of the room waited for that thread.

    @Test("A publisher whose pipe has no writer says that it waits, and ends with SIGTERM")
    func noWriter() async throws {
        _ = try makePipe("clip", isKeptOpen: false)
        let publisher = try server.client("connect", ["--source", "file:\(directory("clip"))"])
        try await publisher.says("Waiting for the first picture")
        #expect(try await end([publisher], with: SIGTERM) == [.exit(0)])
        #expect(publisher.text.contains("The source gave no picture in "), "\(publisher.text)")
        #expect(publisher.errors == "")
    }

    @Test("A publisher whose pipe falls silent ends after its --duration, and with SIGTERM", arguments: [true, false])
    func silentWriter(isByDuration: Bool) async throws {
        let pipe = try makePipe("clip", isKeptOpen: true)
        defer { close(pipe) }
        let picture = Array("FRAME\n".utf8) + [UInt8](repeating: 100, count: 384)
        let clip = Array("YUV4MPEG2 W16 H16 F30:1 C420mpeg2\n".utf8) + picture + picture + picture.dropLast(10)
        try #require(write(pipe, clip, clip.count) == clip.count)
        let length = isByDuration ? ["--duration", "0.5"] : []
        let publisher = try server.client("connect", ["--source", "file:\(directory("clip"))"] + length)
        try await publisher.says("Publishing")
        if !isByDuration { publisher.send(SIGTERM) }
        #expect(try await publisher.end() == .exit(0), "\(publisher.errors)")
        #expect(publisher.text.contains(" captured, "), "\(publisher.text)")
        #expect(publisher.errors == "")
    }

    @Test("A publisher whose pipe trickles ends with SIGTERM in the middle of a picture")
    func tricklingWriter() async throws {
        let pipe = try makePipe("clip", isKeptOpen: true)
        let trickle = Task {
            let header = Array("YUV4MPEG2 W640 H480 F30:1 C420mpeg2\nFRAME\n".utf8)
            _ = write(pipe, header, header.count)
            while !Task.isCancelled {
                _ = write(pipe, header, header.count)
                try? await Task.sleep(for: .milliseconds(20))
            }
            close(pipe)
        }
        let publisher = try server.client("connect", ["--source", "file:\(directory("clip"))"])
        try await publisher.says("Joined")
        #expect(try await end([publisher], with: SIGTERM) == [.exit(0)])
        #expect(publisher.text.contains("The source gave no picture in "), "\(publisher.text)")
        #expect(publisher.errors == "")
        trickle.cancel()
        await trickle.value
    }

    // Signals were heeded only after the join, so they killed the program while it waited for the server.
    @Test(
        "A program that a signal ends before it has joined ends with 0 and its summary",
        arguments: ["connect", "subscribe"],
        [SIGINT, SIGTERM]
    )
    func signalBeforeJoining(command: String, signal: Int32) async throws {
        let silent = try SilentServer()
        let source = command == "connect" ? ["--source", "noise"] : []
        let options = ["--room", "stage", "--url", "ws://127.0.0.1:\(silent.port)"] + source
        for isJSON in [true, false] {
            let program = try Program("room-client", [command] + options + (isJSON ? ["--json"] : []))
            let connection = silent.accept()
            program.send(signal)
            #expect(try await program.end() == .exit(0), "\(program.errors)")
            #expect(program.errors == "")
            withExtendedLifetime(connection) {}
            if isJSON {
                #expect(try program.events().map { $0.string("event") } == ["summary"], "\(program.text)")
            } else {
                #expect(program.text == "Ended before the room was joined.\n")
            }
        }
    }

    // The numbers of closed streams went to sockets, into which the log was then written.
    @Test(
        "Standard streams that are closed are replaced before anything else is opened",
        arguments: [
            ("room-server --port 0", "room-server"),
            ("room-client subscribe --room stage --url URL", "room-client"),
            // One program takes the other's place.
            ("room-client view --room stage --url URL", "room-view"),
            ("room-view --room stage --url URL", "room-view"),
        ]
    )
    func closedStreams(command: String, program name: String) async throws {
        let words = command.split(separator: " ").map { $0 == "URL" ? server.url : String($0) }
        let script = "export SDL_VIDEODRIVER=dummy; exec \"$@\" <&- >&- 2>&-"
        let program = try Program("sh", ["-c", script, "sh", Program.path(of: words[0])] + words[1...])
        try await eventually("all three are replaced in \(name)") {
            linkTarget("/proc/\(program.identifier)/exe") == Program.path(of: name)
                && (0...2).allSatisfy { linkTarget("/proc/\(program.identifier)/fd/\($0)") == "/dev/null" }
        }
        #expect(program.isRunning)
        #expect(try await end([program], with: SIGKILL) == [.signal(SIGKILL)])
    }

    /// Runs `room-client` at a terminal, with a setting of its environment.
    ///
    /// - Parameters:
    ///   - arguments: The program's arguments.
    ///   - setting: Such as `TERM=dumb`.
    /// - Returns: How it ended, and what the terminal got.
    /// - Throws: An error if it cannot be started.
    private func runAtTerminal(
        _ arguments: [String],
        _ setting: String
    ) async throws -> (ending: Program.Ending, shown: String) {
        var (test, device): (Int32, Int32) = (-1, -1)
        try #require(openpty(&test, &device, nil, nil, nil) == 0)
        defer { for end in [test, device] { close(end) } }
        let script = "exec \"$0\" \"$@\" <&3 >&3"
        let command = [setting, "sh", "-c", script, Program.path(of: "room-client")] + arguments
        let ending = try await Program("env", command, inherited: device).end()
        // What comes within some seconds fits into the terminal's buffer.
        _ = fcntl(test, F_SETFL, O_NONBLOCK)
        var shown = [UInt8](repeating: 0, count: 65_536)
        let count = read(test, &shown, shown.count)
        return (ending, String(decoding: shown.prefix(max(0, count)), as: UTF8.self))
    }

    // Only isatty() was asked, and the shell of Emacs showed the escape sequences as text.
    @Test(
        "A terminal that only takes lines gets no status line",
        arguments: [("TERM=dumb", false), ("TERM=xterm", true), ("TERM=", true)]
    )
    func dumbTerminal(setting: String, hasStatusLine: Bool) async throws {
        let options = ["--room", "stage", "--url", server.url]
        let (ending, shown) = try await runAtTerminal(["subscribe", "--duration", "2.5"] + options, setting)
        #expect(ending == .exit(0) && shown.contains("Joined stage"), "\(shown)")
        #expect(shown.contains("\u{1B}") == hasStatusLine, "\(shown.debugDescription)")
        guard !hasStatusLine else { return }
        let (refusal, preview) = try await runAtTerminal(["subscribe", "--preview"] + options, setting)
        #expect(refusal == .exit(64) && preview == "", "\(preview.debugDescription)")
    }

    // Ctrl-Z was switched off only at a terminal that is standard input, and otherwise left the picture behind.
    @Test("A preview that is asked to stop goes on, and gives the terminal back at its end")
    func stoppedPreview() async throws {
        var (test, device): (Int32, Int32) = (-1, -1)
        try #require(openpty(&test, &device, nil, nil, nil) == 0)
        defer { for end in [test, device] { close(end) } }
        let script = "exec \"$0\" subscribe --preview --room stage --url \(server.url) >&3"
        let command = ["TERM=xterm", "sh", "-c", script, Program.path(of: "room-client")]
        let program = try Program("env", command, inherited: device)
        _ = fcntl(test, F_SETFL, O_NONBLOCK)
        var shown = ""
        let read = {
            var chunk = [UInt8](repeating: 0, count: 65_536)
            let count = Glibc.read(test, &chunk, chunk.count)
            shown += String(decoding: chunk.prefix(max(0, count)), as: UTF8.self)
            return shown
        }
        try await eventually("the preview begins") { read().contains("\u{1B}[?1049h") }
        // The system stops no program of a group that has no shell, so the test looks at what the program does with it.
        let status = try text(of: "/proc/\(program.identifier)/status").split(separator: "\n")
        let ignored = try #require(status.first { $0.hasPrefix("SigIgn:") }?.split(separator: "\t").last)
        #expect(try #require(UInt64(ignored, radix: 16)) & (1 << (SIGTSTP - 1)) != 0)
        program.send(SIGTSTP)
        program.send(SIGTERM)
        #expect(try await program.end() == .exit(0), "\(program.errors)")
        #expect(read().contains("\u{1B}[?1049l"))
    }

    private func linkTarget(_ path: String) -> String {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = readlink(path, &buffer, buffer.count)
        return String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    @Test("A program that cannot end in good order ends with the second SIGTERM")
    func secondSignal() async throws {
        let pipe = try makePipe("output", isKeptOpen: true)
        defer { close(pipe) }
        // Full, so that whoever writes to it waits.
        let junk = [UInt8](repeating: 0x0A, count: 4096)
        while write(pipe, junk, junk.count) > 0 {}
        let watcher = try await server.publisher(["--verbose"])
        let options = "--room stage --identity robot --source noise --url \(server.url)"
        let client = try Program(
            "sh",
            ["-c", "exec \"$0\" connect \(options) >\(directory("output"))", Program.path(of: "room-client")]
        )
        // It is about to say so itself.
        try await watcher.says("robot joined")
        try await eventually("the program ends") {
            client.send(SIGTERM)
            return !client.isRunning
        }
        #expect(try await client.end() == .signal(SIGTERM))
        #expect(client.errors == "")
        #expect(try await end([watcher], with: SIGINT) == [.exit(0)])
    }
}
