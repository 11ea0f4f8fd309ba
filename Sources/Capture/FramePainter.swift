public import MediaCore

/// What a picture is to be painted for.
public struct FrameAssignment: Sendable {
    /// Counts the source's frames, those that were skipped included.
    public var number: UInt32
    /// When painting began, which is when the picture counts as captured.
    public var timestamp: MonotonicInstant
    /// The size that was asked for, if any.
    public var dimensions: Dimensions?
    /// The rate at which frames are due.
    public var frameRate: FrameRate

    /// An assignment with the given fields.
    public init(number: UInt32, timestamp: MonotonicInstant, dimensions: Dimensions? = nil, frameRate: FrameRate) {
        self.number = number
        self.timestamp = timestamp
        self.dimensions = dimensions
        self.frameRate = frameRate
    }
}

/// Makes the pictures of a source; made and used on the source's thread alone.
public protocol FramePainter: AnyObject {
    /// The size of the pictures unless another one is asked for.
    var dimensions: Dimensions { get }
    /// The highest rate of the pictures.
    var frameRate: FrameRate { get }

    /// Makes a picture, in a buffer that nobody else writes; `nil` once there are no more.
    ///
    /// - Throws: What ends the source; it comes as `CaptureEvent.failed`.
    func paint(_ assignment: FrameAssignment) throws -> VideoBuffer?
}

extension Dimensions {
    /// The nearest size that a `VideoBuffer` can have.
    package var codable: Dimensions {
        Dimensions(
            width: min(max(width, 1), Self.largestCodable.width),
            height: min(max(height, 1), Self.largestCodable.height)
        )
    }
}
