public import MediaCore

/// Crops, turns and mirrors the pictures of a track, whatever their source.
///
/// `LocalVideoTrack.transform` applies it.
public struct VideoTransform: Hashable, Sendable {
    /// The size to center-crop to, after scaling and before turning; `nil` keeps the whole picture.
    ///
    /// Sides are reduced to even numbers, and to the sides of the picture.
    public var crop: Dimensions?
    /// The clockwise rotation.
    public var rotation = VideoRotation.none
    /// Whether pictures are mirrored, left to right, after turning.
    public var isMirrored = false

    /// Creates a transform that changes nothing.
    public init() {}
}

extension VideoTransform {
    /// Adds the turn and the mirroring to those that a picture is to have already.
    func turn(_ rotation: inout VideoRotation, _ isMirrored: inout Bool) {
        // What is mirrored and then turned looks as if it were turned the other way and then mirrored.
        rotation = isMirrored ? rotation + self.rotation.opposite : rotation + self.rotation
        isMirrored = isMirrored != self.isMirrored
    }
}
