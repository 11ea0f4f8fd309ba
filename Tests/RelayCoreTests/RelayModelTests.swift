import MediaCore
import RoomProtocol
import TestTools
import Testing

@testable import RelayCore

extension Relay {
    /// The subscriptions, and the bytes and packets in all outboxes, counted one by one.
    fileprivate var countedAgain: (subscriptions: Int, waiting: Int, packets: Int) {
        (
            participants.ids.reduce(0) { $0 + participants.hot[$1.index].subscriptions.count },
            connections.ids.reduce(0) { $0 + connections.hot[$1.index].size.bytes },
            connections.ids.reduce(0) { $0 + connections.hot[$1.index].packetCount }
        )
    }

    /// Whether each participant's two lists are of the same tracks, in the same order.
    fileprivate var hasPairedSubscriptions: Bool {
        participants.ids.allSatisfy { id in
            participants.hot[id.index].subscriptions.map(\.track) == participants.hot[id.index].subscribedTracks
        }
    }
}

/// Thousands of random operations on several rooms, with what must always hold checked as they go.
///
/// The viewers acknowledge what they take, sooner or later and not always truly; some tracks have several encodings.
@Suite("Relay: random operations", .timeLimit(.minutes(1)))
struct RelayModelTests {
    private final class World {
        let bench: RelayBench
        var generator: SeededGenerator
        var peers: [Peer] = []
        var cameras: [Camera] = []
        var aliases: Set<UInt32> = []
        var joins = 0

        init(seed: UInt64) {
            bench = RelayBench(seed: seed) {
                $0.stream.maximumBytes = .kibibytes(256)
                $0.maximumRooms = 3
                $0.maximumParticipantsPerRoom = 12
            }
            generator = SeededGenerator(seed: seed &+ 1000)
        }

        func isOneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &generator) == 0 }
        var somePeer: Peer? { peers.randomElement(using: &generator) }
        var someCamera: Camera? { cameras.randomElement(using: &generator) }

        func step() {
            switch Int.random(in: 0..<100, using: &generator) {
            case 0..<4: join()
            case 4..<6: leave()
            case 6..<9: publish()
            case 9: withdraw()
            case 10..<14: subscribe()
            case 75..<82: acknowledge()
            case 14..<16: isOneIn(2) ? pause() : pauseSubscription()
            case 16..<18: askForKeyframe()
            case 18..<20: replace()
            case 20: misbehave()
            case 21..<70: frame()
            case 70..<75: bench.advance(.milliseconds(Int.random(in: 0...900, using: &generator)))
            default: pull()
            }
            bench.advance(.milliseconds(Int.random(in: 0...20, using: &generator)))
            for _ in bench.takeAwakened() where isOneIn(2) { pull() }
        }

        private func join() {
            joins += 1
            let room = "room \(Int.random(in: 0..<4, using: &generator))"
            let peer = bench.join("peer \(joins)", room: room, automatic: isOneIn(4) ? false : nil)
            peers.append(peer)
            if peer.joined == nil { close(peer) }
        }

        private func replace() {
            guard let old = somePeer, let joined = old.joined else { return }
            peers.append(bench.join(joined.participant.identity, room: joined.room.name))
            bench.pull(old)
            if let new = peers.last, new.joined == nil { close(new) }
            if old.close != nil { close(old) }
        }

        private func leave() {
            guard let peer = somePeer else { return }
            if isOneIn(2) {
                bench.send(.leave(Leave(reason: "left")), from: peer)
                bench.pull(peer)
            }
            close(peer)
        }

        func close(_ peer: Peer) {
            bench.close(peer)
            peers.removeAll { $0 === peer }
            cameras.removeAll { $0.publisher === peer }
            #expect(peer.allProblems.isEmpty, "\(peer.allProblems.prefix(3))")
        }

        private func publish() {
            guard let peer = somePeer else { return }
            let name = "track \(Int.random(in: 0..<4, using: &generator))"
            let size = isOneIn(4) ? 20_000 : 300
            let count = isOneIn(2) ? Int.random(in: 1...3, using: &generator) : 0
            let layers = (0..<count).map { number in
                let rate = isOneIn(3) ? nil : 150_000 << (2 * number)
                return SimulcastLayer(simulcastLayer: number, width: 160 << number, height: 90 << number, bitrate: rate)
            }
            guard
                let camera = bench.publish(
                    peer,
                    name: name,
                    bytesPerFrame: size >> count,
                    layers: layers.isEmpty ? nil : layers
                )
            else { return }
            #expect(aliases.insert(camera.track.alias).inserted)
            cameras.append(camera)
        }

        private func withdraw() {
            guard let camera = someCamera else { return }
            bench.send(.unpublish(Unpublish(trackId: camera.track.id)), from: camera.publisher)
            if isOneIn(2) { bench.frame(camera) }
            cameras.removeAll { $0 === camera }
        }

        private func subscribe() {
            guard let peer = somePeer, let camera = someCamera else { return }
            let id = camera.track.id
            if isOneIn(2) {
                var wish = Subscribe(trackId: id)
                if isOneIn(2) { (wish.width, wish.height) = isOneIn(2) ? (160, 90) : (600, 300) }
                if isOneIn(3) { wish.priority = ["low", "high", "utmost"].randomElement(using: &generator) }
                bench.send(.subscribe(wish), from: peer)
            } else {
                bench.send(.unsubscribe(Unsubscribe(trackId: id)), from: peer)
            }
        }

        private func pauseSubscription() {
            guard let peer = somePeer, let camera = someCamera else { return }
            bench.send(.subscribe(Subscribe(trackId: camera.track.id, paused: isOneIn(2))), from: peer)
        }

        private func pause() {
            guard let camera = someCamera else { return }
            let id = camera.track.id
            bench.send(
                isOneIn(2) ? .disable(Disable(trackId: id)) : .enable(Enable(trackId: id)),
                from: camera.publisher
            )
        }

        private func askForKeyframe() {
            guard let peer = somePeer, let camera = someCamera else { return }
            bench.send(.keyframeRequest(KeyframeRequest(trackId: camera.track.id)), from: peer)
        }

        private func misbehave() {
            guard let peer = somePeer, let camera = someCamera, camera.publisher !== peer, isOneIn(3) else { return }
            bench.send(text: isOneIn(2) ? "nonsense" : #"{"type":"fanfare"}"#, from: peer)
            bench.pull(peer)
            if peer.close != nil { close(peer) }
        }

        private func acknowledge() {
            guard let peer = somePeer, peer.bytesTaken > 0 else { return }
            let missing = isOneIn(2) ? 0 : Int.random(in: 0...min(peer.bytesTaken, 50_000), using: &generator)
            let lie = isOneIn(30) ? Int.random(in: 0...100_000, using: &generator) : 0
            let late = Duration.milliseconds(Int.random(in: 0...200, using: &generator))
            bench.acknowledge(peer, bytes: peer.bytesTaken - missing + lie, receivedAt: bench.now + late)
        }

        private func frame() {
            guard let first = someCamera, let camera = bench.encodings(of: first).randomElement(using: &generator)
            else { return }
            if isOneIn(2) { bench.pull(camera.publisher) }
            if isOneIn(60) { camera.wantsKeyframe = true }
            var packets = camera.nextFrame()
            if packets.count > 1, isOneIn(8) {
                // Abandoned: what follows is a keyframe, unless nothing refers to the frame.
                packets.removeLast(Int.random(in: 1..<packets.count, using: &generator))
                if camera.temporalLayers[UInt32(camera.framesSent - 1)] != 2 { camera.wantsKeyframe = true }
            }
            for packet in packets {
                bench.receive([packet], from: camera.publisher)
                if isOneIn(3) { pull() }
            }
        }

        private func pull() {
            guard let peer = somePeer else { return }
            bench.pull(peer, limit: isOneIn(2) ? .max : Int.random(in: 1...30_000, using: &generator))
            // One who has been replaced or let go closes.
            if peer.close != nil { close(peer) }
        }

        func check() {
            let statistics = bench.relay.statistics
            #expect(statistics.connections == peers.count && statistics.rooms <= 3)
            #expect(statistics.tracks <= cameras.count)
            let (subscriptions, waiting, packets) = bench.relay.countedAgain
            #expect(statistics.subscriptions == subscriptions && bench.relay.waitingSignaling.bytes == waiting)
            let isPaired = bench.relay.hasPairedSubscriptions
            #expect(isPaired)
            #expect(statistics.storedBytes <= statistics.tracks * 256 * 1024)
            for peer in peers { #expect(peer.allProblems.isEmpty, "\(peer.allProblems.prefix(3))") }
            checkCounts(packetsInOutboxes: packets)
        }

        /// Received = forwarded + waiting + dropped, and what was forwarded is what came out at the peers, or is
        /// about to.
        private func checkCounts(packetsInOutboxes: Int) {
            for peer in peers {
                for camera in cameras {
                    guard let counts = bench.counts(camera, peer) else {
                        continue
                    }
                    #expect(counts.received == counts.forwarded + counts.waiting + counts.dropped.total)
                    for reason in DropReason.allCases { #expect(counts.dropped[reason] >= 0) }
                }
            }
            let all = bench.relay.packetCounts
            #expect(all.received == all.forwarded + all.waiting + all.dropped.total)
            #expect(all.forwarded == bench.mediaTaken + packetsInOutboxes)
        }
    }

    @Test(
        "Every stream stays decodable and in order, nobody is sent what is not subscribed to, nothing is left over",
        arguments: 1...6
    )
    func random(_ seed: UInt64) {
        let world = World(seed: seed)
        for step in 0..<2500 {
            world.step()
            if step % 50 == 0 { world.check() }
        }
        world.check()
        #expect(world.aliases.count > 20 && world.joins > 50)
        for peer in world.peers { world.close(peer) }
        var left = world.bench.relay.statistics
        #expect(left.disregardedAcknowledgements > 0)
        left.disregardedAcknowledgements = 0
        #expect(left == RelayStatistics())
        world.bench.advance(.seconds(60))
        #expect(world.bench.relay.nextDeadline == nil)
    }
}
