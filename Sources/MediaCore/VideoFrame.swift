/// The pixels of one picture in planar 4:2:0 (I420), BT.601 limited range, in memory of its own.
///
/// There are three planes of bytes: Y has one byte a pixel, U and V have one byte for two by two pixels (odd sizes
/// round up). Each plane's rows start `stride` bytes apart; bytes beyond a row's width are padding of undefined value.
///
/// Only a holder that took the buffer from its pool and shares it with nobody may write it. Once it is inside a
/// `VideoFrame`, it is read-only and may be read from any thread.
@safe public final class VideoBuffer: @unchecked Sendable {
    // `@unchecked Sendable`: it holds a pointer; the rule above (one writer before sharing) makes sharing it safe.

    /// The size of the picture.
    public let dimensions: Dimensions
    /// Bytes from one row of Y to the next; a multiple of 32.
    public let lumaStride: Int
    /// Bytes from one row of U, and of V, to the next; a multiple of 16.
    public let chromaStride: Int

    fileprivate let lendings = LendingRecord()
    private let memory: UnsafeMutablePointer<UInt8>

    /// Creates a buffer with undefined content.
    ///
    /// - Parameter dimensions: The size. Both sides must be positive and at most those of `Dimensions.largestCodable`.
    public init(dimensions: Dimensions) {
        precondition(dimensions.isCodable, "a picture of \(dimensions)")
        self.dimensions = dimensions
        self.lumaStride = (dimensions.width + 31) & ~31
        self.chromaStride = lumaStride / 2
        let bytes = lumaStride * dimensions.height + 2 * chromaStride * ((dimensions.height + 1) / 2)
        // 64 bytes: the size of a cache line and of the widest vector that libyuv and libvpx load.
        let raw = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 64)
        unsafe self.memory = raw.bindMemory(to: UInt8.self, capacity: bytes)
    }

    deinit {
        unsafe memory.deallocate()
    }

    /// The size of the U plane and of the V plane: bytes in a row without padding, and rows.
    public var chromaDimensions: Dimensions {
        Dimensions(width: (dimensions.width + 1) / 2, height: (dimensions.height + 1) / 2)
    }

    private var lumaBytes: Int { lumaStride * dimensions.height }
    private var chromaBytes: Int { chromaStride * chromaDimensions.height }

    /// Lends the three planes for reading, each `stride` × rows bytes long.
    ///
    /// May be called on any thread, by several threads at once. The spans are valid only during the call. Throws what
    /// `body` throws.
    public func withPlanes<Result, Failure: Error>(
        _ body: (_ luma: Span<UInt8>, _ chromaU: Span<UInt8>, _ chromaV: Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { lendings.lendingEnded() }
        let luma = unsafe Span(_unsafeStart: memory, count: lumaBytes)
        let chromaU = unsafe Span(_unsafeStart: memory + lumaBytes, count: chromaBytes)
        let chromaV = unsafe Span(_unsafeStart: memory + lumaBytes + chromaBytes, count: chromaBytes)
        return try body(luma, chromaU, chromaV)
    }

    /// Lends the three planes for writing, each `stride` × rows bytes long; only the buffer's one holder may call this.
    ///
    /// Do not call it once the buffer is inside a `VideoFrame`.
    ///
    /// `body` must not throw. This avoids a fault in the optimizer of Swift 6.3: if a closure may throw and ends by
    /// filling or copying memory, its caller sees an error that was never thrown.
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
    /// Makes everything that earlier holders did with the buffer happen before what the caller does next.
    package func acquireFromEarlierHolders() {
        lendings.acquire()
    }
}

/// A raw picture on its way from a source to an encoder or a renderer.
public struct VideoFrame: Sendable {
    /// The pixels; shared, read-only.
    public var buffer: VideoBuffer
    /// When the picture was captured: the driver's timestamp if there is one.
    public var timestamp: MonotonicInstant
    /// The clockwise turn that makes the picture upright; received pictures are upright.
    public var rotation: VideoRotation
    /// Whether this is a slate, which stands in for pictures of a camera that is gone.
    public var isSubstitute = false
    /// Whether the source found its picture unchanged and delivers it again; `timestamp` is when it was found so.
    public var isRepeat = false
    /// Whether left and right must be exchanged after the turn; `false` in received pictures.
    public var isMirrored: Bool
    /// Bytes of the application's own, which reach the subscribers with the frame; `nil` for none.
    public var metadata: FrameMetadata?

    /// Creates a frame of `buffer`, captured at `timestamp`.
    public init(
        buffer: VideoBuffer,
        timestamp: MonotonicInstant,
        rotation: VideoRotation = .none,
        isMirrored: Bool = false,
        metadata: FrameMetadata? = nil
    ) {
        self.buffer = buffer
        self.timestamp = timestamp
        self.rotation = rotation
        self.isMirrored = isMirrored
        self.metadata = metadata
    }

    /// Counts as a change for a reader that gets it in place of `former`, which it has not seen.
    package mutating func takePlace(of former: VideoFrame) {
        if !former.isRepeat { isRepeat = false }
    }

    /// The size of the picture, before rotation.
    public var dimensions: Dimensions { buffer.dimensions }

    /// The size of the picture once it is upright.
    public var uprightDimensions: Dimensions { rotation.swapsDimensions ? dimensions.transposed : dimensions }

    /// Whether the picture is upright as it is.
    public var isUpright: Bool { rotation == .none && !isMirrored }

    /// The frame with other pixels and all else as it is.
    package func with(_ buffer: VideoBuffer) -> VideoFrame {
        var frame = self
        frame.buffer = buffer
        return frame
    }
}
