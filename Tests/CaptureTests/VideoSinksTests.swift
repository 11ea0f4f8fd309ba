import MediaCore
import Testing
import Threading

@testable import Capture

@Suite("The sinks of a source", .timeLimit(.minutes(1)))
struct VideoSinksTests {
    private final class PassiveSource: VideoSource {
        let sinks = VideoSinks()
    }

    /// Delivers frames with timestamps that can be true: the last one is of now.
    private func deliver(_ count: Int, every milliseconds: Int64 = 33, to sinks: VideoSinks) {
        let end = MonotonicClock.now
        for number in 0..<count {
            var frame = frame(atMilliseconds: 0)
            frame.timestamp = end - .milliseconds(Int64(count - 1 - number) * milliseconds)
            sinks.deliver(frame)
        }
    }

    // Viewers were told that the frames were as old as the machine has been up.
    @Test("A timestamp in the future or of long ago counts as now", arguments: [-1_000_000, 1_000_000])
    func wrongTimestamps(milliseconds: Int) {
        let source = PassiveSource()
        let sink = StampSink()
        source.sinks.add(sink)
        let before = MonotonicClock.now
        var frame = frame(atMilliseconds: 0)
        frame.timestamp = before + .milliseconds(milliseconds)
        source.sinks.deliver(frame)
        let stamps = sink.received.withLock { $0.timestamps }
        #expect(stamps.count == 1 && stamps.allSatisfy { $0 >= before && $0 <= MonotonicClock.now })
        #expect(source.captureStatistics.timestampsReplaced == 1)
    }

    // The second one took the first one's place.
    @Test("Each of several sinks gets every frame")
    func several() {
        let source = PassiveSource()
        let (first, second) = (StampSink(), StampSink())
        source.sinks.add(first)
        source.sinks.add(second)
        source.sinks.add(second)
        deliver(10, to: source.sinks)
        #expect(first.count == 10 && second.count == 10)
        source.sinks.remove(first)
        deliver(5, to: source.sinks)
        #expect(first.count == 10 && second.count == 15)
        #expect(source.captureStatistics.framesCaptured == 15)
    }

    @Test("Each sink has its own rate and its own counts, and captured = delivered + dropped for each")
    func ownRates() {
        let sinks = VideoSinks()
        let (all, some) = (StampSink(), StampSink())
        sinks.add(all)
        sinks.add(some)
        sinks.request(VideoFormatRequest(frameRate: FrameRate(10)), for: some)
        deliver(60, to: sinks)
        #expect(all.count == 60)
        #expect((19...21).contains(some.count))
        #expect(some.requests == [VideoFormatRequest(frameRate: FrameRate(10))] && all.requests.isEmpty)
        for sink in [all, some] {
            let counts = sinks.statistics(of: sink)
            #expect(counts.framesCaptured == 60)
            #expect(counts.framesDropped.total == counts.framesDropped[.notWanted])
            #expect(counts.framesCaptured == sink.count + counts.framesDropped.total)
        }
        #expect(sinks.statistics.framesDropped.total == 0)
        let final = sinks.remove(some)
        #expect(final.framesCaptured == 60 && sinks.statistics(of: some) == CaptureStatistics())
    }

    /// Keeps for each frame whether it is a repeat.
    private final class RepeatSink: VideoSink {
        let repeats = Monitor<[Bool]>([])
        var sourceRequirements: VideoFormatRequest { VideoFormatRequest() }
        func onVideoFormatRequest(_ request: VideoFormatRequest) {}
        func onVideoFrame(_ frame: VideoFrame) { repeats.withLock { $0.append(frame.isRepeat) } }
    }

    // A reader that passes over repeats did not see that the screen had changed.
    @Test("A repeat is new to who did not get the picture")
    func missedChange() async {
        let sinks = VideoSinks()
        let (all, some) = (RepeatSink(), RepeatSink())
        sinks.add(all)
        sinks.add(some)
        sinks.request(VideoFormatRequest(frameRate: FrameRate(1)), for: some)
        let begin = MonotonicClock.now - .seconds(5)
        func deliver(at milliseconds: Int64, isRepeat: Bool) {
            var frame = frame(atMilliseconds: 0)
            (frame.timestamp, frame.isRepeat) = (begin + .milliseconds(milliseconds), isRepeat)
            sinks.deliver(frame)
        }
        deliver(at: 0, isRepeat: false)
        deliver(at: 200, isRepeat: false)
        deliver(at: 1200, isRepeat: true)
        deliver(at: 2400, isRepeat: true)
        #expect(all.repeats.withLock { $0 } == [false, false, true, true])
        #expect(some.repeats.withLock { $0 } == [false, false, true])

        let slot = NewestFrameSlot(includesSubstitutes: false)
        var picture = frame(atMilliseconds: 0)
        func read(after repeats: [Bool]) async -> Bool? {
            for isRepeat in repeats {
                picture.isRepeat = isRepeat
                slot.onVideoFrame(picture)
            }
            return await slot.next()?.isRepeat
        }
        #expect(await read(after: [false, true, true]) == false)
        #expect(await read(after: [true, true]) == true)
    }

    @Test("A sink that comes later counts from then on, and hears what was asked for before")
    func latecomer() {
        let source = PassiveSource()
        let (first, late) = (StampSink(), StampSink())
        source.sinks.add(first)
        let request = VideoFormatRequest(dimensions: Dimensions(width: 8, height: 8))
        source.requestOutputFormat(request)
        deliver(4, to: source.sinks)
        source.sinks.add(late)
        deliver(3, to: source.sinks)
        #expect(source.sinks.statistics(of: late).framesCaptured == 3)
        #expect(first.requests == [request] && late.requests == [request])
    }

    @Test("A sink's own size is not overruled by one that is asked of all")
    func ownSize() {
        let source = PassiveSource()
        let (own, other) = (StampSink(), StampSink())
        source.sinks.add(own)
        source.sinks.add(other)
        let small = VideoFormatRequest(dimensions: Dimensions(width: 8, height: 8))
        let large = VideoFormatRequest(dimensions: Dimensions(width: 80, height: 80))
        source.sinks.request(small, for: own)
        source.requestOutputFormat(large)
        #expect(own.requests == [small] && other.requests == [large])
        source.sinks.resetRequest(for: own)
        #expect(own.requests == [small, large], "the request for all counts again")
        source.resetOutputFormat()
        #expect(own.requests.last == VideoFormatRequest() && other.requests == [large, VideoFormatRequest()])
    }

    // A crop stayed in force after a later request for a frame rate alone.
    @Test("A request replaces the one before, with what it does not set, for all sinks and for one")
    func unsetFields() {
        let source = PassiveSource()
        let (own, other) = (StampSink(), StampSink())
        source.sinks.add(own)
        source.sinks.add(other)
        let size = VideoFormatRequest(dimensions: Dimensions(width: 8, height: 8))
        let rate = VideoFormatRequest(frameRate: FrameRate(5))
        source.requestOutputFormat(size)
        source.requestOutputFormat(rate)
        #expect(other.requests == [size, rate] && source.sinks.request == rate)
        source.requestOutputFormat(size)
        let slower = VideoFormatRequest(frameRate: FrameRate(2))
        source.sinks.request(slower, for: own)
        #expect(own.requests.last == VideoFormatRequest(dimensions: size.dimensions, frameRate: FrameRate(2)))
        let smaller = VideoFormatRequest(dimensions: Dimensions(width: 4, height: 4))
        source.sinks.request(smaller, for: own)
        #expect(own.requests.last == smaller && source.sinks.rate(of: own) == nil, "the rate of this sink is gone")
        source.sinks.resetRequest(for: own)
        source.resetOutputFormat()
        #expect(own.requests.last == VideoFormatRequest() && other.requests.last == VideoFormatRequest())
    }

    @Test("A format asks for its size, its rate and its pixels")
    func wholeFormat() {
        let source = PassiveSource()
        let sink = StampSink()
        source.sinks.add(sink)
        let size = Dimensions(width: 8, height: 6)
        let format = VideoFormat(dimensions: size, frameRate: FrameRate(5), pixelFormat: .nv12)
        source.requestOutputFormat(format)
        let request = VideoFormatRequest(dimensions: size, frameRate: FrameRate(5), pixelFormat: .nv12)
        #expect(sink.requests == [request] && VideoFormatRequest(format) == request)
    }

    @Test("A device is opened by what the source was made with, or was selected with, where a request says nothing")
    func openingRequest() {
        let sinks = VideoSinks()
        let made = VideoFormatRequest(dimensions: Dimensions(width: 80, height: 60), frameRate: FrameRate(60))
        sinks.setInitialRequest(made, forwarding: made)
        let rate = VideoFormatRequest(frameRate: FrameRate(10))
        sinks.request(rate, forwarding: rate)
        #expect(sinks.request.dimensions == nil, "pictures have the size of the device")
        #expect(sinks.wanted == VideoFormatRequest(dimensions: made.dimensions, frameRate: FrameRate(10)))

        let selected = VideoFormatRequest(dimensions: Dimensions(width: 8, height: 6))
        let first = sinks.replaceRequest(selected, forwarding: selected, after: nil)
        #expect(sinks.wanted == selected)
        let second = sinks.replaceRequest(rate, forwarding: rate, after: first)
        sinks.takeBack(second) { $0 }
        #expect(sinks.wanted == VideoFormatRequest(dimensions: made.dimensions, frameRate: FrameRate(10)))
        let third = sinks.replaceRequest(selected, forwarding: selected, after: nil)
        sinks.request(rate, forwarding: rate)
        sinks.takeBack(third) { $0 }
        #expect(sinks.wanted.dimensions == made.dimensions, "although a request was made since")
        sinks.request(VideoFormatRequest(), forwarding: VideoFormatRequest())
        #expect(sinks.wanted == made)
    }

    @Test("A replaced request comes back, with its last replacement, unless one was made since")
    func replacedRequests() {
        let sinks = VideoSinks()
        func request(_ rate: Int) -> VideoFormatRequest { VideoFormatRequest(frameRate: FrameRate(rate)) }
        func replace(_ rate: Int, after previous: ReplacedRequest? = nil) -> ReplacedRequest {
            sinks.replaceRequest(request(rate), forwarding: request(rate), after: previous)
        }
        sinks.setInitialRequest(request(60), forwarding: request(60))
        sinks.request(request(50), forwarding: request(50))

        let first = replace(10)
        let second = replace(20, after: first)
        #expect(sinks.request == request(20))
        sinks.takeBack(second) { $0 }
        #expect(sinks.request == request(50))

        let third = replace(10)
        sinks.request(request(40), forwarding: request(40))
        let fourth = replace(20, after: third)
        sinks.takeBack(fourth) { $0 }
        #expect(sinks.request == request(40))

        // The same request made again is one made since.
        let fifth = replace(10)
        sinks.request(request(10), forwarding: request(10))
        sinks.takeBack(fifth) { $0 }
        #expect(sinks.request == request(10))

        let sixth = replace(20)
        sinks.resetRequest()
        sinks.takeBack(sixth) { $0 }
        #expect(sinks.request == request(60))
    }

    @Test("Frames without a sink are not wanted, and idle sinks are not kept alive")
    func nobody() {
        let source = PassiveSource()
        source.sink = StampSink()
        #expect(source.sink == nil)
        deliver(3, to: source.sinks)
        #expect(source.captureStatistics.framesDropped[.notWanted] == 3)
    }

    @Test("Setting the one sink replaces the one that was set, and no other")
    func primary() {
        let source = PassiveSource()
        let (added, set, newer) = (StampSink(), StampSink(), StampSink())
        source.sinks.add(added)
        source.sink = set
        #expect(source.sink === set)
        source.sink = newer
        deliver(1, to: source.sinks)
        #expect(added.count == 1 && set.count == 0 && newer.count == 1)
        source.sink = nil
        #expect(source.sink === added)
    }
}
