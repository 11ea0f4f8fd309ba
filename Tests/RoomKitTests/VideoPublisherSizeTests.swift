import Glibc
import MediaCore
import RoomProtocol
import TestTools
import Testing
import Threading
import VP8Codec

@testable import RoomKit

@Suite("Video publisher: sizes", .timeLimit(.minutes(2)))
struct VideoPublisherSizeTests {
    @Test("A size that the source was asked for is made of upright pictures, and announced")
    func requestedSize() async throws {
        let bench = try PublisherBench()
        bench.publisher.onVideoFormatRequest(VideoFormatRequest(dimensions: Dimensions(width: 40, height: 40)))
        _ = try #require(try bench.pass(picture(64, 48, rotation: .clockwise90)))
        #expect(bench.publisher.dimensions == Dimensions(width: 40, height: 40))
        await bench.publisher.stop()
    }

    // The edges were cut off: of a screen of 4:3, a quarter of its height at 16:9.
    @Test("A screen is fitted into the size that was asked for, and nothing of it is cut off")
    func requestedScreenSize() async throws {
        let bench = try PublisherBench(isScreencast: true)
        bench.publisher.onVideoFormatRequest(VideoFormatRequest(dimensions: Dimensions(width: 64, height: 36)))
        _ = try #require(try bench.pass(picture(64, 48)))
        #expect(bench.publisher.dimensions == Dimensions(width: 48, height: 36))
        await bench.publisher.stop()
    }

    @Test("A change of size begins with a keyframe, which is a second after the one before, and the numbers go on")
    func sizes() async throws {
        let bench = try PublisherBench()
        var decoder = try VP8Decoder()
        let sizes = [(64, 48), (32, 24), (160, 120), (33, 17), (1, 1)]
        var (number, base) = (UInt32(0), UInt16.max)
        for (width, height) in sizes {
            for repetition in 0..<6 {
                let frame = try #require(try bench.pass(picture(width, height, at: Int(number))))
                let header = frame.header
                #expect(header.isKeyframe == (repetition == 0), "\(width)x\(height), frame \(repetition)")
                #expect(header.frameNumber == number)
                if header.temporalLayer == 0 { base &+= 1 }
                #expect(header.baseLayerIndex == base)
                let decoded = try decode(frame, with: &decoder)
                #expect(decoded.dimensions == Dimensions(width: width, height: height).even)
                number += 1
            }
        }
        await bench.publisher.stop()
        #expect(bench.publisher.statistics.keyframes == sizes.count)
        #expect(bench.failures.withLock { $0 } == [])
    }

    // Each change made a keyframe at once, as when a window is resized by hand.
    @Test("A source whose size changes with every picture gets a keyframe a second at most")
    func changingSizes() async throws {
        let bench = try PublisherBench()
        let began = MonotonicClock.now
        var index = 0
        while index < 150 || bench.publisher.statistics.keyframes < 2 {
            bench.publisher.onVideoFrame(picture(index % 2 == 0 ? 64 : 96, 48, at: index))
            usleep(10_000)
            _ = try bench.send()
            index += 1
        }
        await bench.publisher.stop()
        let seconds = Int(MonotonicClock.now.duration(since: began).seconds)
        let keyframes = bench.publisher.statistics.keyframes
        #expect(keyframes <= seconds + 1, "\(keyframes) in \(seconds) s")
        #expect(bench.isSettled)
    }

    // Turned pictures went out as they lay.
    @Test("A picture that its source gives as turned goes out upright", arguments: VideoRotation.allCases)
    func rotation(_ rotation: VideoRotation) async throws {
        let bench = try PublisherBench()
        let frame = try #require(try bench.pass(picture(96, 64, rotation: rotation)))
        var decoder = try VP8Decoder()
        let upright = try decode(frame, with: &decoder)
        let size = Dimensions(width: 96, height: 64)
        #expect(upright.dimensions == (rotation.swapsDimensions ? size.transposed : size))
        #expect(await bench.publisher.firstDimensions(within: .seconds(10)) == upright.dimensions)
        // Where the bright half lies, which is the right one before turning: top left and right, bottom left and right.
        let (right, bottom) = (upright.dimensions.width - 8, upright.dimensions.height - 8)
        let corners = [(7, 7), (right, 7), (7, bottom), (right, bottom)].map { column, row in
            upright.buffer.withPlanes { luma, _, _ in luma[row * upright.buffer.lumaStride + column] > 160 }
        }
        let expected: [VideoRotation: [Bool]] = [
            .none: [false, true, false, true],
            .clockwise90: [false, false, true, true],
            .half: [true, false, true, false],
            .clockwise270: [true, true, false, false],
        ]
        #expect(corners == expected[rotation])
        await bench.publisher.stop()
    }

    @Test(
        "Odd and tiny pictures can be published, turned or not, and are sent with even sides",
        arguments: [1, 2, 3, 17, 33]
    )
    func oddSizes(side: Int) async throws {
        let bench = try PublisherBench()
        var decoder = try VP8Decoder()
        for rotation in VideoRotation.allCases {
            let frame = try #require(try bench.pass(picture(side, 2 * side + 1, rotation: rotation)))
            let size = Dimensions(width: side, height: 2 * side + 1)
            let decoded = try decode(frame, with: &decoder)
            #expect(decoded.dimensions == (rotation.swapsDimensions ? size.transposed : size).even)
        }
        await bench.publisher.stop()
    }

    @Test(
        "A track that was announced with a tiny size is sent in the smallest even one",
        arguments: [(1, 1), (1, 3), (5, 1)]
    )
    func tinyTrack(width: Int, height: Int) async throws {
        let bench = try PublisherBench(announced: Dimensions(width: width, height: height))
        var decoder = try VP8Decoder()
        let frame = try #require(try bench.pass(picture(width, height)))
        #expect(try decode(frame, with: &decoder).dimensions == Dimensions(width: width, height: height).even)
        #expect(bench.failures.withLock { $0 } == [])
        await bench.publisher.stop()
    }

    @Test("Whatever subscribers can use, sizes are even and within the bounds, and every frame decodes")
    func bounds() async throws {
        var random = SeededGenerator(seed: 7)
        let bench = try PublisherBench()
        var decoder = try VP8Decoder()
        for index in 0..<120 {
            if index % 6 == 0 {
                bench.publisher.setWanted([
                    WantedLayer(
                        simulcastLayer: 0,
                        bitrate: Bool.random(using: &random) ? Int.random(in: -1...3_000_000, using: &random) : nil,
                        width: Bool.random(using: &random) ? Int.random(in: 64...400, using: &random) : nil,
                        height: Bool.random(using: &random) ? Int.random(in: 48...300, using: &random) : nil,
                        temporalLayers: Int.random(in: 0...4, using: &random)
                    )
                ])
            }
            bench.publisher.onVideoFrame(picture(320, 240, at: index))
            usleep(10_000)
            for frame in try bench.send() {
                let size = try decode(frame, with: &decoder).dimensions
                #expect(
                    size.width % 2 == 0 && size.height % 2 == 0 && size.width <= 320 && size.height <= 240,
                    "\(size)"
                )
            }
        }
        await bench.publisher.stop()
        #expect(bench.isSettled)
    }

    private func decode(_ frame: FrameAssembler.Frame, with decoder: inout VP8Decoder) throws -> VideoFrame {
        let received = frame.received()
        let decoded = try received.frame.withBytes { bytes throws(VP8Error) in
            try decoder.decode(bytes, timestamp: received.frame.info.timestamp) { VideoBuffer(dimensions: $0) }
        }
        return try #require(decoded)
    }

    // The encodings were limited as if the pictures came at the rate of the beginning: a limit of the frame rate between
    // the two let all of them pass.
    @Test("Pictures that come at another rate are encoded within limits for that rate")
    func otherRate() async throws {
        let rate = Monitor<FrameRate?>(nil)
        let bench = try PublisherBench(rate: rate)
        _ = try bench.pass(picture(64, 48, at: 0))
        let limit = { bench.publisher.lanes.first?.status?.lane.target?.frameRate }
        #expect(limit() == FrameRate(30))
        for (index, next) in [FrameRate(60), nil, FrameRate(15)].enumerated() {
            rate.withLock { $0 = next }
            // It is read once a second.
            try await Task.sleep(for: .milliseconds(1100))
            for number in 1...3 { _ = try bench.pass(picture(64, 48, at: 3 * index + number)) }
            #expect(limit() == next ?? FrameRate(60))
            #expect(bench.publisher.changeableProperties?.frameRate == (next ?? FrameRate(60)).framesPerSecond)
        }
        await bench.publisher.stop()
    }
}

extension Dimensions {
    /// The size in which a picture of this size is sent.
    fileprivate var even: Dimensions { Dimensions(width: max(2, width & ~1), height: max(2, height & ~1)) }
}
