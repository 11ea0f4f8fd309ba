/// A rectangle of pixels in a picture, counted from its upper left corner.
package struct PixelArea: Hashable, Sendable {
    /// The leftmost column.
    package var column: Int
    /// The uppermost row.
    package var row: Int
    /// The columns and rows that the area has.
    package var dimensions: Dimensions

    /// The area of the given size at a place.
    package init(column: Int, row: Int, dimensions: Dimensions) {
        self.column = column
        self.row = row
        self.dimensions = dimensions
    }

    /// The whole of a picture.
    package init(whole dimensions: Dimensions) {
        self.init(column: 0, row: 0, dimensions: dimensions)
    }

    /// The column right of the area.
    package var endColumn: Int { column + dimensions.width }
    /// The row below the area.
    package var endRow: Int { row + dimensions.height }

    /// The part that both areas share; `nil` if there is none.
    package func intersection(_ other: PixelArea) -> PixelArea? {
        let (left, top) = (max(column, other.column), max(row, other.row))
        let (right, bottom) = (min(endColumn, other.endColumn), min(endRow, other.endRow))
        guard left < right, top < bottom else { return nil }
        return PixelArea(column: left, row: top, dimensions: Dimensions(width: right - left, height: bottom - top))
    }

    /// The smallest area that covers both.
    package func union(_ other: PixelArea) -> PixelArea {
        let (left, top) = (min(column, other.column), min(row, other.row))
        let (right, bottom) = (max(endColumn, other.endColumn), max(endRow, other.endRow))
        return PixelArea(column: left, row: top, dimensions: Dimensions(width: right - left, height: bottom - top))
    }
}

/// Converts parts of a screen, which are lent for one call, into pictures of our own.
///
/// A screen source gets a converter when it is put together. Confine to one thread: that of the source.
package protocol ScreenConverter: AnyObject {
    /// Takes a picture that nobody else holds.
    ///
    /// - Parameters:
    ///   - dimensions: The size of the picture; both sides are even.
    ///   - previous: The picture to begin with, of the same size; without one, the content is undefined.
    /// - Returns: The picture.
    func makePicture(_ dimensions: Dimensions, from previous: VideoBuffer?) -> VideoBuffer

    /// Converts pixels into a part of a picture that `makePicture` made and that is not yet inside a frame.
    ///
    /// - Parameters:
    ///   - pixels: Rows of the area without gaps; each pixel is four bytes: blue, green, red, and one that is ignored.
    ///   - area: A part of the picture. Its sides, column and row are even.
    ///   - picture: The picture to change.
    func convert(_ pixels: RawSpan, of area: PixelArea, into picture: VideoBuffer)
}
