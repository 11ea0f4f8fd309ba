import Glibc
import MediaCore
import TestTools
import Testing
import Threading
import WebSockets

/// In a process of its own, because the limit that is set holds for all of it.
@Suite("Without descriptors", .timeLimit(.minutes(1)))
struct DescriptorShortageTests {
    // Once, all threads of the process were left without descriptors. libdispatch traps (SIGILL) if its manager thread,
    // which starts some time after the first task, gets none.
    @Test("A loop that gets too few descriptors says so, however many it gets")
    func loop() async {
        await #expect(processExitsWith: .success) {
            let outcome = Monitor<Result<Void, TestFailure>?>(nil)
            let thread = try WorkerThread(name: "poor") {
                let result = Result { () throws(TestFailure) in try startWithFewDescriptors() }
                outcome.change { $0 = result }
            }
            thread.join()
            try outcome.withLock { $0 }?.get()
        }
    }
}

/// Starts a loop with no free descriptor, with one, with two and so on, until it succeeds.
///
/// The calling thread, and those that it starts, get a table of descriptors of their own; it is their table that is
/// full.
private func startWithFewDescriptors() throws(TestFailure) {
    try unshareDescriptors()
    var taken = try takeAllDescriptors(of: 32)
    var failures = 0
    while true {
        do throws(WebSocketError) {
            try WebSocketLoop(name: "test").shutdown()
            break
        } catch {
            guard error.code == .systemFailure && "\(error)".contains("descriptor") else {
                throw TestFailure("\(error)")
            }
            failures += 1
        }
        guard let last = taken.popLast() else { throw TestFailure("no loop after \(failures) failures") }
        close(last)
    }
    guard failures > 2 else { throw TestFailure("a loop after \(failures) failures") }
}

/// Gives the calling thread a table of descriptors of its own, a copy of the process's.
private func unshareDescriptors() throws(TestFailure) {
    // Swift's Glibc module does not export this GNU extension. The flag is Linux' CLONE_FILES.
    typealias Unshare = @convention(c) (Int32) -> Int32
    guard let address = dlsym(nil, "unshare") else { throw TestFailure("this C library has no unshare") }
    let status = unsafeBitCast(address, to: Unshare.self)(0x400)
    guard status == 0 else { throw TestFailure("no table of one's own: errno \(errno)") }
}

/// Lets each table of descriptors have `count` more, and takes those of this thread's table.
private func takeAllDescriptors(of count: Int) throws(TestFailure) -> [Int32] {
    let lowest = dup(STDERR_FILENO)
    close(lowest)
    var limit = rlimit()
    let descriptors = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard lowest >= 0, getrlimit(descriptors, &limit) == 0 else { throw TestFailure("no limit can be read") }
    limit.rlim_cur = rlim_t(lowest) + rlim_t(count)
    guard setrlimit(descriptors, &limit) == 0 else { throw TestFailure("no limit can be set") }
    var taken: [Int32] = []
    while case let descriptor = dup(STDERR_FILENO), descriptor >= 0 { taken.append(descriptor) }
    return taken
}
