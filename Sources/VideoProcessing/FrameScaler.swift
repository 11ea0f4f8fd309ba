package import MediaCore
import Threading

/// Makes smaller, turned or mirrored pictures of frames; its buffers are used again.
///
/// Have one for each size that is wanted: a pool of mixed sizes allocates again and again. May be used from several
/// threads.
package final class FrameScaler: Sendable {
    private let pool = VideoBufferPool()
    private let scalingPool = VideoBufferPool(limit: 4)

    /// A scaler without buffers yet.
    package init() {}

    /// The frame at size `target`, cropped to its aspect ratio from the middle; each pixel the mean of those it covers.
    ///
    /// A frame that has the size already is returned as it is. Odd sides of `target` are brought down to even ones, and
    /// no side is less than 2.
    package func scale(_ frame: VideoFrame, to target: Dimensions) -> VideoFrame {
        guard frame.dimensions != target else { return frame }
        let target = target.evenAndCodable
        guard frame.dimensions != target else { return frame }
        let buffer = pool.take(target)
        unsafe frame.buffer.withPicture { picture in
            unsafe buffer.fill(scaling: picture.region(PictureRegion(ofShape: target, in: frame.dimensions)))
        }
        return VideoFrame(buffer: buffer, timestamp: frame.timestamp, rotation: frame.rotation)
    }

    /// The frame after `transform`; the frame's own `rotation` stays what it is.
    package func apply(_ transform: FrameTransform, to frame: VideoFrame) -> VideoFrame {
        let finisher = PictureFinisher(transform: transform, pool: pool, scalingPool: scalingPool)
        let steps = transform.steps(for: frame.dimensions)
        let isWhole = steps.kept.dimensions == frame.dimensions
        if isWhole, finisher.isFinished(steps), !transform.isMirrored, transform.rotation == .none { return frame }
        let buffer = unsafe frame.buffer.withPicture { unsafe finisher.finish($0, steps) }
        return VideoFrame(buffer: buffer, timestamp: frame.timestamp, rotation: frame.rotation)
    }

    /// The frame turned by its own `rotation`, so that it stands upright.
    package func upright(_ frame: VideoFrame) -> VideoFrame {
        var upright = apply(FrameTransform(rotation: frame.rotation), to: frame)
        upright.rotation = .none
        return upright
    }
}
