package import MediaCore
import TestTools
import Threading

/// Keeps the last frame of a source, and counts them.
package final class LastFrame: VideoSink {
    /// What has come so far.
    package struct State: Sendable {
        /// The last frame.
        package var frame: VideoFrame?
        /// How many there were.
        package var count = 0
        /// The sizes that they had, without repetitions.
        package var sizes: [Dimensions] = []
        /// Whether time stamps went back.
        package var isDisordered = false
    }

    private let state = Monitor(State())
    /// Anything will do.
    package let sourceRequirements = VideoFormatRequest()

    /// Creates a sink without a frame.
    package init() {}

    /// Keeps a frame.
    package func onVideoFrame(_ frame: VideoFrame) {
        state.withLock { state in
            if let last = state.frame, last.timestamp >= frame.timestamp { state.isDisordered = true }
            state.frame = frame
            state.count += 1
            if state.sizes.last != frame.dimensions { state.sizes.append(frame.dimensions) }
        }
    }

    /// Does nothing.
    package func onVideoFormatRequest(_ request: VideoFormatRequest) {}

    /// What has come so far.
    package var now: State { state.withLock { $0 } }

    /// Waits until the last frame has a pixel of about the given colour.
    package func shows(_ colour: UInt32, at column: Int, _ row: Int, _ what: String) async throws {
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
package struct Pixel: Equatable {
    /// Y.
    package var luma: Int
    /// U.
    package var u: Int
    /// V.
    package var v: Int

    /// A pixel of the given components.
    package init(luma: Int, u: Int, v: Int) { (self.luma, self.u, self.v) = (luma, u, v) }

    /// The pixel of a colour 0xRRGGBB, by the equations of BT.601.
    package init(_ colour: UInt32) {
        let (red, green, blue) = (
            Double(colour >> 16 & 0xFF) / 255, Double(colour >> 8 & 0xFF) / 255, Double(colour & 0xFF) / 255
        )
        let luma = 0.299 * red + 0.587 * green + 0.114 * blue
        self.luma = Int((16 + 219 * luma).rounded())
        u = Int((128 + 224 * (blue - luma) / 1.772).rounded())
        v = Int((128 + 224 * (red - luma) / 1.402).rounded())
    }

    /// Whether no component differs by more than `distance`.
    package func isNear(_ other: Pixel, within distance: Int = 2) -> Bool {
        abs(luma - other.luma) <= distance && abs(u - other.u) <= distance && abs(v - other.v) <= distance
    }
}

extension VideoFrame {
    /// The pixel at a place; `nil` outside the picture.
    package func pixel(_ column: Int, _ row: Int) -> Pixel? {
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
}
