import Testing
import Wording

@Suite("Words that a program does not know")
struct WordingTests {
    @Test(
        "A word is near another if few of its letters differ",
        arguments: [
            ("sise", "size", true), ("hots", "host", true), ("dmp", "dump", true), ("format", "formats", true),
            ("maximumRoms", "maximumRooms", true), ("jointimeout", "joinTimeout", true), ("conect", "connect", true),
            ("dump", "url", false), ("json", "room", false), ("crop", "url", false), ("nonsense", "connect", false),
            ("", "url", false), ("x", "y", false),
        ]
    )
    func near(first: String, second: String, isNear: Bool) {
        #expect(Spelling.isNear(first, second) == isNear)
        #expect(Spelling.isNear(second, first) == isNear)
    }

    @Test("The nearest word is found; a long word is compared with none")
    func nearest() {
        #expect(Spelling.nearest(to: "messageBurts", among: ["messageInterval", "messageBurst"]) == "messageBurst")
        #expect(Spelling.nearest(to: "quality", among: ["messageInterval", "messageBurst"]) == nil)
        let long = String(repeating: "x", count: 100_000)
        #expect(Spelling.nearest(to: long, among: [long]) == nil)
    }
}
