import Adaptation
import AdaptationSimulation
import MediaCore
import RoomProtocol
import TestTools
import Testing

@Suite struct UplinkControllerTests {
    private typealias Lane = UplinkController.Lane

    /// A controller with a path that takes and acknowledges all at once.
    private struct Bench {
        var uplink = UplinkController()
        var now: Int64 = 1_000_000
        var written: UInt64 = 0

        var instant: MonotonicInstant { MonotonicInstant(microseconds: now) }

        mutating func add(
            _ kilobits: Int = 2000,
            priority: UplinkController.Lane.Priority = .standard,
            layer: Int = 0,
            wanted: Bool = true
        ) -> UplinkController.LaneID {
            let lane = UplinkController.Lane(
                largestDimensions: Dimensions(width: 640, height: 360),
                frameRate: FrameRate(30),
                highestBitrate: .kilobitsPerSecond(kilobits),
                priority: priority,
                simulcastLayer: layer
            )
            let id = uplink.add(lane, at: instant)
            if wanted { uplink.setWanted(LayerBounds(temporalLayers: 1), of: id, at: instant) }
            return id
        }

        mutating func decide(_ id: Int, isNewFrame: Bool = true, keyframeDue: Bool = false) -> FrameDecision {
            uplink.decide(id, isNewFrame: isNewFrame, keyframeDue: keyframeDue, at: instant)
        }

        mutating func write(_ bytes: Int) {
            written += UInt64(bytes)
            uplink.wrote(bytes, at: instant)
        }

        mutating func encoded(_ id: Int, bytes: Int, isKeyframe: Bool = false) {
            let report = EncodingReport(
                bytes: bytes,
                isKeyframe: isKeyframe,
                quantizer: 40,
                encodeDuration: .milliseconds(4),
                dimensions: Dimensions(width: 640, height: 360)
            )
            uplink.encoded(report, of: id, at: instant)
        }

        mutating func acknowledge(_ bytes: UInt64? = nil, delay: Int64 = 20_000) {
            uplink.acknowledged(
                MediaAcknowledgement(
                    cumulativeBytes: bytes ?? written,
                    receiveTime: MediaAcknowledgement.ReceiverTime(microseconds: UInt64(now - delay)),
                    trackAlias: 0,
                    frameNumber: 0
                ),
                at: instant
            )
        }

        /// Frames of 30 a second for `seconds` over a path without a limit; returns how many were encoded.
        mutating func play(_ id: Int, seconds: Double) -> Int {
            var encoded = 0
            for _ in 0..<Int(seconds * 30) {
                if case .encode(let target) = decide(id) {
                    let bytes = Int(Double(target.bitrate.bitsPerSecond) / 8 / target.frameRate.framesPerSecond)
                    self.encoded(id, bytes: bytes)
                    write(bytes)
                    encoded += 1
                }
                now += 33_333
                acknowledge()
            }
            return encoded
        }

        func share(_ id: Int) -> Int { uplink.status.lanes.first { $0.id == id }?.share.bitsPerSecond ?? -1 }
    }

    @Test("Nothing is encoded that nobody wants")
    func notWanted() {
        var bench = Bench()
        let id = bench.add(wanted: false)
        #expect(bench.decide(id) == .notWanted)
        bench.uplink.setWanted(LayerBounds(), of: id, at: bench.instant)
        #expect(bench.decide(id) != .notWanted)
        bench.uplink.setWanted(nil, of: id, at: bench.instant)
        #expect(bench.decide(id) == .notWanted)
        bench.uplink.remove(id, at: bench.instant)
        #expect(bench.decide(id) == .notWanted)
        #expect(bench.add() == id + 1)
    }

    @Test("The first keyframe goes at once; the next one of the lane a second later at the earliest")
    func keyframeInterval() throws {
        var bench = Bench()
        let id = bench.add()
        guard case .encode = bench.decide(id, keyframeDue: true) else {
            Issue.record("the first keyframe waits")
            return
        }
        let first = bench.now
        bench.encoded(id, bytes: 6000, isKeyframe: true)
        bench.write(6000)
        bench.now += 100_000
        bench.acknowledge()
        #expect(!bench.uplink.mayEncodeKeyframe(id, at: bench.instant))
        let wait = MonotonicInstant(microseconds: first + 1_000_000)
        #expect(bench.decide(id, keyframeDue: true) == .wait(until: wait))
        #expect(bench.uplink.status.lanes[0].waiting == .keyframeInterval)
        guard case .encode = bench.decide(id, isNewFrame: false) else {
            Issue.record("other frames wait for a keyframe")
            return
        }
        bench.now = first + 1_000_000
        #expect(bench.uplink.mayEncodeKeyframe(id, at: bench.instant))
        guard case .encode = bench.decide(id, keyframeDue: true) else {
            Issue.record("the second keyframe waits for more than a second")
            return
        }
    }

    @Test("A picture that is tried again does not count as one more that was left out")
    func retries() {
        var bench = Bench()
        let id = bench.add()
        _ = bench.play(id, seconds: 2)
        // 2 kB are on their way and stay there: too old, but few enough for a forced frame after three left out.
        bench.write(2000)
        bench.now += 400_000
        var isEncoded: [Bool] = []
        for _ in 0..<4 {
            if case .encode = bench.decide(id) { isEncoded.append(true) } else { isEncoded.append(false) }
            for _ in 0..<20 { if case .encode = bench.decide(id, isNewFrame: false) { isEncoded.append(true) } }
            bench.now += 33_333
        }
        #expect(isEncoded == [false, false, false, true])
    }

    @Test("In an outage nothing is encoded; with the first acknowledgement it goes on at the old rate")
    func outage() {
        var bench = Bench()
        let id = bench.add()
        _ = bench.play(id, seconds: 10)
        let before = bench.uplink.status.rate
        bench.write(20_000)
        var encoded = 0
        for _ in 0..<90 {
            bench.now += 33_333
            if case .encode = bench.decide(id) { encoded += 1 }
        }
        #expect(encoded == 0)
        #expect(bench.uplink.status.mode == .outage)
        #expect(bench.uplink.status.rate == before)
        bench.acknowledge()
        guard case .encode = bench.decide(id, isNewFrame: false) else {
            Issue.record("the outage does not end")
            return
        }
        #expect(bench.uplink.status.mode == .acknowledged)
        #expect(bench.uplink.status.rate.bitsPerSecond > before.bitsPerSecond / 2)
    }

    // The server acknowledges nothing before the first media packet; all text counted as on its way.
    @Test("A publisher that was idle for long begins at once, whatever it has written", arguments: [true, false])
    func longIdle(isText: Bool) {
        var bench = Bench()
        let id = bench.add(wanted: false)
        for _ in 0..<200 {
            if isText { bench.write(46) } else { bench.uplink.wroteAcknowledgement(48, at: bench.instant) }
            bench.now += 5_000_000
        }
        bench.uplink.setWanted(LayerBounds(), of: id, at: bench.instant)
        guard case .encode = bench.decide(id) else {
            Issue.record("the first picture has to wait")
            return
        }
    }

    // Each text that was acknowledged after a silence was read as the end of a stall, and cut the rate.
    @Test("A pause in which nothing but text is sent leaves the rate as it is")
    func pauseWithText() {
        var bench = Bench()
        let id = bench.add()
        _ = bench.play(id, seconds: 10)
        let before = bench.uplink.status.rate
        bench.uplink.setWanted(nil, of: id, at: bench.instant)
        for _ in 0..<12 {
            bench.write(46)
            bench.now += 20_000
            bench.acknowledge()
            bench.now += 5_000_000
        }
        bench.uplink.setWanted(LayerBounds(), of: id, at: bench.instant)
        _ = bench.play(id, seconds: 1)
        #expect(bench.uplink.status.rate.bitsPerSecond > before.bitsPerSecond * 9 / 10)
    }

    // A time that was over made the encoder's thread ask without a pause.
    @Test("In an outage, a frame that the socket has not taken is waited for without a time")
    func outageWithQueue() {
        var bench = Bench()
        let id = bench.add()
        _ = bench.play(id, seconds: 10)
        bench.write(20_000)
        bench.uplink.queueChanged(5000, of: id)
        bench.now += 6_000_000
        #expect(bench.decide(id, isNewFrame: false) == .wait(until: nil))
        #expect(bench.uplink.status.mode == .outage)
    }

    @Test("A server that never acknowledges gets the whole rate, and two queued frames at most")
    func neverAcknowledged() {
        var bench = Bench()
        let id = bench.add(1200)
        var encoded = 0
        for _ in 0..<300 {
            if case .encode(let target) = bench.decide(id) {
                encoded += 1
                bench.encoded(id, bytes: target.bitrate.bitsPerSecond / 240)
                bench.write(target.bitrate.bitsPerSecond / 240)
            }
            bench.now += 33_333
        }
        #expect(bench.uplink.status.mode == .unacknowledged)
        #expect(encoded > 230)
        #expect(bench.share(id) == 1_200_000)
        bench.uplink.queueChanged(11_000, of: id)
        #expect(bench.decide(id) == .wait(until: nil))
        bench.uplink.queueChanged(4000, of: id)
        #expect(bench.decide(id, isNewFrame: false) != .wait(until: nil))
        bench.acknowledge()
        _ = bench.decide(id)
        #expect(bench.uplink.status.mode == .acknowledged)
    }

    @Test("A rate that does not suffice is shared by priority, and none is starved")
    func priorities() {
        var bench = Bench()
        let high = bench.add(priority: .high)
        let low = bench.add(priority: .low)
        let standard = bench.add(priority: .standard)
        // 600 kbit/s at the start, in the ratio 9 : 1 : 3.
        #expect((380_000...420_000).contains(bench.share(high)))
        #expect((120_000...140_000).contains(bench.share(standard)))
        #expect((23_000...47_000).contains(bench.share(low)))
        bench.uplink.setWanted(LayerBounds(bitrate: .kilobitsPerSecond(100)), of: high, at: bench.instant)
        #expect(bench.share(high) == 100_000)
        #expect(bench.share(standard) > 330_000)
        #expect(bench.share(low) > 90_000)
        bench.uplink.setWanted(nil, of: standard, at: bench.instant)
        #expect(bench.share(standard) == 0)
        #expect(bench.share(low) > 450_000)
    }

    @Test("Lower simulcast layers come first; a higher one begins with some margin")
    func simulcast() {
        var bench = Bench()
        let lower = bench.add(500, layer: 0)
        let upper = bench.add(2000, layer: 1)
        #expect(bench.share(lower) == 500_000)
        // 88 of 2,000 kbit/s are left.
        #expect(bench.share(upper) == 0)
        #expect(bench.decide(upper) == .wait(until: nil))
        #expect(bench.uplink.status.lanes[1].waiting == .allocation)
        _ = bench.play(lower, seconds: 8)
        #expect(bench.share(lower) == 500_000)
    }

    @Test("What is not used is not forgotten: a limit far below the capacity does not make it slow afterwards")
    func memory() throws {
        var flow = SimulatedFlow.Configuration()
        flow.delay = 30
        // Pictures of any size use what they get: this is about the rate alone.
        flow.ceiling = 4
        flow.wishes = [
            .init(from: 20, LayerBounds(bitrate: .kilobitsPerSecond(200), temporalLayers: 1)),
            .init(from: 80, nil),
            .init(from: 110, LayerBounds(temporalLayers: 1)),
        ]
        let result = LinkSimulation.run(.constant(4, seconds: 120), seconds: 120, flows: [flow])[0]
        let before = try #require(result.states.last { $0.time < 20_000 })
        #expect(before.rate > 2_300_000)
        let limited = try #require(result.states.last { $0.time < 80_000 })
        #expect(limited.rate < 230_000)
        let back = try #require(result.states.first { $0.time > 110_000 && $0.rate > 2_300_000 })
        #expect(back.time < 112_500)
    }

    @Test("Every target is within the bounds", arguments: UInt64(1)...8)
    func bounds(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var flow = SimulatedFlow.Configuration()
        flow.seed = seed
        for second in stride(from: 0.0, to: 30, by: 2) {
            let bounds = LayerBounds(
                bitrate: .kilobitsPerSecond(Int.random(in: 1...5000, using: &random)),
                dimensions: Dimensions(
                    width: .random(in: 16...2000, using: &random),
                    height: .random(in: 16...2000, using: &random)
                ),
                frameRate: FrameRate(.random(in: 1...60, using: &random)),
                temporalLayers: 1
            )
            flow.wishes.append(.init(from: second, bounds))
        }
        let trace = LinkTrace.markov(seed: seed, seconds: 30)
        let result = LinkSimulation.run(trace, seconds: 30, flows: [flow], log: true)[0]
        var bounds: LayerBounds?
        var targets = 0
        for entry in result.takeLog() {
            if case .wanted(let value, _) = entry.input { bounds = value }
            guard case .encode(let target)? = entry.decision else { continue }
            targets += 1
            #expect(target.bitrate <= bounds?.bitrate ?? .kilobitsPerSecond(2500))
            #expect(target.frameRate <= bounds?.frameRate ?? FrameRate(30))
            #expect(target.bitrate.bitsPerSecond >= 0)
            #expect((target.largestFrame?.bytes ?? 1) > 0)
        }
        #expect(targets > 20)
    }

    @Test("Bounds from the wire that make no sense are none")
    func boundsFromTheWire() {
        let wild = LayerBounds(
            WantedLayer(simulcastLayer: 0, bitrate: -5, width: 0, frameRate: .nan, temporalLayers: -1)
        )
        #expect(wild == LayerBounds())
        let large = LayerBounds(
            WantedLayer(
                simulcastLayer: 0,
                bitrate: .max,
                height: .max,
                frameRate: .greatestFiniteMagnitude,
                temporalLayers: .max
            )
        )
        #expect(large.bitrate == Bitrate(bitsPerSecond: 10_000_000_000))
        #expect(large.dimensions == .largestCodable)
        #expect(large.frameRate == FrameRate(1000))
        #expect(large.temporalLayers == 3)
    }

    @Test(
        "Whatever a receiver says, nothing overflows, and honest acknowledgements bring it back",
        arguments: UInt64(0)..<60
    )
    func lies(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bench = Bench()
        let id = bench.add()
        if seed % 2 == 0 { _ = bench.play(id, seconds: 3) }
        for _ in 0..<500 {
            bench.now += Int64.random(in: 0...100_000, using: &random)
            if case .encode(let target) = bench.decide(id, keyframeDue: .random(using: &random)) {
                bench.encoded(id, bytes: target.bitrate.bitsPerSecond / 240, isKeyframe: .random(using: &random))
                bench.write(target.bitrate.bitsPerSecond / 240)
            }
            bench.uplink.acknowledged(Self.lie(bench, &random), at: bench.instant)
            let status = bench.uplink.status
            #expect((60_000...2_100_000).contains(status.rate.bitsPerSecond))
            #expect(status.unacknowledged.bytes >= 0 && status.unacknowledged.bytes <= bench.written)
        }
        #expect(bench.uplink.status.disregardedAcknowledgements > 0)
        // Honest from here on, by a clock of its own.
        bench.now += 1_000_000
        bench.acknowledge()
        _ = bench.play(id, seconds: 40)
        #expect(bench.play(id, seconds: 10) > 280)
        #expect(bench.uplink.status.rate.bitsPerSecond > 1_500_000)
    }

    private static func lie(_ bench: Bench, _ random: inout SeededGenerator) -> MediaAcknowledgement {
        func number(near value: UInt64) -> UInt64 {
            switch Int.random(in: 0..<6, using: &random) {
            case 0: .random(in: 0 ... .max, using: &random)
            case 1: .random(in: 0...100, using: &random)
            case 2: value &+ .random(in: 0...100_000, using: &random)
            case 3: value &- min(value, .random(in: 0...100_000, using: &random))
            default: value
            }
        }
        let received = UInt64(bench.now)
        return MediaAcknowledgement(
            cumulativeBytes: number(near: bench.written),
            receiveTime: .init(microseconds: number(near: received)),
            trackAlias: .random(in: 0...3, using: &random),
            frameNumber: .random(in: 0...3, using: &random),
            firstByteTime: Bool.random(using: &random) ? nil : .init(microseconds: number(near: received)),
            lastByteTime: Bool.random(using: &random) ? nil : .init(microseconds: number(near: received))
        )
    }
}
