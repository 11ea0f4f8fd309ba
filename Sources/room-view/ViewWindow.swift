import CSDL
import ClientCommandLine
import RoomKit

/// The window and what draws in it; confine to the main thread.
@safe final class ViewWindow {
    /// The size that the window has unless the screen is smaller.
    private static let usualSize = Dimensions(width: 1280, height: 720)

    /// SDL's renderer, valid as long as this object.
    let renderer: OpaquePointer
    /// The largest side of a picture that can be drawn; `nil` if there is no limit.
    let largestSide: Int?
    private let window: OpaquePointer
    /// Where the window was before it became as large as the screen.
    private var place: SDL_Rect?

    /// Opens a window.
    init(title: String, isFullScreen: Bool) throws(CommandFailure) {
        let size = Self.initialSize
        let flags = [SDL_WINDOW_RESIZABLE, SDL_WINDOW_ALLOW_HIGHDPI, SDL_WINDOW_HIDDEN]
        let window = unsafe SDL_CreateWindow(
            title,
            csdl_anywhere,
            csdl_anywhere,
            Int32(size.width),
            Int32(size.height),
            flags.reduce(0) { $0 | $1.rawValue }
        )
        guard let window = unsafe window else {
            throw CommandFailure(.unavailable, "The window cannot be opened: \(sdlError()).")
        }
        guard let renderer = unsafe Self.makeRenderer(window) else {
            unsafe SDL_DestroyWindow(window)
            throw CommandFailure(.unavailable, "The window cannot be drawn in: \(sdlError()).")
        }
        var info = unsafe SDL_RendererInfo()
        unsafe SDL_GetRendererInfo(renderer, &info)
        let side = unsafe Int(min(info.max_texture_width, info.max_texture_height))
        largestSide = side > 0 ? side : nil
        unsafe self.window = window
        unsafe self.renderer = renderer
        unsafe SDL_SetWindowMinimumSize(window, 160, 90)
        unsafe SDL_SetRenderDrawBlendMode(renderer, SDL_BLENDMODE_BLEND)
        // Keys are commands here. An input method would swallow them.
        SDL_StopTextInput()
        if isFullScreen { self.isFullScreen = true }
        unsafe SDL_ShowWindow(window)
    }

    deinit {
        unsafe SDL_DestroyRenderer(renderer)
        unsafe SDL_DestroyWindow(window)
    }

    private static var initialSize: Dimensions {
        var bounds = SDL_Rect()
        guard unsafe SDL_GetDisplayUsableBounds(0, &bounds) == 0, bounds.w > 0, bounds.h > 0 else { return usualSize }
        let room = Dimensions(width: Int(bounds.w) * 9 / 10, height: Int(bounds.h) * 9 / 10)
        let isLarge = room.width >= usualSize.width && room.height >= usualSize.height
        return isLarge ? usualSize : usualSize.fitted(into: room)
    }

    /// Makes a renderer that waits for the screen's refresh, if there is one.
    private static func makeRenderer(_ window: OpaquePointer) -> OpaquePointer? {
        unsafe SDL_CreateRenderer(window, -1, SDL_RENDERER_PRESENTVSYNC.rawValue) ?? SDL_CreateRenderer(window, -1, 0)
    }

    /// The size in pixels.
    var dimensions: Dimensions {
        var (width, height) = (Int32(0), Int32(0))
        unsafe SDL_GetRendererOutputSize(renderer, &width, &height)
        return Dimensions(width: Int(width), height: Int(height))
    }

    /// Whether somebody may see it.
    var isVisible: Bool { flags & (SDL_WINDOW_HIDDEN.rawValue | SDL_WINDOW_MINIMIZED.rawValue) == 0 }

    /// Whether it is as large as the screen.
    var isFullScreen: Bool {
        get { flags & SDL_WINDOW_FULLSCREEN.rawValue != 0 }
        set {
            if newValue { fillScreen() }
            unsafe SDL_SetWindowFullscreen(window, newValue ? SDL_WINDOW_FULLSCREEN_DESKTOP.rawValue : 0)
            if !newValue, let place { move(to: place) }
            SDL_ShowCursor(newValue ? SDL_DISABLE : SDL_ENABLE)
        }
    }

    /// Gives the window the screen's place, for X servers without a window manager, which SDL leaves that to.
    private func fillScreen() {
        var (before, screen) = (SDL_Rect(), SDL_Rect())
        unsafe SDL_GetWindowPosition(window, &before.x, &before.y)
        unsafe SDL_GetWindowSize(window, &before.w, &before.h)
        guard unsafe SDL_GetDisplayBounds(SDL_GetWindowDisplayIndex(window), &screen) == 0 else { return }
        place = before
        move(to: screen)
    }

    private func move(to place: SDL_Rect) {
        unsafe SDL_SetWindowPosition(window, place.x, place.y)
        unsafe SDL_SetWindowSize(window, place.w, place.h)
    }

    /// Sets the title.
    func setTitle(_ title: String) {
        unsafe SDL_SetWindowTitle(window, title)
    }

    private var flags: UInt32 { unsafe SDL_GetWindowFlags(window) }

    /// Waits for an event for `patience` at most; returns it with all that came with it.
    func events(within patience: Duration) -> [WindowEvent] {
        var event = unsafe SDL_Event()
        var events: [WindowEvent] = []
        var isThere = unsafe SDL_WaitEventTimeout(&event, Int32(max(patience / .milliseconds(1), 0))) == 1
        while isThere {
            if let event = unsafe WindowEvent(event) { events.append(event) }
            isThere = unsafe SDL_PollEvent(&event) == 1
        }
        return events
    }
}
