package import MediaCore

/// Reads the first bytes of a VP8 frame (RFC 6386, section 9.1); safe with any bytes.
package enum VP8Bitstream {
    /// The length of the frame tag, the start code and the two sizes.
    private static let keyframeHeaderBytes = 10

    /// Whether `bytes` begin with the whole header of a keyframe that has a size.
    package static func isKeyframe(_ bytes: RawSpan) -> Bool {
        keyframeDimensions(of: bytes) != nil
    }

    /// The size of the picture from the header of a keyframe.
    ///
    /// - Returns: `nil` for other frames, and if the header is cut, has no start code or states an empty picture.
    package static func keyframeDimensions(of bytes: RawSpan) -> Dimensions? {
        guard bytes.byteCount >= keyframeHeaderBytes, claimsKeyframe(bytes) else { return nil }
        guard byte(3, of: bytes) == 0x9D, byte(4, of: bytes) == 0x01, byte(5, of: bytes) == 0x2A else { return nil }
        // 14 bits of size, little-endian; the two bits above are advice for scaling.
        let width = (byte(6, of: bytes) | byte(7, of: bytes) << 8) & 0x3FFF
        let height = (byte(8, of: bytes) | byte(9, of: bytes) << 8) & 0x3FFF
        guard width > 0, height > 0 else { return nil }
        return Dimensions(width: width, height: height)
    }

    /// What makes a frame unfit to be passed on as it is.
    package enum Fault: Error, Hashable, Sendable {
        /// There are no bytes.
        case empty
        /// The bytes cannot be a frame of VP8.
        case notVP8
        /// The frame is not to be shown; others refer to it.
        case invisible
    }

    /// The length of the frame tag (RFC 6386, section 9.1), in bytes.
    private static let tagBytes = 3
    /// The highest of the bitstream's profiles.
    private static let highestProfile = 3

    /// Reads as much of a frame as it takes to pass it on: whether it can be VP8, and whether it is shown.
    ///
    /// - Returns: The size of a keyframe's picture; `nil` for another frame.
    package static func inspect(_ bytes: RawSpan) throws(Fault) -> Dimensions? {
        guard bytes.byteCount > 0 else { throw .empty }
        guard bytes.byteCount >= tagBytes else { throw .notVP8 }
        let tag = byte(0, of: bytes) | byte(1, of: bytes) << 8 | byte(2, of: bytes) << 16
        let isKeyframe = claimsKeyframe(bytes)
        let dimensions = isKeyframe ? keyframeDimensions(of: bytes) : nil
        let rest = bytes.byteCount - (isKeyframe ? keyframeHeaderBytes : tagBytes)
        let (profile, isShown, firstPartition) = (tag >> 1 & 7, tag >> 4 & 1 == 1, tag >> 5)
        guard profile <= highestProfile, (1...max(1, rest)).contains(firstPartition), rest > 0 else { throw .notVP8 }
        guard !isKeyframe || dimensions != nil else { throw .notVP8 }
        guard isShown else { throw .invisible }
        return dimensions
    }

    /// Whether the lowest bit of the frame tag marks a keyframe; the rest is not checked.
    static func claimsKeyframe(_ bytes: RawSpan) -> Bool {
        bytes.byteCount > 0 && byte(0, of: bytes) & 1 == 0
    }

    private static func byte(_ offset: Int, of bytes: RawSpan) -> Int {
        Int(unsafe bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
    }
}
