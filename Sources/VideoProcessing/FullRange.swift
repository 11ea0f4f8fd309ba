import MediaCore

extension VideoBuffer {
    /// Converts a picture from full range (JFIF) to limited range (BT.601), in place and exactly rounded.
    ///
    /// libyuv has no such conversion. Padding is converted along with the rows, because its value is undefined anyway.
    func limitRange() {
        limitLuma()
        withMutablePlanes { _, chromaU, chromaV in
            // c' = 128 + 224 (c - 128) / 255
            limit(&chromaU, factor: 224, offset: 128 * (255 - 224))
            limit(&chromaV, factor: 224, offset: 128 * (255 - 224))
        }
    }

    /// Does the same as `limitRange()` for a picture without colours.
    func limitLuma() {
        withMutablePlanes { luma, _, _ in
            // y' = 16 + 219 y / 255
            limit(&luma, factor: 219, offset: 16 * 255)
        }
    }
}

/// Replaces each byte x by (factor x + offset) / 255, rounded; the numerator must fit into 16 bits.
private func limit(_ plane: inout MutableSpan<UInt8>, factor: UInt16, offset: UInt16) {
    // Strides are multiples of 16.
    precondition(plane.count.isMultiple(of: 16), "a plane of \(plane.count) bytes")
    unsafe plane.withUnsafeMutableBytes { bytes in
        for position in stride(from: 0, to: bytes.count, by: 16) {
            let pixels = unsafe bytes.loadUnaligned(fromByteOffset: position, as: SIMD16<UInt8>.self)
            // Division by 255 with rounding: n + 128, plus its own 256th, over 256.
            let sum = SIMD16<UInt16>(truncatingIfNeeded: pixels) &* factor &+ (offset &+ 128)
            let limited = (sum &+ (sum &>> 8)) &>> 8
            let bounded = SIMD16<UInt8>(truncatingIfNeeded: limited)
            unsafe bytes.storeBytes(of: bounded, toByteOffset: position, as: SIMD16<UInt8>.self)
        }
    }
}
