import Glibc
import RelayCore
import RelayServer
import RoomKit
import TestSupport
import TestTools
import Testing
import Threading
import WebSockets

@testable import Diagnosis

/// A server of something else, which gives each client the same bytes and hangs up.
private final class OtherServer: Sendable {
    let port: UInt16

    init(_ answer: String) throws {
        let server = try SilentServer()
        port = server.port
        // It waits for a next client until the test program ends.
        _ = try WorkerThread(name: "other") { while true { server.answer(Array(answer.utf8)) } }
    }
}

@Suite("The check of a server", .timeLimit(.minutes(2)))
struct ServerCheckTests {
    private func check(_ url: String) async -> ServerCheck.Outcome {
        var options = ConnectOptions(roomName: "doctor-test")
        options.url = url
        return await ServerCheck(options).run()
    }

    private func code(of url: String) async -> String? {
        let outcome = await check(url)
        #expect(outcome.findings.count == 1 && outcome.findings.first?.level == .problem && outcome.room == nil)
        #expect(outcome.findings.first?.advice?.isEmpty == false)
        return outcome.findings.first?.code
    }

    @Test("A room server is joined, and its version and round trips are known")
    func server() async throws {
        let stage = try Stage()
        let outcome = await check(stage.url)
        #expect(outcome.findings.map(\.level) == [.ok], "\(outcome.findings)")
        #expect(outcome.version == "room-server/\(RelayServer.version)" && outcome.roundTrips.count > 1)
        let room = try #require(outcome.room)
        #expect(await room.state == .connected)
        await room.disconnect()
    }

    @Test("A port with nothing behind it says so, and how to start a server")
    func nothing() async throws {
        let port = try SilentServer().port
        let outcome = await check("ws://127.0.0.1:\(port)")
        #expect(outcome.findings.map(\.code) == ["connectionRefused"])
        #expect(outcome.findings[0].advice?.contains("room-server") == true)
    }

    @Test(
        "The system's reason is told, and only silence is a lack of an answer",
        arguments: [
            (EPERM, "connectFailed", "Operation not permitted"), (EMFILE, "connectFailed", "Too many open files"),
            (EADDRNOTAVAIL, "connectFailed", "Cannot assign"), (ETIMEDOUT, "timedOut", "no answer within 5 s"),
        ]
    )
    func unreachable(status: Int32, code: String, words: String) throws {
        let attempt = HostProbe.Attempt(address: "192.0.2.1", status: status, duration: .zero)
        let finding = ServerCheck.unreachable(try WebSocketURL("ws://192.0.2.1:8480"), [attempt])
        #expect(finding.code == code && finding.found.contains(words), "\(finding)")
    }

    @Test("A name that does not resolve and a URL that cannot be used are told apart")
    func names() async {
        #expect(await code(of: "ws://no-such-host.invalid:8480") == "unknownHost")
        #expect(await code(of: "http://127.0.0.1") == "badURL")
        #expect(await code(of: "wss://127.0.0.1") == "tlsNotSupported")
    }

    @Test(
        "Other software is recognized by what it answers",
        arguments: [
            ("HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 0\r\n\r\n", "otherSoftware", "nginx"),
            ("HTTP/1.1 404 Not Found\r\n\r\nNothing is here.\n", "notFound", "Nothing is here."),
            ("HTTP/1.1 403 Forbidden\r\n\r\n<html>no</html>", "httpRefused", "403"),
            ("HTTP/1.1 502 Bad Gateway\r\nServer: haproxy\r\n\r\n", "proxy", "haproxy"),
            ("HTTP/1.1 301 Moved\r\nLocation: /x\r\n\r\n", "redirected", "301"),
            ("SSH-2.0-OpenSSH_9.2\r\n", "otherSoftware", "SSH-2.0-OpenSSH_9.2"),
            ("\u{15}\u{03}\u{01}\u{00}\u{02}", "tls", "TLS"), ("", "hungUp", "without an answer"),
        ]
    )
    func otherSoftware(answer: String, code: String, words: String) async throws {
        let outcome = await check("ws://127.0.0.1:\(try OtherServer(answer).port)")
        #expect(outcome.findings.map(\.code) == [code], "\(outcome.findings)")
        #expect(outcome.findings.first?.found.contains(words) == true, "\(outcome.findings)")
    }

    @Test("A full server's refusal is told with its number")
    func refused() async throws {
        let stage = try Stage { $0.relay.maximumRooms = 0 }
        let outcome = await check(stage.url)
        #expect(outcome.findings.map(\.code) == ["refused"] && outcome.findings[0].found.contains("4429"))
    }
}
