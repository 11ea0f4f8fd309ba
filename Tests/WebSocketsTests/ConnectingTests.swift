import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import WebSockets

@Suite("Connecting", .timeLimit(.minutes(3)))
struct ConnectingTests {
    private func outcome(
        port: UInt16,
        timeout: Duration = .seconds(5),
        host: String = "127.0.0.1"
    ) throws -> WebSocketClosure {
        let loop = try WebSocketLoop(name: "client")
        defer { loop.shutdown() }
        var options = ClientOptions(url: try WebSocketURL("ws://\(host):\(port)/"))
        options.connectTimeout = timeout
        let handler = Recorder()
        loop.connect(options, handler: handler)
        return try handler.closure()
    }

    @Test("A port at which nobody listens refuses")
    func closedPort() throws {
        let port = try SilentServer().port
        let closure = try outcome(port: port)
        #expect(failureCode(closure) == .connectionRefused && "\(closure)".contains("nothing accepts connections"))
    }

    // "Nothing accepts connections there": the server was looked at, and not the robot's network.
    @Test("An address to which this machine finds no way is not told as a server that does not run")
    func noWay() throws {
        // An address of a link, of which link is not said.
        let closure = try outcome(port: 9, host: "[fe80::1]")
        guard case .failed(let error) = closure else { throw TestFailure("it did not fail") }
        #expect(error.code == .connectionRefused)
        #expect("\(error)".contains("this machine finds no way there ("), "\(error)")
    }

    // All of them were told to check the address, also if the server was only full.
    @Test(
        "A server that answers with HTTP is none for WebSockets, and the status says what to do",
        arguments: [
            (200, "check the address, the port and the path."), (302, "check the address, the port and the path."),
            (401, "the proxy in front wants a login"), (403, "let the proxy in front pass WebSockets"),
            (404, "behind a proxy, forward /rooms/"), (503, "is at its limit of connections or starting: try again"),
        ]
    )
    func plainHTTP(status: Int32, advice: String) throws {
        let server = try SilentServer()
        let loop = try WebSocketLoop(name: "client")
        defer { loop.shutdown() }
        let handler = Recorder()
        loop.connect(ClientOptions(url: try WebSocketURL("ws://127.0.0.1:\(server.port)")), handler: handler)
        let peer = server.accept()
        #expect(String(decoding: peer.receive(), as: UTF8.self).contains("room.v1"))
        peer.send("HTTP/1.1 \(status) Whatever\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 2\r\n\r\nhi")
        guard case .failed(let error) = try handler.closure() else { throw TestFailure("it did not fail") }
        #expect(error.code == .notAWebSocketServer && error.status == status)
        #expect("\(error)".contains(advice) && "\(error)".hasSuffix("."), "\(error)")
    }

    @Test("A server that hangs up, or whose handshake is false, is none for WebSockets", arguments: [false, true])
    func hangsUp(answers: Bool) throws {
        let server = try SilentServer()
        let loop = try WebSocketLoop(name: "client")
        defer { loop.shutdown() }
        let handler = Recorder()
        loop.connect(ClientOptions(url: try WebSocketURL("ws://127.0.0.1:\(server.port)")), handler: handler)
        var peer: RawPeer? = server.accept()
        let request = String(decoding: peer?.receive() ?? [], as: UTF8.self)
        #expect(request.hasPrefix("GET / HTTP/1.1\r\n"))
        if answers {
            peer?.send("HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n")
        }
        peer = nil
        #expect(try failureCode(handler.closure()) == .notAWebSocketServer)
    }

    // The reason was found by searching an English text of libwebsockets.
    @Test("A server that chooses a subprotocol which was not offered is told from one that is none for WebSockets")
    func foreignSubprotocol() throws {
        let server = try SilentServer()
        let loop = try WebSocketLoop(name: "client")
        defer { loop.shutdown() }
        let handler = Recorder()
        loop.connect(ClientOptions(url: try WebSocketURL("ws://127.0.0.1:\(server.port)")), handler: handler)
        let peer = server.accept()
        _ = peer.receive()
        let head = "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        peer.send("\(head)Sec-WebSocket-Protocol: room.v9\r\nSec-WebSocket-Accept: x\r\n\r\n")
        #expect(try failureCode(handler.closure()) == .subprotocolRefused)
    }

    @Test(
        "Only the name of the subprotocol in the answer says that it was refused, and no text of libwebsockets",
        arguments: [
            (101, "room.v9", "", WebSocketError.Code.subprotocolRefused),
            (101, "", "HS: PROTOCOL mismatch", .notAWebSocketServer),
            (101, "room.v1", "HS: PROTOCOL mismatch", .notAWebSocketServer),
            (404, "room.v9", "HS: PROTOCOL mismatch", .notAWebSocketServer),
        ]
    )
    func refusal(status: Int32, subprotocol: String, text: String, code: WebSocketError.Code) throws {
        let server = try Server()
        defer { server.loop.shutdown() }
        let options = try server.options()
        let error = server.onLoop {
            let attempt = ConnectAttempt(options: options, on: server.loop.service)
            attempt.isConnected = true
            return attempt.handshakeError(status: status, subprotocol: subprotocol, text: text)
        }
        #expect(error.code == code, "\(error)")
    }

    @Test("A server that says nothing, or nonsense, is left after the time given", arguments: ["", "SSH-2.0-x\r\n"])
    func silent(words: String) throws {
        let server = try SilentServer()
        let loop = try WebSocketLoop(name: "client")
        defer { loop.shutdown() }
        var options = ClientOptions(url: try WebSocketURL("ws://127.0.0.1:\(server.port)"))
        options.connectTimeout = .milliseconds(150)
        let handler = Recorder()
        loop.connect(options, handler: handler)
        let peer = server.accept()
        peer.send(words)
        #expect(try failureCode(handler.closure()) == .timedOut)
    }

    // One timer stood for all attempts of a loop, so that the earlier end of a later attempt was late.
    @Test("Attempts on one loop each end after their own time, in whatever order they began", arguments: 0..<6)
    func severalTimeouts(order: Int) throws {
        let server = try SilentServer()
        let loop = try WebSocketLoop(name: "client")
        defer { loop.shutdown() }
        let ended = Monitor<[Duration]>([])
        var remaining: [Duration] = [.milliseconds(150), .seconds(1), .seconds(600)]
        let times = [remaining.remove(at: order / 2), remaining.remove(at: order % 2), remaining[0]]
        // One job, so that no timer runs out before all are started.
        let attempts = try times.map { timeout in
            var options = ClientOptions(url: try WebSocketURL("ws://127.0.0.1:\(server.port)"))
            options.connectTimeout = timeout
            return (options, Recorder(whenClosed: { ended.change { $0.append(timeout) } }))
        }
        loop.execute { for (options, handler) in attempts { loop.service.connect(options, handler: handler) } }
        for (options, handler) in attempts where options.connectTimeout < .seconds(600) {
            #expect(try failureCode(handler.closure()) == .timedOut)
        }
        // The third would end with the loop only.
        #expect(ended.waitPatiently { $0.count == 2 ? $0 : nil } == [.milliseconds(150), .seconds(1)])
    }

    /// libwebsockets runs its timers before it waits: what they ask for must not wait with it.
    @Test("Work that follows from the end of a timer is done at once", arguments: [true, false])
    func afterTimer(sends: Bool) throws {
        let silent = try SilentServer()
        let server = try Server()
        let loop = try WebSocketLoop(name: "client")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        let bystander = try server.client(on: loop)
        _ = bystander.events { $0 == [.opened] }
        let isDone = Monitor(false)
        var options = ClientOptions(url: try WebSocketURL("ws://127.0.0.1:\(silent.port)"))
        options.connectTimeout = .milliseconds(150)
        let handler = Recorder(whenClosed: {
            if sends { bystander.send(.text("gone")) } else { loop.execute { isDone.change { $0 = true } } }
        })
        loop.connect(options, handler: handler)
        let peer = silent.accept()
        let deadline = MonotonicClock.now + .seconds(15)
        if sends {
            #expect(bystander.state.wait(until: deadline) { $0.events.contains(.text("gone")) ? true : nil } == true)
        } else {
            #expect(isDone.wait(until: deadline) { $0 ? true : nil } == true)
        }
        peer.reset()
    }

    @Test("A name that does not resolve says so")
    func unknownHost() throws {
        let code = try failureCode(outcome(port: 80, host: "no-such-host.invalid"))
        #expect(code == .unknownHost || code == .timedOut)
    }

    // Firewalls were named, though no address was known yet. And the time for connecting was over when a second name
    // server had answered.
    @Test("While no name server answers, the error speaks of that; the time for connecting begins with the answer")
    func silentNameServer() throws {
        let server = try Server()
        defer { server.loop.shutdown() }
        let options = ClientOptions(url: try WebSocketURL("ws://robot.example:80"))
        let errors = server.onLoop { () -> [String] in
            let attempt = ConnectAttempt(options: options, on: server.loop.service)
            let before = "\(attempt.timeOutError)"
            usleep(20_000)
            let answered = MonotonicClock.now
            attempt.resolved(to: [])
            #expect(attempt.schedule.deadline >= answered + options.connectTimeout)
            return [before, "\(attempt.timeOutError)"]
        }
        #expect(errors[0].contains("no name server told an address of robot.example within 12.0 s"), "\(errors)")
        #expect(errors[1].contains("no answer within 5.0 s") && errors[1].contains("firewalls"), "\(errors)")
    }

    @Test("A name is looked up, and each of its addresses is tried")
    func localhost() throws {
        let server = try Server()
        let loop = try WebSocketLoop(name: "client")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        let handler = Recorder()
        loop.connect(ClientOptions(url: try WebSocketURL("ws://localhost:\(server.port)")), handler: handler)
        #expect(handler.events { !$0.isEmpty } == [.opened])
    }

    /// A failure inside `connect()` ended the attempt, whatever other addresses the name had.
    @Test("An address that the system refuses at once is not the last that is tried")
    func nextAddress() throws {
        let server = try Server()
        let loop = try WebSocketLoop(name: "client")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        func addresses(_ hosts: [String], port: UInt16) throws -> [SocketAddress] {
            try hosts.flatMap { try SocketAddress.resolve(host: $0, port: port, isNumericOnly: true).get() }
        }
        func outcome(_ hosts: [String]) throws -> [Event] {
            let resolved = try addresses(hosts, port: server.port)
            let options = ClientOptions(url: try WebSocketURL("ws://several.example:\(server.port)"))
            let handler = Recorder()
            loop.execute { loop.service.connect(options, resolved: resolved, handler: handler) }
            return handler.events { !$0.isEmpty }
        }
        // TCP has no broadcasts: Linux refuses that in the call.
        #expect(try outcome(["255.255.255.255", "255.255.255.255", "127.0.0.1"]) == [.opened])
        #expect(try outcome(["127.0.0.2", "255.255.255.255", "127.0.0.1"]) == [.opened])
        guard case .closed(let closure)? = try outcome(["255.255.255.255", "255.255.255.255"]).first else {
            throw TestFailure("it did not fail")
        }
        #expect(failureCode(closure) == .connectionRefused)
    }

    /// One timer stood for all addresses, and its end ended the attempt.
    @Test("An address that swallows packets gives way to the next one, wherever it stands")
    func silentAddress() throws {
        let server = try Server()
        let silent = try UnansweringServer(host: "127.0.0.2", port: server.port)
        let loop = try WebSocketLoop(name: "client")
        defer {
            loop.shutdown()
            server.loop.shutdown()
        }
        func outcome(_ hosts: [String], timeout: Duration) throws -> Event? {
            let resolved = try hosts.flatMap {
                try SocketAddress.resolve(host: $0, port: server.port, isNumericOnly: true).get()
            }
            var options = ClientOptions(url: try WebSocketURL("ws://several.example:\(server.port)"))
            options.connectTimeout = timeout
            let handler = Recorder()
            loop.execute { [options] in loop.service.connect(options, resolved: resolved, handler: handler) }
            return handler.events { !$0.isEmpty }.first
        }
        let began = MonotonicClock.now
        // The system refuses the second address at once, and nobody listens at the third.
        for hosts in [[silent.host, "127.0.0.1"], [silent.host, "255.255.255.255", "127.0.0.3", "127.0.0.1"]] {
            #expect(try outcome(hosts, timeout: .seconds(20)) == .opened)
        }
        // Twice a whole timeout is 40 s.
        #expect(MonotonicClock.now.duration(since: began) < .seconds(20), "its share of the time is no more than 1 s")
        for hosts in [[silent.host, silent.host], [silent.host, "127.0.0.3"], [silent.host]] {
            guard case .closed(let closure)? = try outcome(hosts, timeout: .milliseconds(600)) else {
                throw TestFailure("it did not fail")
            }
            #expect(failureCode(closure) == .timedOut)
        }
        #expect(try outcome(["127.0.0.1", silent.host], timeout: .seconds(20)) == .opened)
    }

    @Test(
        "A client with another subprotocol or none reaches the handler, which sees what it offered",
        arguments: [("room.v2", "room.v2"), (nil, nil), ("foo, room.v1", "room.v1"), ("foo", "hung up")]
    )
    func subprotocols(offered: String?, accepted: String?) throws {
        let seen = Monitor<[String?]?>(nil)
        let server = try Server(whenOpened: { connection in
            seen.change { $0 = [connection.offeredSubprotocols, connection.subprotocol, connection.peerAddress] }
            connection.close(code: 4406, reason: "this server speaks room.v1")
        })
        defer { server.loop.shutdown() }
        let peer = try RawPeer(port: server.port)
        let answer = peer.handshake(subprotocols: offered)
        guard accepted != "hung up" else {
            #expect(answer.isEmpty)
            return
        }
        #expect(answer.contains(" 101 "))
        #expect(seen.wait { $0 } == [offered ?? "", accepted, "127.0.0.1"])
        #expect(String(decoding: peer.receiveAll(), as: UTF8.self).contains("this server speaks room.v1"))
    }

    @Test("A browser's plain request gets the greeting, and nothing elsewhere")
    func plainRequest() throws {
        var options = ListenerOptions()
        options.greeting = "Hello, browser."
        let server = try Server(options: options)
        defer { server.loop.shutdown() }
        for (path, status, text) in [("/", "200", "Hello, browser."), ("/etc/passwd", "404", "Nothing is here.")] {
            let peer = try RawPeer(port: server.port)
            peer.send("GET \(path) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            let answer = String(decoding: peer.receiveAll(), as: UTF8.self)
            #expect(answer.hasPrefix("HTTP/1.1 \(status)") && answer.hasSuffix("\r\n\r\n\(text)\n"))
            #expect(answer.contains("text/plain"))
        }
    }
}
