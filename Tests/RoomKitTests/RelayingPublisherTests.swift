import Foundation
import MediaCore
import RoomProtocol
import Synchronization
import TestTools
import Testing
import Threading

@testable import RoomKit

@Suite("Publisher of frames that are compressed already", .timeLimit(.minutes(2)))
struct RelayingPublisherTests {
    /// A frame of the source, as `EncodedEntrance` makes it.
    private func frame(_ index: Int, key: Bool = false, size: Int = 300) -> EncodedFrame {
        var frame = bareFrame(UInt32(index), key: key, size: size).frame
        frame.info.timestamp = MonotonicClock.now
        frame.info.dimensions = key ? Dimensions(width: 64, height: 48) : Dimensions(width: 0, height: 0)
        return frame
    }

    @Test("Frames come out as they went in, numbered one by one, all of layer 0")
    func passing() async throws {
        let bench = try PublisherBench(isRelaying: true)
        let bytes = try await encodedFrames(20).map(\.bytes)
        var sent: [FrameAssembler.Frame] = []
        for (index, bytes) in bytes.enumerated() {
            let buffer = PacketBuffer(capacity: bytes.count)
            buffer.count = bytes.count
            buffer.withMutableBytes { $0.copy(bytes.span.bytes, at: 0) }
            var frame = EncodedFrame(
                info: frame(index, key: index == 0).info,
                buffer: buffer,
                range: 0..<bytes.count
            )
            frame.info.number = 77
            bench.publisher.onEncodedFrame(frame)
            wait { bench.isSettled }
            sent += try bench.send()
        }
        #expect(sent.map(\.bytes) == bytes)
        #expect(sent.map(\.header.frameNumber) == (0..<20).map { UInt32($0) })
        #expect(sent.map(\.header.baseLayerIndex) == (0..<20).map { UInt16($0) })
        #expect(sent.map(\.header.isKeyframe) == [true] + Array(repeating: false, count: 19))
        #expect(sent.allSatisfy { $0.header.temporalLayer == 0 })
        #expect(bench.publisher.dimensions == Dimensions(width: 64, height: 48))
        await bench.publisher.stop()
    }

    // The first such stamp was kept, and all later frames got it: viewers saw one second of two.
    @Test("Frames that are stamped in the future get the time at which they come")
    func future() async throws {
        let bench = try PublisherBench(isRelaying: true)
        let source = PushedVP8Source()
        source.sinks.add(bench.publisher)
        var times: [RoomTime] = []
        for frame in try await encodedFrames(3) {
            try source.write(frame.bytes.span.bytes, timestamp: MonotonicClock.now + .seconds(3600))
            wait { bench.isSettled }
            times += try bench.send().map(\.header.captureTime)
            usleep(2000)
        }
        #expect(times.count == 3 && Set(times).count == 3, "\(times)")
        #expect(source.writeStatistics.timestampsReplaced == 3)
        await bench.publisher.stop()
    }

    // An encoder that is started anew may count from another moment. All its frames had one time for as long as it is
    // behind.
    @Test("Frames whose timestamps jump back keep their distances")
    func past() async throws {
        let bench = try PublisherBench(isRelaying: true)
        let source = PushedVP8Source()
        source.sinks.add(bench.publisher)
        let start = MonotonicClock.now - .seconds(5)
        var times: [Int64] = []
        for (index, frame) in try await encodedFrames(6).enumerated() {
            let jump: Duration = index < 3 ? .zero : .seconds(-3)
            try source.write(frame.bytes.span.bytes, timestamp: start + .milliseconds(40 * index) + jump)
            wait { bench.isSettled }
            times += try bench.send().map { Int64($0.header.captureTime.microseconds) }
        }
        #expect(zip(times, times.dropFirst()).map { ($1 - $0) / 1000 } == [40, 40, 0, 40, 40])
        #expect(source.writeStatistics.timestampsReplaced == 3)
        await bench.publisher.stop()
    }

    // Such frames have no number, so nobody else misses them. An encoder that makes keyframes only on request went on
    // without one, and all viewers stayed frozen.
    @Test("After a frame that was refused, the encoder is asked for a keyframe, and not for each frame that is dropped")
    func refused() async throws {
        let requests = Atomic(0)
        let bench = try PublisherBench(isRelaying: true)
        let source = PushedVP8Source { _ = requests.add(1, ordering: .relaxed) }
        let frames = try await encodedFrames(3).map(\.bytes)
        let (key, delta, lost) = (frames[0], frames[1], frames[2])
        let isTaken = try source.write(key.span.bytes)
        #expect(!isTaken)
        source.sinks.add(bench.publisher)
        try source.write(key.span.bytes)
        try source.write(delta.span.bytes)
        let early = requests.load(ordering: .relaxed)
        #expect(early == 0)
        let began = MonotonicClock.now
        let refused = [UInt8](repeating: 0, count: 1)
        #expect(throws: VP8SourceError.self) { try source.write(refused.span.bytes) }
        for _ in 0..<1000 {
            let isTaken = try source.write(lost.span.bytes)
            #expect(!isTaken)
        }
        let most = 1 + Int(MonotonicClock.now.duration(since: began).seconds)
        let asked = requests.load(ordering: .relaxed)
        #expect((1...most).contains(asked))
        await bench.publisher.stop()
    }

    // It was asked on the room's loop, where the application's answer held everything up, and only once.
    @Test("A source is asked for its first keyframe until it has come, and not on the thread that publishes")
    func firstKeyframe() async throws {
        let requests = Atomic(0)
        let isHeldUp = Atomic(false)
        let publisher = VideoPublisher(options: VideoPublishOptions(), isRelaying: true) {
            if Thread.isMainThread { isHeldUp.store(true, ordering: .releasing) }
            _ = requests.add(1, ordering: .acquiringAndReleasing)
        }
        let size = Task { @MainActor in await publisher.firstDimensions(within: .seconds(60)) }
        try await eventually("it is asked again") { requests.load(ordering: .acquiring) >= 2 }
        let wasHeldUp = isHeldUp.load(ordering: .acquiring)
        #expect(!wasHeldUp)
        publisher.onEncodedFrame(frame(0, key: true))
        #expect(await size.value == Dimensions(width: 64, height: 48))
        await publisher.stop()
    }

    @Test("Frames that are not read are given up, and the next frame that goes out is the source's next keyframe")
    func notRead() async throws {
        let requests = Atomic(0)
        let bench = try PublisherBench(isRelaying: true) { _ = requests.add(1, ordering: .relaxed) }
        bench.publisher.onEncodedFrame(frame(0, key: true))
        var index = 1
        while bench.publisher.statistics.framesDropped[.network] < 5, index < 4000 {
            bench.publisher.onEncodedFrame(frame(index))
            index += 1
            usleep(10_000)
        }
        wait { requests.load(ordering: .relaxed) > 0 }
        // The two frames of the queue may still go out.
        let before = try bench.send(at: MonotonicClock.now).map(\.header.frameNumber)
        #expect(before.count <= 2)
        for _ in 0..<3 {
            bench.publisher.onEncodedFrame(frame(index))
            index += 1
        }
        let keyframe = UInt32(index)
        bench.publisher.onEncodedFrame(frame(index, key: true))
        var sent: [UInt32] = []
        wait {
            sent += ((try? bench.send()) ?? []).map(\.header.frameNumber)
            return !sent.isEmpty
        }
        #expect(sent.first == keyframe)
        await bench.publisher.stop()
        #expect(bench.isSettled)
        #expect(bench.publisher.statistics.layers[0].qualityLimitation == .other)
    }

    @Test("Every frame is sent or dropped for a reason, at whatever moment the track is stopped", arguments: 0..<20)
    func accounting(round: Int) async throws {
        let bench = try PublisherBench(isRelaying: true)
        let delivered = Atomic(0)
        let isOver = Atomic(false)
        let source = try WorkerThread(name: "source") {
            var index = 0
            while !isOver.load(ordering: .acquiring) {
                bench.publisher.onEncodedFrame(frame(index, key: index % 10 == 0))
                index += 1
                delivered.store(index, ordering: .releasing)
                // Without this, twenty of these threads would take the processor from all other tests.
                usleep(100)
            }
        }
        wait { delivered.load(ordering: .acquiring) > round * 37 }
        if round % 2 == 0 { _ = try? bench.send() }
        if round % 3 == 0 { bench.publisher.setEnabled(false) }
        if round % 5 == 0 { bench.publisher.setWanted([]) }
        if round % 6 == 0 { bench.publisher.setEnabled(true) }
        await bench.publisher.stop()
        let count = delivered.load(ordering: .acquiring)
        wait { delivered.load(ordering: .acquiring) > count + 3 }
        isOver.store(true, ordering: .releasing)
        source.join()
        let statistics = bench.publisher.statistics
        #expect(statistics.framesCaptured == delivered.load(ordering: .acquiring))
        #expect(statistics.framesCaptured == statistics.framesEncoded + statistics.framesDropped.total)
    }

    @Test("Frames that come before the server has accepted the track are dropped if it never does")
    func neverAccepted() async throws {
        let publisher = VideoPublisher(options: VideoPublishOptions(), isRelaying: true)
        publisher.onEncodedFrame(frame(0, key: true))
        publisher.onEncodedFrame(frame(1))
        #expect(publisher.dimensions == Dimensions(width: 64, height: 48))
        await publisher.stop()
        publisher.onEncodedFrame(frame(2))
        let statistics = publisher.statistics
        #expect(statistics.framesCaptured == 3 && statistics.framesDropped[.late] == 3)
    }
}
