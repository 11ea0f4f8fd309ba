import MediaCore
import TestTools
import Testing
import Threading
import VP8Codec

private let small = Dimensions(width: 64, height: 48)

/// Twelve packets of a small clip, a keyframe first, and another at the seventh.
private func packets() throws -> [[UInt8]] {
    var encoder = try VP8Encoder(VP8EncoderSettings(dimensions: small))
    let frames = try encoder.clip(12, keyframesAt: [6]).compactMap { $0?.bytes }
    try #require(frames.count == 12)
    return frames
}

/// A keyframe's header for a picture of the given sizes, with nothing after it.
private func header(width: Int, height: Int) -> [UInt8] {
    let sizes = [width & 0xFF, width >> 8, height & 0xFF, height >> 8].map { UInt8($0) }
    return [0x10, 0x02, 0x00, 0x9D, 0x01, 0x2A] + sizes
}

@Suite("VP8 bitstream", .timeLimit(.minutes(1)))
struct VP8BitstreamTests {
    @Test("A keyframe's header tells its size, without the scaling bits")
    func size() {
        let bytes = header(width: 641 | 0x4000, height: 481 | 0xC000)
        #expect(statedDimensions(of: bytes) == Dimensions(width: 641, height: 481))
        #expect(isKeyframe(bytes))
    }

    @Test("A frame that is cut, has no start code, no size or is no keyframe has no dimensions")
    func refused() {
        let whole = header(width: 640, height: 480)
        for count in 0..<whole.count {
            #expect(statedDimensions(of: Array(whole.prefix(count))) == nil)
        }
        for index in [0, 3, 4, 5] {
            var changed = whole
            changed[index] ^= 1
            #expect(statedDimensions(of: changed) == nil)
            #expect(!isKeyframe(changed))
        }
        #expect(statedDimensions(of: header(width: 0, height: 480)) == nil)
        #expect(statedDimensions(of: header(width: 640, height: 0x4000)) == nil)
    }
}

@Suite("VP8 decoder", .timeLimit(.minutes(2)))
struct VP8DecoderTests {
    @Test("A picture comes back with its size, timestamp and nearly its pixels")
    func picture() throws {
        var encoder = try VP8Encoder(VP8EncoderSettings(dimensions: small))
        var decoder = try VP8Decoder()
        let frame = VideoFrame(buffer: VideoBuffer(dimensions: small), timestamp: timestamp(at: 3))
        frame.buffer.withMutablePlanes { luma, chromaU, chromaV in
            for index in 0..<luma.count { luma[index] = UInt8(60 + index % 64) }
            chromaU.update(repeating: 77)
            chromaV.update(repeating: 199)
        }
        let coded = try #require(try encoder.coded(frame))
        let shown = try decoder.decode(coded.bytes.span.bytes, timestamp: frame.timestamp) {
            VideoBuffer(dimensions: $0)
        }
        let result = try #require(shown)
        #expect(result.dimensions == small && result.timestamp == frame.timestamp)
        result.buffer.withPlanes { luma, chromaU, chromaV in
            let row = 20 * result.buffer.lumaStride
            #expect((0..<64).allSatisfy { abs(Int(luma[row + $0]) - (60 + $0)) < 12 })
            #expect(abs(Int(chromaU[0]) - 77) < 4 && abs(Int(chromaV[0]) - 199) < 4)
        }
    }

    @Test("Frames whose pixels nobody wants are decoded all the same")
    func referenceOnly() throws {
        let packets = try packets()
        var full = try VP8Decoder()
        var skipping = try VP8Decoder()
        for (index, packet) in packets.enumerated() {
            let expected = try #require(try full.picture(packet))
            let wants = index % 5 == 4
            let shown = try skipping.decode(packet.span.bytes, timestamp: timestamp(at: index)) { dimensions in
                #expect(dimensions == small)
                return wants ? VideoBuffer(dimensions: dimensions) : nil
            }
            #expect(shown.map(digest) == (wants ? digest(expected) : nil))
        }
    }

    @Test("Decoding begins with a keyframe")
    func beginning() throws {
        let packets = try packets()
        var decoder = try VP8Decoder()
        for packet in packets[1...5] {
            let error = #expect(throws: VP8Error.self) { try decoder.picture(packet) }
            let isWaiting = decoder.isWaitingForKeyframe
            #expect(error?.code == .keyframeNeeded && isWaiting)
        }
        #expect(try decoder.picture(packets[6]) != nil)
        let isWaiting = decoder.isWaitingForKeyframe
        #expect(!isWaiting)
    }

    @Test("After a damaged frame, decoding goes on with the next keyframe, as if nothing had been")
    func recovery() throws {
        let packets = try packets()
        var whole = try VP8Decoder()
        let expected = try packets.map { try whole.picture($0).map(digest) }
        for damaged in [
            [], [0x01], Array(packets[3].prefix(5)), Array(packets[0].prefix(20)), header(width: 64, height: 48),
        ] {
            var decoder = try VP8Decoder()
            for packet in packets.prefix(3) { _ = try decoder.picture(packet) }
            let error = #expect(throws: VP8Error.self) { try decoder.picture(damaged) }
            #expect(error?.code == .damagedData)
            let next = #expect(throws: VP8Error.self) { try decoder.picture(packets[4]) }
            #expect(next?.code == .keyframeNeeded)
            for index in 6..<12 { #expect(try decoder.picture(packets[index]).map(digest) == expected[index]) }
        }
    }

    @Test("A size change at a keyframe changes the pictures' size")
    func sizeChange() throws {
        var encoder = try VP8Encoder(VP8EncoderSettings(dimensions: small))
        var decoder = try VP8Decoder()
        for size in [small, Dimensions(width: 31, height: 17), small] {
            let picture = VP8CodecTests.picture(size, at: 0)
            let coded = try #require(try encoder.coded(picture) { $0.dimensions = size })
            #expect(try decoder.picture(coded.bytes)?.dimensions == size)
        }
    }

    @Test("A picture beyond the limit is refused before memory is taken for it")
    func tooLarge() throws {
        var decoder = try VP8Decoder()
        for (width, height) in [(16383, 16383), (4096, 4097)] {
            let bytes = header(width: width, height: height) + Array(repeating: 0, count: 600)
            let error = #expect(throws: VP8Error.self) { try decoder.picture(bytes) }
            #expect(error?.code == .pictureTooLarge)
        }
        var narrow = try VP8Decoder(maximumDimensions: Dimensions(width: 64, height: 47))
        let error = #expect(throws: VP8Error.self) { try narrow.picture(try packets()[0]) }
        #expect(error?.code == .pictureTooLarge)
    }

    @Test("Frames cut at any length give an error or a picture, and never the frame before once more")
    func truncation() throws {
        let packets = try packets()
        for (index, packet) in packets.enumerated().prefix(4) {
            for count in 0..<packet.count {
                var decoder = try VP8Decoder()
                for earlier in packets.prefix(index) { _ = try decoder.picture(earlier) }
                let shown = try? decoder.picture(Array(packet.prefix(count)))
                if let shown { #expect(shown.dimensions == small) }
                if count == 0 { #expect(shown == nil) }
            }
        }
    }

    @Test("Random and flipped bytes give an error or a picture", arguments: 0..<8)
    func garbage(seed: UInt64) throws {
        let packets = try packets()
        var generator = SeededGenerator(seed: seed)
        var decoder = try VP8Decoder(maximumDimensions: Dimensions(width: 640, height: 480))
        for _ in 0..<1000 {
            var bytes = packets[Int.random(in: 0..<12, using: &generator)]
            switch Int.random(in: 0..<3, using: &generator) {
            case 0:
                bytes = (0..<Int.random(in: 0..<200, using: &generator)).map { _ in
                    .random(in: 0...255, using: &generator)
                }
            case 1: bytes = header(width: .random(in: 1..<700, using: &generator), height: 40) + bytes.dropFirst(10)
            default: break
            }
            for _ in 0..<Int.random(in: 0..<6, using: &generator) where !bytes.isEmpty {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] ^=
                    1 << UInt8.random(in: 0..<8, using: &generator)
            }
            if let shown = try? decoder.picture(bytes) { #expect(shown.dimensions.area <= 640 * 480) }
        }
        #expect(try decoder.picture(packets[0])?.dimensions == small)
    }

    @Test("Encoder and decoder serve from a thread of their own")
    func ownThread() throws {
        let count = Monitor(0)
        let thread = try WorkerThread(name: "codec") {
            let shown = try? decoded(
                try packets().enumerated().map { index, bytes in
                    CodedFrame(
                        info: EncodedFrameInfo(
                            number: UInt32(index),
                            timestamp: timestamp(at: index),
                            isKeyframe: false
                        ),
                        bytes: bytes
                    )
                }
            )
            count.change { $0 = shown?.count ?? 0 }
        }
        thread.join()
        #expect(count.withLock { $0 } == 12)
    }

    @Test("A buffer of another size than was asked for is a bug of the caller's, and ends the program")
    func wrongBuffer() async {
        await #expect(processExitsWith: .failure) {
            // An error would end the process just so; here it must not.
            _ = try? {
                let packet = try packets()[0]
                var decoder = try VP8Decoder()
                _ = try decoder.decode(packet.span.bytes, timestamp: timestamp(at: 0)) { _ in
                    VideoBuffer(dimensions: Dimensions(width: 32, height: 32))
                }
            }()
        }
    }

    @Test("Errors say what to do, and what libvpx said")
    func errorText() throws {
        var decoder = try VP8Decoder()
        let error = #expect(throws: VP8Error.self) {
            try decoder.picture(Array(try packets()[0].prefix(20)))
        }
        let text = "\(try #require(error))"
        #expect(text.hasPrefix("Cannot decode a frame (") && text.contains("next keyframe") && text.contains("libvpx"))
    }
}
