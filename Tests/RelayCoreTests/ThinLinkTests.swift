import MediaCore
import RelayCore
import RoomProtocol
import Testing

@Suite("Relay: viewers behind thin links", .timeLimit(.minutes(2)))
struct ThinLinkTests {
    private let start = MonotonicInstant(microseconds: 5_000_000)

    private func percentile(_ share: Double, _ viewer: EmulatedViewer, from: Int, to: Int = .max) -> Double {
        let ages = viewer.ages.filter { $0.time >= from && $0.time < to }.map(\.age).sorted()
        return ages.isEmpty ? .infinity : ages[min(ages.count - 1, Int(Double(ages.count) * share))]
    }

    @Test("One viewer on a thin link: the publisher is told what the link carries, and the age stays small")
    func thinLink() throws {
        var room = try EmulatedRoom(cap: 2_500_000) { [EmulatedViewer($0, "viewer", bitsPerSecond: 1_000_000)] }
        room.run(20_000)
        let viewer = room.viewers[0]
        let bits = Double(viewer.bytesReceived) * 8 / 20
        #expect(bits > 700_000 && bits < 1_000_000, "\(bits)")
        #expect((600_000.0...1_350_000).contains(room.rate), "\(room.rate)")
        // It began at two and a half times what the link carries.
        #expect(percentile(0.5, viewer, from: 6000) < 130)
        #expect(percentile(0.95, viewer, from: 6000) < 260)
        #expect(viewer.peer.allProblems.isEmpty && room.camera.wanted?.temporalLayers == 1)
        // A few times a second, not more.
        let messages = room.camera.publisher.messages.count { if case .layersWanted = $0 { true } else { false } }
        #expect(messages < 20 * 6, "\(messages)")
    }

    // No queue showed: the socket took one message after the other, and the viewer acknowledged whole ones. The publisher
    // went on at its full rate. Keyframes took longer than their packets were kept, so that none was ever sent whole.
    @Test(
        "A viewer that knows whole messages alone gets pictures, however long the first keyframes take",
        arguments: [80_000.0, 100_000, 120_000, 150_000],
        [1_000_000.0, 2_500_000]
    )
    func slowKeyframes(bitsPerSecond: Double, cap: Double) throws {
        for interval in [33, 66] {
            var room = try EmulatedRoom(cap: cap) {
                [EmulatedViewer($0, "viewer", bitsPerSecond: bitsPerSecond, socketBytes: 16_000)]
            }
            room.frameInterval = interval
            room.run(60_000)
            let frames = room.viewers[0].frames.filter { $0.time > 20_000 }
            let keyframes = frames.count(where: \.isKeyframe)
            let late = percentile(0.95, room.viewers[0], from: 20_000)
            #expect(frames.count > 36_000 / interval && keyframes < 5, "\(frames.count) frames, \(keyframes) keyframes")
            #expect(late < 700, "\(late) ms at \(interval) ms")
        }
    }

    @Test("A link that breaks down to a fifth and comes back: late for a moment, and back at the full rate soon")
    func step() throws {
        var room = try EmulatedRoom(cap: 2_300_000) { [EmulatedViewer($0, "viewer", bitsPerSecond: 2_500_000)] }
        let viewer = room.viewers[0]
        room.run(10_000)
        viewer.bitsPerSecond = 500_000
        room.run(15_000)
        #expect(percentile(1, viewer, from: 10_000, to: 25_000) < 1300)
        #expect(percentile(0.95, viewer, from: 12_000, to: 25_000) < 300)
        #expect((230_000.0...700_000).contains(room.rate), "\(room.rate)")
        viewer.bitsPerSecond = 2_500_000
        var back: Int?
        room.run(12_000) { _ in }
        if room.rate >= 1_900_000 { back = room.milliseconds }
        #expect(back != nil, "at \(room.rate) after twelve seconds")
        #expect(viewer.peer.allProblems.isEmpty)
        #expect(room.camera.publisher.keyframeRequests <= 4)
    }

    // BBR holds back what is sent for 0.2 s and a round trip every 10 s. Each time the publisher was told a third of
    // what the link carries, and sent smaller pictures.
    @Test(
        "A sender's TCP that measures the round trip every ten seconds costs neither size nor frames",
        arguments: [2.5e6, 4e6, 2e7],
        [30, 50, 100]
    )
    func heldPath(rate: Double, delay: Int) throws {
        func outcome(saysWhenHeld: Bool) throws -> (lowestRate: Double, keyframeRequests: Int) {
            var room = try EmulatedRoom(cap: 2_200_000) {
                [EmulatedViewer($0, "viewer", bitsPerSecond: rate, delay: .milliseconds(delay), countsParts: true)]
            }
            let viewer = room.viewers[0]
            viewer.saysWhenHeld = saysWhenHeld
            room.run(9000)
            var lowest = room.rate
            for _ in 0..<4 {
                for tenth in 0..<1000 {
                    viewer.isHeld = tenth * 10 < 200 + 2 * delay
                    room.run(10)
                    lowest = min(lowest, room.rate)
                }
            }
            #expect(viewer.peer.allProblems.isEmpty)
            return (lowest, room.camera.publisher.keyframeRequests)
        }
        let said = try outcome(saysWhenHeld: true)
        #expect(said.lowestRate > 0.6 * 2_200_000 && said.keyframeRequests <= 1)
        // Otherwise the emulated holds would be too short to matter.
        #expect(try outcome(saysWhenHeld: false).lowestRate < 0.6 * 2_200_000)
    }

    @Test("A viewer with room to spare bounds nothing")
    func fastLink() throws {
        var room = try EmulatedRoom(cap: 2_000_000) {
            [EmulatedViewer($0, "viewer", bitsPerSecond: 50_000_000, delay: .milliseconds(5))]
        }
        room.run(10_000) { _ in }
        #expect(room.camera.wanted == WantedLayer(simulcastLayer: 0, temporalLayers: 1))
        #expect(room.viewers[0].acknowledgementsSent < 60)
        #expect(percentile(1, room.viewers[0], from: 100) < 20)
    }

    // The beginning of a frame that was there already made the frame before it seem late by the time between both.
    @Test(
        "A viewer that acknowledges parts of messages has no limit on a link with room",
        arguments: [4e6, 8e6, 2e7, 5e7]
    )
    func partsOnFastLink(rate: Double) throws {
        for cap in [600_000.0, 1_500_000, 2_500_000] {
            var room = try EmulatedRoom(cap: cap) {
                [EmulatedViewer($0, "viewer", bitsPerSecond: rate, delay: .milliseconds(20), countsParts: true)]
            }
            let camera = room.camera
            var limited = 0
            room.run(10_000) { _ in if camera.wanted?.bitrate != nil { limited += 1 } }
            #expect(limited == 0, "\(rate) with \(cap)")
            #expect(percentile(1, room.viewers[0], from: 2000) < 50)
        }
    }

    // Each whole message took longer than a stall, so that no limit was ever found, and the age rose to 5 s.
    @Test(
        "A viewer that acknowledges whole messages gets what a very thin link carries",
        arguments: [200_000.0, 300_000]
    )
    func wholeMessagesOnThinLink(rate: Double) throws {
        var room = try EmulatedRoom(cap: 2_500_000) { [EmulatedViewer($0, "viewer", bitsPerSecond: rate)] }
        room.run(40_000)
        let viewer = room.viewers[0]
        #expect(percentile(0.95, viewer, from: 15_000) < 700)
        #expect(viewer.frames.count { $0.time > 15_000 } > 500)
        #expect(viewer.peer.allProblems.isEmpty)
    }

    @Test("The best-placed viewer sets the bound; a slower one gets temporal layers, and nobody else notices")
    func slowBesideFast() throws {
        var room = try EmulatedRoom(cap: 1_000_000, temporalLayers: 3) {
            [
                EmulatedViewer($0, "fast", bitsPerSecond: 50_000_000, delay: .milliseconds(5)),
                EmulatedViewer($0, "slow", bitsPerSecond: 600_000),
            ]
        }
        room.run(20_000)
        #expect(room.camera.wanted?.bitrate == nil && room.camera.wanted?.temporalLayers ?? 1 > 1)
        #expect(
            room.viewers[0].ages.count == room.camera.framesSent - 1 || percentile(1, room.viewers[0], from: 500) < 30
        )
        #expect(percentile(0.95, room.viewers[1], from: 5000) < 600)
        #expect(room.viewers[1].ages.count > 150)
        #expect(room.viewers.allSatisfy { $0.peer.allProblems.isEmpty })
    }

    // Three layers cost everybody up to 1.9 dB.
    @Test("Temporal layers go when nobody needs them any more", arguments: [true, false])
    func backToOneLayer(leaves: Bool) throws {
        var room = try EmulatedRoom(cap: 1_000_000, temporalLayers: 3) {
            [
                EmulatedViewer($0, "fast", bitsPerSecond: 50_000_000, delay: .milliseconds(5)),
                EmulatedViewer($0, "slow", bitsPerSecond: 600_000),
            ]
        }
        room.run(10_000)
        #expect(room.camera.wanted?.temporalLayers ?? 1 > 1)
        if leaves {
            room.bench.close(room.viewers.removeLast().peer)
        } else {
            room.viewers[1].bitsPerSecond = 50_000_000
        }
        room.run(20_000)
        #expect(room.camera.wanted?.temporalLayers == 1)
        #expect(room.viewers.allSatisfy { $0.peer.allProblems.isEmpty })
    }

    @Test("A viewer that stops reading is sent little, and is live again at once when it reads on")
    func stopsReading() throws {
        var room = try EmulatedRoom(cap: 1_500_000) { [EmulatedViewer($0, "viewer", bitsPerSecond: 5_000_000)] }
        let viewer = room.viewers[0]
        room.run(5000)
        viewer.isReading = false
        let before = viewer.peer.bytesTaken
        room.run(30_000)
        #expect(
            viewer.peer.bytesTaken - before < 200_000,
            "\(viewer.peer.bytesTaken - before) bytes to a peer that does not read"
        )
        #expect(room.camera.publisher.keyframeRequests <= 3)
        viewer.isReading = true
        let count = viewer.ages.count
        room.run(300)
        let live = viewer.ages[count...].first { $0.age < 200 }
        #expect(live != nil, "no live frame within 300 ms")
        #expect(viewer.peer.allProblems.isEmpty)
    }

    @Test("A viewer that never acknowledges gets the lag's policy as before")
    func neverAcknowledging() throws {
        var room = try EmulatedRoom(cap: 1_000_000, temporalLayers: 3) {
            [EmulatedViewer($0, "viewer", bitsPerSecond: 600_000, acknowledges: false)]
        }
        room.run(15_000)
        #expect(room.camera.wanted?.bitrate == nil && room.camera.wanted?.temporalLayers == 3)
        #expect(room.viewers[0].ages.count > 120 && room.viewers[0].peer.allProblems.isEmpty)
    }

    // A viewer beside a download got the lowest rate for good.
    @Test("Beside a download that fills the queue, a viewer keeps a share, and yields again when the queue grows")
    func download() {
        var shared = SharedPath()
        for time in stride(from: 0, to: 60_000, by: 33) {
            // The queue of others: none for 10 s, then between 160 and 300 ms.
            let queue = time < 10_000 ? 0 : 160 + abs(time % 2000 - 1000) * 140 / 1000
            shared.advance(to: start + .milliseconds(time), queue: queue)
        }
        #expect((350_000...600_000).contains(shared.rate), "\(shared.rate)")
        #expect(shared.drainTime < .milliseconds(250))
        #expect(shared.leftOut < 60, "What waits in the queue of others is not too old.")
        for time in stride(from: 60_000, to: 65_000, by: 33) {
            shared.advance(to: start + .milliseconds(time), queue: 800)
        }
        #expect(shared.rate < 200_000)
    }

    // The law had the increase of a publisher's own path, although its rate comes to the publisher 0.1 to 0.2 s later.
    @Test(
        "The queue of a viewer that counts whole messages stays short, whatever its link",
        arguments: [(300_000, 50), (500_000, 30), (1_000_000, 50), (1_000_000, 100), (2_000_000, 20)]
    )
    func wholeMessages(rate: Double, delay: Int) throws {
        var room = try EmulatedRoom(cap: 2_500_000) { bench in
            [EmulatedViewer(bench, "viewer", bitsPerSecond: rate, delay: .milliseconds(delay))]
        }
        room.run(60_000)
        let late = percentile(0.95, room.viewers[0], from: 8000)
        #expect(late < Double(delay) + 220, "\(late) ms")
        let bytes = room.viewers[0].frames.filter { $0.time > 8000 }.map(\.bytes).reduce(0, +)
        #expect(Double(bytes) * 8 / 52 > 0.88 * rate, "\(bytes)")
    }

    // The rate that was offered while the backlog drained was half of what the link carries, and the picture shrank by
    // as much.
    @Test("After a fall of the link, the publisher is not told much less than it carries for long")
    func fall() throws {
        var room = try EmulatedRoom(cap: 2_500_000) { bench in
            [EmulatedViewer(bench, "viewer", bitsPerSecond: 2_500_000, countsParts: true)]
        }
        room.run(30_000)
        room.viewers[0].bitsPerSecond = 500_000
        var lowest = Double.infinity
        for _ in 0..<30_000 {
            room.run(1)
            lowest = min(lowest, room.rate)
        }
        #expect(lowest > 230_000, "\(lowest)")
        #expect(percentile(0.95, room.viewers[0], from: 30_000) < 200)
    }
}

/// A path of 1 Mbit/s for a camera, whose queue others fill.
private struct SharedPath {
    private var path = SubscriberPath()
    private var underway: [(arrival: MonotonicInstant, bytes: Int)] = []
    private var written = 0
    /// Frames in the last 10 s that were not admitted.
    private(set) var leftOut = 0
    private var refusals: [MonotonicInstant] = []

    var rate: Double { path.rate ?? 1_000_000 }
    var drainTime: Duration { path.drainTime(of: 0) }

    /// Takes the acknowledgements that have come by `now`, and sends a frame if there is room.
    ///
    /// It is not inlined: Swift 6.3.1 fails to compile it where it is optimized as a part of a test.
    @inline(never)
    mutating func advance(to now: MonotonicInstant, queue milliseconds: Int) {
        while let first = underway.first, first.arrival + .milliseconds(25) <= now {
            let acknowledgement = MediaAcknowledgement(
                cumulativeBytes: UInt64(first.bytes),
                receiveTime: .init(microseconds: UInt64(first.arrival.microseconds)),
                trackAlias: 0,
                frameNumber: 0
            )
            path.acknowledged(acknowledgement, at: first.arrival + .milliseconds(25))
            underway.removeFirst()
        }
        refusals.removeAll { now.duration(since: $0) > .seconds(10) }
        let isAdmitted = path.admitsFrame(at: now)
        if !isAdmitted { refusals.append(now) }
        leftOut = refusals.count
        guard isAdmitted else { return }
        let bytes = Int(min(1_000_000, rate) / 8 * 0.033)
        path.wrote(bytes, .media, at: now)
        written += bytes
        let arrival = now + .milliseconds(25 + milliseconds)
        underway.append((max(arrival, underway.last?.arrival ?? arrival), written))
    }
}
