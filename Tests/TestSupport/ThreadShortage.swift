import Foundation

/// Leaves this process, one of an exit test, without memory for the stack of another thread, but with plenty for the
/// rest.
///
/// A limit on the number of threads does not work: it counts all threads of a user, and root is exempt. So further
/// threads get large stacks, and the process gets less memory than one such stack.
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

/// Sets the stack size of threads that begin from now on to `byteCount`, unless they request another size.
private func setDefaultStackSize(_ byteCount: Int) throws {
    // This is a GNU extension, which Swift's Glibc module does not export.
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
