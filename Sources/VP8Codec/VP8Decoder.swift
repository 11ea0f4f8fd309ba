import CVPX
package import MediaCore

/// Decodes the VP8 frames of one track.
///
/// Confine to one thread. Any bytes are safe: at worst `decode` throws or returns a wrong picture.
@safe package struct VP8Decoder: ~Copyable {
    /// The size with the largest area that the encoder makes, and that a decoder accepts by default.
    ///
    /// 16,777,216 pixels are 25 MB, and a decoder holds up to four such pictures. The bound covers every camera format
    /// up to 16 megapixels, and more than one thread can encode in real time.
    package static let maximumDimensions = Dimensions(width: 4096, height: 4096)

    private let context = CodecContext()
    private let maximumDimensions: Dimensions
    private var needsKeyframe = true

    /// Creates a decoder that begins with a keyframe.
    ///
    /// - Parameter maximumDimensions: Pictures of a larger area are refused before any memory is allocated for them.
    /// - Throws: `libraryFailure` when libvpx cannot be opened.
    package init(maximumDimensions: Dimensions = Self.maximumDimensions) throws(VP8Error) {
        self.maximumDimensions = maximumDimensions
        var configuration = vpx_codec_dec_cfg_t(threads: 1, w: 0, h: 0)
        try context.check(unsafe cvpx_decoder_open(context.pointer, &configuration), "open a decoder")
    }

    /// Whether only a keyframe can be decoded next, as at the beginning and after a frame that could not be decoded.
    package var isWaitingForKeyframe: Bool { needsKeyframe }

    /// Decodes one frame; after an error, decoding continues with the next keyframe.
    ///
    /// - Parameters:
    ///   - bytes: The whole frame.
    ///   - timestamp: When the picture was captured; the returned frame carries it.
    ///   - makeBuffer: Called once; returns a buffer of exactly the given size that only the caller holds. It returns
    ///     `nil` if nobody wants the pixels, which are then not copied.
    /// - Returns: The picture; `nil` if `makeBuffer` returned `nil`, and for a frame that must not be shown.
    /// - Throws: `keyframeNeeded`, `pictureTooLarge` or `damagedData`.
    package mutating func decode(
        _ bytes: RawSpan,
        timestamp: MonotonicInstant,
        makeBuffer: (Dimensions) -> VideoBuffer?
    ) throws(VP8Error) -> VideoFrame? {
        if VP8Bitstream.claimsKeyframe(bytes) {
            needsKeyframe = true
            try checkKeyframeHeader(bytes)
        } else if bytes.isEmpty {
            // libvpx would treat it as a lost frame, and show the frame before once more.
            needsKeyframe = true
            throw VP8Error(.damagedData, attempt: Self.attempt, detail: "no bytes")
        } else if needsKeyframe {
            throw VP8Error(.keyframeNeeded, attempt: Self.attempt)
        }
        do throws(VP8Error) {
            try submit(bytes)
        } catch {
            needsKeyframe = true
            throw error
        }
        needsKeyframe = false
        return copyPicture(timestamp: timestamp, makeBuffer)
    }

    private static let attempt = "decode a frame"

    private borrowing func checkKeyframeHeader(_ bytes: RawSpan) throws(VP8Error) {
        guard let dimensions = VP8Bitstream.keyframeDimensions(of: bytes) else {
            throw VP8Error(.damagedData, attempt: Self.attempt, detail: "\(bytes.byteCount) bytes, no keyframe header")
        }
        guard dimensions.area <= maximumDimensions.area else {
            let detail = "\(dimensions), where \(maximumDimensions) is the limit"
            throw VP8Error(.pictureTooLarge, attempt: Self.attempt, detail: detail)
        }
    }

    /// Decodes the frame with libvpx, and checks that it is whole.
    private borrowing func submit(_ bytes: RawSpan) throws(VP8Error) {
        guard let count = UInt32(exactly: bytes.byteCount) else {
            throw VP8Error(.damagedData, attempt: Self.attempt, detail: "\(bytes.byteCount) bytes")
        }
        let status = unsafe bytes.withUnsafeBytes { bytes in
            let data = unsafe bytes.bindMemory(to: UInt8.self)
            return unsafe vpx_codec_decode(context.pointer, data.baseAddress, count, nil, 0)
        }
        guard status == VPX_CODEC_OK else { throw context.failure(.damagedData, status, Self.attempt) }
        // If a part of the frame is missing, libvpx may decode zeros instead, and reports that only when asked.
        var isCorrupt: Int32 = 0
        try context.check(
            unsafe cvpx_get(context.pointer, Int32(VP8D_GET_FRAME_CORRUPTED.rawValue), &isCorrupt),
            Self.attempt
        )
        if isCorrupt != 0 { throw VP8Error(.damagedData, attempt: Self.attempt, detail: "data ran out") }
    }

    private borrowing func copyPicture(
        timestamp: MonotonicInstant,
        _ makeBuffer: (Dimensions) -> VideoBuffer?
    ) -> VideoFrame? {
        var iterator: vpx_codec_iter_t?
        guard let image = unsafe vpx_codec_get_frame(context.pointer, &iterator) else { return nil }
        let dimensions = unsafe Dimensions(width: Int(image.pointee.d_w), height: Int(image.pointee.d_h))
        guard let buffer = makeBuffer(dimensions) else { return nil }
        precondition(buffer.dimensions == dimensions, "a buffer of \(buffer.dimensions) for a picture of \(dimensions)")
        let (planes, strides) = unsafe (image.pointee.planes, image.pointee.stride)
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            unsafe luma.copyRows(planes.0, strides.0, of: dimensions, stride: buffer.lumaStride)
            unsafe chromaU.copyRows(planes.1, strides.1, of: buffer.chromaDimensions, stride: buffer.chromaStride)
            unsafe chromaV.copyRows(planes.2, strides.2, of: buffer.chromaDimensions, stride: buffer.chromaStride)
        }
        return VideoFrame(buffer: buffer, timestamp: timestamp)
    }
}

extension MutableSpan<UInt8> {
    /// Copies a plane of `dimensions` bytes from `source`, whose rows lie `sourceStride` bytes apart.
    fileprivate mutating func copyRows(
        _ source: UnsafeMutablePointer<UInt8>?,
        _ sourceStride: Int32,
        of dimensions: Dimensions,
        stride: Int
    ) {
        guard let source = unsafe source else { return }
        precondition((dimensions.height - 1) * stride + dimensions.width <= count, "a plane of \(count) bytes")
        unsafe withUnsafeMutableBytes { target in
            guard let target = target.baseAddress else { return }
            for row in 0..<dimensions.height {
                let from = unsafe UnsafeRawPointer(source + row * Int(sourceStride))
                unsafe (target + row * stride).copyMemory(from: from, byteCount: dimensions.width)
            }
        }
    }
}
