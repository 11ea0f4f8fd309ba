import MediaCore
import VideoProcessing

/// How the pictures of a track differ from those of its source.
struct PictureShape: Hashable, Sendable {
    /// The size that was requested and that the source does not make itself, before turning.
    var size: Dimensions?
    /// Whether pictures are fitted into `size`, and nothing of them is cut off for it.
    var isFitted = false
    /// What the application wants.
    var transform = VideoTransform()

    /// The frame, tagged with the turn and mirroring that the application wants beside its own.
    ///
    /// A slate is text to be read, and shows nothing of a camera, so it stays as it is.
    func tagged(_ frame: VideoFrame) -> VideoFrame {
        guard !frame.isSubstitute else { return frame }
        var frame = frame
        transform.turn(&frame.rotation, &frame.isMirrored)
        return frame
    }

    /// How the upright picture of the frame that `tagged` returned is scaled and cropped.
    func sizing(of frame: VideoFrame) -> FrameTransform {
        let sizing = FrameTransform(size: size, isFitted: isFitted, crop: transform.crop)
        // What was cropped of a slate could no longer be read, so it is made as small as the crop instead.
        if frame.isSubstitute {
            let isFitted = isFitted || transform.crop != nil
            return FrameTransform(size: sizing.outputDimensions(for: frame.uprightDimensions), isFitted: isFitted)
        }
        guard transform.rotation.swapsDimensions else { return sizing }
        return FrameTransform(size: size?.transposed, isFitted: isFitted, crop: transform.crop?.transposed)
    }
}
