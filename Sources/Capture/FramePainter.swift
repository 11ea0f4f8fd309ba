public import MediaCore

/// Describes the picture that a painter must make.
public struct FrameAssignment: Sendable {
    /// The number of the frame, counted from the source's first one, skipped frames included.
    public var number: UInt32
    /// When painting began; this counts as the capture time.
    public var timestamp: MonotonicInstant
    /// The requested size, if any.
    public var dimensions: Dimensions?
    /// The rate at which frames are due.
    public var frameRate: FrameRate

    /// Creates an assignment with the given fields.
    public init(number: UInt32, timestamp: MonotonicInstant, dimensions: Dimensions? = nil, frameRate: FrameRate) {
        self.number = number
        self.timestamp = timestamp
        self.dimensions = dimensions
        self.frameRate = frameRate
    }
}

/// Makes the pictures of a source; it is created and used only on the source's thread.
public protocol FramePainter: AnyObject {
    /// The size of the pictures unless another one is requested.
    var dimensions: Dimensions { get }
    /// The highest rate of the pictures.
    var frameRate: FrameRate { get }
    /// The application's bytes for the picture that was painted last; `nil`, the default, for none.
    var metadata: FrameMetadata? { get }

    /// Paints a picture into a buffer that nobody else writes; returns `nil` after the last picture.
    ///
    /// - Throws: An error that ends the source; it is reported as `CaptureEvent.failed`.
    func paint(_ assignment: FrameAssignment) throws -> VideoBuffer?
}

extension FramePainter {
    /// No metadata.
    public var metadata: FrameMetadata? { nil }
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
