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
    /// A slate is text to be read, and shows nothing of a camera. So it is neither turned nor cropped, but has the size
    /// that pictures have, with all of its text.
    func tagged(_ frame: VideoFrame) -> VideoFrame {
        var picture = frame
        transform.turn(&picture.rotation, &picture.isMirrored)
        guard frame.isSubstitute else { return picture }
        picture.isSubstitute = false
        return frame.placed(in: sizing(of: picture).outputDimensions(for: picture.uprightDimensions))
    }

    /// How the upright picture of the frame that `tagged` returned is scaled and cropped.
    func sizing(of frame: VideoFrame) -> FrameTransform {
        guard !frame.isSubstitute else { return FrameTransform() }
        let sizing = FrameTransform(size: size, isFitted: isFitted, crop: transform.crop)
        guard transform.rotation.swapsDimensions else { return sizing }
        return FrameTransform(size: size?.transposed, isFitted: isFitted, crop: transform.crop?.transposed)
    }
}

extension VideoFrame {
    /// The upright picture as large as fits into the middle of one of `size`, with even sides, in the colour of its
    /// upper left corner.
    ///
    /// A frame whose upright picture has that size is returned unchanged. This takes new memory each time, for frames that
    /// are rare.
    fileprivate func placed(in size: Dimensions) -> VideoFrame {
        guard uprightDimensions != size else { return self }
        let scaler = FrameScaler()
        let upright = scaler.upright(self)
        let part = scaler.scale(upright, to: upright.dimensions.scaledDown(toFit: size))
        let buffer = VideoBuffer(dimensions: size)
        let (left, top) = ((size.width - part.dimensions.width) / 4 * 2, (size.height - part.dimensions.height) / 4 * 2)
        part.buffer.withPlanes { luma, chromaU, chromaV in
            buffer.withMutablePlanes { ownLuma, ownU, ownV in
                let colour = (luma[0], chromaU[0], chromaV[0])
                ownLuma.update(repeating: colour.0)
                ownU.update(repeating: colour.1)
                ownV.update(repeating: colour.2)
                for row in 0..<min(part.dimensions.height, size.height) {
                    for column in 0..<min(part.dimensions.width, size.width) {
                        ownLuma[(top + row) * buffer.lumaStride + left + column] =
                            luma[row * part.buffer.lumaStride + column]
                    }
                }
                for row in 0..<min(part.buffer.chromaDimensions.height, buffer.chromaDimensions.height) {
                    for column in 0..<min(part.buffer.chromaDimensions.width, buffer.chromaDimensions.width) {
                        let place = (top / 2 + row) * buffer.chromaStride + left / 2 + column
                        let source = row * part.buffer.chromaStride + column
                        (ownU[place], ownV[place]) = (chromaU[source], chromaV[source])
                    }
                }
            }
        }
        return upright.with(buffer)
    }
}
