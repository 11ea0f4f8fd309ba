package import MediaCore

/// Where the cells of a `Barcode` lie in a picture of a given size.
///
/// A copy of the barcode is a band across the whole width: `rows` rows of `columns` square cells, one bit each, written
/// row by row. One band begins at the picture's first row, the other ends at its last. Since the cells are a fixed
/// fraction of the width, a barcode stays where the reader looks for it when the whole picture is scaled.
package struct BarcodeLayout: Hashable, Sendable {
    /// How many cells a band has across and down.
    package struct Grid: Hashable, Sendable {
        /// Cells in a row.
        package let columns: Int
        /// Rows of cells.
        package let rows: Int

        /// The cells of one copy; those beyond `Barcode.bitCount` hold the alternating mark.
        package var cellCount: Int { columns * rows }
    }

    /// The grids, coarsest first; each is for widths at which its cells are at least `smallestPaintedCell` wide.
    package static let grids = [Grid(columns: 20, rows: 5), Grid(columns: 34, rows: 3), Grid(columns: 50, rows: 2)]

    /// Pixels; VP8 transforms blocks of 4 × 4 and predicts blocks of 16 × 16 and 8 × 8, so a cell of 8 pixels always
    /// has a block of its own.
    package static let smallestPaintedCell = 8

    /// Pixels; a smaller cell has no middle that its neighbours leave alone when the picture is scaled.
    static let smallestReadCell = 3

    /// The size of the picture.
    package let dimensions: Dimensions
    /// The cells.
    package let grid: Grid

    /// The layout to paint into a picture of `dimensions`.
    ///
    /// `nil` if there is no room: less than 160 pixels of width, or of height less than both bands together take.
    package init?(dimensions: Dimensions) {
        let fitting = Self.grids.last { dimensions.width >= $0.columns * Self.smallestPaintedCell }
        guard let fitting else { return nil }
        self.init(dimensions: dimensions, grid: fitting)
    }

    /// The layout that `grid` has in a picture of `dimensions`; `nil` if cells are too small or bands overlap.
    init?(dimensions: Dimensions, grid: Grid) {
        guard dimensions.width >= grid.columns * Self.smallestReadCell else { return nil }
        self.dimensions = dimensions
        self.grid = grid
        guard 2 * bandHeight <= dimensions.height else { return nil }
    }

    /// Rows of pixels that one copy takes.
    package var bandHeight: Int { edge(grid.rows) }

    /// The first pixel of column or row `index`, counted from the band's corner.
    func edge(_ index: Int) -> Int {
        (index * dimensions.width + grid.columns / 2) / grid.columns
    }

    /// The first row of pixels of the copy at the top or at the bottom.
    func bandStart(isTop: Bool) -> Int { isTop ? 0 : dimensions.height - bandHeight }
}
