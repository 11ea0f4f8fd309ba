import MediaCore
import TestTools
import Testing
import VP8Codec

private let small = Dimensions(width: 176, height: 144)

/// Settings under which rate control need not leave out frames of a moving clip.
private let easy = VP8EncoderSettings(
    dimensions: small,
    targetBitrate: .kilobitsPerSecond(600),
    temporalLayerCount: 3
)

@Suite("VP8 encoder", .timeLimit(.minutes(2)))
struct VP8EncoderTests {
    @Test("Frames out of the encoder bear the pattern's layers, and count")
    func layers() throws {
        var encoder = try VP8Encoder(easy)
        let frames = try encoder.clip(17).compactMap(\.self)
        try #require(frames.count == 17)
        #expect(frames.map(\.info.number) == Array(0..<17))
        #expect(frames.map(\.info.temporalLayer) == [0, 2, 1, 2, 0, 2, 1, 2, 0, 2, 1, 2, 0, 2, 1, 2, 0])
        #expect(frames.filter(\.info.isLayerSync).map(\.info.number) == [1, 2, 9, 10])
        #expect(frames.map(\.info.baseLayerIndex) == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4])
        #expect(frames.map(\.info.timestamp) == (0..<17).map(timestamp(at:)))
    }

    @Test("Keyframes come first and on request, within that same frame, and never else", arguments: 1...3)
    func keyframes(layerCount: Int) throws {
        var settings = easy
        settings.temporalLayerCount = layerCount
        var encoder = try VP8Encoder(settings)
        // Pictures from elsewhere in the clip make cuts, which must not bring forth keyframes of their own.
        for index in 0..<60 {
            let isWanted = [7, 8, 30].contains(index)
            let frame = try encoder.coded(
                picture(small, at: index < 40 ? index : 1000 + index),
                forceKeyframe: isWanted
            )
            guard let frame else {
                #expect(!isWanted && index > 0)
                continue
            }
            #expect(frame.info.isKeyframe == (isWanted || index == 0))
            #expect(isKeyframe(frame.bytes) == frame.info.isKeyframe)
            if frame.info.isKeyframe { #expect(frame.info.temporalLayer == 0 && !frame.info.isLayerSync) }
        }
    }

    @Test("A smaller size gives a keyframe of that size at once, a larger one than at first an error")
    func resizing() throws {
        var encoder = try VP8Encoder(easy)
        _ = try encoder.clip(6)
        for size in [Dimensions(width: 88, height: 72), Dimensions(width: 33, height: 17), small] {
            let frame = try #require(try encoder.coded(picture(size, at: 6)) { $0.dimensions = size })
            #expect(statedDimensions(of: frame.bytes) == size)
            #expect(frame.info.dimensions == size)
            #expect(try encoder.coded(picture(size, at: 7))?.info.isKeyframe != true)
        }
        let none = #expect(throws: VP8Error.self) {
            try encoder.coded(picture(small, at: 8)) { $0.temporalLayerCount = 4 }
        }
        #expect(none?.code == .unsupportedSettings)
        let larger = Dimensions(width: 177, height: 100)
        let error = #expect(throws: VP8Error.self) {
            try encoder.coded(picture(larger, at: 8)) { $0.dimensions = larger }
        }
        let dimensions = encoder.dimensions
        #expect(error?.code == .sizeIncrease && dimensions == small)
        #expect(try encoder.coded(picture(small, at: 8))?.info.isKeyframe != true)
    }

    @Test("A frame of another size is an error that changes nothing")
    func wrongSize() throws {
        var encoder = try VP8Encoder(easy)
        _ = try encoder.clip(2)
        let other = picture(Dimensions(width: 144, height: 176), at: 2)
        let error = #expect(throws: VP8Error.self) { try encoder.coded(other) }
        #expect(error?.code == .wrongFrameSize)
        let next = try #require(try encoder.coded(picture(small, at: 2)))
        #expect(next.info.number == 2 && !next.info.isKeyframe)
    }

    @Test(
        "Settings that VP8 cannot have are refused",
        arguments: [(0, 16, 3), (16, 0, 3), (-16, 16, 3), (16384, 16, 3), (16, 16384, 3), (16, 16, 0), (16, 16, 4)]
    )
    func refusedSettings(width: Int, height: Int, layerCount: Int) {
        var settings = VP8EncoderSettings(dimensions: Dimensions(width: width, height: height))
        settings.temporalLayerCount = layerCount
        let error = #expect(throws: VP8Error.self) { _ = try VP8Encoder(settings) }
        #expect(error?.code == .unsupportedSettings)
    }

    @Test(
        "Sizes that are no multiple of anything go through, and look alike on the other side",
        arguments: [(1, 1), (2, 1), (1, 2), (3, 3), (17, 33), (15, 16), (641, 481)]
    )
    func oddSizes(width: Int, height: Int) throws {
        let size = Dimensions(width: width, height: height)
        var encoder = try VP8Encoder(
            VP8EncoderSettings(dimensions: size, targetBitrate: .kilobitsPerSecond(5000))
        )
        var decoder = try VP8Decoder()
        // The quantizer leaves little of a picture that is smaller than a block of its transform.
        let tolerance = min(width, height) < 4 ? 36 : 16
        var pictures = 0
        for index in 0..<9 {
            let drawn = ramps(size, at: index)
            guard let coded = try encoder.coded(drawn) else { continue }
            let shown = try #require(try decoder.picture(coded.bytes))
            #expect(shown.dimensions == size)
            let differences = largestDifferences(drawn.buffer, shown.buffer)
            #expect(differences.luma < tolerance && differences.chroma < 16, "\(differences) in picture \(index)")
            pictures += 1
        }
        #expect(pictures >= 1)
    }

    /// A picture in which every pixel differs from its neighbours, so that none can be left out, moved or repeated.
    ///
    /// What lies behind the rows is of another colour, which nobody must see.
    private func ramps(_ size: Dimensions, at index: Int) -> VideoFrame {
        let buffer = VideoBuffer(dimensions: size)
        let chroma = buffer.chromaDimensions
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            luma.update(repeating: 255)
            chromaU.update(repeating: 0)
            chromaV.update(repeating: 0)
            for row in 0..<size.height {
                for column in 0..<size.width {
                    let value = 40 + 120 * column / size.width + 60 * row / size.height + 4 * index
                    luma[row * buffer.lumaStride + column] = UInt8(value)
                }
            }
            for row in 0..<chroma.height {
                for column in 0..<chroma.width {
                    let place = row * buffer.chromaStride + column
                    chromaU[place] = UInt8(60 + 100 * column / chroma.width)
                    chromaV[place] = UInt8(200 - 100 * row / chroma.height)
                }
            }
        }
        return VideoFrame(buffer: buffer, timestamp: timestamp(at: index))
    }

    /// The largest difference between two pictures of the same size, of luma and of chroma.
    private func largestDifferences(_ one: VideoBuffer, _ other: VideoBuffer) -> (luma: Int, chroma: Int) {
        func largest(
            _ one: Span<UInt8>,
            _ oneStride: Int,
            _ other: Span<UInt8>,
            _ stride: Int,
            _ size: Dimensions
        ) -> Int {
            var largest = 0
            for row in 0..<size.height {
                for column in 0..<size.width {
                    let difference = Int(one[row * oneStride + column]) - Int(other[row * stride + column])
                    largest = max(largest, abs(difference))
                }
            }
            return largest
        }
        return one.withPlanes { luma, chromaU, chromaV in
            other.withPlanes { otherLuma, otherU, otherV in
                let chroma = one.chromaDimensions
                return (
                    largest(luma, one.lumaStride, otherLuma, other.lumaStride, one.dimensions),
                    max(
                        largest(chromaU, one.chromaStride, otherU, other.chromaStride, chroma),
                        largest(chromaV, one.chromaStride, otherV, other.chromaStride, chroma)
                    )
                )
            }
        }
    }

    @Test("The rate follows the target, also when that changes")
    func bitrate() throws {
        var encoder = try VP8Encoder(VP8EncoderSettings(dimensions: small, targetBitrate: .kilobitsPerSecond(200)))
        var rates: [Double] = []
        for (target, start) in [(200, 0), (80, 90), (300, 180)] {
            var bytes = 0
            for index in start..<(start + 90) {
                let frame = try encoder.coded(picture(small, at: index)) { $0.bitrate = .kilobitsPerSecond(target) }
                bytes += frame?.bytes.count ?? 0
            }
            rates.append(Double(bytes) * 8 / 3000 / Double(target))
        }
        // The bounds are wide: what is held is the encoder's affair, that it is aimed at ours.
        #expect(rates.allSatisfy { (0.4...1.6).contains($0) }, "kbit/s as shares of the target: \(rates)")
    }

    @Test("A target outside what libvpx can hold is taken as the nearest", arguments: [Int.min, -1, 0, 1, Int.max])
    func extremeBitrate(bitsPerSecond: Int) throws {
        let target = Bitrate(bitsPerSecond: bitsPerSecond)
        var encoder = try VP8Encoder(VP8EncoderSettings(dimensions: small, targetBitrate: target))
        #expect(try encoder.clip(4).first ?? nil != nil)
        _ = try encoder.coded(picture(small, at: 4)) { $0.bitrate = .kilobitsPerSecond(500) }
        for (index, limit) in [nil, Int.min, 0, 1, .max].enumerated() {
            _ = try encoder.coded(picture(small, at: 5 + index)) {
                $0.bitrate = target
                $0.frameRate = FrameRate(numerator: 1, denominator: .max)
                $0.largestFrame = limit.map { DataSize(bytes: $0) }
            }
        }
        _ = try encoder.clip(4)
    }

    @Test(
        "After pauses the frames come out as before them, whether with a keyframe or without",
        arguments: [100, 400, 1_500, 5_000, 60_000] as [Int64],
        [true, false]
    )
    func pauses(milliseconds: Int64, haveKeyframes: Bool) throws {
        var encoder = try VP8Encoder(VP8EncoderSettings(dimensions: small, targetBitrate: .kilobitsPerSecond(1_000)))
        var pause: Int64 = 0
        for round in 0..<4 {
            var dropped = 0
            for index in (round * 60)..<((round + 1) * 60) {
                var frame = picture(small, at: index)
                frame.timestamp = MonotonicInstant(microseconds: frame.timestamp.microseconds + pause)
                let isFirst = index == round * 60
                if try encoder.coded(frame, forceKeyframe: isFirst && haveKeyframes) == nil { dropped += 1 }
            }
            #expect(dropped <= 2, "after \(round) pauses")
            pause += milliseconds * 1000
        }
    }

    @Test(
        "Frames that come slower or faster than was said all come out",
        arguments: [1, 5, 30] as [Int64],
        [20, 100, 400, 900, 2_000, 10_000] as [Int64]
    )
    func otherRates(framesPerSecond: Int64, milliseconds: Int64) throws {
        var settings = VP8EncoderSettings(dimensions: small, targetBitrate: .kilobitsPerSecond(2_000))
        settings.frameRate = FrameRate(Int(framesPerSecond))
        var encoder = try VP8Encoder(settings)
        var dropped = 0
        for index in 0..<90 {
            var frame = picture(small, at: index)
            frame.timestamp = MonotonicInstant(microseconds: Int64(index) * milliseconds * 1000)
            if try encoder.coded(frame, forceKeyframe: index == 45) == nil { dropped += 1 }
        }
        #expect(dropped <= 2)
    }

    @Test("Timestamps that stand still, go back or leap leave the encoder working, and come out as they went in")
    func timestamps() throws {
        var encoder = try VP8Encoder(easy)
        let stamps: [Int64] = [1000, 1000, 1000, 999, -5, .min, .max, .max, 0, .min, 1, 2, 3, 33_000_000, 66_000_000]
        var taken = 0
        for (index, stamp) in stamps.enumerated() {
            var frame = picture(small, at: index)
            frame.timestamp = MonotonicInstant(nanoseconds: stamp)
            guard let coded = try encoder.coded(frame) else { continue }
            #expect(coded.info.timestamp == frame.timestamp)
            taken += 1
        }
        #expect(taken > stamps.count / 2)
    }

    @Test(
        "The usual bit rate follows the size",
        arguments: [(320, 240, 600), (321, 240, 1700), (640, 480, 1700), (960, 540, 2000), (1280, 720, 2500)]
    )
    func defaultBitrate(width: Int, height: Int, kilobits: Int) {
        let dimensions = Dimensions(width: width, height: height)
        #expect(VP8EncoderSettings(dimensions: dimensions).targetBitrate == .kilobitsPerSecond(kilobits))
    }
}

@Suite("Temporal layers in libvpx", .timeLimit(.minutes(2)))
struct TemporalLayerTests {
    /// A clip with keyframes in between; on demand with a rate that falls so steeply that frames are left out.
    private func clip(withDrops: Bool, layerCount: Int = 3) throws -> [CodedFrame] {
        let ample = Bitrate.kilobitsPerSecond(withDrops ? 600 : 2000)
        let settings = VP8EncoderSettings(
            dimensions: small,
            targetBitrate: ample,
            temporalLayerCount: layerCount
        )
        var encoder = try VP8Encoder(settings)
        var frames: [CodedFrame] = []
        let count = 120
        for index in 0..<count {
            let next = picture(small, at: index, .busy)
            let frame = try encoder.coded(next, forceKeyframe: [21, 83].contains(index)) {
                $0.bitrate = withDrops && index % 20 >= 10 ? .kilobitsPerSecond(100) : ample
            }
            if let frame { frames.append(frame) }
        }
        try #require(withDrops == (frames.count < count), "\(count - frames.count) frames left out")
        return frames
    }

    @Test("The lower layers alone decode to the same pictures, bit by bit", arguments: [false, true], [2, 3])
    func lowerLayers(withDrops: Bool, layerCount: Int) throws {
        let frames = try clip(withDrops: withDrops, layerCount: layerCount)
        let whole = try decoded(frames)
        #expect(whole.count == frames.count)
        for layer in 0..<UInt8(layerCount) {
            let part = try decoded(frames) { $0.temporalLayer <= layer }
            #expect(part.count > frames.count / 8 && part.count < frames.count || layer == layerCount - 1)
            #expect(part.allSatisfy { number, picture in picture == whole[number] })
        }
    }

    @Test("A layer can be begun at any sync", arguments: [false, true])
    func joining(withDrops: Bool) throws {
        let frames = try clip(withDrops: withDrops)
        let whole = try decoded(frames)
        var joined: Set<UInt8> = []
        for start in frames.map(\.info) where start.isLayerSync && start.number < 60 {
            let part = try decoded(frames) {
                $0.temporalLayer <= ($0.number < start.number ? 0 : start.temporalLayer)
            }
            #expect(part.allSatisfy { number, picture in picture == whole[number] }, "from frame \(start.number)")
            joined.insert(start.temporalLayer)
        }
        #expect(joined == [1, 2])
    }

    @Test("Any frame of the highest layer can be left out", arguments: [false, true])
    func highestLayer(withDrops: Bool) throws {
        let frames = try clip(withDrops: withDrops)
        let whole = try decoded(frames)
        var generator = SeededGenerator(seed: 7)
        let part = try decoded(frames) { $0.temporalLayer < 2 || Bool.random(using: &generator) }
        #expect(part.count < whole.count)
        #expect(part.allSatisfy { number, picture in picture == whole[number] })
    }

    @Test("The middle layer refers to itself where it is no sync, so the tests above can fail")
    func middleLayerMatters() throws {
        let frames = try clip(withDrops: false)
        let whole = try decoded(frames)
        let part = try decoded(frames) { !($0.temporalLayer == 1 && $0.isLayerSync) }
        #expect(!part.allSatisfy { number, picture in picture == whole[number] })
    }

    @Test("Where rate control leaves frames out, the lowest layer is not starved")
    func lowestLayerUnderStrain() throws {
        let rate = Bitrate.kilobitsPerSecond(150)
        var encoder = try VP8Encoder(
            VP8EncoderSettings(dimensions: small, targetBitrate: rate, temporalLayerCount: 3)
        )
        let frames = try encoder.clip(240, .noise)
        let lowest = frames.indices.filter { frames[$0]?.info.temporalLayer == 0 }
        let longest = zip(lowest.dropFirst(), lowest).map { $0 - $1 }.max() ?? .max
        let mean = 240 / frames.compactMap(\.self).count
        #expect(longest <= 3 * mean, "one frame of \(mean) came out, but of layer 0 none for \(longest)")
    }
}
