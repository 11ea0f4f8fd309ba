import CWebSockets
import Glibc
import MediaCore

/// Waits on a loop's thread for sockets, timers and other threads that wake it.
///
/// It uses libev over epoll. libwebsockets' own loop asks poll() about every socket in each turn, which took a tenth of
/// the processor time of a relay to 200 subscribers. Call everything except `wake` on the loop's thread.
@safe final class EventLoop: @unchecked Sendable {
    // `@unchecked Sendable`: other threads use only `wake`, which touches nothing except a descriptor.

    /// The `struct ev_loop`.
    let pointer: OpaquePointer
    /// An eventfd to wake the loop; libev's own way ends the process when descriptors are short.
    private let bell: Int32
    private let bellWatcher: UnsafeMutablePointer<ev_io>
    /// Called after each callback of a timer or a watcher of ours.
    var callbackRan: (() -> Void)?

    /// - Returns: `nil` if descriptors or memory are short.
    init?() {
        bell = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard bell >= 0 else { return nil }
        // Without EVFLAG_NOENV, an environment variable could choose another backend.
        guard let pointer = unsafe ev_loop_new(UInt32(EVBACKEND_EPOLL) | UInt32(EVFLAG_NOENV)) else {
            close(bell)
            return nil
        }
        unsafe self.pointer = pointer
        unsafe bellWatcher = .allocate(capacity: 1)
        unsafe cwebsockets_io_init(
            bellWatcher,
            { _, watcher, _ in
                var rings: eventfd_t = 0
                if let watcher = unsafe watcher { unsafe eventfd_read(watcher.pointee.fd, &rings) }
            },
            bell,
            nil
        )
        unsafe ev_io_start(pointer, bellWatcher)
    }

    deinit {
        unsafe ev_loop_destroy(pointer)
        unsafe bellWatcher.deallocate()
        close(bell)
    }

    /// Does what is due, after waiting for an event if `isWaiting`.
    ///
    /// Nothing is done before the wait, so the effects of all callbacks can be handled before the next turn.
    func turn(isWaiting: Bool) {
        _ = unsafe ev_run(pointer, Int32(isWaiting ? EVRUN_ONCE : EVRUN_NOWAIT))
    }

    /// Ends the current wait, or the next one; may be called on any thread.
    func wake() {
        eventfd_write(bell, 1)
    }
}

/// Runs an action at a given time on the thread of an `EventLoop`; confined to that thread.
@safe final class LoopTimer {
    private let timer: UnsafeMutablePointer<ev_timer>
    private let ring: () -> Void
    /// The loop of the timer, held because it must not end before.
    private var loop: EventLoop?

    /// Creates a timer that calls `ring` each time it runs out; the timer does not keep itself alive.
    init(_ ring: @escaping () -> Void) {
        self.ring = ring
        unsafe timer = .allocate(capacity: 1)
        let this = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe cwebsockets_timer_init(
            timer,
            { _, timer, _ in
                guard let this = unsafe timer?.pointee.data else { return }
                unsafe Unmanaged<LoopTimer>.fromOpaque(this).takeUnretainedValue().runOut()
            },
            this
        )
    }

    deinit {
        stop()
        unsafe timer.deallocate()
    }

    /// Starts the timer on `loop` for `duration`; it rings at once if that is negative, and never early.
    ///
    /// This replaces an earlier start.
    func start(on loop: EventLoop, after duration: Duration) {
        stop()
        self.loop = loop
        // Otherwise libev counts from the end of its last wait.
        unsafe ev_now_update(loop.pointer)
        unsafe cwebsockets_timer_set(timer, max(0, duration.seconds))
        unsafe ev_timer_start(loop.pointer, timer)
    }

    /// Stops the timer.
    func stop() {
        guard let loop else { return }
        unsafe ev_timer_stop(loop.pointer, timer)
        self.loop = nil
    }

    private func runOut() {
        let loop = loop
        self.loop = nil
        ring()
        loop?.callbackRan?()
    }
}

/// Watches whether a socket can be read, besides libwebsockets; confined to the thread of its `EventLoop`.
@safe final class ReadWatcher {
    private let watcher: UnsafeMutablePointer<ev_io>
    private let ready: () -> Void
    /// The loop of the watcher, held because it must not end before.
    private var loop: EventLoop?

    /// Creates a watcher that calls `ready` in each turn of the loop in which `descriptor` can be read.
    ///
    /// It does not keep itself alive.
    init(_ descriptor: Int32, _ ready: @escaping () -> Void) {
        self.ready = ready
        unsafe watcher = .allocate(capacity: 1)
        let this = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe cwebsockets_io_init(
            watcher,
            { _, watcher, _ in
                guard let this = unsafe watcher?.pointee.data else { return }
                unsafe Unmanaged<ReadWatcher>.fromOpaque(this).takeUnretainedValue().becameReady()
            },
            descriptor,
            this
        )
    }

    deinit {
        stop()
        unsafe watcher.deallocate()
    }

    /// Begins to watch on `loop`; does nothing if it watches already.
    func start(on loop: EventLoop) {
        guard self.loop == nil else { return }
        self.loop = loop
        unsafe ev_io_start(loop.pointer, watcher)
    }

    private func becameReady() {
        let loop = loop
        ready()
        loop?.callbackRan?()
    }

    /// Stops watching.
    func stop() {
        guard let loop else { return }
        unsafe ev_io_stop(loop.pointer, watcher)
        self.loop = nil
    }
}
