import CYUV
import MediaCore

/// The uncompressed formats, grouped by what libyuv needs to know about them.
enum RawPictureKind: CaseIterable {
    case yuyv
    case yvyu
    case uyvy
    case nv12
    case nv21
    case nv16
    case i422
    case i420
    case yv12
    case grey
    case rgb24
    case bgr24
    case argb32
    case bgra32
    case rgba32
    case bgrx32
    case rgbx32

    init?(_ format: PixelFormat) {
        switch format {
        case .yuyv: self = .yuyv
        case .yvyu: self = .yvyu
        case .nv16: self = .nv16
        case .i422: self = .i422
        case .bgrx32: self = .bgrx32
        case .rgbx32: self = .rgbx32
        case .uyvy: self = .uyvy
        case .nv12: self = .nv12
        case .nv21: self = .nv21
        case .i420: self = .i420
        case .yv12: self = .yv12
        case .grey: self = .grey
        case .rgb24: self = .rgb24
        case .bgr24: self = .bgr24
        case .argb32: self = .argb32
        case .bgra32: self = .bgra32
        case .rgba32: self = .rgba32
        default: return nil
        }
    }

    /// The format's name.
    var format: PixelFormat {
        switch self {
        case .yuyv: .yuyv
        case .yvyu: .yvyu
        case .nv16: .nv16
        case .i422: .i422
        case .bgrx32: .bgrx32
        case .rgbx32: .rgbx32
        case .uyvy: .uyvy
        case .nv12: .nv12
        case .nv21: .nv21
        case .i420: .i420
        case .yv12: .yv12
        case .grey: .grey
        case .rgb24: .rgb24
        case .bgr24: .bgr24
        case .argb32: .argb32
        case .bgra32: .bgra32
        case .rgba32: .rgba32
        }
    }

    var planeCount: Int {
        switch self {
        case .i420, .yv12, .i422: 3
        case .nv12, .nv21, .nv16: 2
        case .yuyv, .yvyu, .uyvy, .grey, .rgb24, .bgr24, .argb32, .bgra32, .rgba32, .bgrx32, .rgbx32: 1
        }
    }

    /// The bytes of a row of plane `plane` without padding, in a picture `width` pixels wide.
    func rowBytes(_ width: Int, plane: Int = 0) -> Int {
        let chromaWidth = (width + 1) / 2
        switch self {
        case .yuyv, .yvyu, .uyvy: return chromaWidth * 4
        case .rgb24, .bgr24: return width * 3
        case .argb32, .bgra32, .rgba32, .bgrx32, .rgbx32: return width * 4
        case .grey: return width
        case .nv12, .nv21, .nv16: return plane == 0 ? width : 2 * chromaWidth
        case .i420, .yv12, .i422: return plane == 0 ? width : chromaWidth
        }
    }

    /// The rows of a picture to one row of its chroma planes.
    var rowsPerChromaRow: Int { self == .nv16 || self == .i422 ? 1 : 2 }
}

/// The planes of an uncompressed picture in somebody else's memory, for the length of a call; planes that a format does
/// not have are the first one.
@unsafe struct CapturedPlanes {
    var first: UnsafePointer<UInt8>
    var second: UnsafePointer<UInt8>
    var third: UnsafePointer<UInt8>
}

/// An uncompressed picture in a device's or application's memory, with the strides of its planes.
struct CapturedPicture {
    let kind: RawPictureKind
    let dimensions: Dimensions
    /// Bytes from row to row of each plane; planes that the format does not have repeat the last one's.
    let stride: Int
    let secondStride: Int
    let thirdStride: Int

    /// The largest plausible stride: 16,383 pixels of 4 bytes need a sixteenth of it.
    static let largestStride = 1 << 20

    /// Creates the picture of a device, whose driver may leave out the stride.
    init(_ kind: RawPictureKind, _ layout: CapturedLayout) throws(DamagedPicture) {
        let width = layout.dimensions.width
        let limit = Dimensions.largestCodable
        guard (1...limit.width).contains(width), (1...limit.height).contains(layout.dimensions.height),
            layout.bytesPerRow <= Self.largestStride, layout.chromaBytesPerRow.allSatisfy({ $0 <= Self.largestStride })
        else { throw .undecodable }
        self.init(kind, layout, stride: max(layout.bytesPerRow, kind.rowBytes(width)))
    }

    /// Creates the picture of a custom source, whose layout may have any content.
    init(checking layout: CapturedLayout) throws(InvalidPicture) {
        guard let kind = RawPictureKind(layout.pixelFormat) else {
            let formats = RawPictureKind.allCases.map { "\($0.format)" }.joined(separator: ", ")
            let problem = "Pictures of the format \(layout.pixelFormat) cannot be converted"
            throw InvalidPicture(.unsupportedFormat, "\(problem): give \(formats) or MJPG.")
        }
        let (size, limit) = (layout.dimensions, Dimensions.largestCodable)
        guard (1...limit.width).contains(size.width), (1...limit.height).contains(size.height) else {
            throw InvalidPicture(.dimensions, "A picture cannot be \(size): each side has 1 to \(limit.width) pixels.")
        }
        guard layout.chromaBytesPerRow.count < kind.planeCount else {
            let counts = "\(layout.chromaBytesPerRow.count + 1) strides for \(kind.planeCount) planes"
            throw InvalidPicture(.planeCount, "There are \(counts) of \(layout.words).")
        }
        // No array or text is made unless something is wrong: this runs for each picture.
        try layout.check(layout.bytesPerRow, ofPlane: 0, kind)
        for plane in layout.chromaBytesPerRow.indices {
            try layout.check(layout.chromaBytesPerRow[plane], ofPlane: plane + 1, kind)
        }
        self.init(kind, layout, stride: layout.bytesPerRow)
        // A stride that follows from an odd one can be too short.
        for plane in 1..<max(1, kind.planeCount) {
            let (stride, least) = (plane == 1 ? secondStride : thirdStride, kind.rowBytes(size.width, plane: plane))
            guard stride >= least else {
                let problem = "The stride of plane \(plane) of \(layout.words) would be \(stride)"
                throw InvalidPicture(.stride, "\(problem): it is at least \(least); state it in chromaBytesPerRow.")
            }
        }
    }

    private init(_ kind: RawPictureKind, _ layout: CapturedLayout, stride: Int) {
        self.kind = kind
        dimensions = layout.dimensions
        self.stride = stride
        let usual = kind.planeCount == 3 ? (stride + 1) / 2 : stride
        secondStride = layout.chromaBytesPerRow.first ?? usual
        thirdStride = layout.chromaBytesPerRow.dropFirst().first ?? secondStride
    }

    private var chromaRows: Int { (dimensions.height + kind.rowsPerChromaRow - 1) / kind.rowsPerChromaRow }

    /// The bytes from the first to the last pixel of plane `plane`.
    func neededBytes(plane: Int) -> Int {
        let rows = plane == 0 ? dimensions.height : chromaRows
        let stride = plane == 0 ? stride : plane == 1 ? secondStride : thirdStride
        return stride * (rows - 1) + kind.rowBytes(dimensions.width, plane: plane)
    }

    /// The bytes from the first to the last pixel, if the planes follow each other.
    var neededBytes: Int {
        let last = kind.planeCount - 1
        return offset(ofPlane: last) + neededBytes(plane: last)
    }

    private func offset(ofPlane plane: Int) -> Int {
        switch plane {
        case 0: 0
        case 1: stride * dimensions.height
        default: stride * dimensions.height + secondStride * chromaRows
        }
    }

    /// The planes, if they follow each other from `bytes` on.
    func planes(at bytes: UnsafePointer<UInt8>) -> CapturedPlanes {
        let (second, third) = (min(1, kind.planeCount - 1), kind.planeCount - 1)
        return unsafe CapturedPlanes(
            first: bytes,
            second: bytes + offset(ofPlane: second),
            third: bytes + offset(ofPlane: third)
        )
    }

    /// The picture, if it is I420 or YV12 with one stride for both chroma planes; it then need not be converted first.
    func planar(_ planes: CapturedPlanes) -> PlanarPicture? {
        guard kind == .i420 || kind == .yv12, secondStride == thirdStride else { return nil }
        return unsafe PlanarPicture(
            luma: planes.first,
            chromaU: kind == .i420 ? planes.second : planes.third,
            chromaV: kind == .i420 ? planes.third : planes.second,
            lumaStride: Int32(stride),
            chromaStride: Int32(secondStride),
            dimensions: dimensions
        )
    }

    /// Converts the part `region` into `buffer`, which has its size; upside down if `isFlipped`.
    func convert(_ planes: CapturedPlanes, _ region: PictureRegion, isFlipped: Bool, into buffer: VideoBuffer) {
        let status = unsafe buffer.withTarget { unsafe convert(planes, region, isFlipped: isFlipped, into: $0) }
        precondition(status == 0, "converting \(kind) \(dimensions) to \(buffer.dimensions): \(status)")
    }

    /// Whether libyuv can turn the picture while it converts this format.
    var turnsInPassing: Bool { kind == .nv12 || kind == .nv21 }

    /// Converts and turns the part `region` into `buffer`, which has the turned size; only if `turnsInPassing`.
    func convert(_ planes: CapturedPlanes, _ region: PictureRegion, _ turn: Turn, into buffer: VideoBuffer) {
        let luma = unsafe planes.first + region.row * stride + region.column
        let chroma = unsafe planes.second + region.row / 2 * secondStride + region.column
        let status = unsafe buffer.withTarget { target in
            // NV21 is NV12 with U and V swapped.
            let chromaU = unsafe kind == .nv12 ? target.chromaU : target.chromaV
            let chromaV = unsafe kind == .nv12 ? target.chromaV : target.chromaU
            return unsafe NV12ToI420Rotate(
                luma,
                Int32(stride),
                chroma,
                Int32(secondStride),
                target.luma,
                target.lumaStride,
                chromaU,
                target.chromaStride,
                chromaV,
                target.chromaStride,
                Int32(region.dimensions.width),
                turn.signed(region.dimensions.height),
                turn.mode
            )
        }
        precondition(status == 0, "turning \(kind) \(dimensions) to \(buffer.dimensions): \(status)")
    }

    private func convert(
        _ planes: CapturedPlanes,
        _ region: PictureRegion,
        isFlipped: Bool,
        into target: PlanarTarget
    ) -> Int32 {
        let width = Int32(region.dimensions.width)
        let height = Int32(isFlipped ? -region.dimensions.height : region.dimensions.height)
        let source = unsafe planes.first + region.row * stride + region.column * bytesPerPixel
        let stride = Int32(stride)
        let (y, u, v) = unsafe (target.luma, target.chromaU, target.chromaV)
        let (yStride, uvStride) = unsafe (target.lumaStride, target.chromaStride)
        switch kind {
        case .yuyv:
            return unsafe YUY2ToI420(source, stride, y, yStride, u, uvStride, v, uvStride, width, height)
        case .yvyu:
            // The same with U and V swapped.
            return unsafe YUY2ToI420(source, stride, y, yStride, v, uvStride, u, uvStride, width, height)
        case .nv16, .i422:
            return unsafe convertPlanar422(planes, region, isFlipped: isFlipped, into: target)
        case .uyvy:
            return unsafe UYVYToI420(source, stride, y, yStride, u, uvStride, v, uvStride, width, height)
        case .grey:
            return unsafe I400ToI420(source, stride, y, yStride, u, uvStride, v, uvStride, width, height)
        // libyuv names formats by the order in a little-endian word: RAW is bytes R G B, RGB24 is bytes B G R, ARGB is
        // bytes B G R A, and so on.
        case .rgb24:
            return unsafe RAWToI420(source, stride, y, yStride, u, uvStride, v, uvStride, width, height)
        case .bgr24:
            return unsafe RGB24ToI420(source, stride, y, yStride, u, uvStride, v, uvStride, width, height)
        case .bgra32, .bgrx32:
            return unsafe ARGBToI420(source, stride, y, yStride, u, uvStride, v, uvStride, width, height)
        case .rgba32, .rgbx32:
            return unsafe ABGRToI420(source, stride, y, yStride, u, uvStride, v, uvStride, width, height)
        case .argb32:
            return unsafe BGRAToI420(source, stride, y, yStride, u, uvStride, v, uvStride, width, height)
        case .nv12, .nv21:
            // NV21 is NV12 with U and V swapped.
            let (first, second) = unsafe kind == .nv12 ? (u, v) : (v, u)
            let pairs = unsafe planes.second + region.row / 2 * secondStride + region.column
            let pairStride = Int32(secondStride)
            return unsafe NV12ToI420(
                source,
                stride,
                pairs,
                pairStride,
                y,
                yStride,
                first,
                uvStride,
                second,
                uvStride,
                width,
                height
            )
        case .i420, .yv12:
            let (first, second) = unsafe kind == .i420 ? (u, v) : (v, u)
            return unsafe I420Copy(
                source,
                stride,
                planes.second + region.row / 2 * secondStride + region.column / 2,
                Int32(secondStride),
                planes.third + region.row / 2 * thirdStride + region.column / 2,
                Int32(thirdStride),
                y,
                yStride,
                first,
                uvStride,
                second,
                uvStride,
                width,
                height
            )
        }
    }

    /// Converts planar 4:2:2: each row of chroma is the mean of two, also where the picture has an odd number of rows.
    private func convertPlanar422(
        _ planes: CapturedPlanes,
        _ region: PictureRegion,
        isFlipped: Bool,
        into target: PlanarTarget
    ) -> Int32 {
        let (width, height) = (region.dimensions.width, region.dimensions.height)
        let (bytes, chromaWidth) = (Int32(kind.rowBytes(width, plane: 1)), Int32((width + 1) / 2))
        let source = unsafe planes.first + region.row * stride + region.column
        let signed = Int32(isFlipped ? -height : height)
        unsafe CopyPlane(source, Int32(stride), target.luma, target.lumaStride, Int32(width), signed)
        let column = kind == .nv16 ? region.column : region.column / 2
        let second = unsafe planes.second + region.row * secondStride + column
        let third = unsafe planes.third + region.row * thirdStride + column
        /// Writes the mean of rows `row` and `row + 1` of a plane.
        func mean(
            _ plane: UnsafePointer<UInt8>,
            _ stride: Int,
            _ row: Int,
            _ target: UnsafeMutablePointer<UInt8>
        ) -> Int32 {
            let (upper, lower) = unsafe (plane + row * stride, plane + min(row + 1, height - 1) * stride)
            return unsafe InterpolatePlane(upper, bytes, lower, bytes, target, bytes, bytes, 1, 128)
        }
        return unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Int(bytes)) { pairs in
            guard let pairs = pairs.baseAddress else { return 0 }
            var status: Int32 = 0
            let rows = (height + 1) / 2
            for row in 0..<rows where status == 0 {
                let place = (isFlipped ? rows - 1 - row : row) * Int(unsafe target.chromaStride)
                let (u, v) = unsafe (target.chromaU + place, target.chromaV + place)
                if kind == .nv16 {
                    status = unsafe mean(second, secondStride, 2 * row, pairs)
                    unsafe SplitUVPlane(pairs, bytes, u, chromaWidth, v, chromaWidth, chromaWidth, 1)
                } else {
                    status = unsafe mean(second, secondStride, 2 * row, u)
                    if status == 0 { status = unsafe mean(third, thirdStride, 2 * row, v) }
                }
            }
            return status
        }
    }

    /// The bytes of a pixel in the first plane.
    private var bytesPerPixel: Int {
        switch kind {
        case .nv12, .nv21, .nv16, .i420, .yv12, .i422, .grey: 1
        case .yuyv, .yvyu, .uyvy: 2
        case .rgb24, .bgr24: 3
        case .argb32, .bgra32, .rgba32, .bgrx32, .rgbx32: 4
        }
    }
}

extension CapturedLayout {
    /// The picture in words, for messages.
    fileprivate var words: String { "a \(pixelFormat) picture of \(dimensions)" }

    /// Checks a stride that the layout states.
    fileprivate func check(_ stride: Int, ofPlane plane: Int, _ kind: RawPictureKind) throws(InvalidPicture) {
        let range = kind.rowBytes(dimensions.width, plane: plane)...CapturedPicture.largestStride
        guard range.contains(stride) else {
            let problem = "The stride of plane \(plane) of \(words) cannot be \(stride)"
            throw InvalidPicture(.stride, "\(problem): it is \(range.lowerBound) to \(range.upperBound).")
        }
    }
}
