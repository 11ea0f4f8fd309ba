import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import WebSockets

@Suite("Listening", .timeLimit(.minutes(3)))
struct ListeningTests {
    @Test("A port in use and a foreign address are refused with their codes")
    func badListeners() throws {
        let server = try Server()
        let loop = try WebSocketLoop(name: "loop")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        func code(_ options: ListenerOptions) -> WebSocketError.Code? {
            do {
                _ = try loop.listen(options) { Recorder() }
                return nil
            } catch { return error.code }
        }
        #expect(code(ListenerOptions(port: server.port)) == .addressInUse)
        #expect(code(ListenerOptions(host: "192.0.2.1")) == .badAddress)
        #expect(code(ListenerOptions(host: "not an address")) == .badAddress)
        #expect(code(ListenerOptions()) == nil)
    }

    @Test(
        "Only addresses of the loopback are out of other machines' reach",
        arguments: [
            ("127.0.0.1", false), ("127.255.0.9", false), ("::1", false), ("localhost", false),
            ("::ffff:127.0.0.1", false),
            ("0.0.0.0", true), ("::", true), ("192.0.2.1", true), ("128.0.0.1", true), ("fe80::1", true), ("::2", true),
            ("::ffff:192.0.2.1", true), ("7f00::1", true), ("not an address", false), ("", false),
        ]
    )
    func reach(host: String, isReachable: Bool) {
        #expect(ListenerOptions(host: host).isReachableFromElsewhere == isReachable)
    }

    // The name was checked once, and may have had no address then.
    @Test("A server for this machine alone listens at no address that others can reach", arguments: ["0.0.0.0", "::"])
    func loopbackOnly(host: String) throws {
        var options = ListenerOptions(host: host)
        options.isLoopbackOnly = true
        let error = try #require(throws: WebSocketError.self) { _ = try ListeningSocket(options).release() }
        #expect(error.code == .badAddress && error.description.contains("\(host);"), "\(error)")
        options = ListenerOptions(host: "localhost")
        options.isLoopbackOnly = true
        close(try ListeningSocket(options).release())
    }

    @Test("Listening works with IPv6 where the machine has it")
    func version6() throws {
        let loop = try WebSocketLoop(name: "loop")
        defer { loop.shutdown() }
        let port: UInt16
        do {
            port = try loop.listen(ListenerOptions(host: "::1")) { Recorder() }.port
        } catch {
            #expect(error.code == .badAddress)
            return
        }
        let handler = Recorder()
        loop.connect(ClientOptions(url: try WebSocketURL("ws://[::1]:\(port)/x?y")), handler: handler)
        #expect(handler.events { !$0.isEmpty } == [.opened])
    }

    @Test("A Unix socket and one that listens already serve as TCP does")
    func otherSockets() throws {
        let path = "/tmp/room-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).socket"
        defer { unlink(path) }
        var options = ListenerOptions()
        options.socket = .unix(path: path)
        let server = try Server(options: options)
        #expect(server.port == 0)
        #expect(throws: WebSocketError.self) { try Server(options: options) }
        let address = try #require(SocketAddress(unixPath: path))
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        #expect(address.withPointer { connect(descriptor, $0, $1) } == 0)
        let peer = RawPeer(descriptor: descriptor)
        #expect(peer.handshake(path: "/rooms/x").contains(" 101 "))
        let connection = try server.handler()
        #expect(server.onLoop { connection.connection?.peerAddress } == "unix")
        peer.send(text: "hello")
        #expect(peer.receive(exactly: 7) == [0x81, 5] + Array("hello".utf8))
        server.loop.shutdown()

        let listening = try ListeningSocket(ListenerOptions()).release()
        options.socket = .inherited(descriptor: listening)
        #expect(!options.isReachableFromElsewhere)
        let second = try Server(options: options)
        defer { second.loop.shutdown() }
        #expect(second.port != 0)
        #expect(try RawPeer(port: second.port).handshake().contains(" 101 "))
        for socket in [
            ListenerOptions.Socket.inherited(descriptor: 999), .unix(path: ""), .unix(path: "/nowhere/x"),
            .unix(path: "/" + String(repeating: "x", count: 107)),
        ] {
            options.socket = socket
            #expect(throws: WebSocketError.self) { try Server(options: options) }
        }
    }

    /// Connecting to a regular file is refused like connecting to a socket that nobody serves any more.
    @Test("A Unix socket takes the place of an abandoned socket, and of nothing else")
    func occupiedPaths() throws {
        let path = "/tmp/room-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).socket"
        defer { unlink(path) }
        var options = ListenerOptions()
        options.socket = .unix(path: path)
        let file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
        #expect(write(file, "precious", 8) == 8)
        close(file)
        #expect(throws: WebSocketError.self) { try ListeningSocket(options).release() }
        var information = stat()
        #expect(lstat(path, &information) == 0 && information.st_size == 8)
        unlink(path)

        close(try ListeningSocket(options).release())
        let again = try ListeningSocket(options).release()
        defer { close(again) }
        #expect(lstat(path, &information) == 0)
        #expect(information.st_mode == S_IFSOCK | 0o666)
        #expect(throws: WebSocketError.self) { try ListeningSocket(options).release() }
    }

    // The server hung at its start, without a word.
    @Test("A Unix socket whose listener does not accept and has a full queue is in use")
    func fullQueue() throws {
        let path = "/tmp/room-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).socket"
        defer { unlink(path) }
        let address = try #require(SocketAddress(unixPath: path))
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let listener = socket(AF_UNIX, kind, 0)
        defer { close(listener) }
        #expect(address.withPointer { bind(listener, $0, $1) } == 0 && listen(listener, 0) == 0)
        var waiting: [Int32] = []
        defer { for descriptor in waiting { close(descriptor) } }
        var isFull = false
        while !isFull, waiting.count < 100 {
            waiting.append(socket(AF_UNIX, kind, 0))
            isFull = address.withPointer { connect(waiting[waiting.count - 1], $0, $1) } != 0 && errno == EAGAIN
        }
        try #require(isFull)
        var options = ListenerOptions()
        options.socket = .unix(path: path)
        #expect(throws: WebSocketError.self) { try ListeningSocket(options).release() }
    }

    @Test("Beyond the greatest number of connections a peer gets 503, until one has gone")
    func maximumConnections() throws {
        var options = ListenerOptions()
        options.maximumConnections = 1
        let server = try Server(options: options)
        defer { server.loop.shutdown() }
        let first = try RawPeer(port: server.port)
        #expect(first.handshake().contains(" 101 "))
        #expect(try RawPeer(port: server.port).receiveAll().starts(with: Array("HTTP/1.1 503".utf8)))
        first.reset()
        _ = try server.handler().closure()
        var isAccepted = false
        while !isAccepted { isAccepted = try RawPeer(port: server.port).handshake().contains(" 101 ") }
    }
}
