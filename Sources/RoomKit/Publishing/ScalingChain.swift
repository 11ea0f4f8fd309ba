import MediaCore
import Threading
import VideoProcessing

/// Makes the sizes of a track's pictures that its encodings need, each size of a picture once.
///
/// A picture is turned upright, brought to the size that was requested from the source, and limited to the size that
/// the track was announced with. Smaller sizes are made from the smallest one there is that is large enough. Nothing is
/// copied for an encoding that takes the picture as it is.
///
/// The encodings' threads call it. A thread waits while another one scales, because it may need the result.
final class ScalingChain: Sendable {
    private struct State: Sendable {
        /// The picture that `sizes` were made from.
        var source: VideoFrame?
        var sizing = FrameTransform()
        /// The sizes that were made, the largest first.
        var sizes: [VideoFrame] = []

        func isMade(of frame: VideoFrame, _ sizing: FrameTransform) -> Bool {
            guard let source else { return false }
            return source.buffer === frame.buffer && source.timestamp == frame.timestamp
                && source.rotation == frame.rotation && self.sizing == sizing
        }
    }

    /// The size that the track was announced with; no larger picture is made.
    private let limit: Dimensions
    private let state = Monitor(State())
    private let rotator = FrameScaler()
    private let sizer = FrameScaler()
    /// One for each encoding: a pool of mixed sizes would allocate again and again.
    private let scalers: [FrameScaler]

    /// A chain for a number of encodings, in pictures of at most the size `limit`.
    init(encodings: Int, limit: Dimensions) {
        self.limit = limit
        scalers = (0..<encodings).map { _ in FrameScaler() }
        state.withLock { $0.sizes.reserveCapacity(encodings + 1) }
    }

    /// The largest size of `frame` that can be encoded, after `sizing`.
    func largestDimensions(of frame: VideoFrame, sizing: FrameTransform) -> Dimensions {
        let upright = frame.rotation.swapsDimensions ? frame.dimensions.transposed : frame.dimensions
        return limited(sizing, for: upright).outputDimensions(for: upright)
    }

    /// The picture in the size `dimensions`, for the encoding number `encoding`.
    ///
    /// `dimensions` is at most `largestDimensions`. Both sides of a smaller size must be even.
    func picture(
        _ frame: VideoFrame,
        sizing: FrameTransform,
        dimensions: Dimensions,
        for encoding: Int
    ) -> VideoFrame {
        state.withLock { state in
            if !state.isMade(of: frame, sizing) {
                state.sizes.removeAll(keepingCapacity: true)
                let upright = rotator.upright(frame)
                state.sizes.append(sizer.apply(limited(sizing, for: upright.dimensions), to: upright))
                state.source = frame
                state.sizing = sizing
            }
            if let made = state.sizes.first(where: { $0.dimensions == dimensions }) { return made }
            let source = state.sizes.last { dimensions.fits(in: $0.dimensions) } ?? state.sizes[0]
            let scaled = scalers[encoding].scale(source, to: dimensions)
            let index = state.sizes.firstIndex { $0.dimensions.area < dimensions.area } ?? state.sizes.count
            state.sizes.insert(scaled, at: index)
            return scaled
        }
    }

    /// Lets go of the last picture.
    func release() {
        state.withLock { state in
            state.source = nil
            state.sizes.removeAll(keepingCapacity: true)
        }
    }

    /// Returns `sizing`, or a transform that makes the picture fit if the result would exceed the announced size.
    private func limited(_ sizing: FrameTransform, for dimensions: Dimensions) -> FrameTransform {
        let size = sizing.outputDimensions(for: dimensions)
        guard !size.fits(in: limit) else { return sizing }
        return FrameTransform(size: size.scaledDown(toFit: limit))
    }
}

extension Dimensions {
    /// Whether neither side is longer than the same side of `limit`.
    func fits(in limit: Dimensions) -> Bool { width <= limit.width && height <= limit.height }

    /// The largest size with this aspect ratio that fits in `limit`.
    fileprivate func scaledDown(toFit limit: Dimensions) -> Dimensions {
        let isTooWide = width * limit.height > limit.width * height
        return isTooWide
            ? Dimensions(width: limit.width, height: max(1, height * limit.width / width))
            : Dimensions(width: max(1, width * limit.height / height), height: limit.height)
    }
}
