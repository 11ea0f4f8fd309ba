import Glibc

/// The limit of the file descriptors that this process can have open (`ulimit -n`).
package enum DescriptorLimit {
    /// The descriptors that a server keeps free for all but its connections.
    package static let reserve = 64
    /// The most that a process can have open by Linux' own settings (`fs.nr_open`).
    package static let largest = 1_048_576
    /// Where the limit is higher, as in containers that set none, libwebsockets 4.1 serves the first 2,560 descriptors alone,
    /// and corrupts its memory when another one is closed (`lws_create_context`, "unreasonable ulimit -n").
    private static let largestForLibrary = 10_000_000
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)

    /// The number of descriptors; 1,024, the usual default, if the system does not tell.
    package static var current: Int { limit.map { Int(clamping: $0.rlim_cur) } ?? 1024 }

    private static var limit: rlimit? {
        var limit = rlimit()
        return unsafe getrlimit(resource, &limit) == 0 ? limit : nil
    }

    /// Lowers a limit that libwebsockets does not take; call it before a loop is made.
    static func bound() {
        guard var limit, limit.rlim_cur > rlim_t(largestForLibrary) else { return }
        limit.rlim_cur = rlim_t(largest)
        _ = unsafe setrlimit(resource, &limit)
    }

    /// Raises the limit to `count`, or as far as the system lets this process; it does not lower it.
    ///
    /// Call it before the first loop is made: libwebsockets serves no descriptor beyond the limit of that time.
    ///
    /// - Returns: The limit from now on, which may be less than `count`.
    package static func raise(to count: Int) -> Int {
        guard var limit, limit.rlim_cur < rlim_t(clamping: count) else { return current }
        limit.rlim_cur = min(rlim_t(clamping: count), limit.rlim_max)
        _ = unsafe setrlimit(resource, &limit)
        return current
    }
}
