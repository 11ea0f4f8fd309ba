import Glibc
import MediaCore
import RoomProtocol
import Synchronization
import TestTools
import Testing
import Threading
import VP8Codec

@testable import RoomKit

@Suite("Video publisher", .timeLimit(.minutes(2)))
struct VideoPublisherTests {
    private func bitrate(_ kilobits: Int) -> VideoPublishOptions {
        var options = VideoPublishOptions()
        options.maxBitrate = .kilobitsPerSecond(kilobits)
        return options
    }

    @Test("Every picture is encoded or dropped for a reason, at whatever moment it is stopped", arguments: 0..<20)
    func accounting(round: Int) async throws {
        let bench = try PublisherBench()
        let delivered = Atomic(0)
        let isOver = Atomic(false)
        let source = try WorkerThread(name: "source") {
            var index = 0
            while !isOver.load(ordering: .acquiring) {
                bench.publisher.onVideoFrame(picture(64, 48, at: index))
                index += 1
                delivered.store(index, ordering: .releasing)
            }
        }
        wait { delivered.load(ordering: .acquiring) > round * 7 }
        // With every other round something that is sent meanwhile.
        if round % 2 == 0 { _ = try? bench.send() }
        await bench.publisher.stop()
        wait { delivered.load(ordering: .acquiring) > round * 7 + 3 }
        isOver.store(true, ordering: .releasing)
        source.join()
        let statistics = bench.publisher.statistics
        #expect(statistics.framesCaptured - statistics.framesRepeated == delivered.load(ordering: .acquiring))
        #expect(statistics.framesCaptured == statistics.framesEncoded + statistics.framesDropped.total)
    }

    @Test("A track that nobody receives is not encoded, and the first picture that somebody receives is a keyframe")
    func wanted() async throws {
        let bench = try PublisherBench(isWanted: false)
        for index in 0..<3 { #expect(try bench.pass(picture(64, 48, at: index)) == nil) }
        #expect(bench.publisher.statistics.framesDropped[.notWanted] == 3)
        bench.publisher.setWanted(everything)
        #expect(try keys(bench, 3..<6) == [true, false, false])
        bench.publisher.setWanted([])
        #expect(try bench.pass(picture(64, 48, at: 6)) == nil)
        bench.publisher.setWanted(everything)
        var index = 7
        #expect(try bench.passSome(from: &index).header.isKeyframe)
        await bench.publisher.stop()
        #expect(bench.publisher.statistics.keyframes == 2)
        #expect(bench.publisher.statistics.framesDropped[.notWanted] == 4)
    }

    // Whoever came saw nothing before the next picture, which may never come.
    @Test("The last picture is shown to one who comes later, unless the source has ended", arguments: [false, true])
    func shownAgain(hasEnded: Bool) async throws {
        let bench = try PublisherBench(isWanted: false)
        bench.publisher.onVideoFrame(picture(64, 48, at: 0))
        if hasEnded { bench.publisher.sourceEnded() }
        bench.publisher.setWanted(everything)
        if hasEnded {
            try await Task.sleep(for: RepeatSchedule.patience * 2)
        } else {
            wait { bench.publisher.statistics.framesEncoded >= 1 }
        }
        await bench.publisher.stop()
        let statistics = bench.publisher.statistics
        #expect((statistics.framesEncoded == 0) == hasEnded)
        #expect(statistics.framesRepeated == statistics.framesCaptured - 1)
        #expect(statistics.framesCaptured == statistics.framesEncoded + statistics.framesDropped.total)
    }

    // The repeat was no keyframe yet, and nothing looked again.
    @Test("A keyframe that is asked for soon after another one comes, although the picture stands still")
    func keyframeOfStillPicture() async throws {
        let bench = try PublisherBench()
        let source = picture(64, 48, at: 0)
        bench.publisher.onVideoFrame(source)
        wait { bench.publisher.statistics.keyframes == 1 }
        try await Task.sleep(for: .milliseconds(300))
        bench.publisher.requestKeyframe()
        wait {
            // What was sent must be acknowledged before another frame may go out.
            _ = try? bench.send()
            return bench.publisher.statistics.keyframes == 2
        }
        await bench.publisher.stop()
    }

    @Test("After a repeat, pictures of a source whose clock went back keep the times between them")
    func clockBackAfterRepeat() async throws {
        let bench = try PublisherBench()
        bench.publisher.onVideoFrame(picture(64, 48, at: 100_000))
        wait { bench.publisher.statistics.framesRepeated >= 1 }
        wait { bench.isSettled }
        _ = try bench.send()
        var times: [Int64] = []
        var index = 0
        while times.count < 3 { times.append(try bench.passSome(from: &index).header.captureTime.microseconds) }
        #expect(zip(times, times.dropFirst()).allSatisfy { $1 >= $0 + 10_000 }, "\(times)")
        await bench.publisher.stop()
    }

    @Test("A picture that waits is dropped when nobody receives the track any more, and not sent later")
    func unwantedWhileWaiting() async throws {
        let bench = try PublisherBench()
        for index in 0..<2 { bench.deliver(picture(64, 48, at: index)) }
        bench.deliverInVain(picture(64, 48, at: 2))
        bench.publisher.setWanted([])
        wait { bench.isSettled }
        #expect(bench.publisher.statistics.framesDropped[.notWanted] == 1)
        #expect(try bench.send().count == 2)
        await bench.publisher.stop()
    }

    @Test("A picture that waits is dropped when the track is stopped", arguments: [true, false])
    func stoppedWhileWaiting(isPaused: Bool) async throws {
        let bench = try PublisherBench()
        for index in 0..<2 { bench.deliver(picture(64, 48, at: index)) }
        bench.deliverInVain(picture(64, 48, at: 2))
        if isPaused { bench.publisher.setEnabled(false) }
        await bench.publisher.stop()
        let statistics = bench.publisher.statistics
        #expect(bench.isSettled && statistics.framesDropped.total == 1 && statistics.framesEncoded == 2)
    }

    // There was none before the track was published, and none between two sessions.
    @Test("A preview of a track shows every picture as captured, although it is in no room")
    func preview() async throws {
        let source = HandSource()
        let track = LocalVideoTrack(source: source)
        let renderer = NotingRenderer()
        track.addRenderer(renderer)
        track.addRenderer(renderer)
        let start = MonotonicClock.now - .seconds(5)
        for index in 0..<3 {
            var picture = picture(64, 48, at: index, rotation: .clockwise90)
            picture.timestamp = start + .seconds(index)
            source.deliver(picture)
            wait { track.rendererStatistics(of: renderer)?.framesRendered == index + 1 }
        }
        #expect(track.removeRenderer(renderer)?.framesDropped == 0)
        #expect(source.sink == nil)
        source.deliver(picture(64, 48, at: 3))
        let frames = renderer.frames.withLock { $0 }
        #expect(frames.map(\.timestamp) == (0..<3).map { start + .seconds($0) })
        #expect(frames.allSatisfy { $0.rotation == .clockwise90 && $0.dimensions == Dimensions(width: 64, height: 48) })
    }

    @Test("A paused track goes on with a keyframe, and a keyframe request makes one as soon as one is allowed")
    func enabledAndRequested() async throws {
        let bench = try PublisherBench()
        #expect(try keys(bench, 0..<2) == [true, false])
        bench.publisher.setEnabled(false)
        #expect(try bench.pass(picture(64, 48, at: 2)) == nil)
        let resumed = MonotonicClock.now
        bench.publisher.setEnabled(true)
        var index = 3
        #expect(try bench.passSome(from: &index).header.isKeyframe)
        bench.publisher.requestKeyframe()
        var isFirst = true
        var isAnswered = false
        for _ in 0..<2000 where !isAnswered {
            bench.publisher.onVideoFrame(picture(64, 48, at: index))
            index += 1
            usleep(5000)
            // On a busy machine it is several at once.
            for frame in try bench.send() {
                isAnswered = isAnswered || frame.header.isKeyframe
                // The last one is too recent, and is not waited for, unless the time until the next one is over already.
                #expect(
                    !isFirst || !isAnswered || MonotonicClock.now.duration(since: resumed) >= .seconds(1),
                    "what follows the request must not wait for a keyframe"
                )
                isFirst = false
            }
        }
        #expect(isAnswered)
        await bench.publisher.announceEnabled()
        #expect(bench.announced.withLock { $0 } == 1 && bench.publisher.isSending)
        await bench.publisher.stop()
        #expect(bench.publisher.statistics.framesDropped[.notWanted] == 1)
        #expect(bench.publisher.statistics.keyframes == 3)
    }

    @Test("A source is asked to repeat a picture that stands still until it is sharp, and not for pictures that move")
    func stillPicture() async throws {
        let requests = Monitor(0)
        let bench = try PublisherBench(requestFrame: { requests.withLock { $0 += 1 } })
        for index in 0..<2 { _ = try bench.pass(picture(640, 480, at: index)) }
        var frame = picture(640, 480, at: 2)
        _ = try bench.pass(frame)
        // Nothing but the wish for the track, which came first.
        var asked = 1
        #expect(requests.withLock { $0 } == asked)
        for index in 2..<300 {
            (frame.timestamp, frame.isRepeat) = (timestamp(at: 2 * index), true)
            _ = try bench.pass(frame)
            if requests.withLock({ $0 }) == asked { break }
            asked = requests.withLock { $0 }
        }
        #expect(asked > 2 && asked < 290)
        #expect(bench.lane.counts.withLock { $0.last?.quantizer ?? 127 } < 20)
        await bench.publisher.stop()
    }

    private func keys(_ bench: PublisherBench, _ indices: Range<Int>) throws -> [Bool] {
        try indices.map { try #require(try bench.pass(picture(64, 48, at: $0))).header.isKeyframe }
    }

    @Test("While the connection takes nothing, the newest picture waits, and is encoded once there is room")
    func network() async throws {
        let bench = try PublisherBench()
        for index in 0..<2 { bench.deliver(picture(64, 48, at: index)) }
        for index in 2..<5 { bench.deliverInVain(picture(64, 48, at: index)) }
        #expect(bench.publisher.statistics.framesEncoded == 2)
        #expect(bench.publisher.statistics.framesDropped[.network] == 2)
        var frames = try bench.send()
        wait { bench.isSettled }
        frames += try bench.send()
        #expect(frames.count == 3)
        let next = try #require(frames.last)
        // What was dropped before it was encoded leaves no gap: no keyframe is needed.
        #expect(!next.header.isKeyframe && next.header.captureTime.microseconds == timestamp(at: 4).microseconds)
        #expect(bench.publisher.statistics.framesSent == 3)
        await bench.publisher.stop()
    }

    @Test(
        "The statistics tell what limits an encoding, and for how long",
        arguments: [
            (WantedLayer(simulcastLayer: 0, bitrate: 60_000), QualityLimitation.Reason.bandwidth),
            (WantedLayer(simulcastLayer: 0, width: 160, height: 120), .other), (WantedLayer(simulcastLayer: 0), .none),
        ]
    )
    func limitations(wanted: WantedLayer, reason: QualityLimitation.Reason) async throws {
        let bench = try PublisherBench(announced: Dimensions(width: 640, height: 480), isWanted: false)
        bench.publisher.setWanted([wanted])
        for index in 0..<500 {
            bench.publisher.onVideoFrame(picture(640, 480, at: index))
            usleep(10_000)
            let keyframes = try bench.send().filter(\.header.isKeyframe)
            for size in keyframes.map({ TrackCodec.forPublishing.keyframeDimensions($0.bytes.span.bytes) }) {
                #expect(size.map { $0.width <= wanted.width ?? 640 && $0.height <= wanted.height ?? 480 } == true)
            }
            let layer = bench.publisher.statistics.layers[0]
            if layer.qualityLimitation == reason, layer.qualityLimitationDurations[reason] ?? .zero > .zero { break }
        }
        await bench.publisher.stop()
        let layer = try #require(bench.publisher.statistics.layers.first)
        #expect(layer.qualityLimitation == reason)
        #expect(layer.qualityLimitationDurations[reason] ?? .zero > .zero)
    }

    @Test("A track tells what its source measured: the rate, the time and the delay")
    func captured() async throws {
        final class Capturer: CustomCapturer {
            let consumer = Monitor<VideoCaptureConsumer?>(nil)
            func initCapture() {}
            func startCapture(_ consumer: VideoCaptureConsumer) { self.consumer.withLock { $0 = consumer } }
            func stopCapture() {}
            func releaseCapture() {}
        }
        let capturer = Capturer()
        let track = LocalVideoTrack(source: CapturerSource(capturer))
        let bench = try PublisherBench()
        #expect(track.attach(bench.publisher) == nil)
        try await track.startSource(for: bench.publisher)
        let consumer = try #require(capturer.consumer.withLock { $0 })
        let start = MonotonicClock.now - .seconds(3)
        for index in 0..<30 {
            var frame = picture(64, 48)
            frame.timestamp = start + .milliseconds(40 * index)
            #expect(consumer.consume(frame))
        }
        let statistics = track.statistics
        #expect(statistics.framesCaptured - statistics.framesRepeated == 30)
        #expect(statistics.captureDuration == .milliseconds(40 * 29))
        #expect(abs((statistics.capturedFramesPerSecond ?? 0) - 25) < 0.5)
        // The first one is handed over 3 s after its stamp, and the last one, at once after it, 1.84 s after its own.
        #expect(statistics.captureDelay ?? .zero > .milliseconds(2400))
        await track.stopSource(for: bench.publisher)
        await bench.publisher.stop()
        #expect(track.statistics.captureDelay == statistics.captureDelay, "the counts are final")
    }

    @Test("After encoded frames were given up as too old, the next one is a keyframe")
    func expired() async throws {
        let bench = try PublisherBench()
        for index in 0..<2 { bench.deliver(picture(64, 48, at: index)) }
        #expect(try bench.send(at: MonotonicClock.now + .seconds(1)).isEmpty)
        #expect(bench.publisher.statistics.framesExpired == 2)
        var index = 2
        let next = try bench.passSome(from: &index)
        #expect(next.header.isKeyframe && next.header.frameNumber == 2)
        await bench.publisher.stop()
    }

    /// Lets the uplink learn that nothing is acknowledged; from then on it sends what the socket takes.
    private func awaitFixedPolicy(_ bench: PublisherBench) throws {
        var index = 0
        while bench.uplink.status(of: bench.lane.seat)?.path.mode != .unacknowledged {
            bench.publisher.onVideoFrame(picture(64, 48, at: index))
            index += 1
            usleep(5000)
            _ = try bench.send()
        }
        wait { bench.isSettled }
        _ = try bench.send()
    }

    @Test("Every packet of a large picture fits the wire, and all together are the frame")
    func chunks() async throws {
        let bench = try PublisherBench(options: bitrate(100_000), isAcknowledging: false)
        try awaitFixedPolicy(bench)
        let before = bench.publisher.statistics.bytesSent
        bench.deliver(noise(640, 480, at: 500))
        let frame = try #require(try bench.send().first)
        #expect(frame.range.count > 2 * WireFormat.maximumBinaryMessage.bytes)
        let packets = (frame.range.count + Packetizer.maximumPayload - 1) / Packetizer.maximumPayload
        let headers = packets * MediaPacketHeader.fixedLength
        #expect(bench.publisher.statistics.bytesSent - before == frame.range.count + headers)
        await bench.publisher.stop()
    }

    // It was reported for each picture.
    @Test("An encoding that fails all the time beside one that does not is reported once")
    func failingEncoding() {
        var errors = LaneErrors()
        let error = RoomError(.encodingFailed, "no memory")
        var isNew = errors.note(nil, of: 0)
        #expect(!isNew && errors.first == nil)
        let reports = (0..<30).count { _ in
            defer { _ = errors.note(nil, of: 0) }
            return errors.note(error, of: 1)
        }
        #expect(reports == 1 && errors.first == error)
        isNew = errors.note(nil, of: 1)
        #expect(!isNew && errors.first == nil)
        isNew = errors.note(error, of: 0)
        #expect(isNew)
    }

    @Test("Stopped, it leaves nothing behind, and a picture that comes later is counted")
    func freed() async throws {
        weak var publisher: VideoPublisher?
        do {
            let bench = try PublisherBench()
            publisher = bench.publisher
            bench.deliver(picture(64, 48))
            await bench.publisher.stop()
            await bench.publisher.stop()
            bench.publisher.onVideoFrame(picture(64, 48))
            #expect(bench.isSettled)
        }
        #expect(publisher == nil)
    }

    @Test("Waiting for the first picture can be given up")
    func givenUp() async {
        let publisher = VideoPublisher(options: VideoPublishOptions())
        async let dimensions = publisher.firstDimensions(within: .seconds(3600))
        publisher.giveUpWaiting()
        #expect(await dimensions == nil)
        await publisher.stop()
    }
}
