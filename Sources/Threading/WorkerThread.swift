import Glibc

/// A named thread, which its owner joins.
///
/// It runs at the program's priority, the one of the main thread, as `nice` or a systemd unit sets it.
///
/// If the last reference to the owner is released on the thread itself, the owner cannot join it. The thread then frees
/// its own resources when it ends.
@safe package final class WorkerThread: @unchecked Sendable {
    // `@unchecked Sendable`: `handle` is set once, before `init` returns.

    private final class Start {
        let body: @Sendable () -> Void
        let name: String

        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    private let handle: pthread_t
    private let isJoined = Monitor(false)

    /// Starts a thread that runs `body` and ends with it.
    ///
    /// - Parameters:
    ///   - name: The name in debuggers and `top -H`; Linux cuts it at 15 bytes.
    ///   - body: The work of the thread. It must end soon after its owner asks it to, because `join` waits for it. If
    ///     the system has no thread, `body` is released and never called.
    /// - Throws: `ThreadShortage` when the system has no thread or no memory left for one.
    package init(name: String, body: @escaping @Sendable () -> Void) throws(ThreadShortage) {
        let start = unsafe Unmanaged.passRetained(Start(name: name, body: body))
        var handle = pthread_t()
        let status = unsafe pthread_create(
            &handle,
            nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                let start = unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                nameCurrentThread(start.name)
                adoptProgramPriority()
                start.body()
                return nil
            },
            start.toOpaque()
        )
        guard status == 0 else {
            unsafe start.release()
            throw ThreadShortage(name: name, status: status)
        }
        self.handle = handle
    }

    deinit {
        if !isJoined.withLock({ $0 }) { pthread_detach(handle) }
    }

    /// Whether the caller runs on this thread, and the thread has not been joined.
    package var isCurrent: Bool { pthread_equal(handle, pthread_self()) != 0 }

    /// Waits for the thread's end; may be called repeatedly, from any thread except this one.
    package func join() {
        isJoined.withLock { isJoined in
            // A joined thread's handle must not be used: a new thread, perhaps the caller's, may have got the same one.
            guard !isJoined else { return }
            precondition(!isCurrent, "a thread cannot wait for its own end")
            pthread_join(handle, nil)
            isJoined = true
        }
    }
}

/// The error when the system gives no thread, as happens at a user's or a container's limit of processes.
package struct ThreadShortage: Error, Hashable, Sendable {
    /// The name that the thread would have had.
    package let name: String
    /// The `errno` that the system gave.
    package let status: Int32
}

extension ThreadShortage: CustomStringConvertible {
    /// What happened and what to do about it, without a capital letter and a full stop.
    package var description: String {
        let reason = unsafe strerror(status).map { unsafe String(cString: $0) } ?? "error \(status)"
        return "the system has no thread left for the \(name) (\(reason)); raise this user's or container's limits "
            + "on processes and memory (`ulimit -u`, `ulimit -v`)"
    }
}

/// Names the calling thread if `/proc` is there (`pthread_setname_np` is hidden from Swift's Glibc).
private func nameCurrentThread(_ name: String) {
    let file = unsafe open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return }
    _ = unsafe name.withCString { unsafe write(file, $0, min(strlen($0), 15)) }
    close(file)
}

/// Gives the calling thread the nice value of the main thread.
///
/// A thread inherits the one of its creator. That is usually a thread of libdispatch, to which that library gives a
/// nice value of its own, whatever the program was started with.
private func adoptProgramPriority() {
    errno = 0
    let nice = getpriority(Int32(PRIO_PROCESS.rawValue), id_t(getpid()))
    guard errno == 0 else { return }
    // 0 is the calling thread, not its process. Without the right to a higher priority it keeps the lower one.
    _ = setpriority(Int32(PRIO_PROCESS.rawValue), 0, nice)
}

/// Makes a write to a peer that has gone fail on this thread, instead of ending the program by SIGPIPE.
///
/// Threads that are started from this one inherit the setting.
package func blockBrokenPipeSignal() {
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    unsafe sigaddset(&signals, SIGPIPE)
    unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
}
