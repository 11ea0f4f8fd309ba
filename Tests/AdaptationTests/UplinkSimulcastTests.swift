import MediaCore
import RoomProtocol
import TestTools
import Testing

@testable import Adaptation

@Suite("Simulcast on an uplink") struct UplinkSimulcastTests {
    // The largest layer waited for the rate that its smaller ones, which nobody received, would have left.
    @Test("One viewer of the largest layer: one encoding, which gets the whole rate of however thin a path")
    func oneViewer() {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(2)
        let frames = bench.frames(in: 20, kilobits: 400)
        #expect(frames[0] == 0 && frames[1] == 0 && frames[2] > 300, "\(frames)")
        #expect(bench.share(2) > 250_000)
        #expect(bench.status(2)?.limitation.reason == .bandwidth)
    }

    // The larger one had its first frame alone. What it left to the smaller one then was taken for a cut: 10 frames a
    // second of half the size for five seconds, on a path without a limit.
    @Test("An encoding that begins beside another one costs that neither size nor frames", arguments: [1, 3, 10, 90])
    func secondEncoding(framesBefore: Int) {
        var bench = SimulcastBench()
        bench.addTrack(kilobits: [350, 1700, 2500])
        bench.want(1)
        bench.play(seconds: Double(framesBefore) / 30 + 0.001)
        #expect(bench.encodings[1].frames == framesBefore)
        bench.want(0)
        for frame in 1...90 {
            bench.play(seconds: 0.034)
            #expect(bench.encodings[1].size == Dimensions(width: 640, height: 360), "frame \(frame)")
        }
        #expect(bench.encodings[1].frames >= framesBefore + 88 && bench.encodings[0].frames >= 88)
        #expect(bench.share(0) == 350_000 && bench.share(1) == 1_700_000)
    }

    // The rate grows with what is sent, so it never sufficed for the larger one beside the smaller one's full demand. A
    // viewer who enlarged a tile kept the small picture for as long as nothing moved.
    @Test("A still scene: a larger encoding comes at once beside a smaller one and stays", arguments: [0.02, 0.1, 0.3])
    func stillScene(part: Double) {
        var bench = SimulcastBench()
        bench.addTrack()
        for (index, kilobits) in [200.0, 700, 2500].enumerated() {
            bench.encodings[index].stillFrame = part * kilobits * 1000 / 8 / 30
        }
        bench.want(1)
        bench.play(seconds: 10)
        #expect(bench.encodings[1].frames > 290)
        bench.want(2)
        bench.play(seconds: 0.5)
        #expect(bench.encodings[2].frames >= 5)
        let frames = bench.frames(in: 30)
        #expect(frames[1] > 850 && frames[2] > 850, "\(frames)")
        #expect(bench.encodings[1].size == Dimensions(width: 640, height: 360))
        // The largest size has to wait until the rest is left to it alone, or the rate has grown.
        #expect(bench.encodings[2].size.map { $0.width >= 960 } == true)
        // Something moves in both. What one leaves to the other then is no cut, and the rate grows to what both need.
        for index in bench.encodings.indices { bench.encodings[index].stillFrame = nil }
        bench.play(seconds: 0.2)
        #expect(bench.share(1) == 700_000 || bench.share(1) > bench.share(2))
        bench.play(seconds: 30)
        #expect(bench.share(1) == 700_000 && bench.share(2) > 2_000_000)
    }

    @Test("If the only viewer's network breaks down, it is answered at once, though another track gets the rest")
    func viewersCut() {
        var bench = SimulcastBench()
        for track in [1, 2] { bench.addTrack(track) }
        for index in [2, 5] { bench.want(index) }
        bench.play(seconds: 10, kilobits: 2400)
        let full = Dimensions(width: 1280, height: 720)
        #expect(bench.encodings[2].size == full && bench.share(2) > 1_000_000)
        bench.want(2, LayerBounds(bitrate: .kilobitsPerSecond(150), temporalLayers: 1))
        bench.play(seconds: 0.2, kilobits: 2400)
        #expect(bench.encodings[2].size != full && bench.share(5) > 1_500_000)
    }

    // The rate grows with what is sent, and half of it was kept for the silent track: the other one stayed at 290 kbit/s.
    @Test("A track gets what another one does not use, which stands still or gives nothing", arguments: [nil, 500.0])
    func quietTrack(stillFrame: Double?) {
        var bench = SimulcastBench()
        for track in [1, 2] { bench.addTrack(track) }
        for index in [2, 5] { bench.want(index) }
        bench.encodings[2].stillFrame = stillFrame
        bench.encodings[2].isSilent = stillFrame == nil
        bench.play(seconds: 20)
        #expect(bench.share(5) > 2_000_000)
        bench.play(seconds: 30, kilobits: 2000)
        #expect(bench.share(5) > 1_400_000)
        let size = bench.encodings[2].size
        let before = bench.encodings[2].frames
        // Once something moves, it has its own share at once, in the size that it had.
        bench.encodings[2].stillFrame = nil
        bench.encodings[2].isSilent = false
        bench.play(seconds: 0.2, kilobits: 2000)
        #expect(bench.encodings[2].frames > before && bench.share(2) > 600_000 && bench.share(5) < 1_200_000)
        if stillFrame != nil { #expect(bench.encodings[2].size == size) }
    }

    @Test("So do tracks of several encodings")
    func quietLayers() {
        var bench = SimulcastBench()
        for track in [1, 2] { bench.addTrack(track) }
        for index in [1, 2, 4, 5] { bench.want(index) }
        for index in [1, 2] { bench.encodings[index].stillFrame = 300 }
        bench.play(seconds: 30)
        #expect(bench.share(4) == 700_000 && bench.share(5) > 2_000_000)
        bench.play(seconds: 30, kilobits: 2000)
        #expect(bench.share(5) > 900_000)
    }

    // What nobody could send counted as quiet: shares came to one and a half times the rate, or one track had it all.
    @Test("After an outage, and while all stand still, no share is lent", arguments: [true, false])
    func noLoan(isStill: Bool) {
        var bench = SimulcastBench()
        for track in [1, 2] { bench.addTrack(track) }
        for index in [2, 5] { bench.want(index) }
        if isStill { for index in [2, 5] { bench.encodings[index].stillFrame = 500 } }
        bench.play(seconds: 10, kilobits: 2000)
        if !isStill { bench.play(seconds: 4, kilobits: 1) }
        for _ in 0..<20 {
            bench.play(seconds: 0.05, kilobits: 2000)
            let rate = Double(bench.uplink.status.rate.bitsPerSecond)
            #expect(Double(bench.share(2) + bench.share(5)) <= 1.01 * rate)
        }
    }

    // Its bounds had been taken back, and the rate was that of the other one alone: it came back at 320x180.
    @Test("A track that was silent for a while comes back in its size")
    func silentForAWhile() {
        var bench = SimulcastBench()
        for track in [1, 2] { bench.addTrack(track) }
        for index in [2, 4] { bench.want(index) }
        bench.play(seconds: 20)
        bench.encodings[2].isSilent = true
        bench.play(seconds: 20)
        bench.encodings[2].isSilent = false
        for _ in 0..<10 {
            bench.play(seconds: 0.1)
            #expect(bench.encodings[2].size == Dimensions(width: 1280, height: 720))
        }
    }

    @Test("A path that breaks down is still answered at once by the encoding that loses most")
    func cutBesideAnother() {
        var bench = SimulcastBench()
        bench.addTrack(kilobits: [350, 1700, 2500])
        for index in [0, 1] { bench.want(index) }
        bench.play(seconds: 10)
        let before = bench.encodings[1].frames
        bench.play(seconds: 1, kilobits: 700)
        let isSmaller = bench.encodings[1].size != Dimensions(width: 640, height: 360)
        #expect(isSmaller || bench.encodings[1].frames < before + 20)
    }

    // The first second of every call was said to be limited by the network, in which the rate only had not risen yet.
    @Test("On a path that carries everything, the network limits nothing, not even while the rate rises")
    func unlimited() {
        var bench = SimulcastBench()
        bench.addTrack()
        for index in 0..<3 { bench.want(index) }
        bench.play(seconds: 10)
        #expect(bench.share(2) == 2_500_000)
        for index in 0..<3 {
            #expect(bench.status(index)?.limitation.duration(of: .bandwidth, at: bench.instant) == .zero)
        }
    }

    @Test("On a thin path, the network limits from its first queue on", arguments: [200, 400, 1000])
    func firstQueue(kilobits: Int) throws {
        var bench = SimulcastBench()
        bench.addTrack()
        for index in 0..<3 { bench.want(index) }
        bench.play(seconds: 10, kilobits: kilobits)
        let limitation = try #require(bench.status(2)?.limitation)
        #expect(limitation.reason == .bandwidth)
        #expect(limitation.duration(of: .bandwidth, at: bench.instant) > .seconds(8))
    }

    @Test("Where only the viewers' networks are thin, it is the network that limits")
    func thinViewers() throws {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(2, LayerBounds(bitrate: .kilobitsPerSecond(120)))
        bench.play(seconds: 10)
        let limitation = try #require(bench.status(2)?.limitation)
        #expect(limitation.reason == .bandwidth)
    }

    @Test("Another track's small encoding does not come before the only layer that is received of this one")
    func twoTracks() {
        var bench = SimulcastBench()
        bench.addTrack(1)
        bench.addTrack(2)
        bench.want(5)
        bench.want(0)
        #expect(bench.share(0) == 200_000 && bench.share(5) > 370_000)
        bench.want(1)
        #expect(bench.share(1) + bench.share(5) < 420_000)
    }

    @Test("The largest layer has what the lower ones leave, and is paused where that is not worth it")
    func sharing() {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(1)
        bench.want(2)
        bench.play(seconds: 15)
        #expect(bench.share(1) == 700_000 && bench.share(2) == 2_500_000)
        bench.play(seconds: 20, kilobits: 2000)
        var sum = 0
        for _ in 0..<50 {
            bench.play(seconds: 0.1, kilobits: 2000)
            sum += bench.share(2)
            #expect(bench.share(1) == 700_000)
        }
        #expect((700_000..<2_000_000).contains(sum / 50), "\(sum / 50)")
        // 300 kbit/s are left of what 1,000 carry.
        bench.play(seconds: 15, kilobits: 1000)
        let late = bench.frames(in: 10, kilobits: 1000)
        #expect(late[1] > 250, "\(late)")
        #expect(late[2] < 200, "\(late)")
        #expect(bench.status(2)?.limitation.reason == .bandwidth)
    }

    // The rate grows to 1.5 times what is sent at most, so that the layer could never come back.
    @Test("A layer that was paused comes back when the path carries it again, although nothing of it is sent meanwhile")
    func resumed() {
        var bench = SimulcastBench()
        bench.addTrack()
        for index in 0..<3 { bench.want(index) }
        bench.play(seconds: 20, kilobits: 300)
        #expect(bench.frames(in: 10, kilobits: 300)[2] < 60)
        #expect(bench.status(2)?.limitation.reason == .bandwidth)
        bench.play(seconds: 90, kilobits: 6000)
        #expect(bench.share(2) == 2_500_000)
        #expect(bench.status(2)?.limitation.reason == QualityLimitation.Reason.none)
    }

    @Test("On a path that never carries it, a layer is tried ever more rarely")
    func rareTrials() {
        var bench = SimulcastBench()
        bench.addTrack()
        for index in 0..<3 { bench.want(index) }
        bench.play(seconds: 120, kilobits: 400)
        let keyframes = bench.encodings.map(\.keyframes)
        let frames = bench.frames(in: 240, kilobits: 400)
        #expect(frames[0] > 6500, "\(frames)")
        #expect(frames[2] < 1200, "\(frames)")
        for (encoding, before) in zip(bench.encodings, keyframes) { #expect(encoding.keyframes - before <= 24) }
    }

    @Test("The larger layer gets the rate that a subscriber cannot use in the lower one")
    func bounds() {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(1, LayerBounds(bitrate: .kilobitsPerSecond(250), temporalLayers: 1))
        bench.want(2)
        bench.play(seconds: 30, kilobits: 2000)
        #expect(bench.share(1) == 250_000 && bench.share(2) > 1_200_000)
    }

    @Test("A lowest bitrate is kept on a thinner path, where frames are left out instead")
    func lowestBitrate() {
        var bench = SimulcastBench()
        var lane = UplinkController.Lane(
            largestDimensions: Dimensions(width: 640, height: 360),
            frameRate: FrameRate(30),
            highestBitrate: .kilobitsPerSecond(1500)
        )
        lane.lowestBitrate = .kilobitsPerSecond(800)
        bench.encodings = [.init(id: bench.uplink.add(lane, at: bench.instant))]
        bench.want(0)
        let frames = bench.frames(in: 20, kilobits: 300)[0]
        #expect((100..<300).contains(frames), "\(frames)")
        var entries: [AdaptationLog.Entry] = []
        bench.uplink.takeRecords(into: &entries)
        for entry in entries {
            guard case .encode(let target)? = entry.decision else { continue }
            #expect(target.bitrate >= .kilobitsPerSecond(800))
        }
    }

    @Test("A slow CPU: the largest layer steps down first, then pauses where it would be no larger than the next one")
    func cpu() {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(1)
        bench.want(2)
        bench.encodings[2].fullFrame = 40_000
        bench.play(seconds: 12)
        #expect(bench.status(2)?.limitation.reason == .cpu && bench.status(2)?.waiting == nil)
        #expect(bench.encodings[2].size.map { $0.area < 1280 * 720 && $0.area > 640 * 360 } == true)
        #expect(bench.encodings[1].size == Dimensions(width: 640, height: 360))
        // Still more: the smaller size is too slow as well.
        bench.encodings[2].fullFrame = 400_000
        for _ in 0..<60 where bench.status(2)?.waiting != .cpu { bench.play(seconds: 1) }
        let frames = bench.frames(in: 5)
        #expect(frames[1] > 140 && frames[2] == 0, "\(frames)")
        #expect(bench.status(2)?.waiting == .cpu && bench.status(2)?.limitation.reason == .cpu)
        #expect(bench.share(2) == 0)
        // When the other programs have ended, all comes back. A step that failed is tried again later.
        bench.encodings[2].fullFrame = 4000
        bench.play(seconds: 300)
        #expect(bench.encodings[2].size == Dimensions(width: 1280, height: 720))
        #expect(bench.status(2)?.limitation.reason == QualityLimitation.Reason.none)
    }

    // It took all steps down, and the encoding that was too slow took none.
    @Test("An encoding whose source delivers nothing is not made smaller for a slow CPU")
    func silentSource() {
        var bench = SimulcastBench()
        bench.addTrack(0)
        bench.addTrack(1)
        bench.want(2)
        bench.want(4)
        bench.play(seconds: 2)
        bench.encodings[2].isSilent = true
        bench.encodings[4].fullFrame = 40_000
        bench.play(seconds: 12)
        #expect(bench.status(4)?.limitation.reason == .cpu)
        let target = bench.status(4)?.target
        #expect(target.map { $0.dimensions.area < 640 * 360 || $0.frameRate < FrameRate(30) } == true)
        bench.encodings[2].isSilent = false
        bench.play(seconds: 0.5)
        #expect(bench.encodings[2].size == Dimensions(width: 1280, height: 720))
    }

    @Test("An encoding that the CPU pauses goes on when nobody receives the smaller ones any more")
    func cpuLeftAlone() {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(1)
        bench.want(2)
        bench.encodings[2].fullFrame = 400_000
        bench.play(seconds: 30)
        #expect(bench.status(2)?.waiting == .cpu)
        bench.want(1, nil)
        #expect(bench.frames(in: 5)[2] > 20)
    }

    @Test("A CPU that is too slow for the only encoding makes that smaller, and pauses nothing")
    func cpuAlone() {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(2)
        bench.encodings[2].fullFrame = 400_000
        bench.play(seconds: 60)
        #expect(bench.frames(in: 5)[2] > 20)
        #expect(bench.status(2)?.limitation.reason == .cpu)
    }
}
