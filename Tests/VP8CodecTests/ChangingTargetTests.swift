import MediaCore
import RoomProtocol
import TestTools
import Testing
import VP8Codec

private let sizes = [
    Dimensions(width: 176, height: 144), Dimensions(width: 132, height: 108), Dimensions(width: 88, height: 72),
]

/// A stream whose target changes at random: size, bitrate, frame rate, number of layers, and the limit of one frame.
///
/// Some frames are encoded and not sent.
private struct RandomStream {
    var sent: [CodedFrame] = []
    var pictures: [UInt32: VideoFrame] = [:]
    var layerCounts: Set<Int> = []
    var refused = 0
    /// Keyframes that nobody asked for, except after a frame of three layers was not sent.
    var needlessKeyframes = 0

    init(seed: UInt64, count: Int, changesSize: Bool = true) throws {
        var random = SeededGenerator(seed: seed)
        var encoder = try VP8Encoder(
            VP8EncoderSettings(dimensions: sizes[0], temporalLayerCount: Int.random(in: 1...3, using: &random))
        )
        var target = encoder.target
        var mayBeKeyframe = true
        for index in 0..<count {
            let before = target.dimensions
            Self.change(&target, &random, changesSize: changesSize)
            let content: Content = index % 40 < 20 ? .moving : .busy
            // Cuts, so that frames come out larger than expected.
            let frame = picture(target.dimensions, at: index + index / 50 * 1000, content)
            let forcesKeyframe = Int.random(in: 0..<60, using: &random) == 0
            let isRefused = Int.random(in: 0..<12, using: &random) == 0
            let mayBe = mayBeKeyframe || forcesKeyframe || before != target.dimensions
            var refusedLayers: Int?
            let coded = try encoder.encode(frame, target: target, forceKeyframe: forcesKeyframe) { info, bytes in
                if isRefused {
                    refusedLayers = info.isKeyframe || target.temporalLayerCount == 3 ? 3 : target.temporalLayerCount
                    return nil as CodedFrame?
                }
                return CodedFrame(info: info, bytes: bytes.withUnsafeBytes { Array($0) })
            }
            if let refusedLayers {
                refused += 1
                if refusedLayers == 3 { mayBeKeyframe = true }
            }
            guard let coded else {
                if mayBe { mayBeKeyframe = true }
                continue
            }
            if coded.info.isKeyframe, !mayBe { needlessKeyframes += 1 }
            mayBeKeyframe = false
            layerCounts.insert(target.temporalLayerCount)
            sent.append(coded)
            pictures[coded.info.number] = frame
        }
    }

    static func change(_ target: inout EncodingTarget, _ random: inout SeededGenerator, changesSize: Bool) {
        if Int.random(in: 0..<15, using: &random) == 0 {
            target.temporalLayerCount = Int.random(in: 1...3, using: &random)
        }
        if Int.random(in: 0..<4, using: &random) == 0 {
            target.bitrate = .kilobitsPerSecond(Int.random(in: 100...1500, using: &random))
        }
        if changesSize, Int.random(in: 0..<40, using: &random) == 0 {
            target.dimensions = sizes.randomElement(using: &random) ?? sizes[0]
        }
        if Int.random(in: 0..<10, using: &random) == 0 {
            target.frameRate = FrameRate([10, 15, 30].randomElement(using: &random) ?? 30)
        }
        if Int.random(in: 0..<8, using: &random) == 0 {
            let limit = Int.random(in: 500...20_000, using: &random)
            target.largestFrame = Bool.random(using: &random) ? nil : DataSize(bytes: limit)
        }
    }
}

@Suite("Targets that change with each frame", .timeLimit(.minutes(3)))
struct ChangingTargetTests {
    @Test("Whatever changes and whatever is not sent, the frames decode to nearly their pictures", arguments: 0..<12)
    func decoding(seed: UInt64) throws {
        let stream = try RandomStream(seed: seed, count: 240)
        try #require(stream.refused > 3 && stream.layerCounts.count > 1)
        var decoder = try VP8Decoder()
        var worst = Double.infinity
        for frame in stream.sent {
            let shown = try #require(try decoder.picture(frame.bytes))
            let original = try #require(stream.pictures[frame.info.number])
            #expect(shown.dimensions == frame.info.dimensions && frame.info.dimensions == original.dimensions)
            // A frame that was coded coarsely does not look like the picture anyway.
            if frame.info.quantizer < 40 { worst = min(worst, lumaPSNR(shown, original)) }
        }
        #expect(worst > 24)
        #expect(stream.needlessKeyframes == 0)
    }

    // After a refused frame, the parts that were not encoded anew showed the picture before.
    @Test("A picture that stands still becomes sharp at last, whatever came before", arguments: 0..<8)
    func still(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var encoder = try VP8Encoder(VP8EncoderSettings(dimensions: sizes[0], temporalLayerCount: 1))
        var decoder = try VP8Decoder()
        var target = encoder.target
        var time = timestamp(at: 0)
        /// Returns how sharp the picture is shown; `nil` if it was left out or not sent.
        func show(_ index: Int, isRepeat: Bool, isRefused: Bool) throws -> Double? {
            var frame = picture(target.dimensions, at: index, .page)
            time = time + .milliseconds(Int.random(in: 1...150, using: &random))
            (frame.timestamp, frame.isRepeat) = (time, isRepeat)
            let coded = try encoder.encode(frame, target: target, forceKeyframe: false) { _, bytes in
                isRefused ? nil : bytes.withUnsafeBytes { Array($0) }
            }
            return try coded.flatMap { try decoder.picture($0) }.map { lumaPSNR($0, frame) }
        }
        for index in 0..<16 {
            // What was not sent cannot be repeated.
            var isShown = false
            for _ in 0..<Int.random(in: 1...20, using: &random) {
                RandomStream.change(&target, &random, changesSize: true)
                let isRefused = Int.random(in: 0..<8, using: &random) == 0
                if try show(10 * index, isRepeat: isShown, isRefused: isRefused) != nil { isShown = true }
            }
            let size = target.dimensions
            target = EncodingTarget(
                dimensions: size,
                bitrate: .kilobitsPerSecond(1500),
                frameRate: FrameRate(15),
                temporalLayerCount: target.temporalLayerCount
            )
            var last = 0.0
            for repeats in 0..<60 {
                guard let sharpness = try show(10 * index, isRepeat: isShown, isRefused: false) else { continue }
                // The first ones may be of the target before.
                #expect(repeats < 3 || sharpness > last - 0.5, "\(last) dB, then \(sharpness)")
                (isShown, last) = (true, sharpness)
            }
            let isSharp = encoder.isSharp
            #expect(isSharp && last > 36, "\(last) dB with \(target.temporalLayerCount) layers")
        }
    }

    @Test("A decoder that lacks one frame shows something else, so the test above can fail")
    func lackingFrame() throws {
        let stream = try RandomStream(seed: 1, count: 120, changesSize: false)
        let whole = try decoded(stream.sent)
        let lacking = try #require(stream.sent.firstIndex { !$0.info.isDiscardable && !$0.info.isKeyframe })
        var frames = stream.sent
        frames.remove(at: lacking)
        let part = try decoded(frames)
        #expect(!part.allSatisfy { number, picture in picture == whole[number] })
    }

    @Test("Whatever a gate lets through decodes to the same pictures, bit by bit", arguments: 0..<12)
    func dropping(seed: UInt64) throws {
        let stream = try RandomStream(seed: seed, count: 240)
        let whole = try decoded(stream.sent)
        #expect(whole.count == stream.sent.count)
        var left = 0
        for receiver in 0..<4 as Range<UInt64> {
            var random = SeededGenerator(seed: 100 * seed + receiver)
            var gate = TemporalLayerGate()
            var limit = 2
            let part = try decoded(stream.sent) { info in
                if Int.random(in: 0..<10, using: &random) == 0 { limit = Int.random(in: 0...2, using: &random) }
                if info.isDiscardable, Int.random(in: 0..<5, using: &random) == 0 { return false }
                let passes = gate.passes(info, limit: limit)
                if !passes { left += 1 }
                return passes
            }
            #expect(part.count > 20)
            #expect(part.allSatisfy { number, picture in picture == whole[number] })
        }
        #expect(left > 0)
    }

    @Test("Numbers and base layer indices count what is sent, across all changes", arguments: 0..<12)
    func counting(seed: UInt64) throws {
        let stream = try RandomStream(seed: seed, count: 240)
        var index: UInt16?
        for (number, frame) in stream.sent.enumerated() {
            let info = frame.info
            #expect(info.number == UInt32(number))
            #expect(isKeyframe(frame.bytes) == info.isKeyframe)
            if info.temporalLayer == 0 {
                #expect(!info.isLayerSync && !info.isDiscardable)
                if let index { #expect(info.baseLayerIndex == index &+ 1) }
                index = info.baseLayerIndex
            } else {
                #expect(info.baseLayerIndex == index)
            }
        }
    }

    @Test("The number of layers changes at once and without a keyframe; with one layer nothing is discardable")
    func layerCounts() throws {
        var encoder = try VP8Encoder(
            VP8EncoderSettings(dimensions: sizes[0], targetBitrate: .kilobitsPerSecond(1_000))
        )
        var frames: [CodedFrame] = []
        for index in 0..<32 {
            let next = try encoder.coded(picture(sizes[0], at: index)) {
                $0.temporalLayerCount = [1, 3, 2, 1][index / 8]
            }
            frames.append(try #require(next))
        }
        #expect(frames.filter(\.info.isKeyframe).count == 1)
        let layers = frames.map { Int($0.info.temporalLayer) }
        #expect(layers[..<8] == [0, 0, 0, 0, 0, 0, 0, 0] && layers[24...] == [0, 0, 0, 0, 0, 0, 0, 0])
        #expect(layers[8..<16] == [0, 2, 1, 2, 0, 2, 1, 2])
        #expect(layers[16..<24] == [0, 1, 0, 1, 0, 1, 0, 1])
        let discardable = frames.indices.filter { frames[$0].info.isDiscardable }
        #expect(discardable == [9, 11, 13, 15, 17, 19, 21, 23])
        #expect(frames.indices.filter { frames[$0].info.isLayerSync } == [9, 10, 17, 19, 21, 23])
    }

    @Test("A frame that is not sent needs no keyframe with one or two layers", arguments: 1...2)
    func refusal(layerCount: Int) throws {
        var encoder = try VP8Encoder(
            VP8EncoderSettings(
                dimensions: sizes[0],
                targetBitrate: .kilobitsPerSecond(1_000),
                temporalLayerCount: layerCount
            )
        )
        _ = try encoder.clip(5)
        for index in 5..<9 {
            let refused: Bool? = try encoder.encode(picture(sizes[0], at: index), forceKeyframe: false) { _, _ in nil }
            #expect(refused == nil)
        }
        let next = try #require(try encoder.coded(picture(sizes[0], at: 9)))
        #expect(next.info.number == 5 && !next.info.isKeyframe)
    }
}
