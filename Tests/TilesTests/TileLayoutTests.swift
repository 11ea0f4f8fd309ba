import MediaCore
import TestTools
import Testing
import Tiles

@Suite("Layout of tiles")
struct TileLayoutTests {
    private func layout(_ count: Int, in window: Dimensions, gap: Int = 8) -> TileLayout {
        TileLayout(of: Array(repeating: Dimensions(width: 1280, height: 720), count: count), in: window, gap: gap)
    }

    @Test("One picture takes the whole window, with bars where its shape is another")
    func single() {
        let wide = TileLayout(
            of: [Dimensions(width: 640, height: 360)],
            in: Dimensions(width: 1000, height: 1000),
            gap: 8
        )
        #expect(wide.cells == [place(0, 0, 1000, 1000)] && wide.pictures == [place(0, 219, 1000, 562)])
        let tall = TileLayout(
            of: [Dimensions(width: 360, height: 640)],
            in: Dimensions(width: 640, height: 320),
            gap: 8
        )
        #expect(tall.pictures == [place(230, 0, 180, 320)])
    }

    @Test("A size that no picture has fills its cell", arguments: [0, -1, 16_384, Int.max])
    func absurd(side: Int) {
        let size = Dimensions(width: side, height: 9)
        let layout = TileLayout(of: [size], in: Dimensions(width: 640, height: 320), gap: 8)
        #expect(layout.pictures == layout.cells)
    }

    @Test(
        "The grid has the columns that give the pictures the most pixels",
        arguments: [
            (1, 1, 1), (2, 2, 1), (3, 2, 2), (4, 2, 2), (5, 3, 2), (6, 3, 2), (7, 3, 3), (9, 3, 3), (10, 4, 3),
            (12, 4, 3), (13, 4, 4), (16, 4, 4),
        ]
    )
    func grid(count: Int, columns: Int, rows: Int) {
        let layout = layout(count, in: Dimensions(width: 1280, height: 720))
        #expect(layout.cells.count == count)
        #expect(Set(layout.cells.map(\.row)).count == rows)
        #expect(layout.cells.prefix { $0.row == layout.cells[0].row }.count == columns)
    }

    @Test("Two wide pictures stand above each other in a tall window, and side by side in a wide one")
    func shapes() {
        #expect(layout(2, in: Dimensions(width: 600, height: 900)).cells[1].row > 400)
        #expect(layout(2, in: Dimensions(width: 1600, height: 500)).cells[1].column > 700)
    }

    @Test("The cells of a last row that is not full lie in its middle")
    func lastRow() {
        let cells = layout(3, in: Dimensions(width: 1288, height: 728)).cells
        #expect(cells == [place(8, 8, 632, 352), place(648, 8, 632, 352), place(328, 368, 632, 352)])
    }

    @Test("Windows without room for a pixel of each have no tiles; no pictures have none either")
    func noRoom() {
        for (width, height) in [(0, 0), (8, 100), (1, 1), (-5, 10)] {
            #expect(layout(4, in: Dimensions(width: width, height: height)).cells.isEmpty)
        }
        #expect(TileLayout(of: [], in: Dimensions(width: 100, height: 100), gap: 8).pictures.isEmpty)
    }

    @Test("A picture whose size is not known takes its cell")
    func unknownSize() {
        let layout = TileLayout(of: [Dimensions(width: 0, height: 0)], in: Dimensions(width: 70, height: 50), gap: 8)
        #expect(layout.pictures == [place(0, 0, 70, 50)])
    }

    @Test("Tiles never overlap, lie in the window and in their cells, keep their shape and touch two sides of the cell")
    func anySizes() {
        var random = SeededGenerator(seed: 7)
        for round in 0..<3000 {
            let window = Dimensions(
                width: .random(in: 1...2000, using: &random),
                height: .random(in: 1...2000, using: &random)
            )
            let sizes = (0..<(1 + round % 16)).map { _ in
                Dimensions(width: .random(in: 1...4000, using: &random), height: .random(in: 1...4000, using: &random))
            }
            let gap = Int.random(in: 0...12, using: &random)
            let layout = TileLayout(of: sizes, in: window, gap: gap)
            guard !layout.cells.isEmpty else {
                #expect(min(window.width, window.height) <= (gap + 1) * (sizes.count + 1), "\(window) \(sizes.count)")
                continue
            }
            #expect(layout.cells.count == sizes.count && layout.pictures.count == sizes.count)
            let whole = place(0, 0, window.width, window.height)
            for (index, cell) in layout.cells.enumerated() {
                let picture = layout.pictures[index]
                #expect(contains(whole, cell) && contains(cell, picture), "\(layout)")
                #expect(keepsShape(sizes[index], picture.dimensions, in: cell.dimensions), "\(sizes[index]) \(picture)")
                for other in layout.cells.dropFirst(index + 1) {
                    #expect(!overlap(cell, other), "\(cell) \(other)")
                }
            }
        }
    }

    /// Whether a picture is as large as its cell allows, with sides that are exact to a pixel.
    private func keepsShape(_ size: Dimensions, _ picture: Dimensions, in cell: Dimensions) -> Bool {
        guard picture.width == cell.width || picture.height == cell.height else { return false }
        let scale = min(Double(cell.width) / Double(size.width), Double(cell.height) / Double(size.height))
        let exact = (width: max(1, Double(size.width) * scale), height: max(1, Double(size.height) * scale))
        return abs(Double(picture.width) - exact.width) < 1.001 && abs(Double(picture.height) - exact.height) < 1.001
    }

    private func contains(_ outer: PixelArea, _ inner: PixelArea) -> Bool {
        inner.column >= outer.column && inner.row >= outer.row
            && inner.column + inner.dimensions.width <= outer.column + outer.dimensions.width
            && inner.row + inner.dimensions.height <= outer.row + outer.dimensions.height
            && inner.dimensions.width > 0 && inner.dimensions.height > 0
    }

    private func overlap(_ first: PixelArea, _ second: PixelArea) -> Bool {
        first.column < second.column + second.dimensions.width && second.column < first.column + first.dimensions.width
            && first.row < second.row + second.dimensions.height && second.row < first.row + first.dimensions.height
    }

    private func place(_ column: Int, _ row: Int, _ width: Int, _ height: Int) -> PixelArea {
        PixelArea(column: column, row: row, dimensions: Dimensions(width: width, height: height))
    }
}
