package import MediaCore

/// The positions of a `Barcode`'s cells in a picture of a given size.
///
/// A copy of the barcode is a band across the whole width. It has `rows` rows of `columns` square cells, one bit each,
/// written row by row. One band begins at the picture's first row, the other ends at its last. The cells are a fixed
/// fraction of the width, so a barcode stays where the reader looks for it when the whole picture is scaled.
package struct BarcodeLayout: Hashable, Sendable {
    /// The number of cells across and down a band.
    package struct Grid: Hashable, Sendable {
        /// Cells in a row.
        package let columns: Int
        /// Rows of cells.
        package let rows: Int

        /// The cells of one copy; those beyond `Barcode.bitCount` alternate white and black.
        package var cellCount: Int { columns * rows }
    }

    /// The grids, coarsest first; a grid is used if its cells are at least `smallestPaintedCell` wide.
    package static let grids = [Grid(columns: 20, rows: 5), Grid(columns: 34, rows: 3), Grid(columns: 50, rows: 2)]

    /// The least width, in pixels, of a cell that is painted.
    ///
    /// VP8 transforms blocks of 4 × 4 and predicts blocks of 16 × 16 and 8 × 8, so a cell of 8 pixels always
    /// has a block of its own.
    package static let smallestPaintedCell = 8

    /// The least width, in pixels, of a cell that is read.
    ///
    /// When the picture is scaled, a smaller cell has no middle that its neighbours leave untouched.
    static let smallestReadCell = 3

    /// The size of the picture.
    package let dimensions: Dimensions
    /// The grid of cells.
    package let grid: Grid

    /// The layout for painting into a picture of `dimensions`.
    ///
    /// `nil` if there is no room: the width is below 160 pixels, or the height is less than that of both bands
    /// together.
    package init?(dimensions: Dimensions) {
        let fitting = Self.grids.last { dimensions.width >= $0.columns * Self.smallestPaintedCell }
        guard let fitting else { return nil }
        self.init(dimensions: dimensions, grid: fitting)
    }

    /// The layout of `grid` in a picture of `dimensions`; `nil` if cells are too small or bands overlap.
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
