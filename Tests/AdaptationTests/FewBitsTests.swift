import Adaptation
import MediaCore
import RoomProtocol
import Testing

@Suite("Few frames and few bits on an uplink")
struct FewBitsTests {
    private func lane(
        _ kilobits: Int,
        fps: Int,
        _ preference: DegradationPreference = .balanced
    ) -> UplinkController.Lane {
        UplinkController.Lane(
            largestDimensions: Dimensions(width: 640, height: 480),
            frameRate: FrameRate(fps),
            highestBitrate: .kilobitsPerSecond(kilobits),
            preference: preference
        )
    }

    // At one frame a second, a keyframe might take 4 s of the path, and each other frame one.
    @Test("No frame may take the path long, however few there are", arguments: [1, 2, 5, 10, 15])
    func longFrames(fps: Int) {
        var bench = UplinkBench()
        let id = bench.add(lane(1000, fps: fps))
        for frame in 0..<(20 * fps) {
            if case .encode(let target) = bench.decide(id, keyframeDue: frame.isMultiple(of: 5 * fps)) {
                let longest = frame.isMultiple(of: 5 * fps) ? 0.31 : 0.43
                let bytes = target.largestFrame?.bytes ?? .max
                #expect(Double(bytes) * 8 < max(33_000, longest * Double(target.bitrate.bitsPerSecond) + 6000))
                bench.encoded(id, bytes: min(bytes, 2000))
                bench.write(min(bytes, 2000))
            }
            bench.now += Int64(1_000_000 / fps)
            bench.acknowledge()
        }
    }

    private func size(_ bench: inout UplinkBench, _ id: Int) -> Dimensions? {
        guard case .encode(let target) = bench.decide(id, keyframeDue: true) else { return nil }
        return target.dimensions
    }

    @Test("A highest rate that is too low for the full size begins smaller, and one that suffices does not")
    func lowCap() throws {
        for (kilobits, isFull) in [(10, false), (20, false), (40, false), (200, true), (500, true)] {
            var bench = UplinkBench()
            let id = bench.add(lane(kilobits, fps: 30))
            let size = try #require(size(&bench, id))
            #expect((size == Dimensions(width: 640, height: 480)) == isFull, "\(kilobits): \(size)")
        }
    }

    @Test("Where its highest rate is too low for the full size, the rate is the limit")
    func cappedReason() {
        var bench = UplinkBench()
        let id = bench.add(lane(40, fps: 30))
        _ = bench.play(id, seconds: 12)
        let lane = bench.uplink.status.lanes.first
        #expect(lane?.limitation.reason == .bandwidth)
    }

    @Test("At one frame a second too, pictures that stay coarse become smaller, and fine ones do not")
    func coarse() {
        for (quantizer, isSmaller) in [(UInt8(120), true), (10, false)] {
            var bench = UplinkBench()
            let id = bench.add(lane(1000, fps: 1))
            var smallest = Dimensions(width: 640, height: 480)
            for _ in 0..<120 {
                if case .encode(let target) = bench.decide(id) {
                    if target.dimensions.area < smallest.area { smallest = target.dimensions }
                    let report = EncodingReport(
                        bytes: target.largestFrame?.bytes ?? 1000,
                        isKeyframe: false,
                        quantizer: quantizer,
                        encodeDuration: .milliseconds(4),
                        dimensions: target.dimensions
                    )
                    bench.uplink.encoded(report, of: id, at: bench.instant)
                    bench.write(report.bytes)
                }
                bench.now += 1_000_000
                bench.acknowledge()
            }
            #expect((smallest.area < 640 * 480) == isSmaller, "\(quantizer): \(smallest)")
        }
    }

    @Test("A picture that waits a moment, long after the one before it, is no sign of a limit")
    func rarePictures() {
        var bench = UplinkBench()
        let id = bench.add()
        _ = bench.play(id, seconds: 5)
        for _ in 0..<10 {
            bench.now += 2_000_000
            bench.write(60_000)
            #expect(bench.decide(id) == .wait(until: nil) || bench.uplink.waitReason(of: id) == nil)
            bench.now += 5000
            bench.acknowledge(delay: 1000)
            _ = bench.decide(id, isNewFrame: false)
            #expect(bench.uplink.status.lanes.first?.limitation.reason == QualityLimitation.Reason.none)
        }
    }

    // For the 20 s of an outage, nothing was said to limit the track.
    @Test("In an outage the network is the limit")
    func outage() {
        var bench = UplinkBench()
        let id = bench.add()
        _ = bench.play(id, seconds: 5)
        #expect(bench.uplink.status.lanes.first?.limitation.reason == QualityLimitation.Reason.none)
        for _ in 0..<300 {
            if case .encode(let target) = bench.decide(id) {
                bench.encoded(id, bytes: target.bitrate.bitsPerSecond / 240)
                bench.write(target.bitrate.bitsPerSecond / 240)
            }
            bench.now += 33_333
        }
        let limitation = bench.uplink.status.lanes.first?.limitation
        #expect(limitation?.reason == .bandwidth)
        #expect((limitation?.duration(of: .bandwidth, at: bench.instant)).map { $0 > .seconds(8) } == true)
    }
}
