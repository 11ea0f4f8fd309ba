/// How a captured picture lies in a device's buffer.
public struct CapturedLayout: Hashable, Sendable {
    /// The pixel format of the bytes.
    public var pixelFormat: PixelFormat
    /// The size of the picture.
    public var dimensions: Dimensions
    /// Bytes from one row of the first plane to the next; 0 for compressed formats.
    ///
    /// Further planes follow without a gap; their stride follows from this one as V4L2 prescribes (half of it for the
    /// chroma planes of `i420` and `yv12`, the same for those of `nv12` and `nv21`).
    public var bytesPerRow: Int
    /// How colours are coded; `nil` for what is usual in the pixel format.
    ///
    /// Usual is limited range and BT.601 for YUV formats, and full range for RGB and grey. JPEG pictures are of full
    /// range and BT.601 always, as JFIF has them.
    public var colour: CapturedColour?

    /// A layout with the given fields.
    public init(pixelFormat: PixelFormat, dimensions: Dimensions, bytesPerRow: Int, colour: CapturedColour? = nil) {
        self.pixelFormat = pixelFormat
        self.dimensions = dimensions
        self.bytesPerRow = bytesPerRow
        self.colour = colour
    }
}

/// How a device codes colours.
///
/// Primaries and transfer function are no part of it: they are passed through as they come.
public struct CapturedColour: Hashable, Sendable {
    /// Which numbers stand for black and white.
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

    /// Which numbers stand for black and white.
    public var range: Range
    /// How luma and chroma are computed; of no effect for RGB and grey.
    public var matrix: Matrix

    /// Colours coded so.
    public init(range: Range, matrix: Matrix = .bt601) {
        self.range = range
        self.matrix = matrix
    }
}

/// Why a captured picture could not be used.
public enum DamagedPicture: Error, Hashable, Sendable {
    /// The bytes are fewer than the layout needs.
    case short(bytes: Int, needed: Int)
    /// The compressed data cannot be decoded.
    case undecodable
}

/// Turns the bytes of a device's buffer, lent for the length of one call, into a frame of our own.
///
/// The assembly hands one to each device source, so that a device's mapped memory is read once, where it lies, and
/// never leaves the source. Confine to one thread: that of the source.
public protocol CapturedFrameConverter: AnyObject {
    /// Whether pictures of `pixelFormat` can be converted.
    func accepts(_ pixelFormat: PixelFormat) -> Bool

    /// The size that is asked for, before what else the converter does; changed between pictures, `nil` for any.
    ///
    /// Pictures are cut to its aspect ratio and scaled down to it, never up.
    var requestedDimensions: Dimensions? { get set }

    /// Converts one picture; what comes out is upright, in the size that the converter was set up for.
    ///
    /// - Parameters:
    ///   - bytes: The picture as the device delivered it, lent for the length of the call.
    ///   - layout: How it lies in `bytes`.
    ///   - timestamp: When it was captured.
    /// - Returns: A frame whose buffer is nobody else's, with `timestamp`.
    /// - Throws: `DamagedPicture`; the frame is then dropped as `corrupt`.
    func convert(
        _ bytes: RawSpan,
        layout: CapturedLayout,
        timestamp: MonotonicInstant
    ) throws(DamagedPicture) -> VideoFrame
}

/// Reads raw pictures one by one from a file; confine to one thread.
public protocol VideoFrameReader: AnyObject {
    /// The size of every picture.
    var dimensions: Dimensions { get }
    /// Pictures per second, as the file states it.
    var frameRate: FrameRate { get }

    /// Reads the next picture into `buffer`, which has the size `dimensions`.
    ///
    /// - Returns: `false` at the end of the file.
    /// - Throws: The file's error when the file is cut or damaged here, or cannot be read.
    func readFrame(into buffer: VideoBuffer) throws -> Bool

    /// Goes back to the first picture.
    ///
    /// - Throws: The file's error when the file cannot be read again from its beginning.
    func rewind() throws
}
