package import MediaCore
import Threading

/// Makes smaller, turned or mirrored copies of frames, in buffers that are reused.
///
/// Use one scaler for each wanted size: a pool of mixed sizes allocates again and again. May be used from several
/// threads.
package final class FrameScaler: Sendable {
    private let pool = VideoBufferPool()
    private let scalingPool = VideoBufferPool(limit: 4)

    /// Creates a scaler without buffers.
    package init() {}

    /// Scales the frame to `target`, cropped to its aspect ratio from the middle.
    ///
    /// Each pixel is the mean of those it covers. A frame that already has the size is returned unchanged. Odd sides of
    /// `target` are rounded down to even ones, and no side is less than 2.
    package func scale(_ frame: VideoFrame, to target: Dimensions) -> VideoFrame {
        guard frame.dimensions != target else { return frame }
        let target = target.evenAndCodable
        guard frame.dimensions != target else { return frame }
        let buffer = pool.take(target)
        unsafe frame.buffer.withPicture { picture in
            unsafe buffer.fill(scaling: picture.region(PictureRegion(ofShape: target, in: frame.dimensions)))
        }
        return frame.with(buffer)
    }

    /// Scales the frame to exactly `target`, odd sides included, cropped to its aspect ratio from the middle.
    ///
    /// For files whose pictures all have one size. A frame that already has the size is returned unchanged. Each side
    /// of `target` must be at least 1, and at most those of `Dimensions.largestCodable`.
    package func fit(_ frame: VideoFrame, to target: Dimensions) -> VideoFrame {
        guard frame.dimensions != target else { return frame }
        let buffer = pool.take(target)
        unsafe frame.buffer.withPicture { picture in
            unsafe buffer.fill(scaling: picture.region(PictureRegion(ofShape: target, in: frame.dimensions)))
        }
        return frame.with(buffer)
    }

    /// Applies `transform` to the frame; the frame's own orientation stays unchanged.
    package func apply(_ transform: FrameTransform, to frame: VideoFrame) -> VideoFrame {
        let finisher = PictureFinisher(transform: transform, pool: pool, scalingPool: scalingPool)
        let steps = transform.steps(for: frame.dimensions)
        let isWhole = steps.kept.dimensions == frame.dimensions
        if isWhole, finisher.isFinished(steps), !transform.isMirrored, transform.rotation == .none { return frame }
        let buffer = unsafe frame.buffer.withPicture { unsafe finisher.finish($0, steps) }
        return frame.with(buffer)
    }

    /// Turns and mirrors the frame by its own orientation, so that it is upright.
    package func upright(_ frame: VideoFrame) -> VideoFrame {
        var upright = apply(FrameTransform(rotation: frame.rotation, isMirrored: frame.isMirrored), to: frame)
        upright.rotation = .none
        upright.isMirrored = false
        return upright
    }

    /// Puts the frame's upright picture, as large as fits, into the middle of one of `size`.
    ///
    /// The rest has the colour of the upper left corner. A frame whose upright picture has that size is returned
    /// unchanged. This is for frames that are rare: pixels are copied one by one.
    package func place(_ frame: VideoFrame, in size: Dimensions) -> VideoFrame {
        guard frame.uprightDimensions != size else { return frame }
        let upright = upright(frame)
        let part = scale(upright, to: upright.dimensions.scaledDown(toFit: size)).buffer
        let buffer = pool.take(size)
        // Even ones, because two rows and columns share their colours.
        let (left, top) = ((size.width - part.dimensions.width) / 4 * 2, (size.height - part.dimensions.height) / 4 * 2)
        part.withPlanes { luma, chromaU, chromaV in
            buffer.withMutablePlanes { ownLuma, ownU, ownV in
                let colour = (luma[0], chromaU[0], chromaV[0])
                ownLuma.update(repeating: colour.0)
                ownU.update(repeating: colour.1)
                ownV.update(repeating: colour.2)
                for row in 0..<min(part.dimensions.height, size.height) {
                    for column in 0..<min(part.dimensions.width, size.width) {
                        let place = (top + row) * buffer.lumaStride + left + column
                        ownLuma[place] = luma[row * part.lumaStride + column]
                    }
                }
                let (chroma, ownChroma) = (part.chromaDimensions, buffer.chromaDimensions)
                for row in 0..<min(chroma.height, ownChroma.height) {
                    for column in 0..<min(chroma.width, ownChroma.width) {
                        let place = (top / 2 + row) * buffer.chromaStride + left / 2 + column
                        let source = row * part.chromaStride + column
                        (ownU[place], ownV[place]) = (chromaU[source], chromaV[source])
                    }
                }
            }
        }
        return upright.with(buffer)
    }
}
