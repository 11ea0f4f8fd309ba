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

    /// Three viewers with fast networks, of which the first wishes for the smallest encoding, after three seconds.
    private func wishfulRoom() throws -> EmulatedRoom {
        var room = try room { bench in (0..<3).map { fastViewer(bench, "\($0)") } }
        wish(320, of: room.viewers[0], in: room)
        room.run(3000)
        return room
    }

    private func wish(_ width: Int?, of viewer: EmulatedViewer, paused: Bool? = nil, in room: EmulatedRoom) {
        var request = Subscribe(trackId: room.camera.track.id, width: width, height: width.map { $0 * 9 / 16 })
        request.paused = paused
        room.bench.send(.subscribe(request), from: viewer.peer)
    }

    // Each wish needed a keyframe of an encoding that others receive: one a second of each, for ever.
    @Test("A viewer whose wishes alternate costs the others few keyframes")
    func alternatingWishes() throws {
        var room = try wishfulRoom()
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

    // Each time it asked for the smaller encoding anew at once, and the wait for the larger one was over before.
    @Test(
        "A viewer that wishes for less for a moment, again and again, costs the others few keyframes",
        arguments: [1100, 2500]
    )
    func momentaryWishes(period: Int) throws {
        var room = try wishfulRoom()
        let before = room.bench.encodings(of: room.camera).map(\.keyframes.count)
        for _ in 0..<60_000 / period {
            wish(320, of: room.viewers[2], in: room)
            room.run(300)
            wish(nil, of: room.viewers[2], in: room)
            room.run(period - 300)
        }
        let after = room.bench.encodings(of: room.camera).map(\.keyframes.count)
        for layer in [0, 2] { #expect(after[layer] - before[layer] <= 9, "layer \(layer): \(after[layer])") }
        // The first wish for less of a viewer that was modest for long is fulfilled at once.
        room.run(200_000)
        wish(320, of: room.viewers[2], in: room)
        room.run(500)
        #expect(room.viewers[2].layers.last == 0)
        for viewer in room.viewers { #expect(viewer.peer.allProblems.isEmpty) }
    }

    /// Lets the third of three viewers wish for less and for more until it has to wait for both for many seconds.
    private func impatientRoom() throws -> EmulatedRoom {
        var room = try wishfulRoom()
        for _ in 0..<12 {
            wish(320, of: room.viewers[2], in: room)
            room.run(800)
            wish(nil, of: room.viewers[2], in: room)
            room.run(1700)
        }
        return room
    }

    // It was sent keyframes of the large encoding instead, for up to 32 s.
    @Test("A viewer that has to wait for the smaller encoding gets it at once when its network does not carry its own")
    func pressedWish() throws {
        var room = try impatientRoom()
        let viewer = room.viewers[2]
        wish(320, of: viewer, in: room)
        room.run(300)
        #expect(viewer.layers.last == 2, "it waits")
        viewer.bitsPerSecond = 250_000
        let before = room.bench.encodings(of: room.camera)[2].keyframes.count
        room.run(4000)
        #expect(viewer.layers.last == 0 && room.bench.encodings(of: room.camera)[2].keyframes.count <= before + 1)
        let now = try #require(viewer.frames.last?.time)
        room.run(5000)
        let late = viewer.frames.filter { $0.time > now + 1000 }
        #expect(late.count > 80 && late.allSatisfy { $0.layer == 0 }, "\(late.count) frames")
        #expect(viewer.peer.allProblems.isEmpty)
    }

    @Test("A viewer that comes back on a thin network, and then wishes for less, does not wait for it")
    func pressedReturn() throws {
        var room = try impatientRoom()
        let viewer = room.viewers[2]
        wish(nil, of: viewer, paused: true, in: room)
        room.run(1000)
        viewer.bitsPerSecond = 250_000
        wish(nil, of: viewer, in: room)
        room.run(700)
        wish(320, of: viewer, in: room)
        room.run(4000)
        let count = viewer.frames.count
        room.run(3000)
        #expect(viewer.layers.last == 0 && viewer.frames.count > count + 60, "\(viewer.frames.count - count) frames")
        #expect(viewer.peer.allProblems.isEmpty)
    }

    // Each second, as long as its path was closed, everybody who received the smaller encoding got a keyframe.
    @Test("A viewer that waits for a smaller encoding and can take nothing costs the others no keyframes")
    func closedPath() throws {
        var room = try wishfulRoom()
        let viewer = room.viewers[2]
        viewer.bitsPerSecond = 250_000
        room.run(300)
        let before = room.bench.encodings(of: room.camera)[0].keyframes.count
        viewer.isReading = false
        room.run(8000)
        let cost = room.bench.encodings(of: room.camera)[0].keyframes.count - before
        #expect(cost <= 3, "\(cost) keyframes in 8 s")
        viewer.isReading = true
        room.run(8000)
        #expect(viewer.frames.suffix(30).allSatisfy { $0.layer < 2 && $0.age < 1000 })
        #expect(room.viewers[0].peer.allProblems.isEmpty)
    }

    // It waited for an encoding that never came.
    @Test("A viewer whose smaller encoding does not come goes on with the one that it has")
    func missingSmaller() throws {
        var room = try room { [fastViewer($0, "viewer")] }
        let viewer = room.viewers[0]
        room.run(3000)
        room.sendsLayer = { $0 == 2 }
        viewer.bitsPerSecond = 150_000
        room.run(3000)
        viewer.bitsPerSecond = 20_000_000
        room.run(8000)
        let count = viewer.frames.count
        room.run(3000)
        #expect(viewer.frames.count > count + 60, "\(viewer.frames.count - count) frames in 3 s")
    }

    // What had not come during the pause counted as missing: its viewers went down for five seconds.
    @Test("An encoding that is the last to come after a pause is waited for", arguments: [500, 1500, 4000])
    func lateAfterPause(pause: Int) throws {
        var room = try room { bench in (0..<2).map { fastViewer(bench, "\($0)") } }
        wish(320, of: room.viewers[1], in: room)
        room.run(6000)
        #expect(room.wanted == [0, 2])
        let id = room.camera.track.id
        room.bench.send(.disable(Disable(trackId: id)), from: room.camera.publisher)
        room.sendsLayer = { _ in false }
        room.run(pause)
        room.bench.send(.enable(Enable(trackId: id)), from: room.camera.publisher)
        for encoding in room.bench.encodings(of: room.camera) { encoding.wantsKeyframe = true }
        let count = room.viewers[0].frames.count
        for sent in [0...0, 0...2] {
            room.sendsLayer = { sent.contains($0) }
            room.run(1300)
            #expect(room.wanted == [0, 2])
        }
        #expect(Set(room.viewers[0].frames[count...].map(\.layer)) == [2])
        #expect(room.viewers[0].peer.allProblems.isEmpty)
    }

    // A viewer that asks for keyframes itself is without a live picture: it had no backoff at all.
    @Test("Requests for keyframes between wishes do not make the wishes cost more")
    func requestsBetweenWishes() throws {
        var room = try wishfulRoom()
        let before = room.bench.encodings(of: room.camera).map(\.keyframes.count)
        let request = ClientMessage.keyframeRequest(KeyframeRequest(trackId: room.camera.track.id))
        for _ in 0..<30 {
            room.bench.send(request, from: room.viewers[2].peer)
            wish(320, of: room.viewers[2], in: room)
            room.run(1100)
            room.bench.send(request, from: room.viewers[2].peer)
            wish(nil, of: room.viewers[2], in: room)
            room.run(1100)
        }
        let after = room.bench.encodings(of: room.camera).map(\.keyframes.count)
        for layer in [0, 2] { #expect(after[layer] - before[layer] <= 16, "layer \(layer): \(after[layer])") }
    }

    // The viewer that took its wish back withdrew the request of the recorder, which asks once.
    @Test("A wish that is taken back withdraws no request of a viewer that can decode what comes")
    func recorderBesideWish() throws {
        var room = try impatientRoom()
        wish(320, of: room.viewers[2], in: room)
        room.run(40_000)
        wish(nil, of: room.viewers[2], in: room)
        room.run(1500)
        wish(320, of: room.viewers[2], in: room)
        room.run(1500)
        let id = room.camera.track.id
        for _ in 0..<2 {
            room.bench.send(.keyframeRequest(KeyframeRequest(trackId: id, skip: false)), from: room.viewers[1].peer)
            room.run(300)
        }
        let before = room.bench.encodings(of: room.camera)[2].keyframes.count
        wish(nil, of: room.viewers[2], in: room)
        room.run(100)
        wish(320, of: room.viewers[2], in: room)
        room.run(100)
        #expect(room.bench.encodings(of: room.camera)[2].keyframes.count == before, "both wait")
        room.run(3000)
        #expect(room.bench.encodings(of: room.camera)[2].keyframes.count == before + 1)
    }

    // A pause took it back to the larger encoding, where it was without a picture, and that was no reason to wait.
    @Test("A viewer that makes itself be without a picture gets no keyframes of the smaller encoding for it")
    func pausesBetweenWishes() throws {
        var room = try wishfulRoom()
        let before = room.bench.encodings(of: room.camera).map(\.keyframes.count)
        for _ in 0..<54 {
            wish(320, of: room.viewers[2], paused: true, in: room)
            wish(nil, of: room.viewers[2], in: room)
            wish(320, of: room.viewers[2], in: room)
            room.run(1100)
        }
        let after = room.bench.encodings(of: room.camera).map(\.keyframes.count)
        for layer in [0, 2] { #expect(after[layer] - before[layer] <= 18, "layer \(layer): \(after[layer])") }
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
