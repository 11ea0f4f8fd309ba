/// The layout of a picture's pixels in memory, named by V4L2's four-character code.
public struct PixelFormat: RawRepresentable, Hashable, Sendable {
    /// The four characters as `v4l2_fourcc` packs them, the first one in the lowest byte.
    public var rawValue: UInt32

    /// Creates the format with the packed code `rawValue`.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The bit with which V4L2 marks big-endian formats that share their characters with little-endian ones.
    private static let bigEndian: UInt32 = 1 << 31
    /// The suffix of big-endian formats in text, as `v4l2-ctl` writes it.
    private static let bigEndianSuffix = "-BE"

    /// Creates the format of a four-character code; `nil` unless `code` has one to four ASCII characters.
    ///
    /// Shorter codes are filled with blanks, as V4L2 does (`Y16 `). Big-endian formats end in `-BE` (`Y16-BE`).
    public init?(fourCC code: String) {
        if code.hasSuffix(Self.bigEndianSuffix) {
            let characters = String(code.dropLast(Self.bigEndianSuffix.count))
            guard let other = PixelFormat(fourCC: characters), other.rawValue & Self.bigEndian == 0 else { return nil }
            self.rawValue = other.rawValue | Self.bigEndian
            return
        }
        let bytes = Array(code.utf8)
        guard (1...4).contains(bytes.count), bytes.allSatisfy({ (0x20..<0x7F).contains($0) }) else { return nil }
        self.rawValue = (bytes + [0x20, 0x20, 0x20]).prefix(4).enumerated().reduce(0) { packed, item in
            packed | UInt32(item.element) << (8 * UInt32(item.offset))
        }
    }

    /// The compiler computes constants made by this; those made from text would be computed when they are first used.
    private init(_ first: Unicode.Scalar, _ second: Unicode.Scalar, _ third: Unicode.Scalar, _ fourth: Unicode.Scalar) {
        rawValue = first.value | second.value << 8 | third.value << 16 | fourth.value << 24
    }

    /// Planar 4:2:0, the format of encoder and decoder: a full Y plane, then quarter-size U and V planes.
    public static let i420 = PixelFormat("Y", "U", "1", "2")
    /// Planar 4:2:0 with V before U.
    public static let yv12 = PixelFormat("Y", "V", "1", "2")
    /// A full Y plane, then one plane of interleaved U and V at a quarter of the resolution.
    public static let nv12 = PixelFormat("N", "V", "1", "2")
    /// As `nv12`, with V before U.
    public static let nv21 = PixelFormat("N", "V", "2", "1")
    /// Packed 4:2:2, bytes Y U Y V.
    public static let yuyv = PixelFormat("Y", "U", "Y", "V")
    /// Packed 4:2:2, bytes U Y V Y.
    public static let uyvy = PixelFormat("U", "Y", "V", "Y")
    /// Packed 4:2:2, bytes Y V Y U.
    public static let yvyu = PixelFormat("Y", "V", "Y", "U")
    /// Planar 4:2:2: Y, and then U and V side by side.
    public static let nv16 = PixelFormat("N", "V", "1", "6")
    /// Planar 4:2:2: Y, U and V.
    public static let i422 = PixelFormat("4", "2", "2", "P")
    /// Motion JPEG: every frame a JPEG picture.
    public static let mjpeg = PixelFormat("M", "J", "P", "G")
    /// Eight bits of luma only.
    public static let grey = PixelFormat("G", "R", "E", "Y")
    /// Packed bytes R G B.
    public static let rgb24 = PixelFormat("R", "G", "B", "3")
    /// Packed bytes B G R.
    public static let bgr24 = PixelFormat("B", "G", "R", "3")
    /// Packed bytes A R G B; the alpha byte is ignored.
    public static let argb32 = PixelFormat("B", "A", "2", "4")
    /// Packed bytes B G R A, the format of most screens; the alpha byte is ignored.
    public static let bgra32 = PixelFormat("A", "R", "2", "4")
    /// Packed bytes R G B A; the alpha byte is ignored.
    public static let rgba32 = PixelFormat("A", "B", "2", "4")
    /// Packed bytes B G R X, as `bgra32` without alpha; what `ScreenSource` captures.
    public static let bgrx32 = PixelFormat("X", "R", "2", "4")
    /// Packed bytes R G B X, as `rgba32` without alpha.
    public static let rgbx32 = PixelFormat("X", "B", "2", "4")

    /// Single JPEG pictures, which some drivers call so.
    private static let jpeg = PixelFormat("J", "P", "E", "G")

    /// Whether frames are compressed pictures, which have no fixed length.
    public var isCompressed: Bool { self == .mjpeg || self == .jpeg }
}

extension PixelFormat: CustomStringConvertible {
    /// The four characters without trailing blanks, then `-BE` if big-endian; `?` for characters that cannot be
    /// printed.
    public var description: String {
        var text = ""
        for shift in stride(from: UInt32(0), to: 32, by: 8) {
            let byte = UInt8(truncatingIfNeeded: (rawValue & ~Self.bigEndian) >> shift)
            text.unicodeScalars.append((0x20..<0x7F).contains(byte) ? Unicode.Scalar(byte) : "?")
        }
        while text.hasSuffix(" ") { text.removeLast() }
        return rawValue & Self.bigEndian == 0 ? text : text + Self.bigEndianSuffix
    }
}

/// The format that a source delivers: size, rate and pixel format.
public struct VideoFormat: Hashable, Sendable {
    /// The size of a picture.
    public var dimensions: Dimensions
    /// Pictures per second.
    public var frameRate: FrameRate
    /// How the pixels lie in memory.
    public var pixelFormat: PixelFormat

    /// Creates a format of the given size, rate and layout.
    public init(dimensions: Dimensions, frameRate: FrameRate, pixelFormat: PixelFormat) {
        self.dimensions = dimensions
        self.frameRate = frameRate
        self.pixelFormat = pixelFormat
    }
}

extension VideoFormat: CustomStringConvertible {
    /// The format as `640x480 30 fps YUYV`.
    public var description: String { "\(dimensions) \(frameRate) fps \(pixelFormat)" }
}

/// The format that a source or a track is asked to deliver; a field that is `nil` means "don't care".
///
/// A request replaces the one before it, with all its fields.
public struct VideoFormatRequest: Hashable, Sendable {
    /// The wanted size, in pixels.
    ///
    /// Frames of another size are center-cropped to its aspect ratio and scaled down, never up. The published pictures of
    /// a screen are scaled to fit instead, and nothing of them is cut off.
    public var dimensions: Dimensions?
    /// The highest wanted rate; frames above it are left out.
    public var frameRate: FrameRate?
    /// The wanted pixel layout, one of those the source offers.
    public var pixelFormat: PixelFormat?

    /// Creates a request for the given fields.
    public init(dimensions: Dimensions? = nil, frameRate: FrameRate? = nil, pixelFormat: PixelFormat? = nil) {
        self.dimensions = dimensions
        self.frameRate = frameRate
        self.pixelFormat = pixelFormat
    }

    /// Creates a request for the size, the rate and the pixel layout of `format`, such as one of
    /// `CameraSource.supportedFormats(captureDevice:)`.
    public init(_ format: VideoFormat) {
        self.init(dimensions: format.dimensions, frameRate: format.frameRate, pixelFormat: format.pixelFormat)
    }

    /// The request with the fields of `fallback` where its own are `nil`.
    package func completed(with fallback: VideoFormatRequest) -> VideoFormatRequest {
        VideoFormatRequest(
            dimensions: dimensions ?? fallback.dimensions,
            frameRate: frameRate ?? fallback.frameRate,
            pixelFormat: pixelFormat ?? fallback.pixelFormat
        )
    }
}

/// The clockwise turn that makes a picture upright.
public enum VideoRotation: Int, Hashable, Sendable, CaseIterable {
    /// No turn: the picture is upright.
    case none = 0
    /// A quarter turn clockwise.
    case clockwise90 = 90
    /// Half a turn.
    case half = 180
    /// A quarter turn counter-clockwise.
    case clockwise270 = 270

    /// Whether the turn swaps width and height.
    public var swapsDimensions: Bool { self == .clockwise90 || self == .clockwise270 }

    /// The turn that undoes this one.
    package var opposite: VideoRotation { VideoRotation(rawValue: (360 - rawValue) % 360) ?? .none }

    /// The result of both turns, one after the other.
    package static func + (first: VideoRotation, second: VideoRotation) -> VideoRotation {
        VideoRotation(rawValue: (first.rawValue + second.rawValue) % 360) ?? .none
    }
}
