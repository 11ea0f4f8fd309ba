import TestTools
import Testing
import Threading

@testable import RoomKit

@Suite("Places for events", .timeLimit(.minutes(1)))
struct EventPlaceTests {
    /// An event that can be told from others by its number.
    private func event(_ number: Int) -> RoomEvent { .requestRefused(RoomError(.refused, "", serverCode: number)) }

    private func number(_ event: RoomEvent?) -> Int? {
        if case .requestRefused(let error) = event { error.serverCode } else { nil }
    }

    private func missed(_ event: RoomEvent?) -> Int? {
        if case .eventsMissed(let count) = event { count } else { nil }
    }

    // What did not fit was lost without a word.
    @Test("Events that do not fit are counted, and the count comes where they would have been")
    func overflow() async {
        let queue = EventQueue()
        let (slow, quick) = (queue.makeEvents(), queue.makeEvents())
        var quickly = quick.makeAsyncIterator()
        for number in 0..<1500 {
            queue.put(event(number))
            #expect(self.number(await quickly.next()) == number)
        }
        var slowly = slow.makeAsyncIterator()
        for number in 0..<1024 { #expect(self.number(await slowly.next()) == number) }
        #expect(missed(await slowly.next()) == 476)
        queue.put(event(1500))
        #expect(number(await slowly.next()) == 1500)
        #expect(number(await quickly.next()) == 1500)
    }

    @Test("The last event comes however many were left out, and then no more")
    func last() async {
        let queue = EventQueue()
        var reader = queue.makeEvents().makeAsyncIterator()
        for number in 0..<2000 { queue.put(event(number)) }
        queue.finish(with: .disconnected(nil))
        queue.put(event(2000))
        queue.finish(with: event(2001))
        for number in 0..<1024 { #expect(self.number(await reader.next()) == number) }
        #expect(missed(await reader.next()) == 976)
        guard case .disconnected(nil)? = await reader.next() else { return #expect(Bool(false), "no end") }
        #expect(await reader.next() == nil)
        #expect(await reader.next() == nil)
    }

    @Test("The first reader gets what came before it, later ones what comes after")
    func beginnings() async {
        let queue = EventQueue()
        queue.put(event(1))
        var first = queue.makeEvents().makeAsyncIterator()
        var second = queue.makeEvents().makeAsyncIterator()
        queue.put(event(2))
        #expect(number(await first.next()) == 1)
        #expect(number(await first.next()) == 2)
        #expect(number(await second.next()) == 2)
    }

    // A reader that was cancelled ended the events for all that came later.
    @Test("A reader whose task is cancelled ends, and the others go on")
    func cancelled() async throws {
        let queue = EventQueue()
        let events = queue.makeEvents()
        var other = queue.makeEvents().makeAsyncIterator()
        for _ in 0..<100 {
            let isReading = Monitor(false)
            let reader = Task {
                isReading.withLock { $0 = true }
                for await _ in events {}
            }
            try await eventually { isReading.withLock { $0 } }
            reader.cancel()
            await reader.value
        }
        queue.put(event(1))
        #expect(number(await other.next()) == 1)
        var again = events.makeAsyncIterator()
        #expect(number(await again.next()) == 1)
    }

    @Test("Two tasks that read one place share its events, and both end")
    func shared() async {
        let queue = EventQueue()
        let events = queue.makeEvents()
        let readers = (0..<2).map { _ in
            Task {
                var count = 0
                for await _ in events { count += 1 }
                return count
            }
        }
        for number in 0..<100 { queue.put(event(number)) }
        queue.finish(with: .disconnected(nil))
        var total = 0
        for reader in readers { total += await reader.value }
        #expect(total == 101)
    }

    @Test("A reader that is gone is forgotten with its events")
    func forgotten() {
        let queue = EventQueue()
        weak var place: EventPlace?
        do {
            let events = queue.makeEvents()
            place = events.place
            queue.put(event(1))
        }
        #expect(place == nil)
        queue.put(event(2))
    }
}
