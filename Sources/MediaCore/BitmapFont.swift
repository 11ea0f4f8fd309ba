/// A small font for slates and captions: bitmaps of five by nine pixels, in ASCII and a few signs more.
///
/// Capitals and digits take the upper seven rows; the two rows below are for tails, as of `g`.
package enum BitmapFont {
    /// The columns and rows of pixels that a character takes, with the space after it and below it.
    package static let cell = Dimensions(width: 6, height: 10)
    /// The size of a character's bitmap.
    package static let glyphSize = Dimensions(width: 5, height: 9)

    /// The bitmap of a character, row by row, the highest bit first; that of `?` if it has none of its own.
    package static func glyph(of character: Character) -> UInt64 {
        if character == " " { return 0 }
        return glyphs[character] ?? glyphs["?"] ?? 0
    }

    /// Whether the pixel at `row` and `column` belongs to the character.
    package static func isInked(_ glyph: UInt64, row: Int, column: Int) -> Bool {
        let (width, height) = (glyphSize.width, glyphSize.height)
        return glyph >> UInt64((height - 1 - row) * width + (width - 1 - column)) & 1 != 0
    }

    /// The characters that have a bitmap of their own, sorted; a space has none.
    package static let characters = glyphs.keys.sorted()

    private static let glyphs: [Character: UInt64] = [
        "!": 0x042108401000, "\"": 0x0A5000000000, "#": 0x0A57D5F52800, "$": 0x047D1C5F1000,
        "%": 0x19C88889CC00, "&": 0x0C9511593400, "'": 0x042000000000, "(": 0x022210820800,
        ")": 0x082084222000, "*": 0x00ABBEEA8000, "+": 0x00213E420000, ",": 0x000000031888,
        "-": 0x00003E000000, ".": 0x000000063000, "/": 0x010888884000, "0": 0x0E8CEB98B800,
        "1": 0x046108423800, "2": 0x0E884C887C00, "3": 0x0E884C18B800, "4": 0x0232A5F10800,
        "5": 0x1F878218B800, "6": 0x06443D18B800, "7": 0x1F0888842000, "8": 0x0E8C5D18B800,
        "9": 0x0E8C5E113000, ":": 0x006300C60000, ";": 0x003180031888, "<": 0x022220820800,
        "=": 0x0007C1F00000, ">": 0x082082222000, "?": 0x0E884C401000, "@": 0x0E8DEB783C00,
        "A": 0x0E8C7F18C400, "B": 0x1E8C7D18F800, "C": 0x0E8C2108B800, "D": 0x1E8C6318F800,
        "E": 0x1F843D087C00, "F": 0x1F843D084000, "G": 0x0E8C2F18BC00, "H": 0x118C7F18C400,
        "I": 0x0E2108423800, "J": 0x071084293000, "K": 0x119531494400, "L": 0x108421087C00,
        "M": 0x11DD6B18C400, "N": 0x11CD6718C400, "O": 0x0E8C6318B800, "P": 0x1E8C7D084000,
        "Q": 0x0E8C63593400, "R": 0x1E8C7D494400, "S": 0x0F841C10F800, "T": 0x1F2108421000,
        "U": 0x118C6318B800, "V": 0x118C63151000, "W": 0x118C6B5DC400, "X": 0x118A88A8C400,
        "Y": 0x118A88421000, "Z": 0x1F0888887C00, "[": 0x0E4210843800, "\\": 0x108208208400,
        "]": 0x0E1084213800, "^": 0x045440000000, "_": 0x000000007C00, "`": 0x082000000000,
        "a": 0x000382F8BC00, "b": 0x1087A318F800, "c": 0x0003A308B800, "d": 0x010BE318BC00,
        "e": 0x0003A3F83800, "f": 0x064790842000, "g": 0x0003E318BC2E, "h": 0x1087A318C400,
        "i": 0x040308423800, "j": 0x020184210A4C, "k": 0x1084A98A4800, "l": 0x0C2108423800,
        "m": 0x0006AB5AD400, "n": 0x0007A318C400, "o": 0x0003A318B800, "p": 0x0007A318FA10,
        "q": 0x0003E318BC21, "r": 0x0005B3084000, "s": 0x0003E0E0F800, "t": 0x084790841800,
        "u": 0x00046318BC00, "v": 0x000463151000, "w": 0x00056B5AA800, "x": 0x000454454400,
        "y": 0x00046318BC2E, "z": 0x0007C4447C00, "{": 0x032110420C00, "|": 0x042108421000,
        "}": 0x182104426000, "~": 0x00022A200000, "±": 0x0427C8407C00, "·": 0x00000C600000,
        "…": 0x000000005400,
    ]
}
