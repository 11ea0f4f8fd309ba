import RoomKit

/// The size of a terminal.
struct TerminalSize: Hashable, Sendable {
    var columns: Int
    var rows: Int
    /// The same in pixels; zero if the terminal does not say.
    var pixels = Dimensions(width: 0, height: 0)
}

/// Where a preview lies on the terminal, above the status in the last row.
struct PreviewLayout: Hashable, Sendable {
    /// The size that the picture is scaled to, in the painter's pixels.
    var dimensions: Dimensions
    /// The row and column of the picture's first cell, from 1 on.
    var row: Int
    var column: Int

    /// The most cells of a picture in each direction: terminals may claim 65,535, and each cell takes 40 bytes.
    private static let mostCells = 1000

    /// The layout for cells of two pixels, one above the other; `nil` if the terminal has no room.
    init?(halfBlocksFor picture: Dimensions, on terminal: TerminalSize) {
        let rows = terminal.rows - 1
        guard terminal.columns > 0, rows > 0, picture.area > 0 else { return nil }
        let room = Dimensions(width: min(terminal.columns, Self.mostCells), height: 2 * min(rows, Self.mostCells))
        let fitted = picture.fitted(into: room)
        dimensions = Dimensions(width: fitted.width, height: max(2, fitted.height & ~1))
        row = 1 + (rows - dimensions.height / 2) / 2
        column = 1 + (terminal.columns - dimensions.width) / 2
    }

    /// The layout for real pixels, of which the terminal draws at most `limit`; `nil` if the terminal has no room, or
    /// does not say how large its cells are.
    ///
    /// The picture is not enlarged, because each pixel has to be sent. The row above the status stays empty, because
    /// the terminal puts its cursor there.
    init?(sixelsFor picture: Dimensions, on terminal: TerminalSize, limit: Dimensions) {
        guard terminal.rows > 2, terminal.columns > 0, picture.area > 0 else { return nil }
        let cell = Dimensions(
            width: terminal.pixels.width / terminal.columns,
            height: terminal.pixels.height / terminal.rows
        )
        guard cell.width > 0, cell.height > 0 else { return nil }
        let room = Dimensions(width: cell.width * terminal.columns, height: cell.height * (terminal.rows - 2))
        let largest = Dimensions(
            width: min(room.width, limit.width, picture.width),
            height: min(room.height, limit.height, picture.height)
        )
        guard largest.width > 0, largest.height > 0 else { return nil }
        dimensions = picture.fitted(into: largest)
        row = 1 + (room.height - dimensions.height) / 2 / cell.height
        column = 1 + (room.width - dimensions.width) / 2 / cell.width
    }
}
