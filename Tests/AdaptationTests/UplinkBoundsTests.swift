import Adaptation
import AdaptationSimulation
import MediaCore
import RoomProtocol
import TestTools
import Testing

/// How the rate is shared among encodings, and kept within what their receivers want.
@Suite("Uplink controller, sharing and bounds", .timeLimit(.minutes(1)))
struct UplinkBoundsTests {
    @Test("A rate that does not suffice is shared by priority, and none is starved")
    func priorities() {
        var bench = UplinkBench()
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
        var bench = UplinkBench()
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

    @Test("An unused rate is remembered: a limit far below the capacity does not make it slow afterwards")
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

    // A screen that had just come to rest became sharp in steps of a second, because each repeat waited for the next one.
    @Test("A picture that comes too early for the frame rate is looked at again when no newer one can take its place")
    func earlyPicture() {
        var bench = UplinkBench()
        let id = bench.add(2000)
        bench.uplink.setWanted(LayerBounds(frameRate: FrameRate(5), temporalLayers: 1), of: id, at: bench.instant)
        #expect(bench.play(id, seconds: 4) == 20)
        while true {
            if case .encode = bench.decide(id) { break }
            bench.now += 33_333
        }
        let first = bench.now
        bench.encoded(id, bytes: 1000)
        bench.now += 33_333
        guard case .wait(let time?) = bench.decide(id) else {
            Issue.record("a picture that is not due yet does not wait, or for ever")
            return
        }
        // Up to half an interval of the source early or late, and a picture of the source later.
        #expect((first + 150_000...first + 250_000).contains(time.microseconds))
        bench.now = time.microseconds
        guard case .encode = bench.decide(id, isNewFrame: false) else {
            Issue.record("it waits on")
            return
        }
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

    // It got two thirtieths of a second of the rate for each frame, and a CPU at a quarter of its time counted as busy.
    // It did so again for each change of the bitrate that subscribers can use.
    @Test(
        "A source that is slower than it was said to be gets its rate, and loads the CPU no more than it does",
        arguments: [false, true]
    )
    func slowSource(changesBounds: Bool) throws {
        var bench = UplinkBench()
        let id = bench.add(2000)
        _ = bench.play(id, seconds: 6)
        var last: EncodingTarget?
        for index in 0..<90 {
            if changesBounds, index % 2 == 0 {
                let bitrate = Bitrate.kilobitsPerSecond(index % 4 == 0 ? 1800 : 1900)
                bench.uplink.setWanted(LayerBounds(bitrate: bitrate, temporalLayers: 1), of: id, at: bench.instant)
            }
            if case .encode(let target) = bench.decide(id) {
                let limit = target.largestFrame?.bytes ?? .max
                let bytes = min(limit, target.bitrate.bitsPerSecond / 8 / 8)
                let report = EncodingReport(
                    bytes: bytes,
                    isKeyframe: false,
                    quantizer: 40,
                    encodeDuration: .milliseconds(30),
                    dimensions: target.dimensions
                )
                bench.uplink.encoded(report, of: id, at: bench.instant)
                bench.write(bytes)
                last = target
            }
            bench.now += 133_000
            bench.acknowledge()
        }
        let target = try #require(last)
        let fullFrame = target.bitrate.bitsPerSecond / 8 * 133 / 1000
        // More than the path may have in flight would make the next frame late.
        #expect(try #require(target.largestFrame).bytes >= 2 * fullFrame / 3, "\(target), \(fullFrame)")
        #expect(target.dimensions == Dimensions(width: 640, height: 360))
        #expect(bench.uplink.status.lanes[0].limitation.reason != .cpu)
    }
}
