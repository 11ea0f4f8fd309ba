import Capture
import Foundation
import MediaCore
import RoomKit
import TestTools
import Threading

@testable import ScreenCapture

/// Keeps the last frame of a source, and counts them.
final class LastFrame: VideoSink {
    struct State: Sendable {
        var frame: VideoFrame?
        var count = 0
        var sizes: [Dimensions] = []
        /// Whether time stamps went back.
        var isDisordered = false
    }

    private let state = Monitor(State())
    let sourceRequirements = VideoFormatRequest()

    func onVideoFrame(_ frame: VideoFrame) {
        state.withLock { state in
            if let last = state.frame, last.timestamp >= frame.timestamp { state.isDisordered = true }
            state.frame = frame
            state.count += 1
            if state.sizes.last != frame.dimensions { state.sizes.append(frame.dimensions) }
        }
    }

    func onVideoFormatRequest(_ request: VideoFormatRequest) {}

    var now: State { state.withLock { $0 } }

    /// Waits until the last frame has a pixel of about the given colour.
    func shows(_ colour: UInt32, at column: Int, _ row: Int, _ what: String) async throws {
        var seen: Pixel?
        do {
            try await eventually("the picture shows \(what)") {
                seen = self.now.frame.flatMap { $0.pixel(column, row) }
                return seen?.isNear(Pixel(colour)) == true
            }
        } catch {
            throw TestFailure("\(error): \(String(describing: seen)) instead of \(Pixel(colour))")
        }
    }
}

/// A pixel in BT.601 limited range.
struct Pixel: Equatable {
    var luma: Int
    var u: Int
    var v: Int

    init(luma: Int, u: Int, v: Int) { (self.luma, self.u, self.v) = (luma, u, v) }

    /// The pixel of a colour 0xRRGGBB, by the equations of BT.601.
    init(_ colour: UInt32) {
        let (red, green, blue) = (
            Double(colour >> 16 & 0xFF) / 255, Double(colour >> 8 & 0xFF) / 255, Double(colour & 0xFF) / 255
        )
        let luma = 0.299 * red + 0.587 * green + 0.114 * blue
        self.luma = Int((16 + 219 * luma).rounded())
        u = Int((128 + 224 * (blue - luma) / 1.772).rounded())
        v = Int((128 + 224 * (red - luma) / 1.402).rounded())
    }

    func isNear(_ other: Pixel, within distance: Int = 2) -> Bool {
        abs(luma - other.luma) <= distance && abs(u - other.u) <= distance && abs(v - other.v) <= distance
    }
}

extension VideoFrame {
    /// The pixel at a place; `nil` outside the picture.
    func pixel(_ column: Int, _ row: Int) -> Pixel? {
        guard (0..<dimensions.width).contains(column), (0..<dimensions.height).contains(row) else { return nil }
        return buffer.withPlanes { luma, chromaU, chromaV in
            let chroma = row / 2 * buffer.chromaStride + column / 2
            return Pixel(
                luma: Int(luma[row * buffer.lumaStride + column]),
                u: Int(chromaU[chroma]),
                v: Int(chromaV[chroma])
            )
        }
    }

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

/// The first failure that a source tells of.
func failure(in events: AsyncStream<CaptureEvent>) async -> ScreenError? {
    for await event in events { if case .failed(let error) = event { return error as? ScreenError } }
    return nil
}

/// Where tests put pictures for people to look at.
enum ProcessFolder {
    /// `ROOM_TEST_PICTURES`; `nil` if it is not set.
    static var pictures: String? { ProcessInfo.processInfo.environment["ROOM_TEST_PICTURES"] }
}
