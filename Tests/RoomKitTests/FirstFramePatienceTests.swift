import Capture
import MediaCore
import Testing

@testable import RoomKit

/// A capturer that says at which rate it captures, and delivers nothing.
private final class IdleCapturer: VideoCapturer {
    let sinks = VideoSinks()
    let captureFormat: VideoFormat?
    let isCapturing = true

    init(_ rate: FrameRate?) {
        let size = Dimensions(width: 64, height: 48)
        captureFormat = rate.map { VideoFormat(dimensions: size, frameRate: $0, pixelFormat: .i420) }
    }

    func startCapture() async throws {}
    func stopCapture() async {}
    func startCapture(for sink: any VideoSink) async throws {}
    func stopCapture(for sink: any VideoSink) async {}
}

@Suite("The wait for a first frame")
struct FirstFramePatienceTests {
    @Test(
        "It takes ten seconds, or three intervals of a slow source, but no more than an hour",
        arguments: [
            (FrameRate(30), 10), (FrameRate(numerator: 1, denominator: 10), 30), (nil, 10),
            (FrameRate(numerator: 1, denominator: 7200), 3600),
        ]
    )
    func patience(rate: FrameRate?, seconds: Int) {
        #expect(LocalVideoTrack(source: IdleCapturer(rate)).firstFramePatience == .seconds(seconds))
    }

    @Test("It takes ten seconds if the source has no clock of its own")
    func withoutClock() {
        #expect(LocalVideoTrack(source: HandSource()).firstFramePatience == .seconds(10))
    }
}
