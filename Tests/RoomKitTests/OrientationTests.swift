import Glibc
import MediaCore
import RoomProtocol
import TestTools
import Testing
import Threading
import VideoProcessing

@testable import RoomKit

@Suite("Orientation and metadata", .timeLimit(.minutes(3)))
struct OrientationTests {
    /// Publishes one picture, turned and mirrored by `frame`, and shows it to a subscriber.
    private func pass(
        _ frame: VideoFrame,
        _ orientation: VideoPublishOptions.Orientation
    ) async throws -> (sent: FrameAssembler.Frame, shown: VideoFrame, publisher: VideoPublisher) {
        var options = VideoPublishOptions()
        options.orientation = orientation
        let bench = try PublisherBench(options: options)
        let sent = try #require(try bench.pass(frame))
        await bench.publisher.stop()
        let track = remoteTrack()
        let renderer = NotingRenderer()
        track.addRenderer(renderer)
        let receiver = try VideoReceiver(
            track: track,
            codec: .forPublishing,
            clock: ClockBox(),
            start: .init(catchUpThrough: nil),
            subscribed: MonotonicClock.now,
            // A picture whose decoding takes long, as when this process is stopped, is not shown.
            now: { timestamp(at: 0) }
        )
        receiver.receive(sent, at: MonotonicClock.now)
        wait { renderer.count == 1 }
        await receiver.stop()
        return (sent, try #require(renderer.frames.withLock { $0.first }), bench.publisher)
    }

    /// Whether it is bright at the top left, top right, bottom left and bottom right.
    private func corners(_ frame: VideoFrame) -> [Bool] {
        let (right, bottom) = (frame.dimensions.width - 8, frame.dimensions.height - 8)
        return [(7, 7), (right, 7), (7, bottom), (right, bottom)].map { column, row in
            frame.buffer.withPlanes { luma, _, _ in luma[row * frame.buffer.lumaStride + column] > 160 }
        }
    }

    @Test(
        "A subscriber sees the same upright picture, whoever turns and mirrors it",
        arguments: VideoRotation.allCases,
        [false, true]
    )
    func upright(rotation: VideoRotation, isMirrored: Bool) async throws {
        var frame = picture(96, 64, rotation: rotation)
        frame.isMirrored = isMirrored
        let captured = Dimensions(width: 96, height: 64)
        let upright = rotation.swapsDimensions ? captured.transposed : captured
        for orientation in VideoPublishOptions.Orientation.allCases {
            let (sent, shown, publisher) = try await pass(frame, orientation)
            #expect(shown.dimensions == upright && shown.isUpright)
            #expect(publisher.dimensions == upright)
            // The right half is bright before turning.
            let expected: [Bool] =
                switch (rotation, isMirrored) {
                case (.none, false), (.half, true): [false, true, false, true]
                case (.none, true), (.half, false): [true, false, true, false]
                case (.clockwise90, _): [false, false, true, true]
                case (.clockwise270, _): [true, true, false, false]
                }
            #expect(corners(shown) == expected)
            let isTagged = orientation == .tagged
            #expect(sent.extensions.rotation == (isTagged ? rotation : .none))
            #expect(sent.extensions.isMirrored == (isTagged && isMirrored))
            let bytes = sent.bytes
            let keyframe = TrackCodec.forPublishing.keyframeDimensions(bytes.span.bytes)
            #expect(keyframe == (isTagged ? captured : upright))
        }
    }

    @Test("A size that is requested is that of the upright picture, tagged or not", arguments: [true, false])
    func requestedSize(isTagged: Bool) {
        let chain = ScalingChain(
            encodings: 1,
            limit: Dimensions(width: 640, height: 640),
            keepsOrientation: isTagged
        )
        let frame = picture(160, 96, rotation: .clockwise90)
        let sizing = FrameTransform(size: Dimensions(width: 48, height: 80))
        let size = chain.largestDimensions(of: frame, sizing: sizing)
        let made = chain.picture(frame, sizing: sizing, dimensions: size, for: 0)
        #expect(made.dimensions == size && made.uprightDimensions == Dimensions(width: 48, height: 80))
        #expect(made.rotation == (isTagged ? .clockwise90 : .none))
    }

    /// Publishes pictures that are turned by `rotation`, until one is sent in the upright size `expected`; returns the
    /// last size that was sent.
    private func publish(
        to bench: PublisherBench,
        from index: inout Int,
        rotation: VideoRotation,
        until expected: Dimensions
    ) throws -> Dimensions? {
        var last: Dimensions?
        for _ in 0..<1500 where last != expected {
            usleep(10_000)
            index += 1
            bench.publisher.onVideoFrame(picture(320, 240, at: index, rotation: rotation))
            for frame in try bench.send() {
                let bytes = frame.bytes
                guard let size = TrackCodec.forPublishing.keyframeDimensions(bytes.span.bytes) else { continue }
                last = frame.extensions.rotation.swapsDimensions ? size.transposed : size
            }
        }
        return last
    }

    // The wish limited the picture as it lay, so that one of 120x160 made 90x120 of a turned picture.
    @Test(
        "Subscribers wish for a size of the upright picture, tagged or not, and a turn in mid-stream changes its meaning",
        arguments: VideoPublishOptions.Orientation.allCases
    )
    func wishedSize(orientation: VideoPublishOptions.Orientation) async throws {
        var options = VideoPublishOptions()
        options.orientation = orientation
        let bench = try PublisherBench(options: options, isWanted: false)
        bench.publisher.setWanted([WantedLayer(simulcastLayer: 0, width: 120, height: 160)])
        let (tall, wide) = (Dimensions(width: 120, height: 160), Dimensions(width: 120, height: 90))
        var index = 0
        #expect(try publish(to: bench, from: &index, rotation: .clockwise90, until: tall) == tall)
        #expect(try publish(to: bench, from: &index, rotation: .none, until: wide) == wide)
        #expect(try publish(to: bench, from: &index, rotation: .clockwise270, until: tall) == tall)
        await bench.publisher.stop()
    }

    // The size was that of the picture as it lay, so that it was wrong throughout, and a turn was no change.
    @Test("The size of what is received is that of the upright picture, and a turn in mid-stream changes it")
    func receivedSize() async throws {
        let (wide, tall) = (Dimensions(width: 64, height: 48), Dimensions(width: 48, height: 64))
        var options = VideoPublishOptions()
        options.orientation = .tagged
        let bench = try PublisherBench(options: options)
        let track = remoteTrack(dimensions: tall)
        let (log, reported) = (NotingSink(), Monitor<[Dimensions]>([]))
        track.addSink(log)
        let receiver = try VideoReceiver(
            track: track,
            codec: .forPublishing,
            clock: ClockBox(),
            start: .init(catchUpThrough: nil),
            subscribed: MonotonicClock.now
        )
        track.beginSubscription { change in
            if case .resized(let size) = change { reported.withLock { $0.append(size) } }
        }
        let turns: [(VideoRotation, Dimensions, [Dimensions])] = [
            (.clockwise90, tall, []), (.clockwise270, tall, []), (.none, wide, [wide]), (.half, wide, [wide]),
            (.clockwise90, tall, [wide, tall]),
        ]
        for (index, (rotation, size, reports)) in turns.enumerated() {
            let sent = try #require(try bench.pass(picture(64, 48, at: index, rotation: rotation)))
            receiver.receive(sent, at: MonotonicClock.now)
            wait { log.sizes.withLock { $0.count } == index + 1 }
            #expect(track.dimensions == size && track.statistics.dimensions == size)
            #expect(bench.publisher.dimensions == size)
            #expect(reported.withLock { $0 } == reports)
        }
        // What was on its way is decoded when the subscription has ended, and an application hears nothing of it.
        track.endSubscription()
        let sent = try #require(try bench.pass(picture(64, 48, at: turns.count, rotation: .none)))
        receiver.receive(sent, at: MonotonicClock.now)
        wait { log.sizes.withLock { $0.count } == turns.count + 1 }
        #expect(track.dimensions == wide && reported.withLock { $0 } == [wide, tall])
        // After the next beginning it hears of the size that came meanwhile.
        track.beginSubscription { change in
            if case .resized(let size) = change { reported.withLock { $0.append(size) } }
        }
        let last = try #require(try bench.pass(picture(64, 48, at: turns.count + 1, rotation: .none)))
        receiver.receive(last, at: MonotonicClock.now)
        wait { log.sizes.withLock { $0.count } == turns.count + 2 }
        #expect(reported.withLock { $0 } == [wide, tall, wide])
        await receiver.stop()
        await bench.publisher.stop()
        #expect(track.statistics.sizeChanges == 3)
        // A file keeps the frames as they were encoded.
        #expect(log.sizes.withLock { $0 } == Array(repeating: wide, count: turns.count + 2))
    }

    @Test("Metadata reaches the renderer with its own frame, also if the next one repeats the picture")
    func metadata() async throws {
        let metadata = try FrameMetadata(Array("depth=3".utf8))
        var frame = picture(96, 64)
        frame.metadata = metadata
        let (sent, shown, _) = try await pass(frame, .applied)
        #expect(sent.extensions.metadata == metadata && shown.metadata == metadata)

        let bench = try PublisherBench()
        for text in ["one", "two"] {
            frame.metadata = try FrameMetadata(Array(text.utf8))
            #expect(try bench.pass(frame)?.extensions.metadata == frame.metadata)
        }
        frame.metadata = nil
        #expect(try bench.pass(frame)?.extensions == PacketExtensions())
        await bench.publisher.stop()
    }
}

/// Notes the sizes that a log would get.
private final class NotingSink: ReceivedFrameSink {
    let sizes = Monitor<[Dimensions?]>([])
    var wantsPictures: Bool { false }
    func begin(with earlier: [ReceivedFrame]) {}
    func receive(_ frame: ReceivedFrame) { sizes.withLock { $0.append(frame.dimensions) } }
    func end() {}
}
