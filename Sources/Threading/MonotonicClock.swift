import Glibc
package import MediaCore

/// Reads the clock; no other code does.
package enum MonotonicClock {
    /// The current instant on `CLOCK_MONOTONIC`.
    package static var now: MonotonicInstant {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// An identifier of this machine and its current boot; `nil` if `/proc` is missing.
    ///
    /// Two programs that read the same value read the same clock, unless they are in different time namespaces.
    package static var bootID: String? {
        let file = unsafe open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe read(file, $0.baseAddress, $0.count) }
        guard count > 0 else { return nil }
        return String(decoding: bytes[..<count].filter { $0 > 0x20 }, as: UTF8.self)
    }

    /// CPU time that the calling thread has used.
    package static var threadCPUTime: Duration {
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
    }
}
