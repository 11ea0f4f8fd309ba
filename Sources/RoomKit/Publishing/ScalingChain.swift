import MediaCore
import Threading
import VideoProcessing

/// Makes the sizes of a track's pictures that its encodings need, each size of a picture once.
///
/// A picture is turned upright, unless it keeps its orientation and is tagged with it. Then it is brought to the size
/// that was requested from the source, and to one that the codec allows. Smaller sizes are made from the smallest
/// existing size that is large enough. Nothing is copied for an encoding that takes the picture as it is.
///
/// The encodings' threads call it. A thread waits while another one scales, because it may need the result.
final class ScalingChain: Sendable {
    private struct State: Sendable {
        /// The picture that `sizes` were made from, and its time.
        var source: (appearance: Appearance, timestamp: MonotonicInstant)?
        /// The sizes that were made, the largest first.
        var sizes: [VideoFrame] = []

        func isMade(of appearance: Appearance, at timestamp: MonotonicInstant) -> Bool {
            source.map { $0.appearance == appearance && $0.timestamp == timestamp } ?? false
        }
    }

    /// The largest size that the codec allows, lying; no picture of more pixels is made.
    private let limit: Dimensions
    private let keepsOrientation: Bool
    private let state = Monitor(State())
    private let rotator = FrameScaler()
    private let sizer = FrameScaler()
    /// One for each encoding: a pool of mixed sizes would allocate again and again.
    private let scalers: [FrameScaler]

    /// A chain for a number of encodings, in pictures of at most as many pixels as `limit` has.
    ///
    /// With `keepsOrientation`, pictures are not turned and mirrored, and keep their `rotation` and `isMirrored`.
    init(encodings: Int, limit: Dimensions, keepsOrientation: Bool = false) {
        self.limit = limit
        self.keepsOrientation = keepsOrientation
        scalers = (0..<encodings).map { _ in FrameScaler() }
        state.withLock { $0.sizes.reserveCapacity(encodings + 1) }
    }

    /// The largest size of `frame` that can be encoded, after `sizing`.
    func largestDimensions(of frame: VideoFrame, sizing: FrameTransform) -> Dimensions {
        let size = keepsOrientation ? frame.dimensions : frame.uprightDimensions
        return limited(oriented(sizing, frame), for: size).outputDimensions(for: size)
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
        let appearance = Appearance(of: frame, sizing: sizing)
        return state.withLock { state in
            if !state.isMade(of: appearance, at: frame.timestamp) {
                state.sizes.removeAll(keepingCapacity: true)
                let turned = keepsOrientation ? frame : rotator.upright(frame)
                let transform = limited(oriented(sizing, frame), for: turned.dimensions)
                state.sizes.append(sizer.apply(transform, to: turned))
                state.source = (appearance, frame.timestamp)
            }
            if let made = state.sizes.first(where: { $0.dimensions == dimensions }) { return made }
            let source = state.sizes.last { dimensions.fits(in: $0.dimensions) } ?? state.sizes[0]
            let scaled = scalers[encoding].scale(source, to: dimensions)
            let index = state.sizes.firstIndex { $0.dimensions.area < dimensions.area } ?? state.sizes.count
            state.sizes.insert(scaled, at: index)
            return scaled
        }
    }

    /// Releases the last picture.
    func release() {
        state.withLock { state in
            state.source = nil
            state.sizes.removeAll(keepingCapacity: true)
        }
    }

    /// The requested size and crop are those of an upright picture; these are the ones for the picture as it is encoded.
    private func oriented(_ sizing: FrameTransform, _ frame: VideoFrame) -> FrameTransform {
        guard keepsOrientation, frame.rotation.swapsDimensions else { return sizing }
        var transposed = sizing
        (transposed.size, transposed.crop) = (sizing.size?.transposed, sizing.crop?.transposed)
        return transposed
    }

    /// Returns `sizing`, or a transform that makes the picture fit if the result would exceed the limit.
    private func limited(_ sizing: FrameTransform, for dimensions: Dimensions) -> FrameTransform {
        let size = sizing.outputDimensions(for: dimensions)
        guard size.area > limit.area || !size.isCodable else { return sizing }
        let target = size.scaledDown(toFit: size.width < size.height ? limit.transposed : limit)
        guard sizing.crop != nil else { return FrameTransform(size: target) }
        // The picture from which the crop is cut, as much smaller as the crop.
        var smaller = sizing
        smaller.crop = nil
        let whole = smaller.outputDimensions(for: dimensions)
        smaller.size = Dimensions(
            width: whole.width * target.width / size.width,
            height: whole.height * target.height / size.height
        )
        smaller.crop = target
        return smaller
    }
}
