public import MediaCore
import Threading
import VideoProcessing

/// Makes grey pictures of a track, and keeps the newest one.
///
/// May be added to one track at a time. Once warm it allocates nothing for a picture, unless the application keeps the
/// pictures that it reads.
public final class GrayscaleRenderer: VideoRenderer {
    /// A grey picture, upright.
    public struct Picture: Sendable {
        /// The size in pixels.
        public var dimensions: Dimensions
        /// When it was captured.
        public var timestamp: MonotonicInstant
        /// One byte for each pixel, row by row without padding: 0 is black, 255 is white.
        public var bytes: [UInt8]

        /// The picture as a binary PGM file.
        public var pgm: [UInt8] {
            Array("P5\n\(dimensions.width) \(dimensions.height)\n255\n".utf8) + bytes
        }
    }

    private struct State: Sendable {
        var newest: Picture?
        /// The memory of the picture before, to be filled again.
        var spare: [UInt8] = []
    }

    /// The grey of each luma value: 16 to 235 become 0 to 255 (BT.601 limited range).
    private static let greys: [UInt8] = (0..<256).map { luma in
        UInt8(min(max((Double(luma - 16) * 255 / 219).rounded(), 0), 255))
    }

    private let whenRendered: (@Sendable (Picture) -> Void)?
    private let rotator = FrameScaler()
    private let state = Monitor(State())

    /// Creates a renderer without a picture.
    ///
    /// - Parameter whenRendered: Is called with each picture, on the renderer's thread.
    public init(whenRendered: (@Sendable (Picture) -> Void)? = nil) {
        self.whenRendered = whenRendered
    }

    /// The newest picture; `nil` before the first.
    public var picture: Picture? { state.withLock { $0.newest } }

    /// Makes a grey picture of the frame.
    public func render(_ frame: VideoFrame) {
        let upright = rotator.upright(frame)
        let size = upright.dimensions
        var bytes = state.withLock { state -> [UInt8] in
            defer { state.spare = [] }
            return state.spare
        }
        if bytes.count != size.area { bytes = [UInt8](repeating: 0, count: size.area) }
        Self.fill(&bytes, from: upright.buffer)
        let picture = Picture(dimensions: size, timestamp: frame.timestamp, bytes: bytes)
        state.withLock { state in
            // The array of the picture before is filled again next time. If somebody keeps it, filling copies it.
            state.spare = state.newest?.bytes ?? []
            state.newest = picture
        }
        whenRendered?(picture)
    }

    private static func fill(_ bytes: inout [UInt8], from buffer: VideoBuffer) {
        let (width, stride) = (buffer.dimensions.width, buffer.lumaStride)
        let greys = greys.span
        var target = bytes.mutableSpan
        buffer.withPlanes { luma, _, _ in
            for row in 0..<buffer.dimensions.height {
                for column in 0..<width {
                    target[row * width + column] = greys[Int(luma[row * stride + column])]
                }
            }
        }
    }
}
