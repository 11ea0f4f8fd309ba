import MediaCore
import Threading

/// Carries out a `FrameTransform` on a picture that is I420 already: scales, then turns, each only if need be.
struct PictureFinisher {
    let transform: FrameTransform
    /// Where the pictures that are handed on come from.
    let pool: VideoBufferPool
    /// Where scaled pictures that are still to be turned come from.
    ///
    /// A pool of its own, because a pool of mixed sizes would replace its buffers again and again.
    let scalingPool: VideoBufferPool

    var turn: Turn { Turn(transform.rotation, isMirrored: transform.isMirrored) }

    /// Whether nothing is left to do after the part `kept` has been cut out, besides flipping.
    func isFinished(_ steps: (kept: PictureRegion, scaled: Dimensions)) -> Bool {
        steps.scaled == steps.kept.dimensions && turn.isFlipAlone
    }

    /// The transformed picture in a buffer of the pool, from a part of `picture`.
    func finish(
        _ picture: PlanarPicture,
        _ steps: (kept: PictureRegion, scaled: Dimensions)
    ) -> VideoBuffer {
        let kept = unsafe picture.region(steps.kept)
        if steps.scaled == steps.kept.dimensions {
            return unsafe turned(kept)
        }
        let isLast = turn.isFlipAlone && !turn.isFlipped
        let scaled = (isLast ? pool : scalingPool).take(steps.scaled)
        unsafe scaled.fill(scaling: kept)
        if isLast { return scaled }
        return unsafe scaled.withPicture { unsafe turned($0) }
    }

    private func turned(_ picture: PlanarPicture) -> VideoBuffer {
        let size = unsafe picture.dimensions
        let buffer = pool.take(transform.rotation.swapsDimensions ? size.transposed : size)
        unsafe buffer.fill(turning: picture, turn)
        return buffer
    }
}
