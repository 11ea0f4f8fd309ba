import MediaCore

/// The frame number in digits that people can read.
enum FrameCounter {
    /// The shapes of the digits, 5 × 7 pixels: one byte for each row, whose lowest five bits are the pixels from left
    /// to right.
    private static let shapes: [[UInt8]] = [
        [0b01110, 0b10001, 0b10001, 0b10101, 0b10001, 0b10001, 0b01110],
        [0b00100, 0b01100, 0b10100, 0b00100, 0b00100, 0b00100, 0b11111],
        [0b11110, 0b00001, 0b00001, 0b01110, 0b10000, 0b10000, 0b11111],
        [0b11110, 0b00001, 0b00001, 0b00110, 0b00001, 0b00001, 0b11110],
        [0b10010, 0b10010, 0b10010, 0b11111, 0b00010, 0b00010, 0b00010],
        [0b11111, 0b10000, 0b10000, 0b11110, 0b00001, 0b00001, 0b11110],
        [0b01110, 0b10000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110],
        [0b11111, 0b00001, 0b00010, 0b00010, 0b00100, 0b00100, 0b00100],
        [0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110],
        [0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00001, 0b01110],
    ]

    /// The size of a digit with the gap to the next one and the gaps above and below.
    private static let cell = Dimensions(width: 6, height: 9)
    /// Six digits last for five hours at 60 frames a second; after that the first digits are left out.
    private static let digits = 6

    /// Draws the last digits of `number` in white on black, in the middle of `rows`, as large as fits well.
    ///
    /// Draws nothing if even the smallest digits do not fit.
    static func paint(
        _ number: UInt32,
        into luma: inout MutableSpan<UInt8>,
        stride: Int,
        width: Int,
        rows: Range<Int>
    ) {
        let textWidth = digits * cell.width + 1
        let scale = min(width / 2 / textWidth, rows.count / cell.height)
        guard scale > 0 else { return }
        let left = (width - scale * textWidth) / 2
        let top = rows.lowerBound + (rows.count - scale * cell.height) / 2
        let area = PlaneArea(columns: left..<left + scale * textWidth, rows: top..<top + scale * cell.height)
        luma.fill(area, stride: stride, with: PatternPalette.black.luma)
        var rest = number
        for position in (0..<digits).reversed() {
            let corner = (column: left + scale * (position * cell.width + 1), row: top + scale)
            paint(shapes[Int(rest % 10)], at: corner, scale: scale, into: &luma, stride: stride)
            rest /= 10
        }
    }

    private static func paint(
        _ shape: [UInt8],
        at corner: (column: Int, row: Int),
        scale: Int,
        into luma: inout MutableSpan<UInt8>,
        stride: Int
    ) {
        for (row, pixels) in shape.enumerated() {
            for column in 0..<5 where pixels >> (4 - column) & 1 == 1 {
                let left = corner.column + column * scale
                let top = corner.row + row * scale
                let area = PlaneArea(columns: left..<left + scale, rows: top..<top + scale)
                luma.fill(area, stride: stride, with: PatternPalette.white.luma)
            }
        }
    }
}
