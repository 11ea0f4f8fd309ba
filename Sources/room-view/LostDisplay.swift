import ClientCommandLine
import Foundation
import Synchronization

/// Reports that the display has gone.
///
/// When its connection breaks, Xlib calls `exit(1)` within whatever call of SDL is under way, so that neither SDL nor
/// this program can go on. Only code that runs at the program's exit can notice this.
enum LostDisplay {
    private static let isWatched = Atomic(false)
    private static let registration: Void = {
        atexit {
            guard LostDisplay.isWatchedFor else { return }
            complain("The display has gone: the X server ended or refused a request, or the session was closed.")
            _exit(ExitStatus.unavailable.rawValue)
        }
    }()

    /// Whether an exit of the program means that the display has gone.
    static var isWatchedFor: Bool {
        get { isWatched.load(ordering: .acquiring) }
        set {
            registration
            isWatched.store(newValue, ordering: .releasing)
        }
    }
}
