import TestTools
import Testing

@testable import WebSockets

@Suite("The program behind a URL")
struct HostProbeTests {
    @Test("Any answer of an unknown server is read, and shown without control characters")
    func hostileAnswers() throws {
        var generator = SeededGenerator(seed: 7)
        var named = 0
        for _ in 0..<2000 {
            let count = Int.random(in: 1...64, using: &generator)
            var bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            if Bool.random(using: &generator) {
                let rest = Array("\r\n\r\n".utf8) + bytes.reversed()
                bytes = Array("HTTP/1.1 200 OK\r\nServer: x".utf8) + bytes + rest
            }
            switch HTTPAnswer.read(bytes) {
            case .other(let line): #expect(isPrintable(line))
            case .http(_, let server, let subprotocol, let sentence):
                #expect(isPrintable(server) && isPrintable(subprotocol) && isPrintable(sentence))
                named += server.isEmpty ? 0 : 1
            default: break
            }
        }
        #expect(named > 100)
    }

    private func isPrintable(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }

    @Test("A server's acceptance is complete at the end of its head, other answers when the server hangs up")
    func complete() {
        let head = "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Protocol: room.v1\r\n"
        #expect(!HTTPAnswer.isComplete(Array(head.utf8)) && HTTPAnswer.isComplete(Array("\(head)\r\n".utf8)))
        #expect(!HTTPAnswer.isComplete(Array("HTTP/1.1 404 Not Found\r\n\r\n".utf8)))
        #expect(HTTPAnswer.isComplete(Array("SSH-2.0-x\r\n".utf8)))
        let answer = HTTPAnswer.read(Array("\(head)\r\n".utf8))
        #expect(answer == .http(status: 101, server: "", subprotocol: "room.v1", sentence: ""))
    }
}
