import MediaCore
import RoomProtocol
import Testing

@testable import Adaptation

@Suite("Relayed lanes")
struct RelayedLaneTests {
    private let size = Dimensions(width: 640, height: 360)
    private let start = MonotonicInstant(microseconds: 1_000_000)

    private func lane(_ kilobits: Int = 1000, isRelayed: Bool = true) -> UplinkController.Lane {
        var lane = UplinkController.Lane(
            largestDimensions: size,
            frameRate: FrameRate(30),
            highestBitrate: .kilobitsPerSecond(kilobits)
        )
        lane.isRelayed = isRelayed
        return lane
    }

    private func report(_ bytes: Int, isKeyframe: Bool, duration: Duration = .zero) -> EncodingReport {
        EncodingReport(
            bytes: bytes,
            isKeyframe: isKeyframe,
            quantizer: 0,
            encodeDuration: duration,
            dimensions: size
        )
    }

    @Test("Neither the subscribers' wishes nor keyframes that follow each other hold frames up")
    func passing() {
        var uplink = UplinkController()
        let id = uplink.add(lane(), at: start)
        #expect(uplink.decide(id, isNewFrame: true, keyframeDue: false, at: start) == .notWanted)
        let wishes = LayerBounds(
            bitrate: .kilobitsPerSecond(50),
            dimensions: Dimensions(width: 64, height: 36),
            frameRate: FrameRate(2),
            temporalLayers: 1
        )
        uplink.setWanted(wishes, of: id, at: start)
        var now = start
        for index in 0..<60 {
            let decision = uplink.decide(id, isNewFrame: true, keyframeDue: index % 2 == 0, at: now)
            guard case .encode(let target) = decision else {
                Issue.record("frame \(index): \(decision)")
                return
            }
            #expect(target.dimensions == size && target.frameRate == FrameRate(30) && target.largestFrame == nil)
            uplink.encoded(report(500, isKeyframe: true), of: id, at: now)
            now += .milliseconds(33)
        }
    }

    @Test("The limitation of a relayed encoding is `other` from the beginning on")
    func limitation() {
        var uplink = UplinkController()
        let id = uplink.add(lane(), at: start)
        uplink.setWanted(LayerBounds(), of: id, at: start)
        _ = uplink.decide(id, isNewFrame: true, keyframeDue: false, at: start)
        uplink.replace(id, with: lane(9000), at: start)
        let limitation = uplink.status.lanes[0].limitation
        #expect(limitation.reason == .other)
        #expect(limitation.duration(of: .other, at: start + .seconds(3)) == .seconds(3))
    }

    @Test("A path that does not acknowledge what was sent holds frames up")
    func fullPath() {
        var uplink = UplinkController()
        let id = uplink.add(lane(), at: start)
        uplink.setWanted(LayerBounds(), of: id, at: start)
        _ = uplink.decide(id, isNewFrame: true, keyframeDue: false, at: start)
        uplink.encoded(report(60_000, isKeyframe: true), of: id, at: start)
        uplink.wrote(60_000, at: start)
        let decision = uplink.decide(id, isNewFrame: true, keyframeDue: false, at: start + .milliseconds(33))
        // Unless the receiver turns out to acknowledge nothing at all.
        #expect(decision == .wait(until: start + .microseconds(2_000_001)))
        #expect(uplink.waitReason(of: id) == .network)
    }

    @Test("Its frames say nothing of the CPU, and an encoder beside it is lowered as before")
    func processor() {
        var uplink = UplinkController()
        let relayed = uplink.add(lane(), at: start)
        let encoded = uplink.add(lane(isRelayed: false), at: start)
        for id in [relayed, encoded] { uplink.setWanted(LayerBounds(), of: id, at: start) }
        var now = start
        for _ in 0..<300 {
            if case .encode = uplink.decide(relayed, isNewFrame: true, keyframeDue: false, at: now) {
                uplink.encoded(report(200, isKeyframe: false), of: relayed, at: now)
            }
            if case .encode = uplink.decide(encoded, isNewFrame: true, keyframeDue: false, at: now) {
                uplink.encoded(report(200, isKeyframe: false, duration: .milliseconds(40)), of: encoded, at: now)
            }
            now += .milliseconds(33)
        }
        let status = uplink.status.lanes
        #expect(status[0].target?.dimensions == size && status[0].limitation.reason == .other)
        #expect(status[1].limitation.reason == .cpu)
    }

    @Test("A log says which lanes are relayed, and nothing more about the others")
    func log() throws {
        let entries = [
            AdaptationLog.Entry(time: 1, input: .added(lane())),
            AdaptationLog.Entry(time: 2, input: .added(lane(isRelayed: false))),
            AdaptationLog.Entry(time: 3, input: .replaced(lane(77), 0)),
        ]
        let log = AdaptationLog(settings: UplinkController.Settings(), entries: entries)
        #expect(try AdaptationLog(reading: Array(log.text.utf8)) == log)
        let lines = log.text.split(separator: "\n").dropFirst(2).dropLast()
        #expect(lines.map { $0.split(separator: " ").count } == [13, 12, 14])
        let damaged = log.text.replacing("0 - 1\n", with: "0 - 2\n")
        #expect(throws: AdaptationLog.Malformed.self) { _ = try AdaptationLog(reading: Array(damaged.utf8)) }
    }
}
