import CSDL
import Threading

/// Wakes the window's thread; any thread may ring.
///
/// However often it rings, one event at most waits for the window's thread. To push an event is the one call of SDL
/// that is made by other threads, as SDL allows.
final class WindowBell: Sendable {
    private struct State: Sendable {
        var isOpen = false
        /// Whether an event is on its way to the window's thread.
        var isRung = false
    }

    private let state = Monitor(State())

    /// Makes ringing wake the window's thread; SDL must have begun.
    func open() {
        state.withLock { $0.isOpen = true }
    }

    /// Makes ringing do nothing; a ring under way has ended when this returns, so that SDL may end too.
    func close() {
        state.withLock { $0.isOpen = false }
    }

    /// Wakes the window's thread, if it has heard all that rang before.
    func ring() {
        // The lock is held while SDL pushes, for the sake of `close`. The window's thread would wait for SDL's own
        // lock.
        state.withLock { state in
            guard state.isOpen, !state.isRung else { return }
            var event = unsafe SDL_Event()
            unsafe event.type = SDL_USEREVENT.rawValue
            // It fails if SDL's queue is full: then the window's thread has enough to wake it.
            state.isRung = unsafe SDL_PushEvent(&event) == 1
        }
    }

    /// Notes that the window's thread is about to look at everything; what rings from now on wakes it again.
    func heard() {
        state.withLock { $0.isRung = false }
    }
}
