import Foundation
import MediaCore
import MediaFiles
import RoomKit
import Testing

@testable import room_client

/// A picture of one colour.
private func plain(_ width: Int, _ height: Int, luma: UInt8 = 235) -> VideoBuffer {
    let buffer = VideoBuffer(dimensions: Dimensions(width: width, height: height))
    buffer.withMutablePlanes { lumas, chromaU, chromaV in
        lumas.update(repeating: luma)
        chromaU.update(repeating: 128)
        chromaV.update(repeating: 128)
    }
    return buffer
}

@Suite("Preview on a terminal")
struct PreviewTests {
    @Test(
        "With half blocks a picture keeps its shape, in the middle, above the status",
        arguments: [
            (Dimensions(width: 640, height: 480), 80, 24, Dimensions(width: 61, height: 46), 1, 10),
            (Dimensions(width: 640, height: 480), 40, 50, Dimensions(width: 40, height: 30), 18, 1),
            (Dimensions(width: 1280, height: 720), 1, 2, Dimensions(width: 1, height: 2), 1, 1),
        ]
    )
    func halfBlocks(picture: Dimensions, columns: Int, rows: Int, size: Dimensions, row: Int, column: Int) throws {
        let layout = try #require(
            PreviewLayout(halfBlocksFor: picture, on: TerminalSize(columns: columns, rows: rows))
        )
        #expect(layout.dimensions == size && layout.row == row && layout.column == column)
        #expect(layout.row + size.height / 2 <= rows && layout.column + size.width <= columns + 1)
    }

    @Test("However large a terminal says to be, a picture of bounded size is drawn in its middle")
    func absurdTerminal() throws {
        let terminal = TerminalSize(columns: 65_535, rows: 65_535, pixels: Dimensions(width: 65_535, height: 65_535))
        let picture = Dimensions(width: 1280, height: 720)
        let layout = try #require(PreviewLayout(halfBlocksFor: picture, on: terminal))
        #expect(layout.dimensions == Dimensions(width: 1000, height: 562))
        #expect(layout.row == 1 + (65_534 - 281) / 2 && layout.column == 1 + (65_535 - 1000) / 2)
    }

    @Test("A terminal of one row or of no column has no picture")
    func tooSmall() {
        let picture = Dimensions(width: 64, height: 48)
        #expect(PreviewLayout(halfBlocksFor: picture, on: TerminalSize(columns: 80, rows: 1)) == nil)
        #expect(PreviewLayout(halfBlocksFor: picture, on: TerminalSize(columns: 0, rows: 10)) == nil)
    }

    @Test("With sixels a picture is not enlarged, and no larger than the terminal draws")
    func sixels() throws {
        let terminal = TerminalSize(columns: 100, rows: 40, pixels: Dimensions(width: 1000, height: 800))
        let limit = Dimensions(width: 400, height: 1000)
        let small = Dimensions(width: 160, height: 90)
        let first = try #require(PreviewLayout(sixelsFor: small, on: terminal, limit: limit))
        #expect(first.dimensions == small && first.row == 17 && first.column == 43)
        let second = try #require(
            PreviewLayout(sixelsFor: Dimensions(width: 1920, height: 1080), on: terminal, limit: limit)
        )
        #expect(second.dimensions == Dimensions(width: 400, height: 225))
        let unknown = TerminalSize(columns: 100, rows: 40)
        #expect(PreviewLayout(sixelsFor: small, on: unknown, limit: limit) == nil)
    }

    @Test(
        "A terminal's answers say whether it has sixels, how many colours, and how large a picture may be",
        arguments: [
            ("\u{1B}[?62;4;6c", true, 16, 1000, true),
            ("\u{1B}[?1;2c", false, 16, 1000, true),
            ("\u{1B}[?4c", false, 16, 1000, true),
            ("\u{1B}[?1;0;256S\u{1B}[?2;0;800;480S\u{1B}[?63;1;4c", true, 256, 800, true),
            ("\u{1B}[?1;3;0S\u{1B}[?2;0;0;0Sqx\u{1B}[?63;4c", true, 16, 1000, true),
            ("\u{1B}[?1;0;256S\u{1B}[?62;4", false, 256, 1000, false),
            ("\u{1B}[A\u{1B}\u{1B}[?", false, 16, 1000, false), ("", false, 16, 1000, false),
        ]
    )
    func answers(text: String, hasSixels: Bool, registers: Int, width: Int, isComplete: Bool) {
        let answers = TerminalAnswers(Array(text.utf8))
        #expect(answers.hasSixels == hasSixels && answers.registers == registers)
        #expect(answers.largestPicture.width == width && answers.isComplete == isComplete)
    }

    @Test("A row of one colour sets it once, and two pixels share a cell")
    func paintHalfBlocks() throws {
        let layout = try #require(
            PreviewLayout(halfBlocksFor: Dimensions(width: 3, height: 4), on: TerminalSize(columns: 3, rows: 3))
        )
        var (painter, output) = (HalfBlockPainter(), [UInt8]())
        painter.paint(plain(3, 4), layout, into: &output)
        let row = "\u{1B}[38;2;255;255;255m\u{1B}[48;2;255;255;255m\u{2580}\u{2580}\u{2580}\u{1B}[0m"
        #expect(String(decoding: output, as: UTF8.self) == "\u{1B}[1;1H\(row)\u{1B}[2;1H\(row)")
    }

    @Test("Each pixel has its colour at its place: the upper one of a cell is the letter's")
    func halfBlockColours() throws {
        let size = Dimensions(width: 4, height: 4)
        let picture = VideoBuffer(dimensions: size)
        func pixel(_ column: Int, _ row: Int) -> (luma: UInt8, chromaU: UInt8, chromaV: UInt8) {
            (UInt8(40 + 40 * row + 7 * column), UInt8(100 + 20 * (column / 2)), UInt8(140 - 20 * (row / 2)))
        }
        picture.withMutablePlanes { luma, chromaU, chromaV in
            for row in 0..<4 {
                for column in 0..<4 {
                    let value = pixel(column, row)
                    let chroma = row / 2 * picture.chromaStride + column / 2
                    luma[row * picture.lumaStride + column] = value.luma
                    (chromaU[chroma], chromaV[chroma]) = (value.chromaU, value.chromaV)
                }
            }
        }
        let layout = try #require(PreviewLayout(halfBlocksFor: size, on: TerminalSize(columns: 4, rows: 3)))
        var (painter, output) = (HalfBlockPainter(), [UInt8]())
        painter.paint(picture, layout, into: &output)
        func selection(_ plane: Int, _ column: Int, _ row: Int) -> String {
            let value = pixel(column, row)
            let colour = BT601.colour(luma: value.luma, chromaU: value.chromaU, chromaV: value.chromaV)
            return "\u{1B}[\(plane);2;\(colour.red);\(colour.green);\(colour.blue)m"
        }
        var expected = ""
        for row in 0..<2 {
            expected += "\u{1B}[\(row + 1);1H"
            for column in 0..<4 {
                expected += selection(38, column, 2 * row) + selection(48, column, 2 * row + 1) + "\u{2580}"
            }
            expected += "\u{1B}[0m"
        }
        #expect(String(decoding: output, as: UTF8.self) == expected)
    }

    @Test("A pixel's sixel is in its band and column, at the bit of its row", arguments: [(5, 7), (0, 0), (19, 11)])
    func sixelPlace(column: Int, row: Int) throws {
        let terminal = TerminalSize(columns: 20, rows: 20, pixels: Dimensions(width: 200, height: 200))
        let size = Dimensions(width: 20, height: 12)
        let layout = try #require(PreviewLayout(sixelsFor: size, on: terminal, limit: size))
        let picture = plain(20, 12, luma: 16)
        picture.withMutablePlanes { luma, _, _ in luma[row * picture.lumaStride + column] = 235 }
        var (painter, output) = (SixelPainter(registers: 256), [UInt8]())
        painter.paint(picture, layout, into: &output)
        let white = painter.levels.red * painter.levels.green * painter.levels.blue - 1
        let text = String(decoding: output, as: UTF8.self)
        let bands = text.components(separatedBy: "-")
        try #require(bands.count > row / 6)
        let pass = try #require(bands[row / 6].components(separatedBy: "#\(white)").last)
        let sixels = pass.prefix { $0 != "$" && $0 != "#" }
        // Runs are written as `!`, their length, and the sixel.
        var columns: [Character] = []
        var length = ""
        for character in sixels {
            if character == "!" || character.isNumber {
                length += character == "!" ? "" : String(character)
            } else {
                columns += Array(repeating: character, count: Int(length) ?? 1)
                length = ""
            }
        }
        let bit = Unicode.Scalar(UInt8(63 + (1 << (row % 6))))
        #expect(columns.enumerated().filter { $0.element != "?" }.map(\.offset) == [column])
        #expect(columns.indices.contains(column) && columns[column] == Character(bit))
    }

    @Test("A picture of one colour is one run of sixels in each band", arguments: [16, 256, 1024])
    func paintSixels(registers: Int) throws {
        let terminal = TerminalSize(columns: 20, rows: 20, pixels: Dimensions(width: 200, height: 200))
        let size = Dimensions(width: 20, height: 8)
        let layout = try #require(PreviewLayout(sixelsFor: size, on: terminal, limit: size))
        var (painter, output) = (SixelPainter(registers: registers), [UInt8]())
        painter.paint(plain(20, 8), layout, into: &output)
        let white = painter.levels.red * painter.levels.green * painter.levels.blue - 1
        #expect(white < registers)
        let text = String(decoding: output, as: UTF8.self)
        #expect(text.contains("q\"1;1;20;8#0;2;0;0;0") && text.contains("#\(white);2;100;100;100"))
        // Six rows, then two.
        #expect(text.hasSuffix("#\(white)!20~$-#\(white)!20B$-\u{1B}\\"))
    }
}
