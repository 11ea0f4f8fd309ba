import Capture
import MediaCore
import RoomKit
import TestTools
import Testing
import Threading

@testable import ScreenCapture

/// How often pictures are taken of a screen that always changes.
@Suite("The pace of a screen", .serialized, .timeLimit(.minutes(2)))
struct ScreenPaceTests {
    /// Keeps the stamps of the pictures that are no repeats.
    private final class StampKeeper: VideoSink {
        private let kept = Monitor<[MonotonicInstant]>([])
        let sourceRequirements = VideoFormatRequest()

        var stamps: [MonotonicInstant] { kept.withLock { $0 } }

        func onVideoFormatRequest(_ request: VideoFormatRequest) {}

        func onVideoFrame(_ frame: VideoFrame) {
            if !frame.isRepeat { kept.withLock { $0.append(frame.timestamp) } }
        }
    }

    /// The times from each stamp to the one that comes `count` later.
    private func spans(of count: Int, _ stamps: [MonotonicInstant]) -> [Duration] {
        zip(stamps, stamps.dropFirst(count)).map { $1.duration(since: $0) }
    }

    @Test("A screen that always changes gives 15 pictures a second unless another rate is asked for")
    func defaultRate() async throws {
        let display = try await VirtualDisplay(Dimensions(width: 320, height: 200))
        let window = try display.makeWindow(area(0, 0, 320, 200))
        let source = ScreenSource(target: .screen, display: display.name)
        let sink = StampKeeper()
        try await source.startCapture(for: sink)
        let slot = FrameRate(15).interval
        var colour: UInt32 = 0
        // A busy machine leaves slots out, so that it takes longer until six pictures come in a row.
        try await eventually("three seconds of pictures, six of them in a row") {
            colour += 1
            try display.fill(window, area(0, 0, 32, 32), colour)
            return sink.stamps.count >= 45 && spans(of: 5, sink.stamps).contains { $0 < slot * 6 }
        }
        await source.stopCapture(for: sink)
        // Each picture is taken in a slot of its own: of 16, the first at the latest at the end of its slot.
        let shortest = try #require(spans(of: 15, sink.stamps).min())
        #expect(shortest > slot * 14 - .milliseconds(1))
    }
}
