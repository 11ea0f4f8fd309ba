import Glibc
import Logging
import TestTools
import Testing
import Threading
import WebSockets

@testable import RelayServer

/// In processes of their own, because the limit that is set holds for all of it.
@Suite("The limit of open files", .timeLimit(.minutes(1)))
struct DescriptorLimitTests {
    // With the usual soft limit of 1,024 the server took 960 connections of the 2,000 that it states.
    @Test("A server raises the limit as far as it needs, and says nothing of it")
    func raised() async {
        await #expect(processExitsWith: .success) {
            let lines = Monitor([String]())
            // The peers take as many descriptors of this process as the server's side.
            let server = try server(connections: 30, limit: (soft: 60, hard: 1000), lines: lines)
            guard DescriptorLimit.current == 30 + DescriptorLimit.reserve else { throw TestFailure("not raised") }
            let peers = try (0..<30).map { _ in try RawPeer(port: server.port) }
            guard peers.allSatisfy({ $0.handshake(path: "/").contains(" 101 ") }) else {
                throw TestFailure("refused within the limit")
            }
            guard lines.withLock({ $0.isEmpty }) else { throw TestFailure("\(lines.withLock { $0 })") }
            server.stop()
        }
    }

    @Test("A server that cannot have as many connections as it should says so, and logs whom it refuses")
    func refused() async {
        await #expect(processExitsWith: .success) {
            let lines = Monitor([String]())
            let server = try server(connections: 150, limit: (soft: 80, hard: 90), lines: lines)
            let most = 90 - DescriptorLimit.reserve
            let said = "the system's limit of open files is 90 (ulimit -n): the server takes \(most) connections"
            guard lines.withLock({ $0 == [said] }) else { throw TestFailure("\(lines.withLock { $0 })") }
            let peers = try (0..<most).map { _ in try RawPeer(port: server.port) }
            guard peers.allSatisfy({ $0.handshake(path: "/").contains(" 101 ") }) else {
                throw TestFailure("refused within the limit")
            }
            let answer = try withExtendedLifetime(peers) {
                String(decoding: try RawPeer(port: server.port).receiveAll(), as: UTF8.self)
            }
            let refusal = "refused 127.0.0.1: the limit of connections, \(most), is reached"
            guard answer.hasPrefix("HTTP/1.1 503"), lines.wait(for: { $0.last == refusal ? true : nil }) == true else {
                throw TestFailure("\(answer), \(lines.withLock { $0 })")
            }
            server.stop()
        }
    }

    // libwebsockets wrote beyond its table when such a connection ended.
    @Test("A connection for which libwebsockets has no place, since the limit was raised after it began, is refused")
    func raisedLater() async {
        await #expect(processExitsWith: .success) {
            let lines = Monitor([String]())
            let server = try server(connections: 56, limit: (soft: 120, hard: 1000), lines: lines)
            guard DescriptorLimit.raise(to: 1000) == 1000 else { throw TestFailure("not raised") }
            var refused = 0
            for _ in 0..<100 where refused < 10 {
                // The next ones lie beyond the former limit, unless another thread closes one below it at this moment.
                var taken: Int32 = 0
                while taken < 120 {
                    taken = open("/dev/null", O_RDONLY)
                    guard taken >= 0 else { throw TestFailure("no descriptor") }
                }
                let peer = try RawPeer(port: server.port)
                peer.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                let answer = String(decoding: peer.receiveAll(), as: UTF8.self)
                if answer.hasPrefix("HTTP/1.1 503") {
                    refused += 1
                } else if !answer.hasPrefix("HTTP/1.1 200") {
                    throw TestFailure("“\(answer)”")
                }
            }
            guard refused == 10 else { throw TestFailure("only \(refused) were refused") }
            server.stop()
        }
    }
}

/// Starts a server in a process with the limit `limit`, which puts what it logs into `lines`.
private func server(
    connections: Int,
    limit: (soft: Int, hard: Int),
    lines: Monitor<[String]>
) throws -> RelayServer {
    var limit = rlimit(rlim_cur: rlim_t(limit.soft), rlim_max: rlim_t(limit.hard))
    guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { throw TestFailure("no limit") }
    var options = RelayServer.Options()
    options.port = 0
    options.maximumConnections = connections
    options.logger = Logger(label: "test") { _ in LineHandler(lines: lines) }
    return try RelayServer(options)
}
