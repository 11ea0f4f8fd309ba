package import MediaCore
import Threading

/// Paints slates: pictures with a few lines of text, which take the place of a picture that does not come.
///
/// Buffers are reused. Confine to one thread.
package final class SlatePainter {
    /// Paper and ink, in limited range: dark grey and light grey, which are readable and cheap to encode.
    private static let paper: UInt8 = 48
    private static let ink: UInt8 = 210
    /// The columns and rows of pixels that a character takes, with the space after it.
    private static let cell = Dimensions(width: 6, height: 10)
    /// The characters that a line has room for at the size of the text.
    private static let fullLine = 24

    private let pool = VideoBufferPool(limit: 4)

    /// Creates a painter that has no buffers yet.
    package init() {}

    /// Paints `lines` in the middle of a picture of `dimensions`.
    ///
    /// Letters are painted as capitals, and characters without a glyph as question marks. A line that does not fit is
    /// cut off.
    package func paint(_ lines: [String], dimensions: Dimensions) -> VideoBuffer {
        let buffer = pool.take(dimensions.codable)
        let scale = max(1, buffer.dimensions.width / (Self.fullLine * Self.cell.width))
        let top = (buffer.dimensions.height - lines.count * Self.cell.height * scale) / 2
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            luma.update(repeating: Self.paper)
            chromaU.update(repeating: 128)
            chromaV.update(repeating: 128)
            for (number, line) in lines.enumerated() {
                let characters = line.uppercased().prefix(buffer.dimensions.width / (Self.cell.width * scale))
                let left = (buffer.dimensions.width - characters.count * Self.cell.width * scale) / 2
                for (column, character) in characters.enumerated() {
                    let corner = (
                        x: left + column * Self.cell.width * scale, y: top + number * Self.cell.height * scale
                    )
                    paint(character, at: corner, scale: scale, in: buffer, luma: &luma)
                }
            }
        }
        return buffer
    }

    private func paint(
        _ character: Character,
        at corner: (x: Int, y: Int),
        scale: Int,
        in buffer: VideoBuffer,
        luma: inout MutableSpan<UInt8>
    ) {
        let glyph = SlateGlyphs.glyph(of: character)
        guard glyph != 0 else { return }
        for row in 0..<SlateGlyphs.height * scale {
            let y = corner.y + row
            guard y >= 0, y < buffer.dimensions.height else { continue }
            for column in 0..<SlateGlyphs.width * scale {
                let x = corner.x + column
                guard x >= 0, x < buffer.dimensions.width else { continue }
                if SlateGlyphs.isInked(glyph, row: row / scale, column: column / scale) {
                    luma[y * buffer.lumaStride + x] = Self.ink
                }
            }
        }
    }
}

/// The letters of slates: bitmaps of five by seven pixels, row by row, the highest bit first.
enum SlateGlyphs {
    static let width = 5
    static let height = 7

    /// The bitmap of a capital letter, a digit or one of a few signs; that of `?` for any other character.
    static func glyph(of character: Character) -> UInt64 {
        if character == " " { return 0 }
        return glyphs[character] ?? glyphs["?"] ?? 0
    }

    /// Whether the pixel at `row` and `column` belongs to the letter.
    static func isInked(_ glyph: UInt64, row: Int, column: Int) -> Bool {
        glyph >> UInt64((height - 1 - row) * width + (width - 1 - column)) & 1 != 0
    }

    private static let glyphs: [Character: UInt64] = [
        "(": 0x088842082, ")": 0x208210888, "-": 0x0000F8000, ".": 0x00000018C, "/": 0x042222210,
        "0": 0x3A33AE62E, "1": 0x11842108E, "2": 0x3A213221F, "3": 0x3A213062E, "4": 0x08CA97C42,
        "5": 0x7E1E0862E, "6": 0x1910F462E, "7": 0x7C2222108, "8": 0x3A317462E, "9": 0x3A317844C,
        ":": 0x018C03180, "?": 0x3A2131004, "A": 0x3A31FC631, "B": 0x7A31F463E, "C": 0x3A308422E,
        "D": 0x7A318C63E, "E": 0x7E10F421F, "F": 0x7E10F4210, "G": 0x3A30BC62F, "H": 0x4631FC631,
        "I": 0x38842108E, "J": 0x1C4210A4C, "K": 0x4654C5251, "L": 0x42108421F, "M": 0x4775AC631,
        "N": 0x47359C631, "O": 0x3A318C62E, "P": 0x7A31F4210, "Q": 0x3A318D64D, "R": 0x7A31F5251,
        "S": 0x3E107043E, "T": 0x7C8421084, "U": 0x46318C62E, "V": 0x46318C544, "W": 0x4631AD771,
        "X": 0x462A22A31, "Y": 0x462A21084, "Z": 0x7C222221F, "_": 0x00000001F,
    ]
}
