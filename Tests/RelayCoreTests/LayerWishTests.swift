import MediaCore
import RelayCore
import RoomProtocol
import TestTools
import Testing

/// Wishes, pauses and changes of the encoding, and what they cost others.
@Suite("Relay: wishes and pauses of a simulcast track", .timeLimit(.minutes(1)))
struct LayerWishTests {
    private func room(_ makeViewers: (RelayBench) -> [EmulatedViewer]) throws -> EmulatedRoom {
        try EmulatedRoom(cap: 1_700_000, layers: SimulcastTests.layers, makeViewers)
    }

    private func fastViewer(_ bench: RelayBench, _ name: String) -> EmulatedViewer {
        EmulatedViewer(bench, name, bitsPerSecond: 50_000_000, delay: .milliseconds(5))
    }

    private func wish(_ width: Int?, of viewer: EmulatedViewer, paused: Bool? = nil, in room: EmulatedRoom) {
        var request = Subscribe(trackId: room.camera.track.id, width: width, height: width.map { $0 * 9 / 16 })
        request.paused = paused
        room.bench.send(.subscribe(request), from: viewer.peer)
    }

    // Each wish needed a keyframe of an encoding that others receive: one a second of each, for ever.
    @Test("A viewer whose wishes alternate costs the others few keyframes")
    func alternatingWishes() throws {
        var room = try room { bench in (0..<3).map { fastViewer(bench, "\($0)") } }
        wish(320, of: room.viewers[0], in: room)
        room.run(3000)
        let before = room.bench.encodings(of: room.camera).map(\.keyframes.count)
        for _ in 0..<60 {
            wish(320, of: room.viewers[2], in: room)
            room.run(1000)
            wish(nil, of: room.viewers[2], in: room)
            room.run(1000)
        }
        let after = room.bench.encodings(of: room.camera).map(\.keyframes.count)
        for layer in [0, 2] { #expect(after[layer] - before[layer] <= 9, "layer \(layer): \(after[layer])") }
        room.run(33_000)
        #expect(room.viewers[2].layers.last == 2, "it gets in the end what it wished last")
        for viewer in room.viewers { #expect(viewer.peer.allProblems.isEmpty) }
    }

    // Coming back from a pause asked for a keyframe without any backoff.
    @Test("A viewer that comes back again and again costs the others few keyframes", arguments: [true, false])
    func alternatingPauses(pauses: Bool) throws {
        var room = try room { bench in (0..<2).map { fastViewer(bench, "\($0)") } }
        room.run(1000)
        let before = room.bench.encodings(of: room.camera)[2].keyframes.count
        for _ in 0..<30 {
            if pauses {
                wish(nil, of: room.viewers[1], paused: true, in: room)
            } else {
                room.bench.send(.unsubscribe(Unsubscribe(trackId: room.camera.track.id)), from: room.viewers[1].peer)
            }
            room.run(3500)
            wish(nil, of: room.viewers[1], in: room)
            room.run(500)
        }
        let cost = room.bench.encodings(of: room.camera)[2].keyframes.count - before
        #expect(cost <= 9, "\(cost) keyframes")
        #expect(room.viewers[0].peer.allProblems.isEmpty)
    }

    // A wish of a viewer with a known limit was not followed: it went up by the rules for better networks.
    @Test("A wish for a larger picture is fulfilled soon, also on a path with a known limit that carries it")
    func wishOnLimitedPath() throws {
        var room = try room { [fastViewer($0, "fast"), EmulatedViewer($0, "slow", bitsPerSecond: 120_000)] }
        let slow = room.viewers[1]
        wish(320, of: slow, in: room)
        room.run(8000)
        slow.bitsPerSecond = 20_000_000
        room.run(4000)
        #expect(slow.layers.last == 0)
        wish(640, of: slow, in: room)
        room.run(3000)
        #expect(slow.layers.last == 1, "\(slow.layers.suffix(5))")
        #expect(slow.peer.allProblems.isEmpty)
    }

    // It was told 3, its network's level, because of the publisher's network or CPU.
    @Test("A viewer of a smaller encoding is told nothing of its network if the publisher does not send the larger one")
    func heldDownByPublisher() throws {
        var room = try room { [fastViewer($0, "fast"), EmulatedViewer($0, "slow", bitsPerSecond: 300_000)] }
        room.run(10_000)
        room.sendsLayer = { $0 < 2 }
        room.run(20_000)
        let fast = room.viewers[0].peer
        #expect(room.viewers[0].layers.last ?? 2 < 2)
        #expect(!fast.messages.contains { if case .networkQuality = $0 { true } else { false } })
        let slow = room.viewers[1].peer.messages
        #expect(slow.contains { if case .networkQuality = $0 { true } else { false } })
    }

    // It took the cached keyframe, up to three seconds old, with all that had come since.
    @Test("A change that was held back begins with a new keyframe, not with one of seconds ago")
    func heldBackChange() throws {
        var room = try room { [fastViewer($0, "fast"), fastViewer($0, "held")] }
        let held = room.viewers[1]
        wish(320, of: held, in: room)
        room.run(5000)
        #expect(held.layers.last == 0)
        // Its path has no room for the larger one when its keyframe comes, and for two seconds.
        held.isReading = false
        room.run(1500)
        wish(nil, of: held, in: room)
        room.run(2300)
        held.isReading = true
        let frames = held.layers.count
        room.run(4000)
        let first = try #require(held.layers[frames...].firstIndex(of: 2))
        #expect(held.ages[first].age < 1100, "\(held.ages[first])")
        #expect(held.peer.allProblems.isEmpty)
    }

    @Test("A pause does not shorten the time until the next attempt, and one that is long enough does not prolong it")
    func pausedChoice() {
        let start = MonotonicInstant(nanoseconds: 1_000_000_000)
        var choice = LayerChoice(layer: 2)
        choice.update(best: 0, isUrgent: true, at: start)
        #expect(choice.layer(afterPause: 2, at: start + .seconds(4)) == 0)
        #expect(choice.layer(afterPause: 2, at: start + .seconds(6)) == 2)
        choice.resume(at: 0)
        // What its path does not carry doubles the time.
        for second in 5..<11 {
            choice.update(best: 1, isUrgent: false, evidence: .refuted, at: start + .seconds(second))
        }
        #expect(choice.layer == 0)
        #expect(choice.layer(afterPause: 2, at: start + .seconds(19)) == 0)
        #expect(choice.layer(afterPause: 2, at: start + .seconds(21)) == 2)
        // A wish that bounds it is no failure.
        var wished = LayerChoice(layer: 2)
        wished.limit(to: 0)
        #expect(wished.layer == 0 && wished.isWished)
        #expect(wished.layer(afterPause: 2, at: start) == 2)
    }
}
