import Glibc

/// A named thread that is joined by whoever started it.
///
/// One whose owner goes without joining it, because the owner's last reference was dropped on the thread itself, gives
/// its resources back when it ends.
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
    ///   - name: What debuggers and `top -H` show; Linux cuts it at 15 bytes.
    ///   - body: Must end soon after whatever it works for asks it to, because `join` waits for it. Let go, and never
    ///     called, where there is no thread for it.
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

    /// Whether the caller runs on this thread, which has not been joined.
    package var isCurrent: Bool { pthread_equal(handle, pthread_self()) != 0 }

    /// Waits for the thread's end; may be called any number of times, from any thread but this one.
    package func join() {
        isJoined.withLock { isJoined in
            // Of a thread that was joined nothing may be asked: a new one, the caller's perhaps, may bear its handle.
            guard !isJoined else { return }
            precondition(!isCurrent, "a thread cannot wait for its own end")
            pthread_join(handle, nil)
            isJoined = true
        }
    }
}

/// The system gave no thread, which is what happens at the limit of a user's or a container's processes.
package struct ThreadShortage: Error, Hashable, Sendable {
    /// What the thread was to be called.
    package let name: String
    /// The `errno` that the system gave.
    package let status: Int32
}

extension ThreadShortage: CustomStringConvertible {
    /// What happened and what to do about it, without capital and full stop.
    package var description: String {
        let reason = unsafe strerror(status).map { unsafe String(cString: $0) } ?? "error \(status)"
        return "the system has no thread left for the \(name) (\(reason)); raise this user's or container's limits "
            + "on processes and memory (`ulimit -u`, `ulimit -v`)"
    }
}

/// Names the calling thread, as far as `/proc` is there. (`pthread_setname_np` is hidden from Swift's Glibc.)
private func nameCurrentThread(_ name: String) {
    let file = unsafe open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return }
    _ = unsafe name.withCString { unsafe write(file, $0, min(strlen($0), 15)) }
    close(file)
}
