import Foundation

/// Leaves this process, one of an exit test, without memory for the stack of another thread, but with plenty for the rest.
///
/// A limit on the number of threads would not do: it counts all of a user's, and root is exempt. So further threads are
/// given large stacks, and the process less than one of them.
package func leaveNoThreads() throws {
    let stackByteCount = 1 << 30
    try setDefaultStackSize(stackByteCount)
    let statistics = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    guard let pages = statistics.split(separator: " ").first.flatMap({ UInt($0) }) else {
        throw TestFailure("/proc/self/statm says \(statistics)")
    }
    var limit = rlimit()
    let memory = Int32(RLIMIT_AS.rawValue)
    guard getrlimit(memory, &limit) == 0 else { throw TestFailure("no limit can be read: errno \(errno)") }
    limit.rlim_cur = pages * UInt(getpagesize()) + UInt(stackByteCount) / 2
    guard setrlimit(memory, &limit) == 0 else { throw TestFailure("no limit can be set: errno \(errno)") }
}

/// Gives threads that are begun from now on stacks of `byteCount`, unless they ask for another size.
private func setDefaultStackSize(_ byteCount: Int) throws {
    // A GNU extension, which Swift's Glibc module leaves out.
    typealias SetDefault = @convention(c) (UnsafePointer<pthread_attr_t>) -> Int32
    guard let address = unsafe dlsym(nil, "pthread_setattr_default_np") else {
        throw TestFailure("this C library has no pthread_setattr_default_np")
    }
    let setDefault = unsafe unsafeBitCast(address, to: SetDefault.self)
    var attributes = pthread_attr_t()
    unsafe pthread_attr_init(&attributes)
    unsafe pthread_attr_setstacksize(&attributes, byteCount)
    let status = unsafe setDefault(&attributes)
    guard status == 0 else { throw TestFailure("no stack size can be set: errno \(status)") }
}
