import Capture
import Foundation
import MediaCore
import RoomKit
import TestSupport
import TestTools
import Threading

@testable import ScreenCapture

extension VideoFrame {
    /// The peak signal-to-noise ratio of luma against `other`, which has the same size, in decibels.
    func lumaPSNR(_ other: VideoFrame) -> Double {
        let (width, height) = (dimensions.width, dimensions.height)
        let sum = buffer.withPlanes { mine, _, _ in
            other.buffer.withPlanes { theirs, _, _ in
                var sum = 0
                for row in 0..<height {
                    for column in 0..<width {
                        let difference =
                            Int(mine[row * buffer.lumaStride + column])
                            - Int(theirs[row * other.buffer.lumaStride + column])
                        sum += difference * difference
                    }
                }
                return sum
            }
        }
        return sum == 0 ? .infinity : 10 * log10(255.0 * 255 * Double(width * height) / Double(sum))
    }
}

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
