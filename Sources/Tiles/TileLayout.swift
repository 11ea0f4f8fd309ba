package import MediaCore

/// Where a window shows several pictures: a grid of equal cells, with each picture as large as its cell allows.
///
/// The grid has the number of columns that gives the pictures the most pixels. The cells of a last row that is not full
/// lie in its middle.
package struct TileLayout: Hashable, Sendable {
    /// The cells, in the order of the pictures; empty if the window has no room for a pixel of each.
    package private(set) var cells: [PixelArea] = []
    /// The places of the pictures, each in the middle of its cell.
    package private(set) var pictures: [PixelArea] = []

    /// Arranges pictures of the given sizes.
    ///
    /// - Parameters:
    ///   - sizes: The pictures' sizes; they decide the shapes alone. A size without pixels counts as its whole cell.
    ///   - window: The window's size.
    ///   - gap: The pixels between cells, and between cells and the window's edge; a single picture has no edge.
    package init(of sizes: [Dimensions], in window: Dimensions, gap: Int) {
        let gap = sizes.count > 1 ? gap : 0
        var best = 0
        for columns in stride(from: 1, through: sizes.count, by: 1) {
            let grid = Grid(count: sizes.count, columns: columns, window: window, gap: gap)
            guard let cells = grid.cells else { continue }
            let pictures = zip(sizes, cells).map { Self.picture($0, in: $1) }
            let area = pictures.reduce(0) { $0 + $1.dimensions.area }
            // Where two grids are equal, the one with fewer columns has the longer captions.
            guard area > best else { continue }
            (best, self.cells, self.pictures) = (area, cells, pictures)
        }
    }

    private static func picture(_ size: Dimensions, in cell: PixelArea) -> PixelArea {
        // A size that only a server states may be any number.
        let largest = Dimensions.largestCodable
        guard (1...largest.width).contains(size.width), (1...largest.height).contains(size.height) else { return cell }
        let fitted = size.fitted(into: cell.dimensions)
        return PixelArea(
            column: cell.column + (cell.dimensions.width - fitted.width) / 2,
            row: cell.row + (cell.dimensions.height - fitted.height) / 2,
            dimensions: fitted
        )
    }
}

/// Cells in columns and rows; what does not divide evenly is spread over them.
private struct Grid {
    let count: Int
    let columns: Int
    let window: Dimensions
    let gap: Int

    private var rows: Int { (count + columns - 1) / columns }

    /// The cells, row by row; `nil` if one would have no pixel.
    var cells: [PixelArea]? {
        guard (window.width - gap) / columns > gap, (window.height - gap) / rows > gap else { return nil }
        return (0..<count).map { index in
            let (row, column) = (index / columns, index % columns)
            let missing = row == rows - 1 ? columns * rows - count : 0
            // The middle of a row that is not full lies half a cell to the right for each cell that it lacks.
            let shift = missing * (window.width - gap) / columns / 2
            let (left, right) = edges(column, of: columns, in: window.width)
            let (top, bottom) = edges(row, of: rows, in: window.height)
            let size = Dimensions(width: right - left, height: bottom - top)
            return PixelArea(column: left + shift, row: top, dimensions: size)
        }
    }

    private func edges(_ index: Int, of count: Int, in length: Int) -> (Int, Int) {
        let room = length - gap
        return (gap + index * room / count, (index + 1) * room / count)
    }
}
