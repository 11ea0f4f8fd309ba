import Glibc

/// By how much the resident memory of this process has grown since it was `before`, in bytes.
///
/// It is 0 under AddressSanitizer, which keeps freed memory for a while to detect its use.
package func residentGrowth(since before: Int) throws -> Int {
    dlsym(nil, "__asan_init") == nil ? try residentBytes() - before : 0
}

/// The memory of this process that is resident, in bytes (`VmRSS`).
package func residentBytes() throws -> Int {
    let status = try text(of: "/proc/self/status")
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
    let number = line?.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) }
    guard let number else { throw TestFailure("no VmRSS in /proc/self/status") }
    return number * 1024
}
