import CV4L2
import MediaCore

/// The name of the driver v4l2loopback.
let loopbackDriver = "v4l2 loopback"

/// A node's description of itself.
struct DeviceCapability: Equatable {
    var driver: String
    var card: String
    var busInfo: String
    /// The `V4L2_CAP_…` bits of this node (not of the whole device).
    var bits: UInt32

    /// Whether the node captures pictures by streaming.
    ///
    /// Metadata and output nodes lack the capture bit; a codec's node has other bits. A node that can also be written
    /// to (a loopback) is a camera.
    var isCamera: Bool {
        let capture = UInt32(V4L2_CAP_VIDEO_CAPTURE) | UInt32(V4L2_CAP_VIDEO_CAPTURE_MPLANE)
        return bits & capture != 0 && bits & UInt32(V4L2_CAP_STREAMING) != 0
    }

    /// Whether the node is the end of a pipeline that a program must set up first, by the media controller.
    ///
    /// The image processors of laptops and boards have up to 48 such nodes. They offer formats, and deliver nothing by
    /// themselves.
    var isPipelineEnd: Bool { bits & UInt32(V4L2_CAP_IO_MC) != 0 }

    /// Whether it is a device of v4l2loopback, which shows what another program writes, and has no hardware.
    var isLoopback: Bool { driver == loopbackDriver }

    /// Whether only the multi-planar calls work.
    var isMultiplanar: Bool { bits & UInt32(V4L2_CAP_VIDEO_CAPTURE) == 0 }
}

/// A picture format as a driver states it.
struct DeliveredFormat: Equatable {
    var pixelFormat: PixelFormat
    var dimensions: Dimensions
    /// Bytes from row to row; 0 if the driver does not say.
    var bytesPerRow: Int
    /// The bytes of the largest picture.
    var imageSize: Int
    /// `V4L2_FIELD_…`.
    var field: UInt32
    /// The number of memory planes; more than one only with the multi-planar calls.
    var planeCount: Int
    /// The colour coding that the driver states.
    var colour = StatedColour()
}

/// A driver's statement about colours, in V4L2's numbers; 0 for a field that follows from the others.
struct StatedColour: Equatable {
    /// `V4L2_COLORSPACE_…`.
    var colorspace: UInt32 = 0
    /// `V4L2_YCBCR_ENC_…`.
    var encoding: UInt32 = 0
    /// `V4L2_QUANTIZATION_…`.
    var quantization: UInt32 = 0
}

extension StatedColour {
    /// How pictures of `format` are coded; `nil` for the usual coding.
    ///
    /// Defaults are those of `V4L2_MAP_YCBCR_ENC_DEFAULT` and `V4L2_MAP_QUANTIZATION_DEFAULT` in videodev2.h. Grey
    /// without a quantization is the exception: it has full range, as drivers deliver it (`v4l2-tpg-core.c`,
    /// `tpg_s_fourcc`).
    func colour(of format: PixelFormat) -> CapturedColour? {
        if format == .mjpeg || format == .jpeg { return nil }
        let isLimited =
            switch quantization {
            case V4L2_QUANTIZATION_FULL_RANGE.rawValue: false
            case V4L2_QUANTIZATION_LIM_RANGE.rawValue: true
            default: !(format.isRGB || format == .grey || colorspace == V4L2_COLORSPACE_JPEG.rawValue)
            }
        return CapturedColour(range: isLimited ? .limited : .full, matrix: matrix)
    }

    private var matrix: CapturedColour.Matrix {
        switch encoding {
        case V4L2_YCBCR_ENC_601.rawValue, V4L2_YCBCR_ENC_XV601.rawValue: return .bt601
        case V4L2_YCBCR_ENC_709.rawValue, V4L2_YCBCR_ENC_XV709.rawValue: return .bt709
        // Constant luminance is not linear in the values; the non-constant kind is the nearest linear one.
        case V4L2_YCBCR_ENC_BT2020.rawValue, V4L2_YCBCR_ENC_BT2020_CONST_LUM.rawValue: return .bt2020
        case V4L2_YCBCR_ENC_SMPTE240M.rawValue: return .smpte240M
        default: break
        }
        switch colorspace {
        case V4L2_COLORSPACE_REC709.rawValue, V4L2_COLORSPACE_DCI_P3.rawValue: return .bt709
        case V4L2_COLORSPACE_BT2020.rawValue: return .bt2020
        case V4L2_COLORSPACE_SMPTE240M.rawValue: return .smpte240M
        default: return .bt601
        }
    }
}

/// A buffer that the driver hands over.
struct FilledBuffer: Equatable {
    var index: Int
    /// The offset in the buffer at which the content begins; not 0 only with the multi-planar calls.
    var start: Int
    /// The offset at which the content ends.
    var end: Int
    /// Whether the driver marked the content as damaged.
    var isDamaged: Bool
    var sequence: UInt32
    /// Whether a newer frame was handed over before it.
    var isOvertaken = false
    /// The driver's timestamp, if it is of the monotonic clock.
    var timestamp: MonotonicInstant?
}

// MARK: - Values from the driver

/// A size, if it is possible for a picture.
func pictureSize(_ width: UInt32, _ height: UInt32) -> Dimensions? {
    let size = Dimensions(width: Int(width), height: Int(height))
    let largest = Dimensions.largestCodable
    guard (1...largest.width).contains(size.width), (1...largest.height).contains(size.height) else { return nil }
    return size
}

/// The rate of an interval in seconds; `nil` for fractions that no camera has.
func frameRate(interval: v4l2_fract) -> FrameRate? {
    // A fraction that needs more than 31 bits is a driver's error.
    guard let seconds = Int32(exactly: interval.numerator), let frames = Int32(exactly: interval.denominator),
        seconds > 0, frames > 0
    else { return nil }
    return FrameRate(numerator: Int(frames), denominator: Int(seconds))
}

/// The format that a driver made of a request; `nil` if its size is impossible for a picture.
func delivered(_ format: v4l2_pix_format, planeCount: Int = 1) -> DeliveredFormat? {
    guard let size = pictureSize(format.width, format.height) else { return nil }
    return DeliveredFormat(
        pixelFormat: PixelFormat(rawValue: format.pixelformat),
        dimensions: size,
        bytesPerRow: Int(format.bytesperline),
        imageSize: Int(format.sizeimage),
        field: format.field,
        planeCount: planeCount,
        colour: statedColour(format)
    )
}

private func statedColour(_ format: v4l2_pix_format) -> StatedColour {
    var colour = StatedColour(colorspace: format.colorspace)
    // Without this mark, the fields after it are not valid.
    guard format.priv == UInt32(bitPattern: Int32(truncatingIfNeeded: V4L2_PIX_FMT_PRIV_MAGIC)) else { return colour }
    colour.encoding = format.ycbcr_enc
    colour.quantization = format.quantization
    return colour
}

/// The C format of pictures of `size`.
func pixFormat(_ format: PixelFormat, _ size: Dimensions) -> v4l2_pix_format {
    var pix = v4l2_pix_format()
    pix.width = UInt32(size.width)
    pix.height = UInt32(size.height)
    pix.pixelformat = format.rawValue
    pix.field = V4L2_FIELD_NONE.rawValue
    // This mark makes the colour fields valid; left at 0, they ask for the device's own colours.
    pix.priv = UInt32(bitPattern: Int32(truncatingIfNeeded: V4L2_PIX_FMT_PRIV_MAGIC))
    return pix
}

/// The text of a C string of bounded length, with characters replaced that control a terminal.
func driverText(_ bytes: UnsafeRawBufferPointer) -> String {
    let decoded = unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    let printable = decoded.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }
    return String(String.UnicodeScalarView(printable))
}
