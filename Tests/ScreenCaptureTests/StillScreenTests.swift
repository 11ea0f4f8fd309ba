import Capture
import Glibc
import MediaCore
import RoomKit
import TestSupport
import TestTools
import Testing
import Threading

@testable import ScreenCapture

/// What a screen costs that stands still, or of which little changes.
@Suite("A still screen", .serialized, .timeLimit(.minutes(2)))
struct StillScreenTests {
    @Test("Only what was drawn is converted, and the rest of the picture stays")
    func damageOnly() async throws {
        let display = try await VirtualDisplay()
        let window = try display.makeWindow(area(0, 0, 640, 480), colour: 0x2030D0)
        let areas = Monitor<[PixelArea]>([])
        let source = ScreenSource(
            target: .screen,
            display: display.name,
            showsCursor: false,
            request: VideoFormatRequest(frameRate: FrameRate(60))
        ) {
            TestConverter { area in areas.withLock { $0.append(area) } }
        }
        let sink = LastFrame()
        try await source.startCapture(for: sink)
        try await sink.shows(0x2030D0, at: 300, 200, "the window")
        // What the server tells of the window's beginning may come in parts; a picture is repeated once that is over.
        let before = source.captureStatistics.framesRepeated
        try await eventually("the screen stands still") { source.captureStatistics.framesRepeated >= before + 3 }
        areas.withLock { $0 = [] }
        try display.fill(window, area(101, 51, 20, 10), 0xFFFFFF)
        try await sink.shows(0xFFFFFF, at: 110, 55, "the square")
        try await sink.shows(0x2030D0, at: 300, 200, "the rest of the window")
        #expect(areas.withLock { $0 } == [area(100, 50, 22, 12)])
        await source.stopCapture(for: sink)
    }

    @Test("The picture is delivered again with later stamps, counted apart, and at once when it is asked for")
    func repeats() async throws {
        let display = try await VirtualDisplay(Dimensions(width: 320, height: 200))
        let (source, sink) = try await capture(.screen, on: display, showsCursor: true)
        try await eventually("four repeats") { source.captureStatistics.framesRepeated >= 4 }
        let counts = source.captureStatistics
        #expect(counts.framesCaptured > counts.framesRepeated && counts.framesDropped.total == 0)
        #expect(!sink.now.isDisordered)
        let frame = try #require(sink.now.frame)
        source.requestFrame()
        try await eventually("it is asked for") { sink.now.frame.map { $0.timestamp > frame.timestamp } == true }
        #expect(sink.now.frame?.buffer === frame.buffer, "nothing was fetched")
        #expect(source.failure == nil)
        await source.stopCapture(for: sink)
    }

    /// Measures how old frames are when they come, leaving out repeats.
    private final class AgeMeter: VideoSink {
        let youngest = Monitor<Duration?>(nil)
        let sourceRequirements = VideoFormatRequest()

        func onVideoFormatRequest(_ request: VideoFormatRequest) {}

        func onVideoFrame(_ frame: VideoFrame) {
            guard !frame.isRepeat else { return }
            let age = MonotonicClock.now.duration(since: frame.timestamp)
            youngest.withLock { $0 = min($0 ?? age, age) }
        }
    }

    @Test("The time from a picture's stamp until it is delivered is measured; repeats, which take none, do not count")
    func delay() async throws {
        let display = try await VirtualDisplay(Dimensions(width: 320, height: 200))
        let source = ScreenSource(
            target: .screen,
            display: display.name,
            showsCursor: false,
            request: VideoFormatRequest(frameRate: FrameRate(60))
        ) {
            TestConverter { _ in usleep(30_000) }
        }
        let sink = AgeMeter()
        try await source.startCapture(for: sink)
        try await eventually("repeats") { source.captureStatistics.framesRepeated >= 3 }
        // A picture is at least as new as its stamp, which is from before it was fetched.
        #expect(try #require(sink.youngest.withLock { $0 }) >= .milliseconds(30))
        let statistics = source.captureStatistics
        for delay in [statistics.captureDelay, statistics.meanCaptureDelay, statistics.longestCaptureDelay] {
            #expect(try #require(delay) >= .milliseconds(30))
        }
        await source.stopCapture(for: sink)
    }

    @Test("Pixels come through shared memory, unless that is not wanted", arguments: [true, false])
    func sharedMemory(isWanted: Bool) async throws {
        let display = try await VirtualDisplay(Dimensions(width: 320, height: 200))
        let fetcher = try ImageFetcher(XConnection(display: display.name), sharesMemory: isWanted)
        try fetcher.prepare(for: Dimensions(width: 320, height: 200))
        #expect(fetcher.usesSharedMemory == isWanted)
    }

    /// The converters and pictures of a source, without which they are freed.
    private final class Belongings: Sendable {
        private struct Kept: @unchecked Sendable {
            // `@unchecked Sendable`: a weak reference is only compared with nil.
            weak var object: AnyObject?
        }

        private let kept = Monitor<[Kept]>([])

        /// Watches over an object.
        func note(_ object: AnyObject) {
            let kept = Kept(object: object)
            self.kept.withLock { $0.append(kept) }
        }

        /// How many objects were made.
        var made: Int { kept.withLock { $0.count } }
        /// How many of them there are still.
        var living: Int { kept.withLock { $0.count { $0.object != nil } } }
    }

    @Test("A stopped source keeps neither its converter nor its pictures, and a new start makes others")
    func freed() async throws {
        let display = try await VirtualDisplay(Dimensions(width: 320, height: 200))
        let window = try display.makeWindow(area(0, 0, 100, 100), title: "Slides", colour: 0xFFFFFF)
        let (converters, pictures) = (Belongings(), Belongings())
        let source = ScreenSource(
            target: .window("Slides"),
            display: display.name,
            showsCursor: true,
            request: VideoFormatRequest(frameRate: FrameRate(60))
        ) {
            let converter = TestConverter(noteMade: { pictures.note($0) })
            converters.note(converter)
            return converter
        }
        for round in 1...4 {
            var sink: LastFrame? = LastFrame()
            try await source.startCapture(for: #require(sink))
            for colour in [0x2030D0, 0x10C030] as [UInt32] {
                try display.fill(window, area(0, 0, 100, 100), colour)
                try await #require(sink).shows(colour, at: 50, 50, "the window")
            }
            #expect(converters.living == 1 && pictures.living > 0)
            await source.stopCapture(for: try #require(sink))
            sink = nil
            #expect(converters.made == round && pictures.made >= 2 * round)
            try await eventually("everything is freed, not \(converters.living), \(pictures.living)") {
                converters.living == 0 && pictures.living == 0
            }
        }
    }

    @Test("A source that is started and stopped again and again leaves no descriptor and no mapping behind")
    func restarts() async throws {
        let display = try await VirtualDisplay(Dimensions(width: 320, height: 200))
        _ = try display.makeWindow(area(0, 0, 100, 100), title: "Slides", colour: 0xFFFFFF)
        var before = (descriptors: 0, mappings: 0)
        for round in 0..<12 {
            let (source, sink) = try await capture(.window("Slides"), on: display, showsCursor: true)
            try await eventually("a picture") { sink.now.count > 0 }
            await source.stopCapture(for: sink)
            let descriptors = fileNames(in: "/proc/self/fd").count
            let mappings = try text(of: "/proc/self/maps").ranges(of: "/memfd:room screen").count
            if round == 1 { before = (descriptors, mappings) }
            if round > 1 { #expect(descriptors <= before.descriptors && mappings <= before.mappings) }
        }
    }
}
