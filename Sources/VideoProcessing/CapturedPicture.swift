import CYUV
import MediaCore

/// The uncompressed formats, grouped by what libyuv needs to know about them.
enum RawPictureKind {
    case yuyv
    case uyvy
    case nv12
    case nv21
    case i420
    case yv12
    case grey
    case rgb24
    case bgr24

    init?(_ format: PixelFormat) {
        switch format {
        case .yuyv: self = .yuyv
        case .uyvy: self = .uyvy
        case .nv12: self = .nv12
        case .nv21: self = .nv21
        case .i420: self = .i420
        case .yv12: self = .yv12
        case .grey: self = .grey
        case .rgb24: self = .rgb24
        case .bgr24: self = .bgr24
        default: return nil
        }
    }
}

/// An uncompressed picture in a device's memory, with the positions of its planes and of the wanted part.
struct CapturedPicture {
    let kind: RawPictureKind
    let dimensions: Dimensions
    /// Bytes from row to row of the first plane, and of the others.
    let stride: Int
    let chromaStride: Int

    /// The largest plausible stride: 16,383 pixels of 4 bytes need a sixteenth of it.
    private static let largestStride = 1 << 20

    init(_ kind: RawPictureKind, _ layout: CapturedLayout) throws(DamagedPicture) {
        let width = layout.dimensions.width
        let limit = Dimensions.largestCodable
        guard (1...limit.width).contains(width), (1...limit.height).contains(layout.dimensions.height),
            layout.bytesPerRow <= Self.largestStride
        else { throw .undecodable }
        self.kind = kind
        dimensions = layout.dimensions
        // If a driver leaves the stride out, its rows have no padding.
        stride = max(layout.bytesPerRow, Self.rowBytes(kind, width))
        chromaStride = kind == .i420 || kind == .yv12 ? (stride + 1) / 2 : stride
    }

    private static func rowBytes(_ kind: RawPictureKind, _ width: Int) -> Int {
        switch kind {
        case .yuyv, .uyvy: (width + 1) / 2 * 4
        case .rgb24, .bgr24: width * 3
        case .nv12, .nv21, .i420, .yv12, .grey: width
        }
    }

    private var chromaRows: Int { (dimensions.height + 1) / 2 }

    /// The bytes from the first to the last pixel.
    var neededBytes: Int {
        let chromaWidth = (dimensions.width + 1) / 2
        let luma = stride * dimensions.height
        switch kind {
        case .yuyv, .uyvy, .rgb24, .bgr24, .grey:
            return stride * (dimensions.height - 1) + Self.rowBytes(kind, dimensions.width)
        case .nv12, .nv21: return luma + stride * (chromaRows - 1) + 2 * chromaWidth
        case .i420, .yv12: return luma + chromaStride * (2 * chromaRows - 1) + chromaWidth
        }
    }

    /// The picture's planes, if it is I420 or YV12; it then need not be converted first.
    func planes(at bytes: UnsafePointer<UInt8>) -> PlanarPicture? {
        guard kind == .i420 || kind == .yv12 else { return nil }
        let first = unsafe bytes + stride * dimensions.height
        let second = unsafe first + chromaStride * chromaRows
        return unsafe PlanarPicture(
            luma: bytes,
            chromaU: kind == .i420 ? first : second,
            chromaV: kind == .i420 ? second : first,
            lumaStride: Int32(stride),
            chromaStride: Int32(chromaStride),
            dimensions: dimensions
        )
    }

    /// Converts the part `region` into `buffer`, which has its size; upside down if `isFlipped`.
    func convert(_ bytes: UnsafePointer<UInt8>, _ region: PictureRegion, isFlipped: Bool, into buffer: VideoBuffer) {
        let status = unsafe buffer.withTarget { unsafe convert(bytes, region, isFlipped: isFlipped, into: $0) }
        precondition(status == 0, "converting \(kind) \(dimensions) to \(buffer.dimensions): \(status)")
    }

    /// Whether libyuv can turn the picture while it converts this format.
    var turnsInPassing: Bool { kind == .nv12 || kind == .nv21 }

    /// Converts and turns the part `region` into `buffer`, which has the turned size; only if `turnsInPassing`.
    func convert(_ bytes: UnsafePointer<UInt8>, _ region: PictureRegion, _ turn: Turn, into buffer: VideoBuffer) {
        let luma = unsafe bytes + region.row * stride + region.column
        let chroma = unsafe bytes + stride * (dimensions.height + region.row / 2) + region.column
        let status = unsafe buffer.withTarget { target in
            // NV21 is NV12 with U and V swapped.
            let chromaU = unsafe kind == .nv12 ? target.chromaU : target.chromaV
            let chromaV = unsafe kind == .nv12 ? target.chromaV : target.chromaU
            return unsafe NV12ToI420Rotate(
                luma,
                Int32(stride),
                chroma,
                Int32(stride),
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
        _ bytes: UnsafePointer<UInt8>,
        _ region: PictureRegion,
        isFlipped: Bool,
        into target: PlanarTarget
    ) -> Int32 {
        let width = Int32(region.dimensions.width)
        let height = Int32(isFlipped ? -region.dimensions.height : region.dimensions.height)
        let stride = Int32(stride)
        let row = unsafe bytes + region.row * Int(stride)
        let pairs = unsafe row + 2 * region.column
        let triples = unsafe row + 3 * region.column
        let luma = unsafe row + region.column
        let chroma = unsafe bytes + Int(stride) * (dimensions.height + region.row / 2) + region.column
        let (y, u, v) = unsafe (target.luma, target.chromaU, target.chromaV)
        let (yStride, uvStride) = unsafe (target.lumaStride, target.chromaStride)
        switch kind {
        case .yuyv:
            return unsafe YUY2ToI420(pairs, stride, y, yStride, u, uvStride, v, uvStride, width, height)
        case .uyvy:
            return unsafe UYVYToI420(pairs, stride, y, yStride, u, uvStride, v, uvStride, width, height)
        case .nv12:
            return unsafe NV12ToI420(
                luma,
                stride,
                chroma,
                stride,
                y,
                yStride,
                u,
                uvStride,
                v,
                uvStride,
                width,
                height
            )
        case .nv21:
            return unsafe NV21ToI420(
                luma,
                stride,
                chroma,
                stride,
                y,
                yStride,
                u,
                uvStride,
                v,
                uvStride,
                width,
                height
            )
        case .grey:
            return unsafe I400ToI420(luma, stride, y, yStride, u, uvStride, v, uvStride, width, height)
        case .rgb24:
            // libyuv names formats by the order in a little-endian word: RAW is bytes R G B, RGB24 is bytes B G R.
            return unsafe RAWToI420(triples, stride, y, yStride, u, uvStride, v, uvStride, width, height)
        case .bgr24:
            return unsafe RGB24ToI420(triples, stride, y, yStride, u, uvStride, v, uvStride, width, height)
        case .i420, .yv12:
            guard let part = unsafe planes(at: bytes)?.region(region) else { return -1 }
            return unsafe I420Copy(
                part.luma,
                part.lumaStride,
                part.chromaU,
                part.chromaStride,
                part.chromaV,
                part.chromaStride,
                y,
                yStride,
                u,
                uvStride,
                v,
                uvStride,
                width,
                height
            )
        }
    }
}
