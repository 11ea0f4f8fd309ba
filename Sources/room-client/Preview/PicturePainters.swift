import MediaFiles
import RoomKit

/// Turns pictures into what a terminal is sent to show them.
protocol PicturePainter {
    /// Appends what shows the picture, whose size is the layout's, to `output`.
    mutating func paint(_ picture: VideoBuffer, _ layout: PreviewLayout, into output: inout [UInt8])
}

/// Draws with half blocks: the colour of a letter and that of its background are two pixels, one above the other.
struct HalfBlockPainter: PicturePainter {
    mutating func paint(_ picture: VideoBuffer, _ layout: PreviewLayout, into output: inout [UInt8]) {
        for row in 0..<picture.dimensions.height / 2 {
            output.append(row: layout.row + row, column: layout.column)
            var former: (upper: Colour, lower: Colour)?
            picture.withPlanes { luma, chromaU, chromaV in
                let upperRow = 2 * row * picture.lumaStride
                for column in 0..<picture.dimensions.width {
                    // Both rows share a row of chroma.
                    let (place, chroma) = (upperRow + column, row * picture.chromaStride + column / 2)
                    let upper = Colour(luma[place], chromaU[chroma], chromaV[chroma])
                    let lower = Colour(luma[place + picture.lumaStride], chromaU[chroma], chromaV[chroma])
                    if former?.upper != upper { Self.append(upper, selecting: 38, to: &output) }
                    if former?.lower != lower { Self.append(lower, selecting: 48, to: &output) }
                    former = (upper, lower)
                    output.append("\u{2580}")
                }
            }
            output.append("\u{1B}[0m")
        }
    }

    /// Selects a colour of 24 bits (ISO 8613-6): `38` for letters, `48` for the background.
    private static func append(_ colour: Colour, selecting plane: Int, to output: inout [UInt8]) {
        output.append("\u{1B}[")
        for (index, number) in [plane, 2, Int(colour.red), Int(colour.green), Int(colour.blue)].enumerated() {
            if index > 0 { output.append(UInt8(ascii: ";")) }
            output.append(number: number)
        }
        output.append(UInt8(ascii: "m"))
    }
}

/// Draws with sixels (VT340): bands of six rows, one pass for each colour, from a palette with ordered dithering.
struct SixelPainter: PicturePainter {
    /// The steps of red, green and blue in the palette.
    let levels: (red: Int, green: Int, blue: Int)
    /// For each colour of the palette, the bits of the band's columns.
    private var masks: [UInt8] = []
    private var isUsed: [Bool]

    /// Thresholds of ordered dithering, in sixteenths (Bayer's matrix of 4 by 4).
    private static let thresholds = [0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5]

    /// Creates a painter for a terminal with `registers` colours, of which it uses at most 252.
    init(registers: Int) {
        // The eye tells most steps of green apart.
        let cubes = [(6, 7, 6), (5, 5, 5), (4, 4, 4), (3, 4, 3), (2, 4, 2), (2, 2, 2)]
        let cube = cubes.first { $0.0 * $0.1 * $0.2 <= registers } ?? (2, 2, 2)
        levels = (cube.0, cube.1, cube.2)
        isUsed = [Bool](repeating: false, count: cube.0 * cube.1 * cube.2)
    }

    mutating func paint(_ picture: VideoBuffer, _ layout: PreviewLayout, into output: inout [UInt8]) {
        let (width, height) = (picture.dimensions.width, picture.dimensions.height)
        if masks.count != isUsed.count * width { masks = [UInt8](repeating: 0, count: isUsed.count * width) }
        output.append(row: layout.row, column: layout.column)
        output.append("\u{1B}P0;1;0q\"1;1;")
        output.append(number: width)
        output.append(UInt8(ascii: ";"))
        output.append(number: height)
        appendPalette(to: &output)
        for band in stride(from: 0, to: height, by: 6) {
            picture.withPlanes { luma, chromaU, chromaV in
                for row in band..<min(band + 6, height) {
                    for column in 0..<width {
                        let chroma = row / 2 * picture.chromaStride + column / 2
                        let colour = Colour(luma[row * picture.lumaStride + column], chromaU[chroma], chromaV[chroma])
                        let index = index(of: colour, row: row, column: column)
                        masks[index * width + column] |= 1 << UInt8(row - band)
                        isUsed[index] = true
                    }
                }
            }
            appendBand(width, to: &output)
        }
        output.append("\u{1B}\\")
    }

    private func appendPalette(to output: inout [UInt8]) {
        for index in isUsed.indices {
            let (red, rest) = index.quotientAndRemainder(dividingBy: levels.green * levels.blue)
            let (green, blue) = rest.quotientAndRemainder(dividingBy: levels.blue)
            let steps = [(red, levels.red), (green, levels.green), (blue, levels.blue)]
            output.append(UInt8(ascii: "#"))
            output.append(number: index)
            output.append(";2")
            for (step, count) in steps {
                output.append(UInt8(ascii: ";"))
                output.append(number: step * 100 / (count - 1))
            }
        }
    }

    /// The palette's index for a colour at a place, which decides whether it is rounded up or down.
    private func index(of colour: Colour, row: Int, column: Int) -> Int {
        let threshold = Self.thresholds[row % 4 * 4 + column % 4]
        func step(_ value: UInt8, _ count: Int) -> Int {
            (Int(value) * (count - 1) * 16 + threshold * 255 + 127) / (255 * 16)
        }
        let red = min(step(colour.red, levels.red), levels.red - 1)
        let green = min(step(colour.green, levels.green), levels.green - 1)
        let blue = min(step(colour.blue, levels.blue), levels.blue - 1)
        return (red * levels.green + green) * levels.blue + blue
    }

    /// Appends the columns of each colour of a band, and clears them for the next band.
    private mutating func appendBand(_ width: Int, to output: inout [UInt8]) {
        for index in isUsed.indices where isUsed[index] {
            isUsed[index] = false
            output.append(UInt8(ascii: "#"))
            output.append(number: index)
            var column = 0
            while column < width {
                let bits = masks[index * width + column]
                var end = column
                while end < width, masks[index * width + end] == bits {
                    masks[index * width + end] = 0
                    end += 1
                }
                Self.append(UInt8(ascii: "?") + bits, times: end - column, to: &output)
                column = end
            }
            output.append(UInt8(ascii: "$"))
        }
        output.append(UInt8(ascii: "-"))
    }

    private static func append(_ sixel: UInt8, times count: Int, to output: inout [UInt8]) {
        guard count > 3 else {
            for _ in 0..<count { output.append(sixel) }
            return
        }
        output.append(UInt8(ascii: "!"))
        output.append(number: count)
        output.append(sixel)
    }
}

/// A colour on the terminal.
private struct Colour: Equatable {
    var red: UInt8
    var green: UInt8
    var blue: UInt8

    /// The colour of a pixel of luma and chroma.
    init(_ luma: UInt8, _ chromaU: UInt8, _ chromaV: UInt8) {
        (red, green, blue) = BT601.colour(luma: luma, chromaU: chromaU, chromaV: chromaV)
    }
}

extension [UInt8] {
    /// Appends a text.
    mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { unsafe append(contentsOf: $0) }
    }

    /// Appends a number that is not negative, in decimal, without making a text of it.
    mutating func append(number: Int) {
        if number >= 10 { append(number: number / 10) }
        append(UInt8(ascii: "0") + UInt8(number % 10))
    }

    /// Appends what moves the cursor to a cell, counted from 1.
    mutating func append(row: Int, column: Int) {
        append("\u{1B}[")
        append(number: row)
        append(UInt8(ascii: ";"))
        append(number: column)
        append(UInt8(ascii: "H"))
    }
}
