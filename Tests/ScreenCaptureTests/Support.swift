import Capture
import Foundation
import MediaCore
import RoomKit
import TestSupport
import TestTools

@testable import ScreenCapture

/// Starts a source of `target` for a new sink.
func capture(
    _ target: ScreenTarget,
    on display: VirtualDisplay,
    showsCursor: Bool = false,
    request: VideoFormatRequest = VideoFormatRequest(frameRate: FrameRate(60))
) async throws -> (ScreenSource, LastFrame) {
    let source = ScreenSource(target: target, display: display.name, showsCursor: showsCursor, request: request)
    let sink = LastFrame()
    try await source.startCapture(for: sink)
    return (source, sink)
}

/// The first failure that a source reports.
func failure(in events: AsyncStream<CaptureEvent>) async -> ScreenError? {
    for await event in events { if case .failed(let error) = event { return error as? ScreenError } }
    return nil
}

/// Where tests put pictures for people to look at.
enum ProcessFolder {
    /// `ROOM_TEST_PICTURES`; `nil` if it is not set.
    static var pictures: String? { ProcessInfo.processInfo.environment["ROOM_TEST_PICTURES"] }
}
