import MediaCore
import Testing

@Suite("Bitmap font")
struct BitmapFontTests {
    @Test("Every printable ASCII character has a bitmap of its own; others look like a question mark")
    func glyphs() {
        let characters = (0x21...0x7E).map { Character(Unicode.Scalar(UInt8($0))) } + ["±", "·", "…"]
        #expect(BitmapFont.characters == characters.sorted())
        #expect(Set(characters.map { BitmapFont.glyph(of: $0) }).count == characters.count)
        #expect(BitmapFont.glyph(of: " ") == 0 && BitmapFont.glyph(of: "é") == BitmapFont.glyph(of: "?"))
    }

    @Test("A tail reaches below the line, and a capital does not")
    func tails() {
        let rows = { (character: Character) in
            (0..<BitmapFont.glyphSize.height).map { row in
                String(
                    (0..<BitmapFont.glyphSize.width).map { column in
                        BitmapFont.isInked(BitmapFont.glyph(of: character), row: row, column: column) ? "#" : "."
                    } as [Character]
                )
            }
        }
        let none = "....."
        #expect(rows("T") == ["#####"] + Array(repeating: "..#..", count: 6) + [none, none])
        #expect(rows("g") == [none, none, ".####", "#...#", "#...#", "#...#", ".####", "....#", ".###."])
    }
}
