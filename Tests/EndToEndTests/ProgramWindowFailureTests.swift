import Foundation
import Glibc
import TestSupport
import TestTools
import Testing

@Suite("Programs without a window", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct ProgramWindowFailureTests {
    private let without = ["-u", "DISPLAY", "-u", "WAYLAND_DISPLAY", "-u", "SDL_VIDEODRIVER"]

    @Test("Without a display room-view says which variables name one")
    func noDisplay() async throws {
        let nothing = without + ["-u", "WAYLAND_SOCKET", "-u", "XDG_RUNTIME_DIR"]
        let view = try Program("env", nothing + [Program.path(of: "room-view"), "--room", "stage"])
        #expect(try await view.end() == .exit(69))
        #expect(view.errors.contains("There is no display") && view.errors.contains("DISPLAY (such as :0)"))
        #expect(view.errors.contains("WAYLAND_DISPLAY"))
        #expect(view.errors.split(separator: "\n").count == 1, "no library adds a line: \(view.errors)")
    }

    // SDL crashed.
    @Test("At a Wayland compositor without input devices room-view says so", arguments: [nil, "wayland"])
    func missingSeat(driver: String?) async throws {
        let folder = try TemporaryDirectory()
        let compositor = try BareCompositor(at: folder.path + "/wayland")
        let variables = ["WAYLAND_DISPLAY=\(compositor.path)"] + (driver.map { ["SDL_VIDEODRIVER=\($0)"] } ?? [])
        let view = try Program("env", without + variables + [Program.path(of: "room-view"), "--room", "stage"])
        #expect(compositor.answer())
        #expect(try await view.end() == .exit(69))
        #expect(view.errors.contains("no keyboard, pointer or touch screen"), "\(view.errors)")
    }

    @Test("A driver without a display is used if it is asked for")
    func chosenDriver() async throws {
        let server = try await ServerProgram()
        let publisher = try await server.publisher()
        let options = ["--url", server.url, "--room", "stage", "--duration", "2"]
        let driver = ["SDL_VIDEODRIVER=dummy", Program.path(of: "room-view")]
        let view = try Program("env", without + driver + options)
        #expect(try await view.end() == .exit(0))
        #expect(try await end([publisher, server.program], with: SIGINT) == [.exit(0), .exit(0)])
    }

    @Test("Without a server room-view fails as the client does")
    func noServer() async throws {
        let options = ["--url", "ws://127.0.0.1:9", "--room", "stage"]
        let view = try Program("env", ["SDL_VIDEODRIVER=dummy", Program.path(of: "room-view")] + options)
        #expect(try await view.end() == .exit(69))
        #expect(view.errors.hasPrefix("room-view: ") && view.errors.contains("127.0.0.1:9"))
    }

    // The window came when the room was joined, or never, and until then nothing was to be seen.
    @Test("While the server does not answer, a window says so, and a signal closes it")
    func silentServer() async throws {
        let silent = try SilentServer()
        let theatre = try await WindowStage()
        let view = try theatre.run("room-view", ["--url", "ws://127.0.0.1:\(silent.port)", "--room", "stage"])
        try await theatre.windowOpens(of: view)
        view.send(SIGINT)
        #expect(try await view.end() == .exit(0))
        await theatre.close()
    }

    /// The kernel's file of this name about each thread of a program.
    private func texts(_ name: String, of program: Program) throws -> [String] {
        let tasks = "/proc/\(program.identifier)/task"
        return try FileManager.default.contentsOfDirectory(atPath: tasks).compactMap { task in
            try? text(of: "\(tasks)/\(task)/\(name)")
        }
    }

    @Test("Where leaving takes its time, a second signal ends the program at once")
    func secondSignal() async throws {
        let server = try await ServerProgram()
        let watcher = try await server.publisher(["--verbose"])
        let view = try Program(
            "env",
            without + ["SDL_VIDEODRIVER=dummy", Program.path(of: "room-view"), "--url", server.url, "--room", "stage"]
                + ["--identity", "viewer"]
        )
        try await watcher.says("viewer joined")
        // Others are told first; only who has joined has to leave.
        try await eventually("the viewer receives the track") { try texts("comm", of: view).contains("decoder\n") }
        server.program.send(SIGSTOP)
        // Until then it may answer.
        try await eventually("the server stands still") {
            try texts("status", of: server.program).allSatisfy { $0.contains("\nState:\tT") }
        }
        try await eventually("the program ends") {
            view.send(SIGINT)
            return !view.isRunning
        }
        #expect(try await view.end() == .signal(SIGINT))
        server.program.send(SIGCONT)
        #expect(try await end([watcher, server.program], with: SIGINT) == [.exit(0), .exit(0)])
    }

    @Test("A client that finds no room-view says how to get it", arguments: [["view"], ["subscribe", "--window"]])
    func missingProgram(command: [String]) async throws {
        let directory = try TemporaryDirectory()
        let copy = directory("room-client")
        #expect(try await Program("cp", [Program.path(of: "room-client"), copy]).end() == .exit(0))
        let client = try Program("env", ["PATH=\(directory.path)", copy] + command + ["--room", "stage"])
        #expect(try await client.end() == .exit(69))
        #expect(client.errors.contains("There is no room-view") && client.errors.contains("libsdl2-dev"))
    }

    @Test("A client finds room-view in PATH")
    func programInPath() async throws {
        let directory = try TemporaryDirectory()
        let copy = directory("room-client")
        #expect(try await Program("cp", [Program.path(of: "room-client"), copy]).end() == .exit(0))
        let beside = try #require(Program.path(of: "room-view").split(separator: "/room-view").first)
        let options = ["view", "--room", "stage"]
        let client = try Program("env", without + ["PATH=\(beside)", copy] + options)
        #expect(try await client.end() == .exit(69))
        #expect(client.errors.contains("room-view: There is no display"))
    }

    @Test("Options that cannot be used together or have no value are refused")
    func options() async throws {
        let cases = [
            ("room-client", ["subscribe", "--window", "--dump", "out"], "--dump"),
            ("room-client", ["subscribe", "--window", "--json"], "--json"),
            ("room-view", ["--duration", "0"], "number of seconds above 0"),
            ("room-view", ["--participant", ""], "--participant needs a name"),
        ]
        for (program, arguments, words) in cases {
            let program = try Program(program, arguments + ["--room", "stage"], areLeaksSought: false)
            #expect(try await program.end() == .exit(64))
            #expect(program.errors.contains(words), "\(program.errors)")
        }
    }

    @Test("Neither the client nor the server links SDL; room-view alone does")
    func linking() async throws {
        for (program, isLinked) in [("room-client", false), ("room-server", false), ("room-view", true)] {
            let list = try Program("ldd", [Program.path(of: program)])
            #expect(try await list.end() == .exit(0))
            #expect(list.text.contains("libvpx") == (program != "room-server"))
            #expect(list.text.contains("libSDL2") == isLinked, "\(program)")
        }
    }
}
