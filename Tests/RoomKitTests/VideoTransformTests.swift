import MediaCore
import RelayServer
import RoomProtocol
import TestTools
import Testing
import VP8Codec
import VideoProcessing

@testable import RoomKit

@Suite("The transform of a track", .timeLimit(.minutes(1)))
struct VideoTransformTests {
    private func transform(
        _ rotation: VideoRotation = .none,
        isMirrored: Bool = false,
        crop: Dimensions? = nil
    ) -> VideoTransform {
        var transform = VideoTransform()
        (transform.rotation, transform.isMirrored, transform.crop) = (rotation, isMirrored, crop)
        return transform
    }

    private func luma(_ frame: VideoFrame) -> [UInt8] {
        frame.buffer.withPlanes { luma, _, _ in
            (0..<frame.dimensions.height).flatMap { row in
                (0..<frame.dimensions.width).map { luma[row * frame.buffer.lumaStride + $0] }
            }
        }
    }

    private func decode(_ frame: FrameAssembler.Frame, with decoder: inout VP8Decoder) throws -> VideoFrame {
        let received = frame.received()
        let decoded = try received.frame.withBytes { bytes throws(VP8Error) in
            try decoder.decode(bytes, timestamp: received.frame.info.timestamp) { VideoBuffer(dimensions: $0) }
        }
        return try #require(decoded)
    }

    /// Whether it is bright at the top left and at the top right.
    private func top(_ frame: VideoFrame) -> [Bool] {
        frame.buffer.withPlanes { luma, _, _ in
            [7, frame.dimensions.width - 8].map { luma[7 * frame.buffer.lumaStride + $0] > 160 }
        }
    }

    @Test(
        "It is added to the turn and the mirroring that the source gives its frames",
        arguments: VideoRotation.allCases,
        [false, true]
    )
    func added(rotation: VideoRotation, isMirrored: Bool) {
        let scaler = FrameScaler()
        var frame = picture(32, 16, rotation: rotation)
        frame.isMirrored = isMirrored
        for own in VideoRotation.allCases {
            for mirrors in [false, true] {
                let shape = PictureShape(transform: transform(own, isMirrored: mirrors))
                let once = scaler.upright(shape.tagged(frame))
                let steps = FrameTransform(rotation: own, isMirrored: mirrors)
                let twice = scaler.apply(steps, to: scaler.upright(frame))
                #expect(once.dimensions == twice.dimensions && luma(once) == luma(twice), "\(own), \(mirrors)")
            }
        }
    }

    @Test("The next picture is cropped, turned and mirrored, and only another size makes a keyframe")
    func changed() async throws {
        let bench = try PublisherBench()
        var decoder = try VP8Decoder()
        let before = try #require(try bench.pass(picture(96, 64, at: 0)))
        #expect(top(try decode(before, with: &decoder)) == [false, true])
        bench.publisher.setTransform(transform(isMirrored: true))
        let mirrored = try #require(try bench.pass(picture(96, 64, at: 1)))
        #expect(!mirrored.header.isKeyframe)
        #expect(top(try decode(mirrored, with: &decoder)) == [true, false])
        // Turned by a quarter, the bright half is below, unless the picture is mirrored then, which does not move it.
        bench.publisher.setTransform(transform(.clockwise270, crop: Dimensions(width: 64, height: 32)))
        var index = 2
        let turned = try decode(try bench.passSome(from: &index, 96, 64), with: &decoder)
        #expect(turned.dimensions == Dimensions(width: 32, height: 64) && top(turned) == [true, true])
        #expect(bench.publisher.dimensions == turned.dimensions)
        await bench.publisher.stop()
    }

    // What stood still already was left as it was, and the rest was mirrored.
    @Test("A still picture that the source repeats is changed as a whole", arguments: [false, true])
    func stillScreen(isTurned: Bool) async throws {
        let bench = try PublisherBench(isScreencast: true)
        var decoder = try VP8Decoder()
        var frame = picture(96, 64, at: 0)
        #expect(top(try decode(try #require(try bench.pass(frame)), with: &decoder)) == [false, true])
        frame.isRepeat = true
        var index = 0
        func pass() throws -> FrameAssembler.Frame {
            index += 1
            frame.timestamp = timestamp(at: index)
            return try #require(try bench.pass(frame))
        }
        for _ in 0..<20 { _ = try decode(try pass(), with: &decoder) }
        bench.publisher.setTransform(isTurned ? transform(.half) : transform(isMirrored: true))
        bench.publisher.showPresentShape()
        let changed = try pass()
        #expect(!changed.header.isKeyframe && !changed.header.isRepeat)
        #expect(top(try decode(changed, with: &decoder)) == [true, false])
        // The next one is a repeat again.
        #expect(try pass().header.isRepeat)
        await bench.publisher.stop()
    }

    @Test("The last picture of a source that gives no other one is shown again in the new way")
    func silentSource() async throws {
        let bench = try PublisherBench()
        var decoder = try VP8Decoder()
        _ = try decode(try #require(try bench.pass(picture(96, 64, at: 0))), with: &decoder)
        /// The next frame that is no repeat, which comes by itself.
        func changed() async throws -> VideoFrame {
            var changed: VideoFrame?
            try await eventually("the picture in another way") {
                for frame in try bench.send() {
                    let shown = try decode(frame, with: &decoder)
                    if !frame.header.isRepeat { changed = shown }
                }
                return changed != nil
            }
            return try #require(changed)
        }
        bench.publisher.setTransform(transform(isMirrored: true))
        bench.publisher.showPresentShape()
        #expect(top(try await changed()) == [true, false])
        let size = Dimensions(width: 48, height: 32)
        bench.publisher.onVideoFormatRequest(VideoFormatRequest(dimensions: size))
        let sized = try await changed()
        #expect(sized.dimensions == size && bench.publisher.dimensions == size)
        await bench.publisher.stop()
    }

    @Test("A requested size is that of the picture before it is turned")
    func requestedSize() async throws {
        let bench = try PublisherBench()
        bench.publisher.setTransform(transform(.clockwise90, crop: Dimensions(width: 40, height: 20)))
        bench.publisher.onVideoFormatRequest(VideoFormatRequest(dimensions: Dimensions(width: 48, height: 32)))
        bench.deliver(picture(96, 64))
        #expect(bench.publisher.dimensions == Dimensions(width: 20, height: 40))
        bench.publisher.setTransform(transform(.clockwise90))
        bench.deliver(picture(96, 64, at: 1))
        #expect(bench.publisher.dimensions == Dimensions(width: 32, height: 48))
        await bench.publisher.stop()
    }

    @Test("With a tag, the pictures are cropped here, and turned and mirrored by the subscribers")
    func tagged() async throws {
        var options = VideoPublishOptions()
        options.orientation = .tagged
        let bench = try PublisherBench(options: options)
        bench.publisher.setTransform(transform(.clockwise90, isMirrored: true, crop: Dimensions(width: 64, height: 32)))
        let sent = try #require(try bench.pass(picture(96, 64)))
        let bytes = sent.bytes
        let keyframe = TrackCodec.forPublishing.keyframeDimensions(bytes.span.bytes)
        #expect(keyframe == Dimensions(width: 64, height: 32))
        #expect(sent.extensions.rotation == .clockwise90 && sent.extensions.isMirrored)
        #expect(bench.publisher.dimensions == Dimensions(width: 32, height: 64))
        await bench.publisher.stop()
    }

    @Test("A slate is neither turned nor mirrored, so that it can be read")
    func slate() async throws {
        let bench = try PublisherBench()
        bench.publisher.setTransform(transform(.half, isMirrored: true, crop: Dimensions(width: 48, height: 32)))
        var slate = picture(96, 64)
        slate.isSubstitute = true
        var decoder = try VP8Decoder()
        let shown = try decode(try #require(try bench.pass(slate)), with: &decoder)
        #expect(shown.dimensions == Dimensions(width: 48, height: 32), "it is scaled and not cropped")
        let whole = shown.buffer.withPlanes { luma, _, _ in luma[30 * shown.buffer.lumaStride + 4] < 80 }
        #expect(whole && top(shown) == [false, true])
        await bench.publisher.stop()
    }

    // A crop of another shape cut off what the slate says. After a quarter turn the slate had another size than the
    // pictures: two changes of size in each outage.
    @Test(
        "A slate has the size of the pictures and is whole, whatever the crop and the turn",
        arguments: [nil, (100, 480), (320, 240), (640, 100), (102, 50), (16, 16)],
        VideoRotation.allCases
    )
    func wholeSlate(crop: (width: Int, height: Int)?, rotation: VideoRotation) {
        var shape = PictureShape()
        shape.transform.crop = crop.map { Dimensions(width: $0.width, height: $0.height) }
        shape.transform.rotation = rotation
        let picture = shape.tagged(picture(640, 480))
        let size = shape.sizing(of: picture).outputDimensions(for: picture.uprightDimensions)
        // White in the middle of grey, and black in its corners but the first.
        var slate = VideoFrame(
            buffer: VideoBuffer(dimensions: Dimensions(width: 640, height: 480)),
            timestamp: timestamp(at: 0)
        )
        slate.isSubstitute = true
        slate.buffer.withMutablePlanes { luma, chromaU, chromaV in
            for index in luma.indices {
                let (row, column) = (index / slate.buffer.lumaStride, index % slate.buffer.lumaStride)
                luma[index] = row < 240 && column < 320 ? 100 : 200
            }
            chromaU.update(repeating: 90)
            chromaV.update(repeating: 140)
        }
        let shown = shape.tagged(slate)
        #expect(shown.isSubstitute && shown.rotation == .none && !shown.isMirrored)
        #expect(shown.dimensions == size && shape.sizing(of: shown).outputDimensions(for: size) == size)
        // Wherever it is, it has its four quarters, and the rest has the colour of the first one.
        shown.buffer.withPlanes { luma, chromaU, chromaV in
            var bright = 0
            for row in 0..<size.height {
                for column in 0..<size.width where luma[row * shown.buffer.lumaStride + column] > 150 { bright += 1 }
            }
            let whole = Dimensions(width: 640, height: 480).scaledDown(toFit: size).area
            // Sides are even ones.
            #expect(abs(bright - whole * 3 / 4) <= whole / 4 + 4, "\(bright) of \(whole)")
            #expect(abs(Int(chromaU[0]) - 90) <= 4 && abs(Int(chromaV[0]) - 140) <= 4, "\(chromaU[0]) \(chromaV[0])")
        }
    }

    @Test("The packets of frames that are compressed already say how to turn and mirror them")
    func relayed() async throws {
        let bench = try PublisherBench(isRelaying: true)
        bench.publisher.setTransform(transform(.clockwise90, isMirrored: true, crop: Dimensions(width: 8, height: 8)))
        var frame = bareFrame(0, key: true, size: 300).frame
        frame.info.dimensions = Dimensions(width: 64, height: 48)
        frame.tags.rotation = .clockwise90
        bench.publisher.onEncodedFrame(frame)
        wait { bench.isSettled }
        let sent = try #require(try bench.send().first)
        #expect(sent.extensions.rotation == .half && sent.extensions.isMirrored)
        #expect(bench.publisher.dimensions == Dimensions(width: 64, height: 48))
        await bench.publisher.stop()
    }

    @Test("A crop of a picture that is too large to be sent shows the same part of it, smaller")
    func limited() {
        let limit = Dimensions(width: 64, height: 48)
        let chain = ScalingChain(encodings: 1, limit: limit)
        let frame = picture(256, 192)
        let sizing = FrameTransform(crop: Dimensions(width: 128, height: 96))
        let size = chain.largestDimensions(of: frame, sizing: sizing)
        #expect(size == limit)
        let made = chain.picture(frame, sizing: sizing, dimensions: size, for: 0)
        // The detail is on the diagonal of the captured picture, and so on that of the part.
        let expected = FrameScaler().scale(FrameScaler().apply(sizing, to: frame), to: limit)
        #expect(made.dimensions == limit)
        #expect(zip(luma(made), luma(expected)).allSatisfy { abs(Int($0) - Int($1)) <= 2 })
    }

    @Test("A track has its transform from before its publication on, and keeps it in the next one")
    func lifetime() async throws {
        let server = try RelayServer.start()
        defer { server.stop() }
        let room = try await RoomClient.connect(options: ConnectOptions(roomName: "lab", of: server))
        let source = PushedSource()
        let track = LocalVideoTrack(source: source)
        track.transform = transform(.clockwise90)
        for rotation in [VideoRotation.clockwise90, .none] {
            let publishing = Task { try await room.localParticipant.publish(track) }
            try await eventually("a picture is taken") { source.write(picture(64, 48)) }
            try await publishing.value
            let size = Dimensions(width: 64, height: 48)
            #expect(track.dimensions == (rotation == .none ? size : size.transposed))
            track.transform.rotation = .none
            try await eventually("the next picture is as captured") {
                source.write(picture(64, 48))
                return track.dimensions == size
            }
            await room.localParticipant.unpublish(track)
        }
        await room.disconnect()
    }

    // The event of the new size kept the track, which kept the queue of the events.
    @Test("A track whose change of size nobody hears of is freed after its session")
    func freed() async throws {
        let server = try RelayServer.start()
        defer { server.stop() }
        weak var freed: LocalVideoTrack?
        do {
            let room = try await RoomClient.connect(options: ConnectOptions(roomName: "lab", of: server))
            let source = PushedSource()
            let track = LocalVideoTrack(source: source)
            freed = track
            let publishing = Task { try await room.localParticipant.publish(track) }
            try await eventually("a picture is taken") { source.write(picture(64, 48)) }
            try await publishing.value
            try await eventually("the size is another one") {
                source.write(picture(48, 64))
                return track.dimensions == Dimensions(width: 48, height: 64)
            }
            await room.disconnect()
        }
        let end = ContinuousClock.now + .seconds(20)
        while freed != nil, ContinuousClock.now < end { try await Task.sleep(for: .milliseconds(10)) }
        #expect(freed == nil)
    }
}
