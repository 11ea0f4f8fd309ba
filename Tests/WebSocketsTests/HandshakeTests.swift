import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import WebSockets

@Suite("Handshakes", .timeLimit(.minutes(3)))
struct HandshakeTests {
    private func server(_ origins: OriginPolicy = OriginPolicy()) throws -> Server {
        var options = ListenerOptions()
        options.origins = origins
        return try Server(options: options)
    }

    /// Any page that a browser on this machine had open could join.
    @Test(
        "A web page from elsewhere gets 403, one of this server and programs do not",
        arguments: [
            (nil, "evil.example", true), ("http://127.0.0.1:8480", "127.0.0.1:8480", true),
            ("http://evil.example", "127.0.0.1:8480", false), ("http://evil.example:8480", "evil.example:8480", false),
            ("null", "127.0.0.1:8480", false), ("https://room.example", "127.0.0.1:8480", true),
        ]
    )
    func origin(origin: String?, host: String, isAdmitted: Bool) throws {
        let allowed = try #require(WebOrigin("https://room.example"))
        let server = try server(OriginPolicy(allowedOrigins: [allowed]))
        defer { server.loop.shutdown() }
        let peer = try RawPeer(port: server.port)
        let answer = peer.handshake(host: host, headers: origin.map { ["Origin: \($0)"] } ?? [])
        #expect(answer.hasPrefix(isAdmitted ? "HTTP/1.1 101 " : "HTTP/1.1 403 Forbidden\r\n"))
        guard !isAdmitted else { return }
        #expect(String(decoding: peer.receiveAll(), as: UTF8.self).contains("may not connect"))
        #expect(server.handlers.withLock { $0.isEmpty })
    }

    /// A value of 1,024 bytes or more read as if it were not there.
    @Test("An origin of any length is looked at, and of two none is believed")
    func strangeOrigins() throws {
        let server = try server()
        defer { server.loop.shutdown() }
        for headers in [
            ["Origin: http://127.0.0.1:1" + String(repeating: "0", count: 1500)],
            ["Origin: http://127.0.0.1:1", "Origin: http://evil.example"], ["Origin: "], ["Origin:"],
        ] {
            let peer = try RawPeer(port: server.port)
            let answer = peer.handshake(host: "127.0.0.1:1", headers: headers)
            #expect(answer.contains(" 403 "))
        }
        // Zeros in front do not change a port.
        let long = "Origin: http://127.0.0.1:" + String(repeating: "0", count: 1500) + "1"
        let peer = try RawPeer(port: server.port)
        #expect(peer.handshake(host: "127.0.0.1:1", headers: [long]).contains(" 101 "))
    }

    @Test("Headers of 7 KB are taken, those of 20 KB hung up on, and the log is not filled with that")
    func headerSize() throws {
        let lines = Monitor([String]())
        let logging = try WebSocketLoop(name: "logging") { line in lines.change { $0.append(line) } }
        defer { logging.shutdown() }
        let server = try server()
        defer { server.loop.shutdown() }
        let peer = try RawPeer(port: server.port)
        #expect(peer.handshake(headers: ["Cookie: a=" + String(repeating: "x", count: 7000)]).contains(" 101 "))
        for _ in 0..<200 {
            let peer = try RawPeer(port: server.port)
            #expect(peer.handshake(headers: ["Cookie: a=" + String(repeating: "x", count: 20_000)]).isEmpty)
        }
        #expect((1...25).contains(lines.withLock { $0.count }))
    }

    @Test(
        "The path that is asked for reaches the handler as it was sent, without its query",
        arguments: [
            ("/", "/"), ("/rooms/my-room", "/rooms/my-room"), ("/rooms/a%20b", "/rooms/a%20b"), ("/?x=/y?z", "/"),
            ("/rooms/caf%c3%a9?token=x", "/rooms/caf%c3%a9"), ("/rooms/a%2Fb", "/rooms/a%2Fb"),
            ("/rooms/a+b&c;d=e~f%25", "/rooms/a+b&c;d=e~f%25"), ("//rooms/./x/../y", "//rooms/./x/../y"),
            ("/rooms/" + String(repeating: "a", count: 1017), "/rooms/" + String(repeating: "a", count: 1017)),
        ]
    )
    func path(asked: String, seen: String) throws {
        let paths = Monitor<String?>(nil)
        let server = try Server(whenOpened: { connection in paths.change { $0 = connection.requestPath } })
        defer { server.loop.shutdown() }
        let peer = try RawPeer(port: server.port)
        #expect(peer.handshake(path: asked).contains(" 101 "))
        #expect(paths.wait { $0 } == seen)
    }

    @Test(
        "A path that is too long, or wrongly encoded, is refused",
        arguments: [
            ("/" + String(repeating: "a", count: 1024), " 414 "), ("/" + String(repeating: "a", count: 9000), " 414 "),
            ("/rooms/%zz", " 403 "), ("/rooms/a%00", ""),
        ]
    )
    func badPath(asked: String, status: String) throws {
        let server = try Server()
        defer { server.loop.shutdown() }
        let answer = try RawPeer(port: server.port).handshake(path: asked)
        #expect(status.isEmpty ? answer.isEmpty : answer.contains(status))
    }

    /// A Unix socket counts as readable whatever SO_RCVLOWAT says, so no new bytes were taken for the end.
    @Test(
        "A request that comes byte by byte is understood, and one that ends early or never is dropped",
        arguments: [false, true]
    )
    func slowRequest(isUnix: Bool) throws {
        let paths = Monitor<String?>(nil)
        let socketPath = "/tmp/room-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).socket"
        defer { unlink(socketPath) }
        var options = ListenerOptions()
        if isUnix { options.socket = .unix(path: socketPath) }
        // A request that is on its way has time, however slow this machine is.
        options.handshakeTimeout = .seconds(60)
        let server = try Server(
            options: options,
            whenOpened: { connection in paths.change { $0 = connection.requestPath } }
        )
        defer { server.loop.shutdown() }
        func connect() throws -> RawPeer {
            isUnix ? try RawPeer(unixPath: socketPath) : try RawPeer(port: server.port)
        }
        let peer = try connect()
        for byte in Array("GET /rooms/slow HTTP/1.1".utf8) {
            peer.send([byte])
            usleep(2000)
        }
        peer.send("\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n")
        peer.send("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: room.v1\r\n\r\n")
        #expect(paths.wait { $0 } == "/rooms/slow")
        let half = try connect()
        half.send("GET /rooms/hal")
        usleep(50_000)
        half.endSending()
        let halfBegan = MonotonicClock.now
        #expect(half.receiveAll().isEmpty)
        // RawPeer gives up after 20 s.
        #expect(MonotonicClock.now.duration(since: halfBegan) < .seconds(15))
        unlink(socketPath)
        options.handshakeTimeout = .seconds(1)
        let impatient = try Server(options: options)
        defer { impatient.loop.shutdown() }
        let silent = isUnix ? try RawPeer(unixPath: socketPath) : try RawPeer(port: impatient.port)
        silent.send("GET /rooms/sil")
        let turns = impatient.onLoop { impatient.loop.service.budget.number }
        #expect(silent.receiveAll().isEmpty)
        #expect(impatient.onLoop { impatient.loop.service.budget.number } - turns < 100, "the loop waits meanwhile")
    }

    // A proxy that keeps its connections asked for a WebSocket on one that had answered a plain request, and got 400.
    @Test("A plain request's answer ends its connection, also if a request for a WebSocket follows at once")
    func usedConnection() throws {
        let server = try Server()
        defer { server.loop.shutdown() }
        let upgrade =
            "GET /rooms/x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        for (path, status) in [("/", "200"), ("/nothing", "404")] {
            for later in ["", upgrade] {
                let peer = try RawPeer(port: server.port)
                peer.send("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n" + later)
                let answer = String(decoding: peer.receiveUntilClose(), as: UTF8.self)
                #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(answer)")
                #expect(answer.contains("Connection: close\r\n") && !answer.contains(" 101 "), "\(answer)")
                #expect(answer.ranges(of: "HTTP/1.1").count == 1, "\(answer)")
            }
        }
        #expect(server.handlers.withLock { $0.isEmpty })
        // That the upgrade is one: a connection of its own becomes a WebSocket.
        let peer = try RawPeer(port: server.port)
        peer.send(upgrade)
        #expect(String(decoding: peer.receive(), as: UTF8.self).contains(" 101 "))
    }

    // HEAD of / was 404 with a body; who sends no more at once got the head alone, and an offer of HTTP/2 no answer.
    @Test(
        "Health checks, old clients and those that offer HTTP/2 get a whole answer",
        arguments: [
            ("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", false),
            ("HEAD /x HTTP/1.1\r\nHost: x\r\n\r\n", "404 ", false),
            ("GET / HTTP/1.0\r\n\r\n", "200 OK", true),
            (
                "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                    + "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n", "200 OK", true
            ),
        ],
        [true, false]
    )
    func plainRequest(_ request: (text: String, status: String, hasBody: Bool), endsSending: Bool) throws {
        let server = try Server()
        defer { server.loop.shutdown() }
        let peer = try RawPeer(port: server.port)
        peer.send(request.text)
        if endsSending { peer.endSending() }
        let answer = String(decoding: peer.receiveUntilClose(), as: UTF8.self)
        #expect(answer.hasPrefix("HTTP/1.1 \(request.status)"), "\(answer)")
        let end = try #require(answer.firstRange(of: "\r\n\r\n")).upperBound
        let body = answer[end...]
        #expect(body.isEmpty != request.hasBody, "\(answer)")
        #expect(!request.hasBody || answer.contains("\r\nContent-Length: \(body.utf8.count)\r\n"), "\(answer)")
    }

    @Test("A client of ours asks for the path of its URL")
    func clientPath() throws {
        let paths = Monitor<String?>(nil)
        let server = try Server(whenOpened: { connection in paths.change { $0 = connection.requestPath } })
        let loop = try WebSocketLoop(name: "client")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        let url = try WebSocketURL("ws://127.0.0.1:\(server.port)").appending(path: "/rooms/caf%C3%A9")
        let client = Recorder()
        loop.connect(ClientOptions(url: url), handler: client)
        #expect(paths.wait { $0 } == "/rooms/caf%C3%A9")
    }
}

@Suite("Origins of web pages")
struct OriginTests {
    @Test(
        "Origin and Host must agree in scheme, host and port, and the host must not be an attacker's name",
        arguments: [
            ("http://127.0.0.1", "127.0.0.1", true), ("http://127.0.0.1:80", "127.0.0.1", true),
            ("http://127.0.0.1", "127.0.0.1:80", true), ("http://127.0.0.1:8480", "127.0.0.1", false),
            ("https://127.0.0.1:80", "127.0.0.1:80", false), ("http://[::1]:9", "[::1]:9", true),
            ("http://localhost:8480", "LOCALHOST:8480", true), ("http://localhost:8480", "127.0.0.1:8480", false),
            ("http://evil.example:8480", "evil.example:8480", false),
            ("http://127.0.0.1.evil.example", "127.0.0.1.evil.example", false), ("http://1", "1", false),
            ("http://lab.example:8480", "Lab.Example:8480", true), ("http://sub.lab.example", "sub.lab.example", false),
            ("HTTPS://Room.Example", "x", true), ("https://room.example:443", "x", true),
            ("https://room.example:444", "x", false), ("http://room.example", "x", false), ("null", "127.0.0.1", false),
            ("", "127.0.0.1", false), ("127.0.0.1", "127.0.0.1", false), ("http://127.0.0.1/", "127.0.0.1", false),
            ("http://u@127.0.0.1", "127.0.0.1", false), ("http://[::1", "[::1", false), ("http://[]", "[]", false),
            ("http://127.0.0.1", "", false), ("http://127.0.0.1:99999", "127.0.0.1:99999", false),
        ]
    )
    func policy(origin: String, host: String, isAdmitted: Bool) throws {
        let allowed = try #require(WebOrigin("https://room.example"))
        let policy = OriginPolicy(hostNames: ["LAB.example"], allowedOrigins: [allowed])
        #expect(policy.admits(origin: origin, host: host, isSecure: false) == isAdmitted)
        #expect(policy.admits(origin: nil, host: host, isSecure: false))
    }

    @Test("Pages without an origin may connect only where that is said")
    func null() {
        let policy = OriginPolicy(allowedOrigins: [.null])
        #expect(policy.admits(origin: "null", host: "x", isSecure: false))
    }

    @Test("Under TLS, pages must come by https")
    func secure() {
        let policy = OriginPolicy()
        #expect(policy.admits(origin: "https://127.0.0.1", host: "127.0.0.1:443", isSecure: true))
        #expect(!policy.admits(origin: "http://127.0.0.1", host: "127.0.0.1", isSecure: true))
    }

    @Test("Random bytes and truncations never trap")
    func hostile() {
        var random = SeededBytes(seed: 7)
        let policy = OriginPolicy()
        for text in ["http://[::1]:8480", "https://a.b:1"] {
            for count in 0...text.count {
                _ = policy.admits(origin: String(text.prefix(count)), host: String(text.prefix(count)), isSecure: false)
            }
        }
        for _ in 0..<2000 {
            let text = String(decoding: random.next(Int(random.next(1)[0]) % 40), as: UTF8.self)
            _ = policy.admits(origin: "http://" + text, host: text, isSecure: false)
        }
    }
}

@Suite("The library's log")
struct LogBudgetTests {
    @Test("Twenty lines are written at once, then one in ten seconds, which tells how many are missing")
    func budget() {
        var budget = LogBudget()
        let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)
        for _ in 0..<20 { #expect(budget.line(at: start) == .write(omitted: 0)) }
        for _ in 0..<7 { #expect(budget.line(at: start + .seconds(9)) == .omit) }
        #expect(budget.line(at: start + .seconds(10)) == .write(omitted: 7))
        #expect(budget.line(at: start + .seconds(19)) == .omit)
        #expect(budget.line(at: start + .seconds(20)) == .write(omitted: 1))
        let later = start + .seconds(10_000)
        for _ in 0..<20 { #expect(budget.line(at: later) == .write(omitted: 0)) }
        #expect(budget.line(at: later) == .omit)
    }
}
