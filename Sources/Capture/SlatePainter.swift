package import MediaCore
import Threading

/// Paints slates: pictures with a few lines of text, which take the place of a picture that does not come.
///
/// Buffers are reused. Confine to one thread.
package final class SlatePainter {
    /// Paper and ink, in limited range: dark grey and light grey, which are readable and cheap to encode.
    private static let paper: UInt8 = 48
    private static let ink: UInt8 = 210
    private static let cell = BitmapFont.cell
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
        let glyph = BitmapFont.glyph(of: character)
        guard glyph != 0 else { return }
        for row in 0..<BitmapFont.glyphSize.height * scale {
            let y = corner.y + row
            guard y >= 0, y < buffer.dimensions.height else { continue }
            for column in 0..<BitmapFont.glyphSize.width * scale {
                let x = corner.x + column
                guard x >= 0, x < buffer.dimensions.width else { continue }
                if BitmapFont.isInked(glyph, row: row / scale, column: column / scale) {
                    luma[y * buffer.lumaStride + x] = Self.ink
                }
            }
        }
    }
}
