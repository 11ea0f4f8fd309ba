import MediaCore

/// What a picture is to be painted for.
struct FrameAssignment {
    /// Counts the source's frames, those that were skipped included.
    var number: UInt32
    /// When painting began, which is when the picture counts as captured.
    var timestamp: MonotonicInstant
    /// The size that was asked for, if any.
    var dimensions: Dimensions?
    /// The rate at which frames are due.
    var frameRate: FrameRate
}

/// Makes the pictures of a source; made and used on the source's thread alone.
protocol FramePainter: AnyObject {
    /// The size of the pictures unless another one is asked for.
    var dimensions: Dimensions { get }
    /// The highest rate of the pictures.
    var frameRate: FrameRate { get }

    /// Makes a picture; `nil` once there are no more.
    func paint(_ assignment: FrameAssignment) throws -> VideoBuffer?
}

extension Dimensions {
    /// The nearest size that a `VideoBuffer` can have.
    var codable: Dimensions {
        Dimensions(
            width: min(max(width, 1), Self.largestCodable.width),
            height: min(max(height, 1), Self.largestCodable.height)
        )
    }
}
