import Adaptation
import MediaCore
import RoomProtocol
import TestTools
import Testing

/// What the controller makes of acknowledgements: none, late ones and false ones.
@Suite("Uplink controller, acknowledgements", .timeLimit(.minutes(1)))
struct UplinkAcknowledgementTests {
    @Test("In an outage nothing is encoded; with the first acknowledgement it goes on at the old rate")
    func outage() {
        var bench = UplinkBench()
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
        var bench = UplinkBench()
        let id = bench.add(wanted: false)
        for _ in 0..<200 {
            if isText { bench.writeText(46) } else { bench.uplink.wroteAcknowledgement(48, at: bench.instant) }
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
        var bench = UplinkBench()
        let id = bench.add()
        _ = bench.play(id, seconds: 10)
        let before = bench.uplink.status.rate
        bench.uplink.setWanted(nil, of: id, at: bench.instant)
        for _ in 0..<12 {
            bench.writeText(46)
            bench.now += 20_000
            bench.acknowledge()
            bench.now += 5_000_000
        }
        bench.uplink.setWanted(LayerBounds(), of: id, at: bench.instant)
        _ = bench.play(id, seconds: 1)
        #expect(bench.uplink.status.rate.bitsPerSecond > before.bitsPerSecond * 9 / 10)
    }

    // A server acknowledges a text within 10 ms of the last acknowledgement with the next frame. That silence was read as
    // a stall: a screen that stood still was given 0.1 of 2.9 Mbit/s, and its largest encoding was lost for long.
    @Test("A text that is acknowledged with the next frame leaves the rate as it is", arguments: [300, 1000, 4000])
    func textBetweenRareFrames(interval: Int64) {
        var bench = UplinkBench()
        let id = bench.add()
        _ = bench.play(id, seconds: 10)
        let before = bench.uplink.status.rate
        for _ in 0..<20 {
            bench.now += interval * 1000
            guard case .encode = bench.decide(id) else {
                Issue.record("the frame has to wait")
                return
            }
            bench.encoded(id, bytes: 300)
            bench.write(300)
            bench.now += 20_000
            bench.acknowledge(delay: 10_000)
            bench.now += 1000
            bench.writeText(43)
        }
        #expect(bench.uplink.status.rate.bitsPerSecond > before.bitsPerSecond * 9 / 10)
    }

    // What 300 bytes a second deliver was taken for what the path carries: 28 kbit/s, and no more than 95 for as long as
    // the screen stood still.
    @Test(
        "A repeat of a still screen that comes late tells little of the path",
        arguments: [100_000, 400_000] as [Int64]
    )
    func lateRepeat(delay: Int64) {
        var bench = UplinkBench()
        let id = bench.add()
        _ = bench.play(id, seconds: 10)
        let before = bench.uplink.status
        for index in 0..<30 {
            guard case .encode = bench.decide(id) else {
                Issue.record("the frame has to wait")
                return
            }
            bench.encoded(id, bytes: 300)
            bench.write(300)
            let late = index == 12 ? delay : 0
            bench.now += 33_000 + late
            bench.acknowledge(delay: 20_000)
            bench.now += 967_000 - late
        }
        #expect(bench.uplink.status.rate.bitsPerSecond > before.rate.bitsPerSecond / 2)
        #expect(bench.uplink.status.capacity.bitsPerSecond > before.capacity.bitsPerSecond / 2)
    }

    @Test("Repeats that all come late lower the rate in time")
    func lateRepeats() {
        var bench = UplinkBench()
        let id = bench.add()
        _ = bench.play(id, seconds: 10)
        let before = bench.uplink.status.rate
        for _ in 0..<40 {
            _ = bench.decide(id)
            bench.encoded(id, bytes: 300)
            bench.write(300)
            bench.now += 233_000
            bench.acknowledge(delay: 20_000)
            bench.now += 767_000
        }
        // After 10 s this is the path's delay.
        #expect(bench.uplink.status.rate.bitsPerSecond < before.bitsPerSecond * 4 / 5)
    }

    // They were excused only if nothing else was on its way when they were written.
    @Test("Texts that were written behind a frame, and that are not acknowledged with it, hold nothing up")
    func textsBehindFrame() {
        var bench = UplinkBench()
        let id = bench.add(100)
        _ = bench.play(id, seconds: 5)
        bench.write(300)
        bench.writeText(5000)
        bench.now += 20_000
        bench.acknowledge(bench.written - 5000)
        bench.now += 100_000
        guard case .encode = bench.decide(id) else {
            Issue.record("the frame waits for a text")
            return
        }
    }

    // Its frame was larger than the window of both, which a path that the other one uses never has empty.
    @Test("A track of few frames is sent beside one of many", arguments: [30, 60, 100, 150])
    func fewBesideMany(roundTrip: Int) {
        var bench = UplinkBench()
        var slow = UplinkController.Lane(
            largestDimensions: Dimensions(width: 1280, height: 720),
            frameRate: FrameRate(1),
            highestBitrate: .kilobitsPerSecond(2500)
        )
        slow.preference = .maintainResolution
        slow.track = 1
        let (fast, rare) = (bench.add(2500), bench.add(slow))
        var underway: [(end: UInt64, time: Int64)] = []
        var (sent, waiting) = (0, false)
        for tick in 0..<3000 {
            while let first = underway.first, bench.now >= first.time + Int64(roundTrip) * 1000 {
                underway.removeFirst()
                bench.acknowledge(first.end, delay: Int64(roundTrip) * 500)
            }
            if tick % 7 == 0, case .encode(let target) = bench.decide(fast) {
                let bytes = target.bitrate.bitsPerSecond / 8 / 30
                bench.encoded(fast, bytes: bytes)
                bench.write(bytes)
                underway.append((bench.written, bench.now))
            }
            let isNew = tick % 200 == 0
            if isNew { waiting = true }
            if waiting, case .encode(let target) = bench.decide(rare, isNewFrame: isNew) {
                waiting = false
                if tick > 1000 { sent += 1 }
                let bytes = min(target.largestFrame?.bytes ?? 20_000, 20_000)
                bench.encoded(rare, bytes: bytes)
                bench.write(bytes)
                underway.append((bench.written, bench.now))
            }
            bench.now += 5000
        }
        #expect(sent >= 8, "\(sent) of 10 frames")
    }

    // A time that was over made the encoder's thread ask without a pause.
    @Test("In an outage, a frame that the socket has not taken is waited for without a time")
    func outageWithQueue() {
        var bench = UplinkBench()
        let id = bench.add()
        _ = bench.play(id, seconds: 10)
        bench.write(20_000)
        bench.uplink.queueChanged(5000, of: id)
        bench.now += 6_000_000
        #expect(bench.decide(id, isNewFrame: false) == .wait(until: nil))
        #expect(bench.uplink.status.mode == .outage)
    }

    // Nothing asked again, and so the picture stayed as unsharp as its first frame.
    @Test("A still picture's first repeat, towards a server that never acknowledges, waits for a time")
    func stillPicture() throws {
        var bench = UplinkBench()
        let id = bench.add(1200)
        guard case .encode = bench.decide(id, keyframeDue: true) else { throw TestFailure("the first frame waits") }
        bench.encoded(id, bytes: 8000, isKeyframe: true)
        bench.write(8000)
        bench.now += 1_100_000
        guard case .wait(let time?) = bench.decide(id) else { throw TestFailure("no wait, or one without an end") }
        #expect(time > bench.instant && time <= bench.instant + .milliseconds(901))
        bench.now = time.microseconds
        #expect(bench.decide(id, isNewFrame: false) != .wait(until: nil))
        #expect(bench.uplink.status.mode == .unacknowledged)
    }

    @Test("A server that never acknowledges gets the whole rate, and two queued frames at most")
    func neverAcknowledged() {
        var bench = UplinkBench()
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

    @Test(
        "A server that never acknowledges gets what the socket takes, and no frame that takes it long",
        arguments: [100, 200, 500, 1000]
    )
    func neverAcknowledgedThin(kilobits: Int) {
        var bench = UplinkBench()
        let id = bench.add(2000)
        var queued = 0.0
        var (largest, sent, full) = (0.0, 0.0, 0)
        for frame in 0..<1800 {
            let taken = min(queued, Double(kilobits) * 125 / 30)
            queued -= taken
            bench.uplink.queueChanged(Int(queued), of: id)
            if taken > 0 { bench.write(Int(taken)) }
            if case .encode(let target) = bench.decide(id) {
                let bytes = Int(Double(target.bitrate.bitsPerSecond) / 8 / target.frameRate.framesPerSecond)
                bench.encoded(id, bytes: bytes)
                queued += Double(bytes)
                bench.uplink.queueChanged(Int(queued), of: id)
                if frame > 600 {
                    sent += Double(bytes)
                    largest = max(largest, Double(target.largestFrame?.bytes ?? .max))
                }
            } else if frame > 600, bench.uplink.waitReason(of: id) == .network {
                full += 1
            }
            bench.now += 33_333
        }
        #expect(bench.uplink.status.mode == .unacknowledged)
        // Of 40 s: nearly all that the socket takes, in frames that it takes at once, and few pictures are left out.
        #expect(sent * 8 / 40 > 0.8 * Double(kilobits) * 1000, "\(sent)")
        #expect(largest * 8 / Double(kilobits) < 400, "\(largest)")
        #expect(full < 240, "\(full)")
        #expect(abs(bench.uplink.status.rate.bitsPerSecond - kilobits * 1000) < kilobits * 350)
    }

    // The send queue was full after the two frames, and the controller was not asked.
    @Test("Pictures that find the send queue full lower the rate towards a server that never acknowledges")
    func fullQueue() {
        var bench = UplinkBench()
        let id = bench.add(2000)
        for index in 0..<300 {
            if index % 10 < 4 || index < 90 {
                if case .encode = bench.decide(id) {
                    bench.encoded(id, bytes: 1000)
                    bench.write(1000)
                }
            } else {
                bench.uplink.queueWasFull(id, at: bench.instant)
            }
            bench.now += 33_333
        }
        #expect(bench.uplink.status.mode == .unacknowledged)
        #expect(bench.share(id) < 150_000)
        #expect(bench.uplink.waitReason(of: id) == .network)
    }

    // Each picture of the paused layer counted as one that found the socket full: after 7 s all was at 10 kbit/s.
    @Test("Towards a server that never acknowledges, a layer that is paused says nothing of the socket")
    func pausedLayer() {
        var bench = UplinkBench()
        let lanes = [bench.add(150, layer: 0), bench.add(500, layer: 1), bench.add(2500, layer: 2)]
        for _ in 0..<600 {
            for id in lanes {
                guard case .encode = bench.decide(id) else { continue }
                bench.encoded(id, bytes: 500)
                bench.write(500)
            }
            bench.now += 33_333
        }
        #expect(bench.uplink.status.mode == .unacknowledged)
        #expect(bench.uplink.status.rate.bitsPerSecond >= 600_000)
        #expect(bench.share(lanes[2]) > 0, "the rate has grown so far that the layer came back")
    }

    // The rate became what was used, and took half a minute to return.
    @Test("Towards a server that never acknowledges, the rate outlasts a time in which less was wanted")
    func smallDemand() {
        var bench = UplinkBench()
        let id = bench.add(2000)
        func play(_ frames: Int) {
            for _ in 0..<frames {
                if case .encode = bench.decide(id) {
                    bench.encoded(id, bytes: 500)
                    bench.write(500)
                }
                bench.now += 33_333
            }
        }
        play(450)
        let before = bench.share(id)
        bench.uplink.setWanted(LayerBounds(bitrate: .kilobitsPerSecond(100)), of: id, at: bench.instant)
        play(60)
        #expect(bench.share(id) == 100_000 && before > 1_000_000)
        bench.uplink.setWanted(LayerBounds(), of: id, at: bench.instant)
        play(5)
        #expect(bench.share(id) >= before)
    }

    @Test(
        "Whatever a receiver says, nothing overflows, and honest acknowledgements bring it back",
        arguments: UInt64(0)..<60
    )
    func lies(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bench = UplinkBench()
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
            #expect((10_000...2_100_000).contains(status.rate.bitsPerSecond))
            #expect(status.unacknowledged.bytes >= 0 && status.unacknowledged.bytes <= bench.written)
        }
        #expect(bench.uplink.status.disregardedAcknowledgements > 0)
        // Honest from here on, by a clock of its own.
        bench.now += 1_000_000
        bench.acknowledge()
        _ = bench.play(id, seconds: 50)
        #expect(bench.play(id, seconds: 10) > 280)
        #expect(bench.uplink.status.rate.bitsPerSecond > 1_500_000)
    }

    private static func lie(_ bench: UplinkBench, _ random: inout SeededGenerator) -> MediaAcknowledgement {
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
