import CYUV
package import MediaCore

/// A layout of packed red, green and blue, as libyuv writes it.
package enum PackedLayout: CaseIterable, Sendable {
    /// Bytes B G R A.
    case bgra
    /// Bytes R G B A.
    case rgba
    /// Bytes R G B.
    case rgb24
    /// Bytes B G R.
    case bgr24

    /// Bytes of one pixel.
    package var bytesPerPixel: Int {
        switch self {
        case .bgra, .rgba: 4
        case .rgb24, .bgr24: 3
        }
    }
}

extension VideoFrame {
    /// The bytes that a copy takes.
    ///
    /// - Parameters:
    ///   - layout: The layout of the copy.
    ///   - bytesPerRow: Bytes from one row of the copy to the next.
    /// - Returns: The bytes up to the last pixel; what would follow it in the last row is not needed.
    /// - Throws: `InvalidPicture` if a row does not fit into `bytesPerRow`.
    package func byteCount(as layout: PackedLayout, bytesPerRow: Int) throws(InvalidPicture) -> Int {
        let size = uprightDimensions
        let row = size.width * layout.bytesPerPixel
        // Strides go to C as 32 bits.
        guard bytesPerRow >= row, bytesPerRow <= Int(Int32.max) else {
            let limits = "\(row) to \(Int32.max) bytes"
            throw InvalidPicture(.stride, "A row of \(size.width) pixels takes \(limits), not \(bytesPerRow).")
        }
        return bytesPerRow * (size.height - 1) + row
    }

    /// Copies the picture, upright, into `target`; padding between the rows stays as it is.
    ///
    /// - Parameters:
    ///   - target: The memory of the copy; its first bytes are used.
    ///   - bytesPerRow: Bytes from one row of the copy to the next.
    ///   - layout: The layout of the copy.
    /// - Throws: `InvalidPicture` if a row does not fit into `bytesPerRow`, or the picture does not fit into `target`;
    ///   nothing is written then.
    @unsafe package func copy(
        to target: UnsafeMutableRawBufferPointer,
        bytesPerRow: Int,
        as layout: PackedLayout
    ) throws(InvalidPicture) {
        let needed = try byteCount(as: layout, bytesPerRow: bytesPerRow)
        guard target.count >= needed, let address = target.baseAddress else {
            let size = "\(uprightDimensions) with \(bytesPerRow) bytes a row"
            throw InvalidPicture(.short, "A picture of \(size) takes \(needed) bytes, not \(target.count).")
        }
        let bytes = unsafe address.assumingMemoryBound(to: UInt8.self)
        unsafe uprightBuffer.withPicture { picture in
            let status = unsafe layout.convert(picture, to: bytes, Int32(bytesPerRow))
            precondition(status == 0, "converting \(dimensions) to \(layout): \(status)")
        }
    }

    /// The pixels, upright; a picture that is so already is not copied.
    private var uprightBuffer: VideoBuffer {
        guard !isUpright else { return buffer }
        let turned = VideoBuffer(dimensions: uprightDimensions)
        let turn = Turn(rotation, isMirrored: isMirrored)
        unsafe buffer.withPicture { unsafe turned.fill(turning: $0, turn) }
        return turned
    }
}

extension PackedLayout {
    /// Converts a picture, BT.601 with limited range; the alpha bytes are 255.
    fileprivate func convert(
        _ picture: PlanarPicture,
        to target: UnsafeMutablePointer<UInt8>,
        _ bytesPerRow: Int32
    ) -> Int32 {
        let (y, u, v) = unsafe (picture.luma, picture.chromaU, picture.chromaV)
        let (stride, chromaStride) = unsafe (picture.lumaStride, picture.chromaStride)
        let (width, height) = unsafe (Int32(picture.dimensions.width), Int32(picture.dimensions.height))
        // libyuv names formats by the order in a little-endian word: RAW is bytes R G B, RGB24 is bytes B G R, ARGB is
        // bytes B G R A.
        return switch self {
        case .bgra:
            unsafe I420ToARGB(y, stride, u, chromaStride, v, chromaStride, target, bytesPerRow, width, height)
        case .rgba:
            unsafe I420ToABGR(y, stride, u, chromaStride, v, chromaStride, target, bytesPerRow, width, height)
        case .rgb24:
            unsafe I420ToRAW(y, stride, u, chromaStride, v, chromaStride, target, bytesPerRow, width, height)
        case .bgr24:
            unsafe I420ToRGB24(y, stride, u, chromaStride, v, chromaStride, target, bytesPerRow, width, height)
        }
    }
}
