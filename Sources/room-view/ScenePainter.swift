import ClientCommandLine
import MediaCore
import Tiles

/// Draws the window's content; confine to the main thread.
struct ScenePainter {
    /// Between tiles, and around them.
    private static let gap = 8
    private static let background = Colour(red: 14, green: 15, blue: 18)
    /// Where a picture has not come yet.
    private static let empty = Colour(red: 30, green: 32, blue: 38)
    private static let strip = Colour(red: 0, green: 0, blue: 0, alpha: 185)
    private static let bright = Colour(red: 255, green: 255, blue: 255)
    private static let dim = Colour(red: 190, green: 197, blue: 210)
    private static let alarm = Colour(red: 255, green: 190, blue: 70)
    private static let keys = [
        "1-9 one track · 0 all tracks · arrows next", "f full screen · i captions · s snapshot · q quit",
    ]

    private let window: ViewWindow
    private let text: TextPainter
    private let roomName: String

    /// Prepares to draw in a window for the room of a name.
    init(for window: ViewWindow, roomName: String) throws(CommandFailure) {
        self.window = window
        self.roomName = roomName
        text = try TextPainter(for: window)
    }

    /// Where the pictures of tiles are; empty if the window is too small for them.
    func places(of tiles: [Tile]) -> [PixelArea] {
        TileLayout(of: tiles.map(\.dimensions), in: window.dimensions, gap: Self.gap).pictures
    }

    /// Draws tiles, or, while there are none, what is waited for, and shows it.
    func paint(_ tiles: [Tile], waiting: String, showsCaptions: Bool, notice: String?) {
        let size = window.dimensions
        text.clear(Self.background)
        for (tile, area) in zip(tiles, places(of: tiles)) {
            if !tile.draw(at: area, in: window) { text.fill(area, Self.empty) }
            // A picture that is not the present one must not look so.
            if showsCaptions || tile.caption.warning != nil { paint(tile.caption, over: area) }
        }
        if tiles.isEmpty { paint(waiting: waiting, in: size) }
        if let notice { paint(notice: notice, in: size) }
        text.present()
    }

    // MARK: Words

    /// Draws a caption over the lower edge of a picture, unless it would cover more than half of it.
    private func paint(_ caption: TileCaption, over area: PixelArea) {
        let scale = TileCaption.scale(forWidth: area.dimensions.width)
        let cell = Dimensions(width: BitmapFont.cell.width * scale, height: BitmapFont.cell.height * scale)
        // Half a character on each side, and as much above and below as letters have between their lines.
        let (side, edge) = (cell.width, 3 * scale)
        let pieces = caption.set(columns: (area.dimensions.width - 2 * side + scale) / cell.width)
        guard let last = pieces.map(\.line).max() else { return }
        let height = (last + 1) * cell.height + 2 * edge
        guard height * 2 <= area.dimensions.height else { return }
        let top = area.endRow - height
        let size = Dimensions(width: area.dimensions.width, height: height)
        text.fill(PixelArea(column: area.column, row: top, dimensions: size), Self.strip)
        for piece in pieces {
            // Text on the right is placed from the right edge, because the columns may not fill the width.
            let isRight = piece.column > 0 && piece.role != .track
            let width = piece.text.count * cell.width - scale
            let left = isRight ? area.endColumn - side - width : area.column + side + piece.column * cell.width
            let row = top + edge + piece.line * cell.height
            text.draw(piece.text, column: left, row: row, scale: scale, colour(of: piece.role))
        }
    }

    private func colour(of role: TileCaption.Role) -> Colour {
        switch role {
        case .participant: Self.bright
        case .track, .figures: Self.dim
        case .warning: Self.alarm
        }
    }

    private func paint(waiting: String, in size: Dimensions) {
        let scale = min(max(size.width / 480, 1), 4)
        let line = BitmapFont.cell.height * scale
        let lines = [
            (roomName, 2 * scale, Self.bright), (waiting, scale, Self.dim), ("", scale, Self.dim),
        ]
        let width = (Self.keys.map(\.count).max() ?? 0) * BitmapFont.cell.width
        let all = lines + Self.keys.map { ($0, min(max(size.width / max(width, 1), 1), scale), Self.dim) }
        let heights = all.map { BitmapFont.cell.height * $0.1 + line / 2 }
        var row = (size.height - heights.reduce(0, +)) / 2
        for ((words, scale, colour), height) in zip(all, heights) {
            paint(words, middle: size.width / 2, row: row, scale: scale, colour)
            row += height
        }
    }

    private func paint(_ words: String, middle: Int, row: Int, scale: Int, _ colour: Colour) {
        let width = words.count * BitmapFont.cell.width * scale - scale
        text.draw(words, column: middle - width / 2, row: row, scale: scale, colour)
    }

    /// Draws a sentence at the top of the window.
    private func paint(notice: String, in size: Dimensions) {
        let scale = min(max(size.width / 480, 1), 2)
        let cell = Dimensions(width: BitmapFont.cell.width * scale, height: BitmapFont.cell.height * scale)
        let columns = max(size.width / cell.width - 2, 1)
        let words = notice.count > columns ? notice.prefix(columns - 1) + "…" : notice
        let strip = Dimensions(width: size.width, height: cell.height + 8 * scale)
        text.fill(PixelArea(column: 0, row: 0, dimensions: strip), Self.strip)
        paint(words, middle: size.width / 2, row: 4 * scale, scale: scale, Self.bright)
    }
}
