import CSDL

/// A change of the window that the program reacts to.
enum WindowEvent: Hashable {
    /// It was closed, or the key for it was pressed.
    case quit
    /// The window's content has to be drawn again, perhaps with another size.
    case exposed
    case toggleFullScreen
    /// Leave full screen, or quit.
    case escape
    case toggleCaptions
    case snapshot
    case showAll
    /// Show the track with this number alone, counted from 1.
    case show(Int)
    case step(forward: Bool)

    /// Reads an event of SDL; `nil` if it means nothing here.
    init?(_ event: SDL_Event) {
        switch unsafe SDL_EventType(rawValue: event.type) {
        case SDL_QUIT: self = .quit
        case SDL_WINDOWEVENT: self = .exposed
        case SDL_MOUSEBUTTONDOWN:
            let button = unsafe event.button
            guard button.button == UInt8(SDL_BUTTON_LEFT), button.clicks == 2 else { return nil }
            self = .toggleFullScreen
        case SDL_KEYDOWN:
            let key = unsafe event.key
            guard key.repeat == 0 else { return nil }
            self.init(key.keysym)
        default: return nil
        }
    }

    private init?(_ key: SDL_Keysym) {
        // With these, a key is a desktop's or a terminal's command.
        guard UInt32(key.mod) & (KMOD_CTRL.rawValue | KMOD_ALT.rawValue | KMOD_GUI.rawValue) == 0 else { return nil }
        let isShifted = UInt32(key.mod) & KMOD_SHIFT.rawValue != 0
        switch SDL_KeyCode(rawValue: UInt32(bitPattern: key.sym)) {
        case SDLK_q: self = .quit
        case SDLK_ESCAPE: self = .escape
        case SDLK_f, SDLK_F11: self = .toggleFullScreen
        case SDLK_i: self = .toggleCaptions
        case SDLK_s: self = .snapshot
        case SDLK_0, SDLK_KP_0: self = .showAll
        case SDLK_RIGHT, SDLK_DOWN: self = .step(forward: true)
        case SDLK_LEFT, SDLK_UP: self = .step(forward: false)
        case SDLK_TAB: self = .step(forward: !isShifted)
        default:
            // The codes of the digits 1 to 9 follow each other, on both blocks of keys.
            let numbers = [SDLK_1, SDLK_KP_1].map { Int(key.sym) - Int($0.rawValue) + 1 }
            if let number = numbers.first(where: (1...9).contains) {
                self = .show(number)
            } else {
                self.init(place: key)
            }
        }
    }

    /// Reads a key by its place: French keyboards have digits only with Shift, and Cyrillic or Greek ones no `q`.
    private init?(place key: SDL_Keysym) {
        let number = Int(key.scancode.rawValue) - Int(SDL_SCANCODE_1.rawValue) + 1
        let isLatin = (97...122).contains(key.sym)
        switch key.scancode {
        case SDL_SCANCODE_0: self = .showAll
        case _ where (1...9).contains(number): self = .show(number)
        case SDL_SCANCODE_Q where !isLatin: self = .quit
        case SDL_SCANCODE_F where !isLatin: self = .toggleFullScreen
        case SDL_SCANCODE_I where !isLatin: self = .toggleCaptions
        case SDL_SCANCODE_S where !isLatin: self = .snapshot
        default: return nil
        }
    }
}
