import MediaCore
import Testing

@testable import V4L2Capture

@Suite("The capture delay of a camera", .timeLimit(.minutes(1)))
struct CaptureDelayTests {
    private let lost = CameraScript.Event.trouble([.failed, .gone], status: 19)

    private func capture(_ frames: [CameraScript.Frame]) async throws -> CaptureStatistics {
        try await captureToTheEnd(CameraScript(events: [.frames(frames), lost])).statistics
    }

    @Test("The time from the driver's stamp to the program is measured, and not for a stamp that was replaced")
    func measured() async throws {
        // Both are there when the second is captured.
        let statistics = try await capture([
            .init(sequence: 0, nanoseconds: 40_000_000), .init(sequence: 1, nanoseconds: 80_000_000),
        ])
        #expect(statistics.longestCaptureDelay == .milliseconds(40))
        #expect(statistics.meanCaptureDelay == .milliseconds(20))
        #expect(statistics.captureDelay == .zero && statistics.timestampsReplaced == 0)

        let replaced = try await capture([.init(sequence: 0, nanoseconds: 3_600_000_000_000)])
        #expect(replaced.captureDelay == nil && replaced.timestampsReplaced == 1)
    }
}
