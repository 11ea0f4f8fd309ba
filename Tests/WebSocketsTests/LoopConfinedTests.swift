import Synchronization
import Testing
import Threading

@testable import WebSockets

@Suite("Loop-confined values", .timeLimit(.minutes(1)))
struct LoopConfinedTests {
    /// Not `Sendable`, as what is confined.
    private final class Counter {
        var count = 0
    }

    private func onLoop<Value: Sendable>(_ loop: WebSocketLoop, _ body: @escaping @Sendable () -> Value) -> Value? {
        let result = Monitor<Value?>(nil)
        loop.execute { result.change { $0 = body() } }
        return result.wait { $0 }
    }

    @Test("The value is made on the loop's thread, when first asked for, once")
    func making() throws {
        let loop = try WebSocketLoop(name: "loop")
        defer { loop.shutdown() }
        let made = Monitor(0)
        let confined = LoopConfined(on: loop) {
            made.withLock { $0 += loop.isCurrent ? 1 : 100 }
            return Counter()
        }
        #expect(onLoop(loop) { true } == true)
        #expect(made.withLock { $0 } == 0)
        for expected in 1...3 {
            let count = onLoop(loop) {
                confined.value.count += 1
                return confined.value.count
            }
            #expect(count == expected)
        }
        #expect(made.withLock { $0 } == 1)
    }

    @Test("After the loop's end the value is still there for late jobs")
    func afterShutdown() throws {
        let loop = try WebSocketLoop(name: "loop")
        let confined = LoopConfined(on: loop) { Counter() }
        loop.execute { confined.value.count = 5 }
        loop.shutdown()
        #expect(onLoop(loop) { confined.value.count } == 5)
    }

    @Test("Asked for on another thread, it traps")
    func elsewhere() async {
        await #expect(processExitsWith: .failure) {
            let loop = try WebSocketLoop(name: "loop")
            _ = LoopConfined(on: loop) { 1 }.value
        }
    }
}
