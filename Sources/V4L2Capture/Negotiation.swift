import CV4L2
import Glibc
import MediaCore

/// The format that a camera was set to, as the driver states it.
struct NegotiatedFormat: Equatable {
    /// The format in the driver's own terms.
    var delivered: DeliveredFormat
    /// The rate that the driver states; the chosen one if it states none.
    var frameRate: FrameRate
    /// Whether pictures go through libv4lconvert.
    var needsLibV4L: Bool
    /// Bytes from row to row; 0 for compressed formats and for formats that libv4lconvert reads.
    var bytesPerRow: Int
    /// Whether the driver calls the format compressed.
    var isCompressed: Bool

    /// The format for our own users.
    var videoFormat: VideoFormat {
        VideoFormat(
            dimensions: delivered.dimensions,
            frameRate: frameRate,
            pixelFormat: delivered.pixelFormat
        )
    }

    /// The layout of a picture in the bytes that are lent to the converter.
    var layout: CapturedLayout {
        CapturedLayout(
            pixelFormat: needsLibV4L ? delivered.pixelFormat.formatByLibV4L : delivered.pixelFormat.converterFormat,
            dimensions: delivered.dimensions,
            bytesPerRow: needsLibV4L ? delivered.dimensions.width : bytesPerRow,
            colour: colour
        )
    }

    /// How colours are coded in the bytes that are lent to the converter.
    private var colour: CapturedColour? {
        // libv4lconvert delivers deep grey with the same levels as a driver's grey.
        let format = delivered.pixelFormat
        let stated = delivered.colour.colour(of: format.formatByLibV4L == .grey ? .grey : format)
        guard needsLibV4L else { return stated }
        // libv4lconvert turns RGB and Bayer pictures into BT.601 with limited range. It treats compressed pictures as
        // being that, and leaves the values of YUV formats unchanged.
        let isConverted = isCompressed || !format.isYUVOfLibV4L
        return isConverted ? nil : stated
    }
}

/// Sets a camera to the best of its formats, and checks what the driver made of it.
struct Negotiation {
    let device: V4L2Device
    let path: String
    let accepts: (PixelFormat) -> Bool
    let holder: () -> String?

    /// Chooses and sets format and rate for `request`.
    func settle(_ request: VideoFormatRequest) throws(CameraError) -> NegotiatedFormat {
        do {
            let offered = try FormatEnumeration.read(device, wanted: request, accepts: accepts)
            let choice = try choose(from: offered, for: request)
            let delivered = try device.setFormat(choice.pixelFormat, choice.dimensions)
            let checked = try check(delivered, request: request, offered: offered)
            let rate = try setFrameRate(choice.frameRate)
            return NegotiatedFormat(
                delivered: checked.delivered,
                frameRate: rate ?? choice.frameRate,
                needsLibV4L: checked.needsLibV4L,
                bytesPerRow: checked.bytesPerRow,
                isCompressed: offered.contains { $0.pixelFormat == checked.delivered.pixelFormat && $0.isCompressed }
            )
        } catch let failure as SystemCallFailure {
            throw CameraError(failure, device: path, isOpen: true, holder: holder)
        } catch let error as CameraError {
            throw error
        } catch {
            throw CameraError(.driverFailed, device: path, attempt: "set up", explanation: "\(error)")
        }
    }

    private func choose(
        from offered: [CaptureFormat],
        for request: VideoFormatRequest
    ) throws(CameraError) -> VideoFormat {
        let refusal: FormatSelection.Refusal
        do {
            return try FormatSelection.choose(from: offered, for: request)
        } catch {
            refusal = error
        }
        let readable = offered.filter { $0.decoding != .unsupported }.map(\.pixelFormat.description)
        let advice = readable.isEmpty ? "" : "; choose one of \(readable.joined(separator: ", "))"
        switch refusal {
        case .notOffered(let format):
            throw error(.noSuchFormat, "the camera has no pixel format \(format)\(advice)")
        case .undecodable(let format):
            throw error(.unsupportedFormat, "pictures in \(format) cannot be read by this program\(advice)")
        case .nothingDecodable:
            let names = offered.map(\.pixelFormat.description).joined(separator: ", ")
            throw error(
                .unsupportedFormat,
                offered.isEmpty
                    ? "the driver lists no picture format; the camera may need to be set up by its vendor's tool first"
                    : "none of its formats (\(names)) can be read by this program; choose another camera"
            )
        }
    }

    /// Checks what the driver made of the requested format.
    private func check(
        _ delivered: DeliveredFormat?,
        request: VideoFormatRequest,
        offered: [CaptureFormat]
    ) throws(CameraError) -> (delivered: DeliveredFormat, needsLibV4L: Bool, bytesPerRow: Int) {
        guard let delivered else {
            throw error(.unsupportedFormat, "the driver delivers pictures of an impossible size")
        }
        let format = delivered.pixelFormat
        if let forced = request.pixelFormat, forced != format {
            throw error(.unsupportedFormat, "the driver delivers \(format) when asked for \(forced); ask for that")
        }
        let offer = offered.first { $0.pixelFormat == format }
        let decoding = offer?.decoding ?? (accepts(format) ? .direct : .unsupported)
        guard decoding.canDecode(delivered.dimensions) else {
            throw error(.unsupportedFormat, "the driver insists on \(format), which this program cannot read")
        }
        guard delivered.planeCount == 1 else {
            throw error(.unsupportedFormat, "the driver delivers \(format) in \(delivered.planeCount) separate planes")
        }
        // Both fields of a picture, or always the same one, as capture cards deliver it for small sizes.
        let whole = [
            V4L2_FIELD_ANY, V4L2_FIELD_NONE, V4L2_FIELD_INTERLACED, V4L2_FIELD_INTERLACED_TB, V4L2_FIELD_INTERLACED_BT,
            V4L2_FIELD_TOP, V4L2_FIELD_BOTTOM,
        ]
        guard whole.contains(where: { $0.rawValue == delivered.field }) else {
            throw error(
                .unsupportedFormat,
                "the driver delivers the two fields of interlaced video apart; ask for half the height"
            )
        }
        let least = format.leastBytesPerRow(delivered.dimensions.width)
        guard delivered.bytesPerRow == 0 || delivered.bytesPerRow >= least else {
            throw error(.unsupportedFormat, "the driver states \(delivered.bytesPerRow) bytes for rows of \(least)")
        }
        let isPacked = decoding == .direct && least > 0
        return (
            delivered,
            needsLibV4L: decoding == .libv4l,
            bytesPerRow: isPacked ? max(delivered.bytesPerRow, least) : 0
        )
    }

    /// Sets the rate; a driver that cannot set it keeps its own.
    private func setFrameRate(_ rate: FrameRate) throws(SystemCallFailure) -> FrameRate? {
        do {
            if let given = try device.setFrameRate(rate) { return given }
            return try device.currentFrameRate()
        } catch {
            guard [EINVAL, ENOTTY, ENOSYS, EOPNOTSUPP].contains(error.status) else { throw error }
            return nil
        }
    }

    private func error(_ code: CameraError.Code, _ explanation: String) -> CameraError {
        CameraError(code, device: path, attempt: "capture from", explanation: explanation)
    }
}

extension PixelFormat {
    private static func formats(_ codes: String) -> Set<PixelFormat> {
        Set(codes.split(separator: " ").compactMap { PixelFormat(fourCC: String($0)) })
    }

    private static let rgb = formats("RGB3 BGR3")
    /// The uncompressed YUV formats that libv4lconvert 1.22 reads (`libv4lconvert.c`, `supported_src_pixfmts`).
    private static let yuvOfLibV4L = formats(
        "YVYU VYUY UYVY YUYV NV16 NV61 NV12 YU12 YV12 422P Y10B Y16 Y16-BE M420 HM12"
    )

    /// Whether the converter reads red, green and blue.
    var isRGB: Bool { Self.rgb.contains(self) }
    /// Whether libv4lconvert only moves luma and chroma to other places.
    fileprivate var isYUVOfLibV4L: Bool { Self.yuvOfLibV4L.contains(self) }

    /// Grey pictures of more than eight bits.
    private static let deepGrey = Set(["Y10B", "Y16", "Y16-BE"].compactMap { PixelFormat(fourCC: $0) })

    /// The format of libv4lconvert's output: I420, except that deep grey keeps its full-range luma, as in `grey`.
    fileprivate var formatByLibV4L: PixelFormat { Self.deepGrey.contains(self) ? .grey : .i420 }

    /// The least number of bytes in a row of the first plane; 0 if rows have no fixed length, or if we do not read
    /// them.
    func leastBytesPerRow(_ width: Int) -> Int {
        switch self {
        case .yuyv, .uyvy, .yvyu: 4 * ((width + 1) / 2)
        case .rgb24, .bgr24: 3 * width
        case .i420, .yv12, .nv12, .nv21, .i422, .nv16, .grey: width
        default: 0
        }
    }
}
