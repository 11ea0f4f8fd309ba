import Glibc
import MediaCore
import TestTools
import Testing
import WebSockets

/// In a process of its own, because what is taken from it is taken from all of it.
@Suite("Without descriptors", .timeLimit(.minutes(1)))
struct DescriptorShortageTests {
    @Test("A loop that gets too few descriptors says so, however many it gets")
    func loop() async {
        await #expect(processExitsWith: .success) {
            var limit = rlimit()
            let descriptors = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
            guard getrlimit(descriptors, &limit) == 0 else { throw TestFailure("no limit can be read") }
            let lowest = dup(STDERR_FILENO)
            close(lowest)
            var failures = 0
            var isThere = false
            for spare in 0..<32 where !isThere {
                limit.rlim_cur = rlim_t(lowest) + rlim_t(spare)
                guard setrlimit(descriptors, &limit) == 0 else { throw TestFailure("no limit can be set") }
                do throws(WebSocketError) {
                    let loop = try WebSocketLoop(name: "test")
                    isThere = true
                    loop.shutdown()
                } catch {
                    guard error.code == .systemFailure && "\(error)".contains("descriptor") else {
                        throw TestFailure("\(error)")
                    }
                    failures += 1
                }
            }
            guard isThere && failures > 2 else { throw TestFailure("\(failures) failures, then a loop: \(isThere)") }
        }
    }
}
