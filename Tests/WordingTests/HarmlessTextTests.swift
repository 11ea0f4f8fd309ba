import Foundation
import Testing
import Wording

@Suite("Text for a terminal")
struct HarmlessTextTests {
    // A name in a hostile server's message could clear the screen, or write to the clipboard.
    @Test(
        "Control characters do not reach the terminal, and everything else does",
        arguments: [
            ("caf\u{E9} \u{1F600} \u{5F20}\u{4E09}\n\tnext", "caf\u{E9} \u{1F600} \u{5F20}\u{4E09}\n\tnext"),
            ("\u{1B}[2Jrobot\u{7}", "\u{FFFD}[2Jrobot\u{FFFD}"), ("\u{9B}2J\r", "\u{FFFD}2J\u{FFFD}"), ("", ""),
            ("dump.\u{202E}mbew", "dump.\u{FFFD}mbew"), ("\u{1F468}\u{200D}\u{1F467}", "\u{1F468}\u{200D}\u{1F467}"),
        ]
    )
    func controls(text: String, expected: String) {
        #expect(harmless(text) == expected)
    }

    // A script was given names of files that were not those on the disk.
    @Test("In JSON, what a terminal would obey is escaped and not lost")
    func json() throws {
        let name = "\u{5E9}\u{5DC}\u{200F} \u{202E}x\u{9B}2J caf\u{E9}"
        let text = harmless(json: "{\"file\":\"\(name)\"}")
        #expect(text == "{\"file\":\"\u{5E9}\u{5DC}\\u200f \\u202ex\\u009b2J caf\u{E9}\"}")
        #expect(harmless(text) == text)
        #expect(try JSONDecoder().decode([String: String].self, from: Data(text.utf8)) == ["file": name])
    }
}
