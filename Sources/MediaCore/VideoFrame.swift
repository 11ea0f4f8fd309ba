/// The pixels of one picture in planar 4:2:0 (I420), BT.601 limited range, in memory of its own.
///
/// Three planes of bytes: Y with one byte a pixel, U and V with one byte for two by two pixels (odd sizes round up).
/// Each plane's rows start `stride` bytes apart; bytes beyond a row's width are padding of undefined value.
///
/// A buffer is written only by whoever took it from its pool and holds it alone; once inside a `VideoFrame` it is
/// read-only, and may be read from any thread.
@safe public final class VideoBuffer: @unchecked Sendable {
    // `@unchecked Sendable`: holds a pointer; the rule above (one writer before sharing) is what makes it true.

    /// The size of the picture.
    public let dimensions: Dimensions
    /// Bytes from one row of Y to the next; a multiple of 32.
    public let lumaStride: Int
    /// Bytes from one row of U, and of V, to the next; a multiple of 16.
    public let chromaStride: Int

    fileprivate let lendings = LendingRecord()
    private let memory: UnsafeMutablePointer<UInt8>

    /// A buffer with undefined content.
    ///
    /// - Parameter dimensions: Both sides positive and no larger than `Dimensions.largestCodable`'s.
    public init(dimensions: Dimensions) {
        precondition(
            (1...Dimensions.largestCodable.width).contains(dimensions.width)
                && (1...Dimensions.largestCodable.height).contains(dimensions.height),
            "a picture of \(dimensions)"
        )
        self.dimensions = dimensions
        self.lumaStride = (dimensions.width + 31) & ~31
        self.chromaStride = lumaStride / 2
        let bytes = lumaStride * dimensions.height + 2 * chromaStride * ((dimensions.height + 1) / 2)
        // 64 bytes: a cache line, and the widest vector that libyuv and libvpx load.
        let raw = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 64)
        unsafe self.memory = raw.bindMemory(to: UInt8.self, capacity: bytes)
    }

    deinit {
        unsafe memory.deallocate()
    }

    /// The size of the U plane, and of the V plane: bytes in a row without padding, and rows.
    public var chromaDimensions: Dimensions {
        Dimensions(width: (dimensions.width + 1) / 2, height: (dimensions.height + 1) / 2)
    }

    private var lumaBytes: Int { lumaStride * dimensions.height }
    private var chromaBytes: Int { chromaStride * chromaDimensions.height }

    /// Lends the three planes for reading, each `stride` × rows bytes long.
    ///
    /// Any thread, and several at once; the spans end with the call. Throws what `body` throws.
    public func withPlanes<Result, Failure: Error>(
        _ body: (_ luma: Span<UInt8>, _ chromaU: Span<UInt8>, _ chromaV: Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { lendings.lendingEnded() }
        let luma = unsafe Span(_unsafeStart: memory, count: lumaBytes)
        let chromaU = unsafe Span(_unsafeStart: memory + lumaBytes, count: chromaBytes)
        let chromaV = unsafe Span(_unsafeStart: memory + lumaBytes + chromaBytes, count: chromaBytes)
        return try body(luma, chromaU, chromaV)
    }

    /// Lends the three planes for writing, each `stride` × rows bytes long; only for the buffer's one holder.
    ///
    /// Not to be called any more once the buffer is inside a `VideoFrame`.
    ///
    /// `body` cannot throw, and that protects it: Swift 6.3 optimizes a closure that may throw and ends by filling or
    /// copying memory so that its caller sees an error that was never thrown.
    public func withMutablePlanes<Result>(
        _ body: (
            _ luma: inout MutableSpan<UInt8>, _ chromaU: inout MutableSpan<UInt8>, _ chromaV: inout MutableSpan<UInt8>
        ) -> Result
    ) -> Result {
        defer { lendings.lendingEnded() }
        var luma = unsafe MutableSpan(_unsafeStart: memory, count: lumaBytes)
        var chromaU = unsafe MutableSpan(_unsafeStart: memory + lumaBytes, count: chromaBytes)
        var chromaV = unsafe MutableSpan(_unsafeStart: memory + lumaBytes + chromaBytes, count: chromaBytes)
        return body(&luma, &chromaU, &chromaV)
    }
}

extension VideoBuffer: ReusableBuffer {
    /// Makes everything that earlier holders did with the buffer come before what the caller does next.
    package func acquireFromEarlierHolders() {
        lendings.acquire()
    }
}

/// A raw picture on its way from a source to an encoder or a renderer.
public struct VideoFrame: Sendable {
    /// The pixels; shared, read-only.
    public var buffer: VideoBuffer
    /// When the picture was captured: the driver's stamp where there is one.
    public var timestamp: MonotonicInstant
    /// How the picture must be turned clockwise to stand upright; what is received is upright.
    public var rotation: VideoRotation

    /// A frame of `buffer`, captured at `timestamp`.
    public init(buffer: VideoBuffer, timestamp: MonotonicInstant, rotation: VideoRotation = .none) {
        self.buffer = buffer
        self.timestamp = timestamp
        self.rotation = rotation
    }

    /// The size of the picture, before rotation.
    public var dimensions: Dimensions { buffer.dimensions }
}
