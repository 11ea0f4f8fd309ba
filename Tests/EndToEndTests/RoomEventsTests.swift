import RoomKit
import TestSupport
import Testing
import Threading

@Suite("Readers of a room's events", .timeLimit(.minutes(1)))
struct RoomEventsTests {
    private func isEnd(_ event: RoomEvent) -> Bool {
        if case .disconnected = event { true } else { false }
    }

    // The second reader took the place of the first, whose events ended; one of the two never heard of the end.
    @Test("Several readers hear everything, to the end")
    func severalReaders() async throws {
        let stage = try Stage()
        let room = try await RoomClient.connect(options: stage.options("viewer"))
        let heard = Monitor<[Int]>([0, 0, 0])
        let readers = (0..<3).map { index in
            let events = room.events
            return Task {
                var isOver = false
                for await event in events {
                    heard.withLock { $0[index] += 1 }
                    if isEnd(event) { isOver = true }
                }
                return isOver
            }
        }
        for number in 0..<5 { await (try await stage.join("guest-\(number)")).room.disconnect() }
        try await eventually("all hear of all: \(heard.withLock { $0 })") {
            heard.withLock { $0.allSatisfy { $0 >= 10 } }
        }
        await room.disconnect()
        for reader in readers { #expect(await reader.value) }
        // One who comes when all is over.
        var late = 0
        for await event in room.events where isEnd(event) { late += 1 }
        #expect(late == 1)
    }
}
