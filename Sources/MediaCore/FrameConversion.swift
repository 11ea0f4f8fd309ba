/// Describes how a captured picture is laid out in a device's buffer.
public struct CapturedLayout: Hashable, Sendable {
    /// The pixel format of the bytes.
    public var pixelFormat: PixelFormat
    /// The size of the picture.
    public var dimensions: Dimensions
    /// Bytes from one row of the first plane to the next; 0 for compressed formats.
    ///
    /// If all planes are in one run of bytes, the further ones follow without a gap. Unless `chromaBytesPerRow` states
    /// their stride, it follows from this one as V4L2 prescribes (half of it for the chroma planes of `i420` and
    /// `yv12`, the same for those of `nv12` and `nv21`).
    public var bytesPerRow: Int
    /// Bytes from one row to the next of the second plane and of the third.
    ///
    /// A stride that is not stated follows from `bytesPerRow`, as described there.
    public var chromaBytesPerRow: [Int]
    /// How colours are coded; `nil` means the usual coding of the pixel format.
    ///
    /// The usual coding is BT.601 with limited range for YUV formats, and full range for RGB and grey. JPEG pictures
    /// always use BT.601 with full range, as JFIF defines.
    public var colour: CapturedColour?

    /// Creates a layout with the given fields.
    public init(
        pixelFormat: PixelFormat,
        dimensions: Dimensions,
        bytesPerRow: Int,
        chromaBytesPerRow: [Int] = [],
        colour: CapturedColour? = nil
    ) {
        self.pixelFormat = pixelFormat
        self.dimensions = dimensions
        self.bytesPerRow = bytesPerRow
        self.chromaBytesPerRow = chromaBytesPerRow
        self.colour = colour
    }
}

/// How a device codes colours.
///
/// Primaries and transfer function are not part of it: they are passed through unchanged.
public struct CapturedColour: Hashable, Sendable {
    /// The values that stand for black and white.
    public enum Range: Hashable, Sendable {
        /// 16 to 235 for luma and RGB, 16 to 240 for chroma.
        case limited
        /// 0 to 255.
        case full
    }

    /// How luma and chroma are computed from red, green and blue.
    public enum Matrix: Hashable, Sendable {
        /// ITU-R BT.601: standard definition, JFIF and nearly every webcam.
        case bt601
        /// ITU-R BT.709: high definition.
        case bt709
        /// ITU-R BT.2020, non-constant luminance.
        case bt2020
        /// SMPTE 240M.
        case smpte240M
    }

    /// The values that stand for black and white.
    public var range: Range
    /// How luma and chroma are computed; it has no effect for RGB and grey.
    public var matrix: Matrix

    /// Creates a coding of the given range and matrix.
    public init(range: Range, matrix: Matrix = .bt601) {
        self.range = range
        self.matrix = matrix
    }
}

/// Why a captured picture could not be used.
package enum DamagedPicture: Error, Hashable, Sendable {
    /// There are fewer bytes than the layout needs.
    case short(bytes: Int, needed: Int)
    /// The compressed data cannot be decoded.
    case undecodable
    /// The compressed data is a picture of this size, which is not the layout's.
    case otherSize(Dimensions)
}

/// Converts the bytes in a device's buffer, which are lent for one call, into a frame of our own.
///
/// Each device source gets a converter when it is put together. The device's mapped memory is therefore read once, in
/// place, and never leaves the source. Confine to one thread: that of the source.
package protocol CapturedFrameConverter: AnyObject {
    /// Whether pictures of `pixelFormat` can be converted.
    func accepts(_ pixelFormat: PixelFormat) -> Bool

    /// The requested size, before the converter's other steps; may change between pictures, `nil` for any size.
    ///
    /// Pictures are cropped to its aspect ratio and scaled down to it, never up.
    var requestedDimensions: Dimensions? { get set }

    /// The size of the frame that a captured picture of `dimensions` is converted into.
    func outputDimensions(for dimensions: Dimensions) -> Dimensions

    /// Converts one picture; the result is upright and has the size that the converter was set up for.
    ///
    /// - Parameters:
    ///   - bytes: The picture as the device delivered it, lent for the length of the call.
    ///   - layout: How the picture is laid out in `bytes`.
    ///   - timestamp: When it was captured.
    /// - Returns: A frame with `timestamp` and a buffer that nobody else holds.
    /// - Throws: `DamagedPicture`; the frame is then dropped as `corrupt`.
    func convert(
        _ bytes: RawSpan,
        layout: CapturedLayout,
        timestamp: MonotonicInstant
    ) throws(DamagedPicture) -> VideoFrame

    /// Makes a frame of an upright picture that takes the place of a converted one.
    ///
    /// A converter whose frames say how they must be turned turns the picture back and says the same of it, so that its
    /// frames are all of one size. By default the picture stays as it is.
    ///
    /// - Parameters:
    ///   - upright: A picture of the size `outputDimensions(for:)`.
    ///   - timestamp: When it counts as captured.
    /// - Returns: A frame with `timestamp`, in a buffer of the converter's own if it was turned.
    func frame(ofUpright upright: VideoBuffer, timestamp: MonotonicInstant) -> VideoFrame
}

extension CapturedFrameConverter {
    /// Makes a frame of the picture as it is.
    package func frame(ofUpright upright: VideoBuffer, timestamp: MonotonicInstant) -> VideoFrame {
        VideoFrame(buffer: upright, timestamp: timestamp)
    }
}

/// Reads raw pictures one by one from a file; confine to one thread.
public protocol VideoFrameReader: AnyObject {
    /// The size of every picture.
    var dimensions: Dimensions { get }
    /// Pictures per second, as the file states it.
    var frameRate: FrameRate { get }

    /// Reads the next picture into `buffer`, which must have the size `dimensions`.
    ///
    /// - Returns: `false` at the end of the file.
    /// - Throws: The file's error if the file is truncated or damaged here, or cannot be read.
    func readFrame(into buffer: VideoBuffer) throws -> Bool

    /// Whether bytes of the next picture wait in a pipe already, so that the last one read is no longer the newest.
    ///
    /// `false` by default, for files that are only played as clips.
    var isNextFrameWaiting: Bool { get }

    /// Goes back to the first picture.
    ///
    /// - Throws: The file's error if the file cannot be read again from its beginning.
    func rewind() throws
}

extension VideoFrameReader {
    /// `false`.
    public var isNextFrameWaiting: Bool { false }
}
