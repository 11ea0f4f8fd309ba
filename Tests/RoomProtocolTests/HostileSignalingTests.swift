import RoomProtocol
import TestTools
import Testing

@Suite("Hostile signaling", .timeLimit(.minutes(1)))
struct HostileSignalingTests {
    /// Reads `text` as both ends do; the result does not matter, only that there is one, and that it can be said.
    @discardableResult
    private func read(_ text: String) -> (isClientMessage: Bool, isServerMessage: Bool) {
        var results = (false, false)
        do {
            let message = try ClientMessage(reading: text)
            results.0 = (try? ClientMessage(reading: message.text)) == message
        } catch { #expect(error.description.utf8.count < 400) }
        do {
            let message = try ServerMessage(reading: text)
            results.1 = (try? ServerMessage(reading: message.text)) == message
        } catch { #expect(error.description.utf8.count < 400) }
        return results
    }

    private static let noObjects = [
        "", " ", "null", "true", "7", "\"join\"", "[]", "[{\"type\":\"leave\",\"reason\":\"\"}]", "{", "}", "{]",
        "{\"type\"}",
        "{\"type\":\"leave\",\"reason\":\"a\"", "{\"type\":\"leave\",\"reason\":\"a\"} {}",
        "{type:\"leave\",reason:\"a\"}",
        "{'type':'leave','reason':'a'}", "{\"type\":\"leave\",\"reason\":NaN}",
        "{\"type\":\"timeSync\",\"clientTime\":NaN}",
        "{\"type\":\"timeSync\",\"clientTime\":Infinity}", "{\"type\":\"timeSync\",\"clientTime\":0x10}",
        "{\"type\":\"timeSync\",\"clientTime\":01}", "{\"type\":\"timeSync\",\"clientTime\":--1}",
        "{\"type\":\"leave\",\"reason\":\"\\ud800\"}", "{\"type\":\"leave\",\"reason\":\"\\udc00\\ud800\"}",
        "{\"type\":\"leave\",\"reason\":\"\\u12\"}", "{\"type\":\"leave\",\"reason\":\"\\x41\"}",
        "{\"type\":\"leave\",\"reason\":\"\u{0}\"}", "{\"type\":\"leave\",\"reason\":\"a\nb\"}", "{\u{0}\"\u{0}t\u{0}",
    ]

    @Test("A message that is no JSON object is refused", arguments: noObjects.indices)
    func noObject(_ index: Int) {
        #expect(read(Self.noObjects[index]) == (false, false))
    }

    @Test("Nesting of 10,000 levels is refused, closed or not", arguments: ["[", "{\"a\":", "{\"type\":["])
    func deep(_ opening: String) {
        let unclosed = String(repeating: opening, count: 10_000)
        #expect(read(unclosed) == (false, false))
        let closing = opening.reversed().filter { "[{".contains($0) }.map { $0 == "[" ? "]" : "}" }.joined()
        #expect(read(unclosed + "0" + String(repeating: closing, count: 10_000)) == (false, false))
        let inside = "{\"type\":\"leave\",\"reason\":\"a\",\"x\":" + unclosed
        #expect(read(inside + "0" + String(repeating: closing, count: 10_000) + "}") == (false, false))
    }

    @Test("64 KiB of digits, of escapes or of fields give a result")
    func long() {
        let digits = String(repeating: "9", count: 65_000)
        read("{\"type\":\"timeSync\",\"clientTime\":\(digits)}")
        read("{\"type\":\"publish\",\"frameRate\":0.\(digits)}")
        read("{\"type\":\"publish\",\"frameRate\":1e\(digits)}")
        read("{\"type\":\"" + String(repeating: "\\u0301", count: 10_000) + "\"}")
        read("{" + (0..<6000).map { "\"k\($0)\":1" }.joined(separator: ",") + "}")
        read(digits)
    }

    @Test("A rate that no number can hold is refused, or is one that can be sent on")
    func hugeRate() {
        let publish = clientMessages[3].1
        for number in ["1e309", "-1e309", "1e308", "1e-400", "179769313486231580793e289"] {
            read(publish.replacing("\"frameRate\":30", with: "\"frameRate\":\(number)"))
        }
    }

    @Test("One value counts if a field comes twice, and nothing else breaks")
    func duplicateKeys() throws {
        let text = #"{"type":"leave","type":"leave","reason":"a","reason":"b"}"#
        let message = try? ClientMessage(reading: text)
        #expect([nil, .leave(Leave(reason: "a")), .leave(Leave(reason: "b"))].contains(message))
    }

    @Test("Seeded mutations of good messages are refused, or read as what can be sent on")
    func mutations() {
        var generator = SeededGenerator(seed: 5)
        let texts = clientMessages.map(\.1) + serverMessages.map(\.1)
        let pieces = Array("{}[]\",:\\0179.eE+-ntu \u{0}é").map { Array(String($0).utf8) }
        for round in 0..<2500 {
            var bytes = Array(texts[round % texts.count].utf8)
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                let offset = Int.random(in: 0..<bytes.count, using: &generator)
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: bytes.remove(at: offset)
                case 1: bytes.removeSubrange(offset...)
                case 2: bytes[offset] = UInt8.random(in: 0...127, using: &generator)
                default: bytes.insert(contentsOf: pieces.randomElement(using: &generator) ?? [], at: offset)
                }
                if bytes.isEmpty { bytes = [0x7B] }
            }
            read(String(decoding: bytes, as: UTF8.self))
        }
    }

    @Test("A message cut anywhere is refused")
    func truncated() {
        for text in clientMessages.map(\.1) + [serverMessages[0].1] {
            for count in 0..<text.utf8.count {
                let cut = String(decoding: text.utf8.prefix(count), as: UTF8.self)
                #expect(read(cut) == (false, false))
            }
        }
    }
}
