import Glibc
import TestSupport
import TestTools
import Testing

@Suite("A server that inherits its socket", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct InheritedSocketTests {
    /// The assignments that systemd makes for one socket; the shell and the program that replaces it are one process.
    private static let ours = "LISTEN_PID=$$ LISTEN_FDS=1"

    /// Starts the server with a socket as its descriptor 3, and with variables that the shell assigns.
    private func server(
        _ variables: String,
        _ socket: InheritableSocket,
        _ arguments: [String] = [],
        areLeaksSought: Bool = true
    ) throws -> Program {
        try Program(
            "sh",
            ["-c", "\(variables) exec \"$0\" \"$@\"", Program.path(of: "room-server")] + arguments,
            inherited: socket.descriptor,
            areLeaksSought: areLeaksSought
        )
    }

    @Test("The server serves clients at the socket that it inherits, and says so")
    func inherited() async throws {
        let socket = try InheritableSocket()
        let program = try server(Self.ours, socket)
        try await program.complains("listening at the inherited socket, port \(socket.port)\n")
        let url = ["--url", "ws://127.0.0.1:\(socket.port)", "--room", "stage", "--json"]
        let publisher = try Program("room-client", ["connect", "--source", "pattern", "--size", "320x180"] + url)
        try await publisher.says("\"published\"")
        let subscriber = try Program("room-client", ["subscribe"] + url)
        try await subscriber.says("\"trackSubscribed\"")
        #expect(try await end([publisher, subscriber], with: SIGINT) == [.exit(0), .exit(0)])
        #expect(try await end([program], with: SIGTERM) == [.exit(0)])
    }

    @Test(
        "A socket that is meant for another process, or for none, is left alone",
        arguments: [
            "LISTEN_PID=1 LISTEN_FDS=1", "LISTEN_PID= LISTEN_FDS=1", "LISTEN_FDS=1", "LISTEN_PID=$$",
            "LISTEN_PID=$$ LISTEN_FDS=0", "LISTEN_PID=$$ LISTEN_FDS=one",
        ]
    )
    func otherProcess(variables: String) async throws {
        let socket = try InheritableSocket()
        // With a socket that is the server's own, --port would end it with 64.
        let program = try server(variables, socket, ["--port", "0"])
        try await eventually("the server listens, or cannot") {
            program.errors.contains("listening at ") || !program.isRunning
        }
        #expect(program.errors.contains("listening at ws://127.0.0.1:"), "\(program.errors)")
        #expect(!program.errors.contains("listening at ws://127.0.0.1:\(socket.port)\n"), "\(program.errors)")
        #expect(try await end([program], with: SIGTERM) == [.exit(0)])
    }

    @Test("More than one socket ends the server with 64", arguments: [2, 3])
    func severalSockets(count: Int) async throws {
        let program = try server("LISTEN_PID=$$ LISTEN_FDS=\(count)", InheritableSocket(), areLeaksSought: false)
        #expect(try await program.end() == .exit(64))
        #expect(program.errors.contains("LISTEN_FDS hands over \(count) sockets"), "\(program.errors)")
    }

    @Test(
        "An inherited socket and an address of the server's own exclude each other",
        arguments: [["--port", "0"], ["--host", "127.0.0.1"], ["--unix", "/tmp/room-unused.socket"]]
    )
    func address(arguments: [String]) async throws {
        let program = try server(Self.ours, InheritableSocket(), arguments, areLeaksSought: false)
        #expect(try await program.end() == .exit(64))
        #expect(program.errors.contains("leave --host, --port and --unix out"), "\(program.errors)")
    }

    @Test("An inherited socket that other machines can reach is served only with --insecure-listen")
    func reachable() async throws {
        let socket = try InheritableSocket(host: "0.0.0.0")
        let refusing = try server(Self.ours, socket, areLeaksSought: false)
        #expect(try await refusing.end() == .exit(64))
        #expect(refusing.errors.contains("is reachable from other machines"), "\(refusing.errors)")
        #expect(refusing.errors.contains("--insecure-listen inherited"), "\(refusing.errors)")
        let serving = try server(Self.ours, socket, ["--insecure-listen", "inherited"])
        try await serving.complains("listening at the inherited socket, port \(socket.port)\n")
        #expect(try RawPeer(port: socket.port).handshake(path: "/rooms/x").contains(" 101 "))
        #expect(try await end([serving], with: SIGTERM) == [.exit(0)])
    }

    // A descriptor that is closed was said to be reachable from other machines.
    @Test(
        "A descriptor that does not listen, or is closed, ends the server with 69, and it says so",
        arguments: ["", "exec 3<&-; "]
    )
    func noListener(preparation: String) async throws {
        let program = try server(preparation + Self.ours, InheritableSocket(isListening: false))
        #expect(try await program.end() == .exit(69))
        #expect(program.errors.contains("it is no socket that listens"), "\(program.errors)")
    }
}

/// A TCP socket at a free port, which a program can inherit.
private final class InheritableSocket: Sendable {
    let descriptor: Int32
    let port: UInt16

    /// Takes a port of `host`, and listens there unless told not to.
    init(host: String = "127.0.0.1", isListening: Bool = true) throws {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        descriptor = socket
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr(host)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(socket, address, size) == 0 && getsockname(socket, address, &size) == 0
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        guard isBound, !isListening || listen(socket, 8) == 0 else {
            throw TestFailure("cannot listen at \(host): errno \(errno)")
        }
    }

    deinit { close(descriptor) }
}
