import Capture
import MediaCore
import Testing
import Threading

@testable import V4L2Capture

@Suite("The default output of a camera", .timeLimit(.minutes(1)))
struct DefaultOutputTests {
    @Test(
        "Sizes above 1920x1080 are scaled to fit, in their shape; others stay",
        arguments: [
            (3840, 2160, 1920, 1080), (2592, 1944, 1440, 1080), (4096, 1024, 1920, 480), (2160, 3840, 1080, 1920),
            (1921, 1080, 1920, 1078), (1920, 1080, 0, 0), (640, 480, 0, 0), (1080, 1920, 0, 0),
        ]
    )
    func sizes(width: Int, height: Int, fittedWidth: Int, fittedHeight: Int) {
        let format = VideoFormat(
            dimensions: Dimensions(width: width, height: height),
            frameRate: FrameRate(30),
            pixelFormat: .yuyv
        )
        let limits = DefaultOutput.limit(format, wanted: VideoFormatRequest())
        let expected = fittedWidth == 0 ? nil : Dimensions(width: fittedWidth, height: fittedHeight)
        #expect(limits.dimensions == expected && limits.frameRate == nil)
    }

    @Test("Rates above 30 are limited, and what is requested is not")
    func rates() {
        let size = Dimensions(width: 3840, height: 2160)
        let fast = VideoFormat(dimensions: size, frameRate: FrameRate(60), pixelFormat: .yuyv)
        #expect(DefaultOutput.limit(fast, wanted: VideoFormatRequest()).frameRate == FrameRate(30))
        let nearly = FrameRate(numerator: 30_000, denominator: 999)
        let usual = VideoFormat(dimensions: size, frameRate: nearly, pixelFormat: .yuyv)
        #expect(DefaultOutput.limit(usual, wanted: VideoFormatRequest()).frameRate == nil)
        let all = VideoFormatRequest(dimensions: size, frameRate: FrameRate(60))
        #expect(DefaultOutput.limit(fast, wanted: all) == VideoFormatRequest())
    }

    /// A camera of 2560x1440 at 60 frames a second.
    private func largeCamera(
        _ sizes: SizeConverter.Sizes,
        request: VideoFormatRequest = VideoFormatRequest()
    ) -> CameraSource {
        var script = CameraScript()
        script.formats = [.init(pixelFormat: .yuyv, sizes: .discrete([(2560, 1440)]), rates: .discrete([60]))]
        script.statedRate = (60, 1)
        script.intervalMilliseconds = 5
        script.events = (0..<10_000).map { number in
            .frames([.init(sequence: UInt32(number), nanoseconds: Int64(number + 1) * 16_666_667)])
        }
        return CameraSource(
            device: testDevice,
            request: request,
            system: ScriptedSystem(script),
            outageLimit: .zero
        ) { SizeConverter(sizes) }
    }

    @Test("A camera that has only more delivers less, with a warning, until more is requested; and there is a way back")
    func wayBack() async throws {
        let sizes = SizeConverter.Sizes()
        let source = largeCamera(sizes)
        let sink = RecordingSink()
        source.sink = sink
        var events = source.captureEvents().makeAsyncIterator()
        try await source.startCapture()
        guard case .warning(let warning) = await events.next() else {
            Issue.record("there is a warning")
            return
        }
        #expect(
            (warning as? CameraError)?.code == .formatLimited && "\(warning)".contains("1920x1080 at 30"),
            "\(warning)"
        )
        sink.waitForFrames(4)
        #expect(sizes.last == DefaultOutput.largest)
        let dropped = source.captureStatistics.framesDropped[.notWanted]
        #expect(dropped >= 2, "every other frame is left out")
        let small = Dimensions(width: 480, height: 480)
        source.requestOutputFormat(VideoFormatRequest(dimensions: small, frameRate: FrameRate(60)))
        sink.waitForFrames(sink.count + 4)
        #expect(sizes.last == small)
        source.resetOutputFormat()
        sink.waitForFrames(sink.count + 4)
        #expect(sizes.last == DefaultOutput.largest)
        await source.stopCapture()
    }

    // It was told when the camera was opened, or never.
    @Test("A camera that captures already warns of the limit when a sink comes that gets less because of it")
    func lateSink() async throws {
        let source = largeCamera(SizeConverter.Sizes())
        var events = source.captureEvents().makeAsyncIterator()
        try await source.startCapture()
        let sink = RecordingSink()
        source.sink = sink
        guard case .warning(let warning) = await events.next() else {
            Issue.record("there is no warning")
            return
        }
        #expect((warning as? CameraError)?.code == .formatLimited, "\(warning)")
        await source.stopCapture()
    }

    // All sinks got the size that the smallest one required.
    @Test("A request for a rate alone leaves the size that the camera was opened for, whatever a sink requires")
    func rateBesideRequirement() async throws {
        let sizes = SizeConverter.Sizes()
        let source = largeCamera(sizes, request: VideoFormatRequest(dimensions: Dimensions(width: 2560, height: 1440)))
        let sink = RecordingSink(VideoFormatRequest(dimensions: Dimensions(width: 320, height: 240)))
        source.sink = sink
        try await source.startCapture()
        source.requestOutputFormat(VideoFormatRequest(frameRate: FrameRate(60)))
        sink.waitForFrames(sink.count + 4)
        #expect(sizes.last != Dimensions(width: 320, height: 240))
        await source.stopCapture()
    }

    @Test("A request for a rate alone takes back the crop before it: the camera's own pictures come")
    func rateAfterCrop() async throws {
        let sizes = SizeConverter.Sizes()
        let source = largeCamera(sizes)
        let sink = RecordingSink()
        source.sink = sink
        source.requestOutputFormat(VideoFormatRequest(dimensions: Dimensions(width: 480, height: 480)))
        try await source.startCapture()
        sink.waitForFrames(2)
        #expect(sizes.last == Dimensions(width: 480, height: 480))
        source.requestOutputFormat(VideoFormatRequest(frameRate: FrameRate(60)))
        sink.waitForFrames(sink.count + 4)
        #expect(sizes.last == DefaultOutput.largest)
        await source.stopCapture()
    }

    // The size and the rate that were in force at the start stayed.
    @Test("A size and a rate that were requested before the start are taken back too")
    func wayBackFromTheStart() async throws {
        let sizes = SizeConverter.Sizes()
        let source = largeCamera(sizes)
        let sink = RecordingSink()
        source.sink = sink
        let small = Dimensions(width: 480, height: 480)
        source.requestOutputFormat(VideoFormatRequest(dimensions: small, frameRate: FrameRate(60)))
        try await source.startCapture()
        sink.waitForFrames(4)
        let statistics = source.captureStatistics
        #expect(sizes.last == small && statistics.framesDropped[.notWanted] == 0)
        source.resetOutputFormat()
        sink.waitForFrames(sink.count + 8)
        #expect(sizes.last == DefaultOutput.largest)
        #expect(source.captureStatistics.framesDropped[.notWanted] >= 4, "every other frame is left out")
        await source.stopCapture()
    }
}

/// Notes the size that is requested of it.
private final class SizeConverter: CapturedFrameConverter {
    final class Sizes: Sendable {
        private let size = Monitor<Dimensions?>(nil)
        var last: Dimensions? {
            get { size.withLock { $0 } }
            set { size.withLock { $0 = newValue } }
        }
    }

    var requestedDimensions: Dimensions?
    private let sizes: Sizes

    init(_ sizes: Sizes) { self.sizes = sizes }

    func outputDimensions(for dimensions: Dimensions) -> Dimensions { dimensions }
    func accepts(_ pixelFormat: PixelFormat) -> Bool { pixelFormat == .yuyv }

    func convert(
        _ bytes: RawSpan,
        layout: CapturedLayout,
        timestamp: MonotonicInstant
    ) throws(DamagedPicture) -> VideoFrame {
        sizes.last = requestedDimensions
        return VideoFrame(buffer: VideoBuffer(dimensions: Dimensions(width: 16, height: 16)), timestamp: timestamp)
    }
}
