import Foundation
import Glibc
import TestSupport
import TestTools
import Testing

@Suite("A server that cannot do what it is asked", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct ServerOptionTests {
    // It trapped: the sentence was written by a call that ends the program if that fails.
    @Test("An unusable option ends with 64 also where its sentence cannot be written", arguments: ["/dev/full", "&-"])
    func unwritable(errors: String) async throws {
        let command = "exec \"$0\" --nonsense 2>\(errors)"
        let program = try Program("sh", ["-c", command, Program.path(of: "room-server")], areLeaksSought: false)
        #expect(try await program.end() == .exit(64))
    }

    @Test("A port that is taken ends the server with 69, and it says so")
    func portTaken() async throws {
        let other = try SilentServer()
        let program = try Program("room-server", ["--port", "\(other.port)"])
        #expect(try await program.end() == .exit(69))
        #expect(program.errors.contains("\(other.port)"), "\(program.errors)")
        // It was "(98)".
        #expect(program.errors.contains("(Address already in use): another program listens"), "\(program.errors)")
    }

    @Test("A settings file that cannot be used ends the server with 65, one that cannot be read with 66")
    func configuration() async throws {
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/room.json"
        for (text, code, words) in [
            ("{\"maximumRoms\": 1}", 65, "“maximumRoms”"), ("{\"joinTimeout\": 0}", 65, "“joinTimeout”"),
            ("[]", 65, "JSON object"), (nil, 66, "cannot be read"),
            ("{\"joinBurst\": 1, \"joinBurst\": 2}", 65, "“joinBurst” is set twice"),
            ("{\"joinBurst\": 1,\n}", 65, "line 1, column 16: nothing follows this comma"),
        ] {
            if let text { try write(text, to: file) } else { unlink(file) }
            let program = try Program("room-server", ["--port", "0", "--config", file])
            #expect(try await program.end() == .exit(Int32(code)))
            #expect(program.errors.contains(words) && program.errors.contains(file), "\(program.errors)")
        }
        try write("{\"maximumRooms\": 3}", to: file)
        let socket = "\(directory.path)/room.socket"
        for _ in 0..<2 {
            // The second one finds the first one's socket, at which nobody listens any more.
            let program = try Program("room-server", ["--unix", socket, "--config", file])
            try await eventually("it listens") { program.errors.contains("listening at \(socket)") }
            let second = try Program("room-server", ["--unix", socket])
            #expect(try await second.end() == .exit(69))
            program.send(SIGTERM)
            #expect(try await program.end() == .exit(0))
        }
    }

    private func write(_ text: String, to path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        defer { close(descriptor) }
        guard Glibc.write(descriptor, text, text.utf8.count) == text.utf8.count else {
            throw TestFailure("\(path) cannot be written")
        }
    }

    @Test("The server does not listen to the world unless it is told to in so many words")
    func serverOptions() async throws {
        let wrong = [
            ["--host", "0.0.0.0"], ["--host", "127.0.0.1", "--insecure-listen", "0.0.0.0"], ["--port", "65536"],
            ["--port", "-1"], ["--nonsense"], ["--allow-origin", "http://a/b"], ["--unix", "/tmp/x", "--host", "::1"],
            ["--unix", "/tmp/x", "--port", "9"], ["--host-name", "http://x"], ["--host-name", "lab.example:80"],
            // A variable of a script that is not set.
            ["--host", ""], ["--insecure-listen", ""],
        ]
        for arguments in wrong {
            let program = try Program("room-server", arguments, areLeaksSought: false)
            #expect(try await program.end() == .exit(64), "\(arguments)")
            #expect(!program.errors.contains("Missing value"), "\(program.errors)")
            // It was two to four lines, with the usage.
            #expect(program.errors.hasPrefix("room-server: "), "\(program.errors)")
            #expect(program.errors.hasSuffix(" See 'room-server --help' for more information.\n"), "\(program.errors)")
            #expect(program.errors.count { $0 == "\n" } == 1, "\(program.errors)")
        }
        let program = try Program("room-server", ["--host", "0.0.0.0"], areLeaksSought: false)
        _ = try await program.end()
        #expect(program.errors.contains("--insecure-listen"))
        // A name that nobody has is no danger: it cannot be listened at.
        let nowhere = try Program("room-server", ["--host", "nowhere.invalid"])
        #expect(try await nowhere.end() == .exit(69))
        #expect(nowhere.errors.contains("nowhere.invalid"), "\(nowhere.errors)")
    }

    // It was [::1] where /etc/hosts has both, which who is told no URL does not try; and no line told.
    @Test("Localhost is where clients look that are told nothing, and the log says so", arguments: [false, true])
    func localhost(isInsecure: Bool) async throws {
        let option = isInsecure ? "--insecure-listen" : "--host"
        let program = try Program("room-server", [option, "localhost", "--port", "0"])
        try await eventually("it listens") { program.errors.contains("listening at ws://localhost:") }
        #expect(program.errors.contains("address=127.0.0.1"), "\(program.errors)")
        #expect(program.errors.contains("only this machine reaches") == isInsecure, "\(program.errors)")
        #expect(!program.errors.contains("everybody"), "\(program.errors)")
        program.send(SIGTERM)
        #expect(try await program.end() == .exit(0))
    }

    @Test(
        "The server listens at any address of the loopback, and logs a URL",
        arguments: ["127.0.0.2", "::1", "[::1]"]
    )
    func loopback(host: String) async throws {
        let program = try Program("room-server", ["--host", host, "--port", "0"])
        try await eventually("the server listens, or cannot") {
            program.errors.contains("listening at ws://") || !program.isRunning
        }
        program.send(SIGTERM)
        let ending = try await program.end()
        let brackets = host.contains("::") && !host.hasPrefix("[") ? "[\(host)]" : host
        // A machine may be without IPv6.
        #expect(ending == .exit(0) || host.contains("::1") && ending == .exit(69))
        #expect(
            program.errors.contains("\(ending == .exit(0) ? "ws://" : "listen at ")\(brackets):"),
            "\(program.errors)"
        )
    }

    @Test(
        "Where the server may not listen or read, it ends with 77; where there is no directory, with 66",
        .enabled(if: ForbiddenDirectory.path != nil, ForbiddenDirectory.absence)
    )
    func forbiddenServer() async throws {
        let forbidden = try #require(ForbiddenDirectory.path)
        let directory = try TemporaryDirectory()
        let cases: [(arguments: [String], code: Int32, words: String)] = [
            (["--unix", "\(forbidden)/x"], 77, "): check the owner and mode of its directory"),
            (["--unix", directory("no/x")], 66, "(No such file or directory): its directory does not exist; create"),
            // Not even root may read it.
            (["--config", "/proc/sys/net/ipv4/route/flush"], 77, "cannot be read: permission denied"),
            (["--config", directory("none")], 66, "cannot be read: there is no such file"),
            (["--config", directory.path], 74, "cannot be read"),
        ]
        for (arguments, code, words) in cases {
            let program = try Program("room-server", arguments)
            #expect(try await program.end() == .exit(code), "\(arguments): \(program.errors)")
            #expect(program.errors.contains(words), "\(program.errors)")
        }
    }

    @Test("A web page that is refused is named in the answer and in the log, which nobody can flood with that")
    func refusedOrigin() async throws {
        let server = try await ServerProgram()
        var body = ""
        for number in 0..<100 {
            let peer = try RawPeer(port: UInt16(server.port))
            let answer = peer.handshake(
                host: "127.0.0.1:\(server.port)",
                headers: ["Origin: http://evil.example:\(number + 1)"]
            )
            #expect(answer.hasPrefix("HTTP/1.1 403 "))
            body = String(decoding: peer.receiveAll(), as: UTF8.self)
        }
        #expect(body.contains("http://evil.example:100 ") && body.contains("--allow-origin"), "\(body)")
        try await server.program.complains("http://evil.example:1 ")
        #expect(try await end([server.program], with: 15) == [.exit(0)])
        let lines = server.program.errors.split(separator: "\n").filter { $0.contains("evil.example") }
        #expect((1...25).contains(lines.count), "\(lines.count)")
    }

    @Test("Pages of an allowed origin and of a named host may connect, and others may not")
    func admittedOrigins() async throws {
        let server = try await ServerProgram(["--allow-origin", "https://room.example", "--host-name", "lab.example"])
        let names = ["127.0.0.1", "lab.example", "other.example"].map { "\($0):\(server.port)" }
        for (host, origin, status) in [
            (names[0], "https://room.example", 101), (names[1], "http://\(names[1])", 101),
            (names[0], "https://other.example", 403), (names[2], "http://\(names[2])", 403),
        ] {
            let peer = try RawPeer(port: UInt16(server.port))
            let answer = peer.handshake(host: host, headers: ["Origin: \(origin)"])
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(origin): \(answer)")
        }
        #expect(try await end([server.program], with: SIGTERM) == [.exit(0)])
    }
}
