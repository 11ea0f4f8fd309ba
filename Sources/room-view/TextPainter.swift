import CSDL
import ClientCommandLine
import MediaCore

/// A colour, from 0 to 255 each.
struct Colour: Hashable {
    var red: UInt8
    var green: UInt8
    var blue: UInt8
    var alpha: UInt8 = 255
}

/// Draws text and plain areas; confine to the main thread.
@safe final class TextPainter {
    private let window: ViewWindow
    /// All characters side by side, white on nothing.
    private let atlas: OpaquePointer
    private let places: [Character: Int32]

    /// Draws the characters once, for a window.
    init(for window: ViewWindow) throws(CommandFailure) {
        let (characters, cell) = (BitmapFont.characters, BitmapFont.cell)
        let size = Dimensions(width: characters.count * cell.width, height: cell.height)
        let texture = unsafe SDL_CreateTexture(
            window.renderer,
            SDL_PIXELFORMAT_ARGB8888.rawValue,
            Int32(SDL_TEXTUREACCESS_STATIC.rawValue),
            Int32(size.width),
            Int32(size.height)
        )
        guard let texture = unsafe texture else {
            throw CommandFailure(.unavailable, "The window cannot show text: \(sdlError()).")
        }
        var pixels = [UInt32](repeating: 0x00FF_FFFF, count: size.area)
        for (index, character) in characters.enumerated() {
            let glyph = BitmapFont.glyph(of: character)
            for row in 0..<BitmapFont.glyphSize.height {
                for column in 0..<BitmapFont.glyphSize.width
                where BitmapFont.isInked(glyph, row: row, column: column) {
                    pixels[row * size.width + index * cell.width + column] = 0xFFFF_FFFF
                }
            }
        }
        unsafe SDL_UpdateTexture(texture, nil, pixels, Int32(size.width * 4))
        unsafe SDL_SetTextureBlendMode(texture, SDL_BLENDMODE_BLEND)
        // Letters of whole squares stay sharp.
        unsafe SDL_SetTextureScaleMode(texture, SDL_ScaleModeNearest)
        unsafe atlas = texture
        places = Dictionary(uniqueKeysWithValues: characters.enumerated().map { ($1, Int32($0)) })
        self.window = window
    }

    deinit {
        unsafe SDL_DestroyTexture(atlas)
    }

    /// Draws a line of text whose upper left corner is at `column` and `row`; each pixel of the font takes `scale`
    /// pixels.
    func draw(_ text: String, column: Int, row: Int, scale: Int, _ colour: Colour) {
        unsafe SDL_SetTextureColorMod(atlas, colour.red, colour.green, colour.blue)
        let (cell, glyph) = (BitmapFont.cell, BitmapFont.glyphSize)
        for (index, character) in text.enumerated() where character != " " {
            guard let place = places[character] ?? places["?"] else { continue }
            var source = SDL_Rect(x: place * Int32(cell.width), y: 0, w: Int32(glyph.width), h: Int32(glyph.height))
            let corner = PixelArea(
                column: column + index * cell.width * scale,
                row: row,
                dimensions: Dimensions(width: glyph.width * scale, height: glyph.height * scale)
            )
            var target = SDL_Rect(corner)
            unsafe SDL_RenderCopy(window.renderer, atlas, &source, &target)
        }
    }

    /// Fills an area.
    func fill(_ area: PixelArea, _ colour: Colour) {
        unsafe SDL_SetRenderDrawColor(window.renderer, colour.red, colour.green, colour.blue, colour.alpha)
        var target = SDL_Rect(area)
        unsafe SDL_RenderFillRect(window.renderer, &target)
    }

    /// Fills the whole window.
    func clear(_ colour: Colour) {
        unsafe SDL_SetRenderDrawColor(window.renderer, colour.red, colour.green, colour.blue, colour.alpha)
        unsafe SDL_RenderClear(window.renderer)
    }

    /// Shows what was drawn; waits for the screen's refresh.
    func present() {
        unsafe SDL_RenderPresent(window.renderer)
    }
}
