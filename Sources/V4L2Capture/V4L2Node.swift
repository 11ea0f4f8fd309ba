import CV4L2
import Glibc
import MediaCore
import Synchronization
import Threading

/// The results of waiting for an open node; empty after the deadline.
struct NodeEvents: OptionSet {
    let rawValue: Int
    /// A filled buffer can be taken.
    static let readable = NodeEvents(rawValue: 1)
    /// The driver reports an error (`POLLERR`).
    static let failed = NodeEvents(rawValue: 2)
    /// The device is gone (`POLLHUP`, `POLLNVAL`).
    static let gone = NodeEvents(rawValue: 4)
    /// A stop was requested.
    static let stopped = NodeEvents(rawValue: 8)
    /// The driver has something to tell (`POLLPRI`).
    static let told = NodeEvents(rawValue: 16)
}

/// One open video node: exactly the system calls that capturing makes on it.
///
/// All code above this protocol is the same for a scripted node in tests. Confine to one thread; the node is closed
/// when it is released.
protocol V4L2Node: AnyObject {
    /// The node's file descriptor, for libv4lconvert.
    var descriptor: Int32 { get }
    /// Whether `wait` ends with what the driver tells; initially not.
    var isListening: Bool { get set }

    /// Makes the `ioctl` call `request`, and repeats it if a signal interrupts it.
    ///
    /// - Returns: 0, or the `errno`.
    func control(_ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32

    /// Waits until the node has an event, until `deadline`, or until `stop` is requested.
    func wait(until deadline: MonotonicInstant, or stop: StopSignal) -> NodeEvents

    /// Maps a driver's buffer of `length` bytes.
    func map(length: Int, offset: Int) throws(SystemCallFailure) -> UnsafeMutableRawBufferPointer

    /// Undoes `map`.
    func unmap(_ memory: UnsafeMutableRawBufferPointer)
}

/// Asks a thread that waits for a device to end.
final class StopSignal: Sendable {
    /// The file descriptor; it becomes readable once stop is requested.
    let descriptor: Int32
    private let flag = Atomic(false)

    /// Creates a signal that has not been given.
    init() throws(SystemCallFailure) {
        descriptor = cv4l2_eventfd()
        guard descriptor >= 0 else { throw SystemCallFailure(attempt: "make a stop signal for", status: errno) }
    }

    deinit {
        close(descriptor)
    }

    /// Whether stop was requested.
    var isRequested: Bool { flag.load(ordering: .acquiring) }

    /// Ends a wait without requesting stop; may be called from any thread.
    func wake() {
        var one: UInt64 = 1
        _ = unsafe write(descriptor, &one, MemoryLayout<UInt64>.size)
    }

    /// Lets waits wait again after a wake; look at `isRequested` afterwards.
    func settle() {
        var count: UInt64 = 0
        _ = unsafe read(descriptor, &count, MemoryLayout<UInt64>.size)
    }

    /// Waits until `deadline`, or until the descriptor is readable.
    func wait(until deadline: MonotonicInstant) {
        let left = deadline.duration(since: MonotonicClock.now).wholeMicroseconds
        var file = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        // A signal may end the wait early; callers look at the time again.
        _ = unsafe poll(&file, 1, Int32(clamping: max(0, (left + 999) / 1000)))
    }

    /// Requests stop; may be called from any thread, repeatedly.
    func request() {
        flag.store(true, ordering: .releasing)
        wake()
    }
}

/// A node of the kernel, used through plain system calls.
///
/// It does not use libv4l2, so that the driver's real behaviour is visible.
final class KernelNode: V4L2Node {
    let descriptor: Int32
    var isListening = false

    /// Opens the node at `path` in non-blocking mode.
    init(path: String) throws(SystemCallFailure) {
        var opened: Int32
        repeat {
            opened = unsafe open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        } while opened < 0 && errno == EINTR
        guard opened >= 0 else { throw SystemCallFailure(attempt: "open", status: errno) }
        descriptor = opened
    }

    deinit {
        close(descriptor)
    }

    func control(_ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32 {
        while true {
            if unsafe ioctl(descriptor, request, argument) >= 0 { return 0 }
            if errno != EINTR { return errno }
        }
    }

    func wait(until deadline: MonotonicInstant, or stop: StopSignal) -> NodeEvents {
        while true {
            let left = deadline.duration(since: MonotonicClock.now).wholeMicroseconds
            let timeout = Int32(clamping: max(0, (left + 999) / 1000))
            var files = (
                pollfd(fd: descriptor, events: Int16(isListening ? POLLIN | POLLPRI : POLLIN), revents: 0),
                pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0)
            )
            let ready = unsafe withUnsafeMutableBytes(of: &files) { bytes in
                unsafe poll(bytes.bindMemory(to: pollfd.self).baseAddress, 2, timeout)
            }
            if ready < 0 && errno == EINTR { continue }
            guard ready >= 0 else { return .failed }
            var events: NodeEvents = []
            let found = Int32(files.0.revents)
            if found & POLLIN != 0 { events.insert(.readable) }
            if found & POLLPRI != 0 { events.insert(.told) }
            if found & POLLERR != 0 { events.insert(.failed) }
            if found & (POLLHUP | POLLNVAL) != 0 { events.insert(.gone) }
            if files.1.revents != 0 { events.insert(.stopped) }
            return events
        }
    }

    func map(length: Int, offset: Int) throws(SystemCallFailure) -> UnsafeMutableRawBufferPointer {
        // The mapping is writable because libv4lconvert's decoders take a source that is not `const`.
        let address = unsafe mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, offset)
        guard let address = unsafe address, unsafe address != MAP_FAILED else {
            throw SystemCallFailure(attempt: "map the buffers of", status: errno)
        }
        return unsafe UnsafeMutableRawBufferPointer(start: address, count: length)
    }

    func unmap(_ memory: UnsafeMutableRawBufferPointer) {
        unsafe munmap(memory.baseAddress, memory.count)
    }
}
