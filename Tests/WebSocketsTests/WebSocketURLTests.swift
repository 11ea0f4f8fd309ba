import TestTools
import Testing

@testable import WebSockets

@Suite("WebSocket URLs")
struct WebSocketURLTests {
    @Test(
        "Host, port and path are found",
        arguments: [
            ("ws://a", "a", 80, "/"), ("WS://a.b-c_d:8480", "a.b-c_d", 8480, "/"),
            ("ws://1.2.3.4:1/x", "1.2.3.4", 1, "/x"),
            ("ws://[::1]:9/p?q=1/2", "::1", 9, "/p?q=1/2"), ("ws://a?q", "a", 80, "/?q"),
            ("ws://[fe80::1%25]/", "fe80::1%25", 80, "/"), ("ws://[fe80::1%eth0]:9", "fe80::1%eth0", 9, "/"),
            ("ws://[fe80::1%25br-lan.2]/x", "fe80::1%br-lan.2", 80, "/x"),
        ]
    )
    func good(text: String, host: String, port: UInt16, path: String) throws {
        let url = try WebSocketURL(text)
        #expect(url.host == host && url.port == port && url.path == path)
        #expect(try WebSocketURL(url.description) == url)
        #expect(url.description.contains(":\(port)/"), "the port that is tried, even where the text has none")
        #expect(!url.authority.contains("%"), "the server has other interfaces")
    }

    @Test(
        "Anything else is refused with a sentence",
        arguments: [
            "", "a", "ws:", "ws://", "ws:///x", "http://a", "ws://a:0", "ws://a:65536", "ws://a:", "ws://a:+1",
            "ws://u@a", "ws://a#f", "ws://a/#f",
            "ws://[::1", "ws://[::1]x", "ws://[x]", "ws://[]", "ws://[fe80::1%]", "ws://[fe80::1%a%b]", "ws://a b",
            "ws://a/\r\nX: y", "ws://ä", "ws://a\u{0}b",
            "ws://" + String(repeating: "a", count: 300),
            "ws://a/" + String(repeating: "a", count: 3000),
        ]
    )
    func bad(text: String) {
        let error = #expect(throws: WebSocketError.self) { try WebSocketURL(text) }
        #expect(error?.code == .badURL)
    }

    @Test(
        "An error does not repeat a user name and password, wherever the URL is at fault",
        arguments: [
            "ws://u:secret@a", "ws://u:secret@a b", "http://u:secret@a", "wss://u:secret@a", "ws://u@secret@a:0/@x#f",
            "ws://u:secret/x@a", "ws://u:x?secret@a", "ws://u:x#secret@a", "u:secret@a",
        ]
    )
    func secret(text: String) {
        let error = #expect(throws: WebSocketError.self) { try WebSocketURL(text) }
        #expect(error?.description.contains("secret") == false)
        #expect(error?.description.contains("…@a") == true, "the rest is still there to be recognized")
    }

    @Test(
        "A path goes behind the URL's own, and before its query",
        arguments: [
            ("ws://a", "ws://a:80/rooms/x"), ("ws://a/", "ws://a:80/rooms/x"), ("ws://a/b", "ws://a:80/b/rooms/x"),
            ("ws://[::1]:9/b/?q=/", "ws://[::1]:9/b/rooms/x?q=/"),
        ]
    )
    func appending(text: String, whole: String) throws {
        #expect(try WebSocketURL(text).appending(path: "/rooms/x").description == whole)
        #expect(throws: WebSocketError.self) { try WebSocketURL(text).appending(path: "/a b") }
        #expect(throws: WebSocketError.self) {
            try WebSocketURL(text).appending(path: "/" + String(repeating: "a", count: 2048))
        }
    }

    @Test("TLS is refused as not there yet")
    func tls() {
        let error = #expect(throws: WebSocketError.self) { try WebSocketURL("wss://a") }
        #expect(error?.code == .tlsNotSupported)
    }

    @Test("Random bytes and truncations never trap")
    func hostile() {
        var random = SeededBytes(seed: 1)
        let whole = "ws://[::1]:8480/a?b"
        for count in 0...whole.count { _ = try? WebSocketURL(String(whole.prefix(count))) }
        for _ in 0..<2000 {
            let bytes = random.next(Int(random.next(1)[0]) % 40)
            _ = try? WebSocketURL("ws://" + String(decoding: bytes, as: UTF8.self))
        }
    }
}
