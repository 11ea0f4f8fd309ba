import MediaCore
import RelayCore
import RoomProtocol
import TestTools
import Testing

/// A track in several encodings, and subscribers behind links of different rates.
@Suite("Relay: simulcast", .timeLimit(.minutes(1)))
struct SimulcastTests {
    static let layers = [
        SimulcastLayer(simulcastLayer: 0, width: 320, height: 180, bitrate: 150_000),
        SimulcastLayer(simulcastLayer: 1, width: 640, height: 360, bitrate: 500_000),
        SimulcastLayer(simulcastLayer: 2, width: 1280, height: 720, bitrate: 1_700_000),
    ]

    private func makeRoom(_ makeViewers: (RelayBench) -> [EmulatedViewer]) throws -> EmulatedRoom {
        try EmulatedRoom(cap: 1_700_000, layers: Self.layers, makeViewers)
    }

    private func fastViewer(_ bench: RelayBench) -> EmulatedViewer {
        EmulatedViewer(bench, "fast", bitsPerSecond: 50_000_000, delay: .milliseconds(5))
    }

    /// The part of a viewer's frames of each simulcast layer that came in a time.
    private func layers(_ viewer: EmulatedViewer, from start: Int, to end: Int = .max) -> Set<Int> {
        Set(zip(viewer.ages, viewer.layers).filter { $0.0.time >= start && $0.0.time < end }.map(\.1))
    }

    private func percentile(_ share: Double, _ viewer: EmulatedViewer, from: Int) -> Double {
        let ages = viewer.ages.filter { $0.time >= from }.map(\.age).sorted()
        return ages.isEmpty ? .infinity : ages[min(ages.count - 1, Int(Double(ages.count) * share))]
    }

    private func expectNoProblems(_ room: EmulatedRoom) {
        for viewer in room.viewers { #expect(viewer.peer.allProblems.isEmpty, "\(viewer.peer.allProblems.prefix(3))") }
        #expect(room.camera.publisher.close == nil)
    }

    @Test("One viewer, on whatever link, needs one encoding: the largest, within the link's rate")
    func oneViewer() throws {
        for rate in [300_000.0, 900_000, 50_000_000] {
            var room = try makeRoom { bench in
                [EmulatedViewer(bench, "viewer", bitsPerSecond: rate, countsParts: rate < 1_000_000)]
            }
            var wanted: Set<[Int]> = []
            room.run(20_000) { _ in }
            for _ in 0..<100 {
                room.run(100)
                wanted.insert(room.wanted)
            }
            #expect(wanted == [[2]], "at \(rate)")
            #expect(layers(room.viewers[0], from: 0) == [2])
            #expect(percentile(0.95, room.viewers[0], from: 10_000) < 400, "at \(rate)")
            expectNoProblems(room)
        }
    }

    @Test("A slow viewer beside a fast one gets a smaller encoding, and the fast one everything, in time")
    func slowBesideFast() throws {
        var room = try makeRoom { [fastViewer($0), EmulatedViewer($0, "slow", bitsPerSecond: 600_000)] }
        var temporalLayers: Set<Int?> = []
        for _ in 0..<300 {
            room.run(100)
            temporalLayers.insert(room.bench.encodings(of: room.camera)[2].wanted?.temporalLayers)
        }
        // Not even at first, before the slow one has its encoding: they would cost the fast one quality.
        #expect(temporalLayers == [1])
        let (fast, slow) = (room.viewers[0], room.viewers[1])
        #expect(layers(fast, from: 0) == [2])
        #expect(fast.ages.count >= room.bench.encodings(of: room.camera)[2].framesSent - 2)
        #expect(percentile(1, fast, from: 500) < 30)
        // Now and then it may try the largest.
        #expect(slow.layers.count { $0 == 2 } < slow.layers.count / 4)
        #expect(percentile(0.95, slow, from: 5000) < 400)
        // Nothing is left out of what it gets.
        #expect(slow.ages.count { $0.time > 10_000 } > 500)
        #expect(room.bench.encodings(of: room.camera)[2].wanted == WantedLayer(simulcastLayer: 2, temporalLayers: 1))
        expectNoProblems(room)
    }

    // Each time, its encoding came when nobody waited for it any more.
    @Test("From a publisher far away, a viewer gets what it wishes for", arguments: [100, 1900, 2500, 3300])
    func farPublisher(roundTrip: Int) throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let camera = try #require(bench.publish(robot, layers: Self.layers))
        let viewer = bench.join("viewer")
        let track = camera.track.id
        bench.send(.subscribe(Subscribe(trackId: track, width: 320, height: 180)), from: viewer)
        // What the relay wants reaches the camera half a round trip later, and its frames the relay after another half.
        var wishes: [(at: Int, wanted: [Bool])] = []
        var received: Set<Int> = []
        for millisecond in 0..<40_000 {
            bench.advance(.milliseconds(1))
            if millisecond == 8000 {
                bench.send(.subscribe(Subscribe(trackId: track, width: 640, height: 360)), from: viewer)
            }
            bench.pull([robot, viewer])
            let encodings = bench.encodings(of: camera)
            wishes.append((millisecond, encodings.map { $0.wanted != nil }))
            let due = millisecond - roundTrip
            guard millisecond % 33 == 0, due >= 0 else { continue }
            for (encoding, isWanted) in zip(encodings, wishes[due].wanted) where isWanted { bench.frame(encoding) }
            bench.pull([robot, viewer])
            bench.acknowledge(viewer)
            if millisecond > 30_000 { received.formUnion(viewer.receiver(camera)?.simulcastLayers.suffix(1) ?? []) }
        }
        #expect(received == [1])
        #expect(viewer.allProblems.isEmpty, "\(viewer.allProblems.prefix(3))")
    }

    @Test("When the slow viewer goes, its encoding is not wanted any more; when its link is good again, nor is it")
    func lastUserGoes() throws {
        for leaves in [true, false] {
            var room = try makeRoom { [fastViewer($0), EmulatedViewer($0, "slow", bitsPerSecond: 300_000)] }
            room.run(10_000)
            #expect(room.wanted.count == 2 && room.wanted.last == 2, "\(room.wanted)")
            if leaves {
                room.bench.close(room.viewers[1].peer)
                room.viewers.removeLast()
                room.run(3000)
            } else {
                room.viewers[1].bitsPerSecond = 50_000_000
                room.run(40_000)
                #expect(layers(room.viewers[1], from: room.milliseconds - 2000) == [2])
            }
            #expect(room.wanted == [2])
            expectNoProblems(room)
        }
    }

    @Test("A viewer whose link flaps around an encoding's rate does not go up and down with it")
    func flapping() throws {
        var room = try makeRoom { [fastViewer($0), EmulatedViewer($0, "slow", bitsPerSecond: 1_200_000)] }
        for _ in 0..<20 {
            room.viewers[1].bitsPerSecond = 1_500_000
            room.run(3000)
            room.viewers[1].bitsPerSecond = 700_000
            room.run(3000)
        }
        let received = room.viewers[1].layers
        let changes = zip(received, received.dropFirst()).count { $0 != $1 }
        #expect(changes <= 16, "\(changes) changes in two minutes")
        expectNoProblems(room)
    }

    // The server went on to choose by the bitrates of the beginning.
    @Test("A slow viewer gets the largest encoding when its bitrate is announced to be low, and not when it rises")
    func otherBitrates() throws {
        var room = try makeRoom { [fastViewer($0), EmulatedViewer($0, "slow", bitsPerSecond: 600_000)] }
        func announce(_ bitrates: [Int]) {
            room.camera.track.simulcastLayers = zip(Self.layers, bitrates).map { layer, bitrate in
                var layer = layer
                layer.bitrate = bitrate
                return layer
            }
            let request = UpdateTrack(trackId: room.camera.track.id, bitrates: bitrates)
            room.bench.send(.updateTrack(request), from: room.camera.publisher)
        }
        room.run(15_000)
        #expect(layers(room.viewers[1], from: 5000).isSubset(of: [0, 1]))
        announce([60_000, 120_000, 250_000])
        room.run(30_000)
        #expect(layers(room.viewers[1], from: room.milliseconds - 5000) == [2])
        // Those who come now are told the present bitrates.
        let late = room.bench.join("late", automatic: false)
        let info = late.joined?.participants.flatMap(\.tracks).first
        #expect(info?.simulcastLayers?.map(\.bitrate) == [60_000, 120_000, 250_000])
        announce(Self.layers.compactMap(\.bitrate))
        room.run(20_000)
        #expect(layers(room.viewers[1], from: room.milliseconds - 5000).isSubset(of: [0, 1]))
        expectNoProblems(room)
    }

    // The server went on to choose by the sizes of the beginning.
    @Test("A wish for a size chooses among the sizes that were announced last, and does not wait for a larger encoding")
    func otherSizes() throws {
        var room = try makeRoom { [fastViewer($0)] }
        func announce(_ sizes: [PictureSize]?) {
            let bitrates = Self.layers.compactMap(\.bitrate)
            let request = UpdateTrack(trackId: room.camera.track.id, bitrates: bitrates, sizes: sizes)
            room.bench.send(.updateTrack(request), from: room.camera.publisher)
        }
        let sizes = Self.layers.map { PictureSize(width: $0.width, height: $0.height) }
        let larger = sizes.map { PictureSize(width: 2 * $0.width, height: 2 * $0.height) }
        room.bench.send(
            .subscribe(Subscribe(trackId: room.camera.track.id, width: 640, height: 360)),
            from: room.viewers[0].peer
        )
        room.run(3000)
        #expect(room.wanted == [1])
        announce(larger)
        room.run(3000)
        #expect(room.wanted == [0])
        // Those who come now are told the present sizes, and an announcement without sizes leaves them.
        announce(nil)
        let late = room.bench.join("late", automatic: false)
        let layers = late.joined?.participants.flatMap(\.tracks).first?.simulcastLayers ?? []
        #expect(layers.map { PictureSize(width: $0.width, height: $0.height) } == larger)
        #expect(layers.map(\.bitrate) == Self.layers.map(\.bitrate))
        room.run(1000)
        #expect(room.wanted == [0])
        announce(sizes)
        room.run(3000)
        #expect(room.wanted == [1])
        expectNoProblems(room)
    }

    @Test("Bitrates and sizes that do not fit the track's encodings are refused, and change nothing")
    func refusedBitrates() throws {
        let room = try makeRoom { [fastViewer($0)] }
        let (bench, robot) = (room.bench, room.camera.publisher)
        let plain = try #require(bench.publish(robot, name: "plain"))
        robot.forgetMessages()
        for bitrates in [[], [1, 2], [1, 2, 0], [1, 2, -3], [1, 2, 3, 4]] {
            bench.send(.updateTrack(UpdateTrack(trackId: room.camera.track.id, bitrates: bitrates)), from: robot)
        }
        bench.send(.updateTrack(UpdateTrack(trackId: plain.track.id, bitrates: [1])), from: robot)
        for sides in [[], [2, 4], [2, 4, 8, 16], [0, 4, 8], [-2, 4, 8], [4, 2, 8], [2, 4, 16_384]] {
            let sizes = sides.map { PictureSize(width: $0, height: $0) }
            let request = UpdateTrack(trackId: room.camera.track.id, bitrates: [1, 2, 3], sizes: sizes)
            bench.send(.updateTrack(request), from: robot)
        }
        bench.pull(robot)
        #expect(robot.errors == Array(repeating: .invalidArgument, count: 13) && robot.close == nil)
        let late = bench.join("late", automatic: false)
        #expect(late.joined?.participants.flatMap(\.tracks).first?.simulcastLayers == Self.layers)
    }

    @Test("A viewer that never acknowledges goes down by its lag alone")
    func neverAcknowledging() throws {
        var room = try makeRoom {
            [fastViewer($0), EmulatedViewer($0, "mute", bitsPerSecond: 400_000, acknowledges: false)]
        }
        room.run(30_000)
        #expect(layers(room.viewers[1], from: 20_000).isSubset(of: [0, 1]))
        #expect(layers(room.viewers[0], from: 0) == [2])
        #expect(percentile(1, room.viewers[0], from: 500) < 30)
        expectNoProblems(room)
    }

    @Test(
        "A wish for a size chooses the smallest encoding that is as large",
        arguments: [(320, 0), (400, 1), (900, 2)]
    )
    func wishes(width: Int, layer: Int) throws {
        var room = try makeRoom { [fastViewer($0)] }
        let viewer = room.viewers[0].peer
        room.run(1000)
        let wish = Subscribe(trackId: room.camera.track.id, width: width, height: width * 9 / 16)
        room.bench.send(.subscribe(wish), from: viewer)
        room.run(3000)
        #expect(layers(room.viewers[0], from: 3000) == [layer])
        #expect(room.wanted == [layer])
        room.bench.send(.subscribe(Subscribe(trackId: room.camera.track.id)), from: viewer)
        room.run(3000)
        #expect(layers(room.viewers[0], from: 6000) == [2] && room.wanted == [2])
        expectNoProblems(room)
    }

    @Test("What waits in the encoding that a viewer leaves is counted with that reason")
    func countsAtChange() throws {
        var room = try makeRoom { [fastViewer($0), EmulatedViewer($0, "slow", bitsPerSecond: 50_000_000)] }
        room.run(5000)
        let before = try counts(room, room.viewers[1])
        #expect(before.dropped[.otherEncoding] == 0)
        room.viewers[1].bitsPerSecond = 300_000
        room.run(10_000)
        let layersAfter = layers(room.viewers[1], from: 13_000)
        #expect(!layersAfter.isEmpty && layersAfter.isSubset(of: [0, 1]), "\(layersAfter)")
        let after = try counts(room, room.viewers[1])
        #expect(after.dropped[.otherEncoding] > 0)
        #expect(after.received == after.forwarded + after.dropped.total + after.waiting)
        #expect(try counts(room, room.viewers[0]).dropped[.otherEncoding] == 0)
        expectNoProblems(room)
    }

    private func counts(_ room: EmulatedRoom, _ viewer: EmulatedViewer) throws -> PacketCounts {
        try #require(room.bench.counts(room.camera, viewer.peer))
    }

    @Test("A newcomer that wishes for a small size sees a picture at once, and its own encoding soon")
    func joinsWithOther() throws {
        var room = try makeRoom { [fastViewer($0)] }
        room.run(2000)
        let late = EmulatedViewer(room.bench, "late", bitsPerSecond: 50_000_000, delay: .milliseconds(5))
        let wish = Subscribe(trackId: room.camera.track.id, width: 320, height: 180)
        room.bench.send(.subscribe(wish), from: late.peer)
        room.viewers.append(late)
        room.run(3000)
        #expect(late.ages.first?.time ?? .max < 2100)
        #expect(layers(late, from: 4000) == [0] && room.wanted == [0, 2])
        expectNoProblems(room)
    }

    @Test("An encoding that the publisher does not send costs nobody the picture")
    func missingEncoding() throws {
        var room = try makeRoom { [fastViewer($0), EmulatedViewer($0, "slow", bitsPerSecond: 300_000)] }
        room.run(10_000)
        #expect(layers(room.viewers[0], from: 9000) == [2])
        // Its uplink or its processor has no room for the largest any more.
        room.sendsLayer = { $0 < 2 }
        room.run(6000)
        #expect(!layers(room.viewers[0], from: 14_000).isEmpty, "the fast viewer sees nothing")
        #expect(layers(room.viewers[0], from: 14_000).isSubset(of: [0, 1]))
        room.sendsLayer = { _ in true }
        room.run(30_000)
        #expect(layers(room.viewers[0], from: 44_000) == [2])
        expectNoProblems(room)
    }

    @Test("Many viewers that change at once cost an encoding at most one keyframe a second")
    func keyframes() throws {
        var room = try makeRoom { bench in
            [fastViewer(bench)] + (0..<12).map { EmulatedViewer(bench, "slow \($0)", bitsPerSecond: 350_000) }
        }
        room.run(20_000)
        for encoding in room.bench.encodings(of: room.camera) { #expect(encoding.keyframes.count <= 21) }
        #expect(room.bench.encodings(of: room.camera)[2].keyframes.count <= 3)
        for slow in room.viewers.dropFirst() { #expect(layers(slow, from: 15_000).isSubset(of: [0, 1])) }
        expectNoProblems(room)
    }

    @Test("A viewer that joins late is sent the encoding that is there, from its cache")
    func lateJoiner() throws {
        var room = try makeRoom { [fastViewer($0)] }
        room.run(1000)
        let late = fastViewer(room.bench)
        room.viewers.append(late)
        let requests = room.camera.publisher.keyframeRequests
        room.run(1000)
        #expect(layers(late, from: 0) == [2] && room.wanted == [2])
        #expect(room.camera.publisher.keyframeRequests == requests)
        expectNoProblems(room)
    }

    @Test("The packets of all encodings together stay within the memory of a track")
    func memory() throws {
        let bench = RelayBench { $0.stream.maximumBytes = .kibibytes(256) }
        let robot = bench.join("robot")
        let viewers = (0..<3).map { bench.join("viewer \($0)") }
        let camera = try #require(bench.publish(robot, bytesPerFrame: 4000, layers: Self.layers))
        for (viewer, width) in zip(viewers, [320, 640, 1280]) {
            let wish = Subscribe(trackId: camera.track.id, width: width, height: width * 9 / 16)
            bench.send(.subscribe(wish), from: viewer)
        }
        for _ in 0..<300 {
            bench.pull([robot])
            for encoding in bench.encodings(of: camera) where encoding.wanted != nil {
                bench.frame(encoding)
                #expect(bench.relay.statistics.storedBytes <= 256 * 1024)
            }
            if bench.encodings(of: camera).allSatisfy({ $0.wanted != nil }) { bench.pull(viewers[0]) }
            bench.advance(.milliseconds(33))
        }
        #expect(bench.encodings(of: camera).allSatisfy { $0.framesSent > 100 })
    }

    @Test("Encodings that make no sense are refused, and nothing is published")
    func badEncodings() throws {
        func layer(_ number: Int, _ width: Int, _ height: Int, _ rate: Int? = nil) -> SimulcastLayer {
            SimulcastLayer(simulcastLayer: number, width: width, height: height, bitrate: rate)
        }
        let bad = [
            [], [layer(1, 64, 64)], [layer(0, 64, 64), layer(0, 64, 64)], [layer(0, 64, 64), layer(2, 64, 64)],
            (0..<4).map { layer($0, 64, 64) }, [layer(0, 0, 64)], [layer(0, 64, -1)], [layer(0, 64, 64, 0)],
            [layer(0, 700, 64)], [layer(0, 64, .max)], [layer(0, 320, 64), layer(1, 64, 64)],
        ]
        let bench = RelayBench()
        let robot = bench.join("robot")
        for layers in bad {
            var request = Publish(
                requestId: 1,
                name: "a",
                source: "camera",
                codec: VideoCodec.vp8,
                width: 640,
                height: 480,
                frameRate: 30
            )
            request.simulcastLayers = layers
            bench.send(.publish(request), from: robot)
        }
        bench.pull(robot)
        #expect(robot.errors == bad.map { _ in .invalidArgument })
        #expect(bench.relay.statistics.tracks == 0 && robot.close == nil)
    }
}
