import Glibc
import Testing
import Threading

@Suite("What the process does with signals")
struct SignalDispositionTests {
    @Test("A signal is ignored if it was made so, as by nohup, and not if it has a handler or none")
    func ignored() {
        let former = signal(SIGURG, SIG_IGN)
        defer { signal(SIGURG, former) }
        #expect(SignalDisposition.isIgnored(SIGURG))
        signal(SIGURG) { _ in }
        #expect(!SignalDisposition.isIgnored(SIGURG))
        signal(SIGURG, SIG_DFL)
        #expect(!SignalDisposition.isIgnored(SIGURG))
        #expect(!SignalDisposition.isIgnored(-1), "there is no such signal")
    }
}
