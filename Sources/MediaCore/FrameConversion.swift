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

    /// A layout with the given fields.
    public init(pixelFormat: PixelFormat, dimensions: Dimensions, bytesPerRow: Int) {
        self.pixelFormat = pixelFormat
        self.dimensions = dimensions
        self.bytesPerRow = bytesPerRow
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
