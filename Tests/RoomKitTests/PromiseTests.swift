import TestTools
import Testing
import Threading

@testable import RoomKit

@Suite("Promise", .timeLimit(.minutes(1)))
struct PromiseTests {
    @Test("A value that is there already is given at once, the first one for good")
    func early() async {
        let promise = Promise<Int>()
        #expect(promise.current == nil)
        promise.fulfill(1)
        promise.fulfill(2)
        #expect(await promise.value(within: .seconds(3600)) == 1)
        #expect(await promise.value() == 1)
        #expect(promise.current == 1)
    }

    @Test("Everybody who waits gets the value", arguments: [1, 2, 100])
    func waiters(count: Int) async {
        let promise = Promise<String>()
        let values = await withTaskGroup(of: String?.self) { group in
            for index in 0..<count {
                group.addTask { index % 2 == 0 ? await promise.value(within: .seconds(3600)) : await promise.value() }
            }
            group.addTask {
                promise.fulfill("here")
                return nil
            }
            return await group.reduce(into: [String]()) { values, value in if let value { values.append(value) } }
        }
        #expect(values == Array(repeating: "here", count: count))
    }

    // The time was over before the waiting had begun, and nobody looked again: the waiter waited for ever.
    @Test(
        "A time that is over at once, or before, does not keep anybody waiting",
        arguments: [Duration.zero, .seconds(-1)]
    )
    func noTime(timeout: Duration) async {
        let promise = Promise<Int>()
        for _ in 0..<2000 { #expect(await promise.value(within: timeout) == nil) }
        promise.fulfill(3)
        #expect(await promise.value(within: timeout) == 3)
    }

    @Test("One whose time is over leaves the others waiting")
    func someTimeOut() async {
        let promise = Promise<Int>()
        async let patient = promise.value(within: .seconds(3600))
        async let impatient = promise.value(within: .milliseconds(1))
        #expect(await impatient == nil)
        promise.fulfill(4)
        #expect(await patient == 4)
    }

    @Test("A cancelled task waits no longer, whenever it is cancelled")
    func cancelling() async {
        let promise = Promise<Int>()
        for delay in 0..<200 {
            let task = Task { await promise.value(within: .seconds(3600)) }
            for _ in 0..<delay % 10 { await Task.yield() }
            task.cancel()
            #expect(await task.value == nil)
        }
    }

    @Test("Neither a timer nor a waiter outlives the waiting")
    func nothingLeft() async throws {
        final class Value: Sendable {}
        weak var weakPromise: Promise<Value>?
        weak var weakValue: Value?
        do {
            let promise = Promise<Value>()
            let value = Value()
            (weakPromise, weakValue) = (promise, value)
            let waiting = Task { [promise] in _ = await promise.value(within: .seconds(3600)) }
            await Task.yield()
            promise.fulfill(value)
            await waiting.value
        }
        // The timer's task gives the promise up when it has seen that it is cancelled.
        try await eventually { weakPromise == nil && weakValue == nil }
    }
}
