import CYUV
import MediaCore

/// The planes of a buffer, kept for longer than a lending, and libyuv's calls that read and write them.
///
/// A benchmark may do so: the buffer is kept beside it, and one thread does everything.
struct BareTarget {
    private let buffer: VideoBuffer
    private let luma: UnsafeMutablePointer<UInt8>
    private let chromaU: UnsafeMutablePointer<UInt8>
    private let chromaV: UnsafeMutablePointer<UInt8>
    private let lumaStride: Int32
    private let chromaStride: Int32

    init(_ buffer: VideoBuffer) {
        self.buffer = buffer
        let planes = buffer.withMutablePlanes { luma, chromaU, chromaV in
            [luma.address, chromaU.address, chromaV.address]
        }
        (luma, chromaU, chromaV) = (planes[0], planes[1], planes[2])
        (lumaStride, chromaStride) = (Int32(buffer.lumaStride), Int32(buffer.chromaStride))
    }

    private var width: Int32 { Int32(buffer.dimensions.width) }
    private var height: Int32 { Int32(buffer.dimensions.height) }

    /// Converts the part `kept` from the middle of a picture of `size`, and turns it.
    func convert(_ sample: Sample, keeping kept: Dimensions, of size: Dimensions, _ mode: RotationMode = kRotate0) {
        let status = sample.bytes.withUnsafeBufferPointer { bytes in
            ConvertToI420(
                bytes.baseAddress,
                bytes.count,
                luma,
                lumaStride,
                chromaU,
                chromaStride,
                chromaV,
                chromaStride,
                Int32((size.width - kept.width) / 2 & ~1),
                Int32((size.height - kept.height) / 2 & ~1),
                Int32(size.width),
                Int32(size.height),
                Int32(kept.width),
                Int32(kept.height),
                mode,
                UInt32(bitPattern: sample.code.rawValue)
            )
        }
        precondition(status == 0, "libyuv refuses \(sample.layout): \(status)")
    }

    /// Scales `source` to the buffer's size.
    func scale(_ source: BareTarget) {
        let status = I420Scale(
            source.luma,
            source.lumaStride,
            source.chromaU,
            source.chromaStride,
            source.chromaV,
            source.chromaStride,
            source.width,
            source.height,
            luma,
            lumaStride,
            chromaU,
            chromaStride,
            chromaV,
            chromaStride,
            width,
            height,
            kFilterBox
        )
        precondition(status == 0, "libyuv does not scale to \(buffer.dimensions): \(status)")
    }

    /// Turns `source`.
    func turn(_ source: BareTarget, _ mode: RotationMode) {
        let status = I420Rotate(
            source.luma,
            source.lumaStride,
            source.chromaU,
            source.chromaStride,
            source.chromaV,
            source.chromaStride,
            luma,
            lumaStride,
            chromaU,
            chromaStride,
            chromaV,
            chromaStride,
            source.width,
            source.height,
            mode
        )
        precondition(status == 0, "libyuv does not turn \(source.buffer.dimensions): \(status)")
    }

    /// Mirrors `source`, left to right.
    func mirror(_ source: BareTarget) {
        let status = I420Mirror(
            source.luma,
            source.lumaStride,
            source.chromaU,
            source.chromaStride,
            source.chromaV,
            source.chromaStride,
            luma,
            lumaStride,
            chromaU,
            chromaStride,
            chromaV,
            chromaStride,
            width,
            height
        )
        precondition(status == 0, "libyuv does not mirror \(source.buffer.dimensions): \(status)")
    }
}

extension MutableSpan<UInt8> {
    /// Where the bytes lie; valid as long as the memory is.
    fileprivate var address: UnsafeMutablePointer<UInt8> {
        mutating get {
            withUnsafeMutableBufferPointer { bytes in
                guard let start = bytes.baseAddress else { preconditionFailure("a plane without bytes") }
                return start
            }
        }
    }
}

extension VideoBuffer {
    /// The pixels of all planes, without padding.
    var visibleBytes: [UInt8] {
        let (size, chroma) = (dimensions, chromaDimensions)
        return withPlanes { luma, chromaU, chromaV in
            var bytes: [UInt8] = []
            for row in 0..<size.height {
                for column in 0..<size.width { bytes.append(luma[row * lumaStride + column]) }
            }
            for row in 0..<chroma.height {
                for column in 0..<chroma.width { bytes.append(chromaU[row * chromaStride + column]) }
                for column in 0..<chroma.width { bytes.append(chromaV[row * chromaStride + column]) }
            }
            return bytes
        }
    }

    /// Fills all planes with bytes that are not alike.
    func fillWithNoise() {
        withMutablePlanes { luma, chromaU, chromaV in
            for index in luma.indices { luma[index] = UInt8(truncatingIfNeeded: index &* 2_654_435_761 >> 13) }
            for index in chromaU.indices {
                chromaU[index] = UInt8(truncatingIfNeeded: index &* 40503 >> 5)
                chromaV[index] = UInt8(truncatingIfNeeded: index &* 30011 >> 4)
            }
        }
    }
}
