import MediaCore
import Threading

/// Applies a `FrameTransform` to a picture that is I420 already: scales, then turns, each only if needed.
struct PictureFinisher {
    let transform: FrameTransform
    /// The pool for delivered pictures.
    let pool: VideoBufferPool
    /// The pool for scaled pictures that must still be turned.
    ///
    /// It is a separate pool, because a pool of mixed sizes would replace its buffers again and again.
    let scalingPool: VideoBufferPool

    var turn: Turn { Turn(transform.rotation, isMirrored: transform.isMirrored) }

    /// Whether cropping to the part `kept` leaves no further step except flipping.
    func isFinished(_ steps: (kept: PictureRegion, scaled: Dimensions)) -> Bool {
        steps.scaled == steps.kept.dimensions && turn.isFlipAlone
    }

    /// Makes the transformed picture from a part of `picture`, in a buffer of the pool.
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
