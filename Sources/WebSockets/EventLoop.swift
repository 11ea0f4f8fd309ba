import CWebSockets
import Glibc
import MediaCore

/// What a loop's thread waits by: sockets, timers, and other threads that wake it.
///
/// libev over epoll. libwebsockets' own loop asks poll() about every socket on each turn, which cost a relay to 200
/// subscribers a tenth of its processor time. All but `wake` is for the loop's thread.
@safe final class EventLoop: @unchecked Sendable {
    // `@unchecked Sendable`: only `wake` is used by other threads, and all that it touches is a descriptor.

    /// The `struct ev_loop`.
    let pointer: OpaquePointer
    /// An eventfd; libev's own means to be woken ends the process where descriptors are short.
    private let bell: Int32
    private let bellWatcher: UnsafeMutablePointer<ev_io>

    /// - Returns: `nil` if descriptors or memory are short.
    init?() {
        bell = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard bell >= 0 else { return nil }
        // Without EVFLAG_NOENV the environment could choose another way to wait.
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

    /// Does what is due, after waiting for something if `isWaiting`.
    ///
    /// Nothing is done before the wait: whatever a callback brings about can be looked at before the next turn.
    func turn(isWaiting: Bool) {
        _ = unsafe ev_run(pointer, Int32(isWaiting ? EVRUN_ONCE : EVRUN_NOWAIT))
    }

    /// Ends the wait, or the next one; any thread.
    func wake() {
        eventfd_write(bell, 1)
    }
}

/// Something to be done at a time, on the thread of an `EventLoop`; confined to that.
@safe final class LoopTimer {
    private let timer: UnsafeMutablePointer<ev_timer>
    private let ring: () -> Void
    /// Where the timer runs; held, because it must not end before.
    private var loop: EventLoop?

    /// A timer that calls `ring` each time it runs out; it does not hold itself.
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

    /// Has the timer run out on `loop` after `duration`, not before, in place of what was set; at once if it is negative.
    func start(on loop: EventLoop, after duration: Duration) {
        stop()
        self.loop = loop
        // libev counts from the end of its last wait otherwise.
        unsafe ev_now_update(loop.pointer)
        unsafe cwebsockets_timer_set(timer, max(0, duration.seconds))
        unsafe ev_timer_start(loop.pointer, timer)
    }

    /// Has the timer not run out.
    func stop() {
        guard let loop else { return }
        unsafe ev_timer_stop(loop.pointer, timer)
        self.loop = nil
    }

    private func runOut() {
        loop = nil
        ring()
    }
}

/// Looks at a socket that can be read, beside libwebsockets; confined to the thread of its `EventLoop`.
@safe final class ReadWatcher {
    private let watcher: UnsafeMutablePointer<ev_io>
    private let ready: () -> Void
    /// Where the watcher runs; held, because it must not end before.
    private var loop: EventLoop?

    /// A watcher that calls `ready` in each turn of the loop in which `descriptor` can be read; it does not hold itself.
    init(_ descriptor: Int32, _ ready: @escaping () -> Void) {
        self.ready = ready
        unsafe watcher = .allocate(capacity: 1)
        let this = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe cwebsockets_io_init(
            watcher,
            { _, watcher, _ in
                guard let this = unsafe watcher?.pointee.data else { return }
                unsafe Unmanaged<ReadWatcher>.fromOpaque(this).takeUnretainedValue().ready()
            },
            descriptor,
            this
        )
    }

    deinit {
        stop()
        unsafe watcher.deallocate()
    }

    /// Begins to watch on `loop`; does nothing while it watches.
    func start(on loop: EventLoop) {
        guard self.loop == nil else { return }
        self.loop = loop
        unsafe ev_io_start(loop.pointer, watcher)
    }

    /// Watches no longer.
    func stop() {
        guard let loop else { return }
        unsafe ev_io_stop(loop.pointer, watcher)
        self.loop = nil
    }
}
