import CWebSockets
import MediaCore
import Threading

/// Runs an action in the middle of a turn of the loop that takes long; confined to the loop's thread.
///
/// libev handles all events that it has found before it looks for new ones. With thousands of busy sockets, a turn
/// takes many milliseconds. An event with the highest priority is handled as soon as the current callback returns.
@safe final class TurnInterruption {
    /// The longest time from one action to the next while there is other work.
    ///
    /// It is well below the 5 ms by which a flood may delay media, and far above the microseconds that the action takes
    /// when there is nothing for it to do.
    private static let interval = Duration.milliseconds(1)

    private let watcher: UnsafeMutablePointer<ev_timer>
    private let action: () -> Void
    private let loop: EventLoop
    /// When the action last ran; `nil` after a wait, until the first work.
    private var last: MonotonicInstant?

    /// - Parameters:
    ///   - loop: The loop, whose callbacks call `requestIfDue`.
    ///   - action: Called between two callbacks of the loop.
    init(of loop: EventLoop, _ action: @escaping () -> Void) {
        self.loop = loop
        self.action = action
        unsafe watcher = .allocate(capacity: 1)
        let this = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe cwebsockets_first_init(
            watcher,
            { _, watcher, _ in
                guard let this = unsafe watcher?.pointee.data else { return }
                unsafe Unmanaged<TurnInterruption>.fromOpaque(this).takeUnretainedValue().run()
            },
            this
        )
    }

    deinit {
        unsafe ev_clear_pending(loop.pointer, watcher)
        unsafe watcher.deallocate()
    }

    /// Notes that the loop is about to wait: the time of a turn counts from its first work.
    func loopWaits() {
        last = nil
    }

    /// Runs the action as soon as the current callback returns, if it is due.
    func requestIfDue() {
        if isDue { unsafe ev_feed_event(loop.pointer, watcher, Int32(EV_CUSTOM)) }
    }

    /// Runs the action now, if it is due; must not be called in a callback of libwebsockets.
    func runIfDue() {
        if isDue { run() }
    }

    private var isDue: Bool {
        let now = MonotonicClock.now
        guard let last else {
            self.last = now
            return false
        }
        return now.duration(since: last) >= Self.interval
    }

    private func run() {
        action()
        last = MonotonicClock.now
    }
}
