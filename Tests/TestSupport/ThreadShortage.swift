import Foundation

/// Leaves this process, one of an exit test, without memory for the stack of another thread.
///
/// A limit on the number of threads would not do: it counts all of a user's, and root is exempt.
package func leaveNoThreads() throws {
    let statistics = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    guard let pages = statistics.split(separator: " ").first.flatMap({ UInt($0) }) else {
        throw TestFailure("/proc/self/statm says \(statistics)")
    }
    var limit = rlimit()
    let memory = Int32(RLIMIT_AS.rawValue)
    guard getrlimit(memory, &limit) == 0 else { throw TestFailure("no limit can be read: errno \(errno)") }
    // Enough for what is still allocated, and half of a stack.
    limit.rlim_cur = pages * UInt(getpagesize()) + (4 << 20)
    guard setrlimit(memory, &limit) == 0 else { throw TestFailure("no limit can be set: errno \(errno)") }
}
