import CXCB
import Glibc
import MediaCore
import Threading

extension XConnection {
    /// What opening a connection gives.
    @safe struct Opened {
        /// xcb's handle; `nil` if there is no memory left.
        let handle: OpaquePointer?
        /// The number of the screen that the display's name asks for.
        let screen: Int32
        /// The server's extensions; `nil` if the handle has an error.
        let extensions: Result<XExtensions, MissingExtension>?
    }

    /// The state of a connection that a thread is opening.
    @safe private enum Opening: @unchecked Sendable {
        // `@unchecked Sendable`: the handle goes from the thread to the one that waits, or is disconnected by the first.
        case waiting
        case givenUp
        case opened(Opened)
    }

    /// Opens a connection to `display` and asks for its extensions.
    ///
    /// xcb waits for ever for a server that is stopped, so a thread of its own does it. If that takes longer than
    /// `ScreenSource.patience`, or a stop is requested, the thread is left to itself.
    ///
    /// - Throws: `noAnswer`, `stopped`, or `outOfResources` as `explained`.
    static func open(_ display: String, isStopRequested: () -> Bool) throws(XFailure) -> Opened {
        let opening = Monitor(Opening.waiting)
        do throws(ThreadShortage) {
            _ = try WorkerThread(name: "display opener") {
                let opened = connect(display)
                let isWanted = opening.change { state in
                    if case .givenUp = state { return false }
                    state = .opened(opened)
                    return true
                }
                if !isWanted, let handle = unsafe opened.handle { unsafe xcb_disconnect(handle) }
            }
        } catch {
            throw .explained(ScreenError(.outOfResources, target: "display \(display)", "\(error)"))
        }
        let deadline = MonotonicClock.now + ScreenSource.patience
        while true {
            let now = MonotonicClock.now
            let isOver = now >= deadline || isStopRequested()
            // A stop is noticed within 100 ms.
            let opened = opening.wait(until: min(deadline, now + .milliseconds(100))) { state -> Opened? in
                if case .opened(let opened) = state { return opened }
                if isOver { state = .givenUp }
                return nil
            }
            if let opened { return opened }
            if isOver { throw now >= deadline ? .noAnswer : .stopped }
        }
    }

    private static func connect(_ display: String) -> Opened {
        var screen: Int32 = 0
        guard let handle = unsafe xcb_connect(display, &screen) else {
            return unsafe Opened(handle: nil, screen: screen, extensions: nil)
        }
        guard unsafe xcb_connection_has_error(handle) == 0 else {
            return unsafe Opened(handle: handle, screen: screen, extensions: nil)
        }
        let extensions = Result<XExtensions, MissingExtension> { () throws(MissingExtension) in
            try unsafe XExtensions(handle)
        }
        return unsafe Opened(handle: handle, screen: screen, extensions: extensions)
    }
}
