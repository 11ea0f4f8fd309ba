import Testing

@testable import Adaptation

@Suite("Competing flows")
struct CompetingFlowsTests {
    // Beside a download through a deep buffer, frames would have been sent although they wait for seconds.
    @Test("A share is claimed where pictures can wait in the queue, and not in a longer one", arguments: [300.0, 3000])
    func longestQueue(milliseconds: Double) {
        var flows = CompetingFlows(CompetingFlows.Settings())
        var changes: [CompetingFlows.Change] = []
        for step in 0..<200 {
            let time = Int64(step) * 50_000
            // From the third second on a queue stands, and less and less of ours is delivered.
            let isQueueing = time >= 3_000_000
            let share = isQueueing ? max(0.1, 1 - Double(time - 3_000_000) / 4e6) : 1
            let change = flows.update(
                queue: isQueueing ? milliseconds * 1000 : 0,
                least: isQueueing ? (milliseconds - 60) * 1000 : 0,
                low: 15_000,
                delivered: share * 800_000,
                at: time
            )
            if change != .none { changes.append(change) }
        }
        #expect(changes.first == (milliseconds > 500 ? nil : .began))
    }

    // What a lost packet of ours held up for a round trip looked like a queue of ours, and the share was given up.
    @Test(
        "A queue that is much longer for a moment is no reason to yield; one that stays so is",
        arguments: [400, 600]
    )
    func longerQueue(milliseconds: Int) {
        var flows = CompetingFlows(CompetingFlows.Settings())
        var changes: [CompetingFlows.Change] = []
        for time in stride(from: 0, to: 14_000, by: 50) {
            let isQueueing = time >= 3000
            let isLonger = (12_000..<12_000 + milliseconds).contains(time)
            let share = isQueueing ? max(0.1, 1 - Double(time - 3000) / 4000) : 1
            let swing = Double(time / 50 % 2) * 60_000
            let change = flows.update(
                queue: isQueueing ? (isLonger ? 500_000 : 200_000 + swing) : 0,
                least: isQueueing ? 200_000 : 0,
                low: 15_000,
                delivered: share * 800_000,
                at: Int64(time) * 1000
            )
            if change != .none { changes.append(change) }
        }
        #expect(changes == (milliseconds > 500 ? [.began, .refuted] : [.began]))
    }
}
