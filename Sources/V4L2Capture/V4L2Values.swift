import CV4L2
import MediaCore

/// What a node says it is.
struct DeviceCapability: Equatable {
    var driver: String
    var card: String
    var busInfo: String
    /// The `V4L2_CAP_…` bits of this very node (not of the whole device).
    var bits: UInt32

    /// Whether the node captures pictures by streaming.
    ///
    /// Metadata and output nodes lack the first; a codec's node has bits of its own. A node that can also be written to
    /// (a loopback) is a camera.
    var isCamera: Bool {
        let capture = UInt32(V4L2_CAP_VIDEO_CAPTURE) | UInt32(V4L2_CAP_VIDEO_CAPTURE_MPLANE)
        return bits & capture != 0 && bits & UInt32(V4L2_CAP_STREAMING) != 0
    }

    /// Whether only the multi-planar calls work.
    var isMultiplanar: Bool { bits & UInt32(V4L2_CAP_VIDEO_CAPTURE) == 0 }
}

/// A picture format as a driver states it back.
struct DeliveredFormat: Equatable {
    var pixelFormat: PixelFormat
    var dimensions: Dimensions
    /// Bytes from row to row; 0 if the driver does not say.
    var bytesPerRow: Int
    /// Bytes of the largest picture.
    var imageSize: Int
    /// `V4L2_FIELD_…`.
    var field: UInt32
    /// Memory planes; more than one only with the multi-planar calls.
    var planeCount: Int
}

/// A buffer that the driver hands over.
struct FilledBuffer: Equatable {
    var index: Int
    /// Where in the buffer the content begins; not 0 only with the multi-planar calls.
    var start: Int
    /// Where it ends.
    var end: Int
    /// Whether the driver marked the content as damaged.
    var isDamaged: Bool
    var sequence: UInt32
    /// The driver's stamp, if it is of the monotonic clock.
    var timestamp: MonotonicInstant?
}

// MARK: - Values from the driver

/// A size, if a picture can have it.
func pictureSize(_ width: UInt32, _ height: UInt32) -> Dimensions? {
    let size = Dimensions(width: Int(width), height: Int(height))
    let largest = Dimensions.largestCodable
    guard (1...largest.width).contains(size.width), (1...largest.height).contains(size.height) else { return nil }
    return size
}

/// The rate of an interval in seconds; `nil` for fractions that no camera means.
func frameRate(interval: v4l2_fract) -> FrameRate? {
    // What needs more than 31 bits is a driver's error.
    guard let seconds = Int32(exactly: interval.numerator), let frames = Int32(exactly: interval.denominator),
        seconds > 0, frames > 0
    else { return nil }
    return FrameRate(numerator: Int(frames), denominator: Int(seconds))
}

/// What a driver made of a format; `nil` if no picture can have the size.
func delivered(_ format: v4l2_pix_format, planeCount: Int = 1) -> DeliveredFormat? {
    guard let size = pictureSize(format.width, format.height) else { return nil }
    return DeliveredFormat(
        pixelFormat: PixelFormat(rawValue: format.pixelformat),
        dimensions: size,
        bytesPerRow: Int(format.bytesperline),
        imageSize: Int(format.sizeimage),
        field: format.field,
        planeCount: planeCount
    )
}

/// The C format of pictures of `size`.
func pixFormat(_ format: PixelFormat, _ size: Dimensions) -> v4l2_pix_format {
    var pix = v4l2_pix_format()
    pix.width = UInt32(size.width)
    pix.height = UInt32(size.height)
    pix.pixelformat = format.rawValue
    pix.field = V4L2_FIELD_NONE.rawValue
    return pix
}

/// A C string of bounded length, with what a terminal would obey replaced.
func driverText(_ bytes: UnsafeRawBufferPointer) -> String {
    let decoded = unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    let printable = decoded.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }
    return String(String.UnicodeScalarView(printable))
}
