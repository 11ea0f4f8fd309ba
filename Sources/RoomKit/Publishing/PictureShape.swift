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
        return FrameScaler().place(frame, in: sizing(of: picture).outputDimensions(for: picture.uprightDimensions))
    }

    /// How the upright picture of the frame that `tagged` returned is scaled and cropped.
    func sizing(of frame: VideoFrame) -> FrameTransform {
        guard !frame.isSubstitute else { return FrameTransform() }
        let sizing = FrameTransform(size: size, isFitted: isFitted, crop: transform.crop)
        guard transform.rotation.swapsDimensions else { return sizing }
        return FrameTransform(size: size?.transposed, isFitted: isFitted, crop: transform.crop?.transposed)
    }
}

/// A frame of a source as a track shows it.
struct ShapedFrame: Sendable {
    /// What the source delivered.
    var source: VideoFrame
    let shape: PictureShape
    /// The frame with the turn and mirroring that the application wants.
    var frame: VideoFrame
    /// How the upright picture of `frame` is scaled and cropped.
    let sizing: FrameTransform

    /// The frame `source` as `shape` wants it.
    init(_ source: VideoFrame, in shape: PictureShape) {
        self.source = source
        self.shape = shape
        frame = shape.tagged(source)
        sizing = shape.sizing(of: frame)
    }
}

/// Which picture is shown, and in which way: a frame of the same appearance as the one before it shows nothing new.
struct Appearance: Equatable, Sendable {
    private let buffer: VideoBuffer
    private let rotation: VideoRotation
    private let isMirrored: Bool
    private let sizing: FrameTransform

    /// That of `frame`, which is turned upright and then scaled and cropped by `sizing`.
    init(of frame: VideoFrame, sizing: FrameTransform) {
        buffer = frame.buffer
        rotation = frame.rotation
        isMirrored = frame.isMirrored
        self.sizing = sizing
    }

    static func == (one: Self, other: Self) -> Bool {
        one.buffer === other.buffer && one.rotation == other.rotation && one.isMirrored == other.isMirrored
            && one.sizing == other.sizing
    }
}
