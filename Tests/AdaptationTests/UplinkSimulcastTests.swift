import MediaCore
import RoomProtocol
import TestTools
import Testing

@testable import Adaptation

/// The encodings of one or more tracks on a path that carries only so much, with a round trip of 40 ms.
private struct SimulcastBench {
    struct Encoding {
        var id: UplinkController.LaneID
        var frames = 0
        var keyframes = 0
        var size: Dimensions?
        var needsKeyframe = true
        /// How long a frame of full size takes to encode, in microseconds.
        var fullFrame = 3000.0
        /// Whether its source delivers nothing.
        var isSilent = false
    }

    var uplink = UplinkController()
    var now: Int64 = 1_000_000
    var written: UInt64 = 0
    var encodings: [Encoding] = []
    private var arrivals: [(at: Int64, bytes: UInt64)] = []
    private var linkFree: Int64 = 0

    init() { uplink.isRecording = true }

    var instant: MonotonicInstant { MonotonicInstant(microseconds: now) }

    /// 320x180, 640x360 and 1280x720, with 200, 700 and 2,500 kbit/s.
    mutating func addTrack(_ track: Int = 0) {
        for (layer, kilobits) in [200, 700, 2500].enumerated() {
            var lane = UplinkController.Lane(
                largestDimensions: Dimensions(width: 320 << layer, height: 180 << layer),
                frameRate: FrameRate(30),
                highestBitrate: .kilobitsPerSecond(kilobits),
                simulcastLayer: layer
            )
            lane.track = track
            encodings.append(Encoding(id: uplink.add(lane, at: instant)))
        }
    }

    mutating func want(_ index: Int, _ bounds: LayerBounds? = LayerBounds(temporalLayers: 1)) {
        uplink.setWanted(bounds, of: encodings[index].id, at: instant)
        encodings[index].needsKeyframe = true
    }

    mutating func play(seconds: Double, kilobits: Int = 100_000) {
        for _ in 0..<Int(seconds * 30) {
            for index in encodings.indices where !encodings[index].isSilent { encode(index, kilobits) }
            for _ in 0..<3 {
                now += 11_111
                acknowledge()
            }
        }
    }

    private mutating func encode(_ index: Int, _ kilobits: Int) {
        let encoding = encodings[index]
        let decision = uplink.decide(
            encoding.id,
            isNewFrame: true,
            keyframeDue: encoding.needsKeyframe,
            at: instant
        )
        guard case .encode(let target) = decision else { return }
        let isKeyframe = encoding.needsKeyframe || target.dimensions != encoding.size
        let average = Double(target.bitrate.bitsPerSecond) / 8 / target.frameRate.framesPerSecond
        let bytes = Int(isKeyframe ? min(3 * average, Double(target.largestFrame?.bytes ?? .max)) : average)
        encodings[index].frames += 1
        encodings[index].keyframes += isKeyframe ? 1 : 0
        encodings[index].size = target.dimensions
        encodings[index].needsKeyframe = false
        let part = Double(target.dimensions.area) / Double((320 << (index % 3)) * (180 << (index % 3)))
        let report = EncodingReport(
            bytes: bytes,
            isKeyframe: isKeyframe,
            quantizer: 40,
            encodeDuration: .microseconds(Int64(encoding.fullFrame * part)),
            dimensions: target.dimensions
        )
        uplink.encoded(report, of: encoding.id, at: instant)
        uplink.wrote(bytes, at: instant)
        written += UInt64(bytes)
        linkFree = max(linkFree, now) + Int64(bytes * 8000 / kilobits)
        arrivals.append((linkFree, written))
    }

    private mutating func acknowledge() {
        let count = arrivals.prefix { $0.at + 40_000 <= now }.count
        guard count > 0 else { return }
        let (at, bytes) = arrivals[count - 1]
        arrivals.removeFirst(count)
        uplink.acknowledged(
            MediaAcknowledgement(
                cumulativeBytes: bytes,
                receiveTime: MediaAcknowledgement.ReceiverTime(microseconds: UInt64(at)),
                trackAlias: 0,
                frameNumber: 0
            ),
            at: instant
        )
    }

    func share(_ index: Int) -> Int { status(index)?.share.bitsPerSecond ?? -1 }

    func status(_ index: Int) -> UplinkStatus.Lane? {
        uplink.status.lanes.first { $0.id == encodings[index].id }
    }

    /// The frames of each encoding that are encoded in the next seconds.
    mutating func frames(in seconds: Double, kilobits: Int = 100_000) -> [Int] {
        let before = encodings.map(\.frames)
        play(seconds: seconds, kilobits: kilobits)
        return zip(encodings, before).map { $0.frames - $1 }
    }
}

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

@Suite("Pictures of another size on an uplink") struct UplinkReplacementTests {
    private func smaller(_ bench: SimulcastBench) -> UplinkController.Lane {
        UplinkController.Lane(
            largestDimensions: Dimensions(width: 800, height: 600),
            frameRate: FrameRate(30),
            highestBitrate: .kilobitsPerSecond(2000),
            simulcastLayer: 2
        )
    }

    // All that was known of the encoding was forgotten, its last keyframe too: one with each change was possible.
    @Test("The last keyframe is known still, and so is who receives the encoding")
    func keyframes() {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(2)
        bench.play(seconds: 0.1)
        let id = bench.encodings[2].id
        bench.uplink.replace(id, with: smaller(bench), at: bench.instant)
        #expect(!bench.uplink.mayEncodeKeyframe(id, at: bench.instant))
        #expect(bench.uplink.status.lanes.count == 3 && bench.uplink.status.lanes[2].id == id)
        bench.play(seconds: 2)
        #expect(bench.encodings[2].size == Dimensions(width: 800, height: 600))
    }

    @Test("The limit of the CPU holds for the new size too")
    func cpu() {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(2)
        bench.encodings[2].fullFrame = 40_000
        bench.play(seconds: 12)
        #expect(bench.status(2)?.limitation.reason == .cpu)
        var lane = smaller(bench)
        lane.largestDimensions = Dimensions(width: 1920, height: 1080)
        bench.uplink.replace(bench.encodings[2].id, with: lane, at: bench.instant)
        bench.play(seconds: 0.5)
        #expect(bench.encodings[2].size.map { $0.area < 1280 * 720 } == true)
        #expect(bench.status(2)?.limitation.reason == .cpu)
    }

    /// The largest encoding of the track with other limits for the same pictures.
    private func limited(
        _ kilobits: Int,
        _ preference: DegradationPreference = .balanced
    ) -> UplinkController.Lane {
        UplinkController.Lane(
            largestDimensions: Dimensions(width: 1280, height: 720),
            frameRate: FrameRate(30),
            highestBitrate: .kilobitsPerSecond(kilobits),
            preference: preference,
            simulcastLayer: 2
        )
    }

    @Test("A lower bitrate holds for the next frame, and a higher one soon; neither makes a keyframe")
    func bitrate() throws {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(2)
        bench.play(seconds: 15)
        let id = bench.encodings[2].id
        let keyframes = bench.encodings[2].keyframes
        #expect(bench.encodings[2].size == Dimensions(width: 1280, height: 720))
        #expect(try #require(bench.status(2)?.target).bitrate > .kilobitsPerSecond(2000))
        bench.uplink.replace(id, with: limited(700), at: bench.instant)
        #expect(bench.uplink.share(of: id) == .kilobitsPerSecond(700), "no frame was encoded since")
        bench.play(seconds: 0.2)
        let lowered = try #require(bench.status(2)?.target).bitrate
        #expect((.kilobitsPerSecond(690) ... .kilobitsPerSecond(700)).contains(lowered))
        bench.play(seconds: 10)
        bench.uplink.replace(id, with: limited(2500), at: bench.instant)
        bench.play(seconds: 3)
        #expect(try #require(bench.status(2)?.target).bitrate > .kilobitsPerSecond(2000))
        bench.play(seconds: 10)
        #expect(bench.encodings[2].keyframes == keyframes)
    }

    @Test("A bitrate that is too low for the size makes the pictures smaller, with one keyframe")
    func lowBitrate() {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(2)
        bench.play(seconds: 15)
        let keyframes = bench.encodings[2].keyframes
        bench.uplink.replace(bench.encodings[2].id, with: limited(100), at: bench.instant)
        bench.play(seconds: 10)
        #expect(bench.encodings[2].size.map { $0.area < 1280 * 720 } == true)
        #expect(bench.encodings[2].keyframes == keyframes + 1)
    }

    @Test("A track that the path made smaller goes on with the size and fewer frames if that is preferred now")
    func preference() throws {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(2)
        bench.uplink.replace(bench.encodings[2].id, with: limited(2500, .maintainFramerate), at: bench.instant)
        bench.play(seconds: 20, kilobits: 400)
        let before = try #require(bench.status(2)?.target)
        #expect(before.dimensions.area < 1280 * 720 && before.frameRate == FrameRate(30))
        bench.uplink.replace(bench.encodings[2].id, with: limited(2500, .maintainResolution), at: bench.instant)
        bench.play(seconds: 4, kilobits: 400)
        let after = try #require(bench.status(2)?.target)
        #expect(after.dimensions == Dimensions(width: 1280, height: 720) && after.frameRate < FrameRate(30))
        #expect(bench.status(2)?.reason == .preference)
    }

    @Test("Another preference changes nothing of pictures that nothing limits")
    func idlePreference() {
        var bench = SimulcastBench()
        bench.addTrack()
        bench.want(2)
        bench.play(seconds: 15)
        let keyframes = bench.encodings[2].keyframes
        for preference in DegradationPreference.allCases {
            bench.uplink.replace(bench.encodings[2].id, with: limited(2500, preference), at: bench.instant)
            bench.play(seconds: 3)
            #expect(bench.status(2)?.target?.dimensions == Dimensions(width: 1280, height: 720))
        }
        #expect(bench.encodings[2].keyframes == keyframes)
    }

    @Test("A log with a change of the limits, written and read, replays the same", arguments: [true, false])
    func replay(hasNewSize: Bool) throws {
        var bench = SimulcastBench()
        bench.addTrack(7)
        for index in 0..<3 { bench.want(index) }
        bench.play(seconds: 5, kilobits: 900)
        var lane = hasNewSize ? smaller(bench) : limited(800, .maintainFramerate)
        lane.track = 7
        lane.lowestBitrate = .kilobitsPerSecond(100)
        bench.uplink.replace(bench.encodings[2].id, with: lane, at: bench.instant)
        bench.play(seconds: 10, kilobits: 3000)
        var entries: [AdaptationLog.Entry] = []
        bench.uplink.takeRecords(into: &entries)
        let log = AdaptationLog(settings: UplinkController.Settings(), entries: entries)
        let read = try AdaptationLog(reading: Array(log.text.utf8))
        #expect(read == log)
        var replay = UplinkReplay(read)
        var replaced = 0
        while let step = replay.next() {
            #expect(step.isSame)
            if case .replaced = step.entry.input { replaced += 1 }
        }
        #expect(replaced == 1)
        #expect(replay.controller.status == bench.uplink.status)
    }

    @Test("A log of an earlier build, whose encodings state neither track nor lowest bitrate, is still read")
    func earlierLog() throws {
        let text = "room adaptation log 1\nsettings\n5 add 640 360 30 1 800000 1 balanced 0\nend 1\n"
        let log = try AdaptationLog(reading: Array(text.utf8))
        guard case .added(let lane)? = log.entries.first?.input else {
            Issue.record("\(log.entries)")
            return
        }
        #expect(lane.track == 0 && lane.lowestBitrate == nil)
    }
}
