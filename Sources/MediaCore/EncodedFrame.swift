/// What is known of a compressed picture besides its bytes.
public struct EncodedFrameInfo: Hashable, Sendable {
    /// Counts the encoded frames of a simulcast layer of a track, from 0.
    public var number: UInt32
    /// The separate encoding of the track that the frame belongs to; 0 is the smallest.
    public var simulcastLayer: UInt8
    /// When the picture was captured.
    public var timestamp: MonotonicInstant
    /// Whether the picture decodes without any other.
    public var isKeyframe: Bool
    /// The frame-rate step that the frame belongs to: 0 decodes alone, each further one needs those below.
    public var temporalLayer: UInt8
    /// Whether the frame is above temporal layer 0 and refers to the latest frame of layer 0 alone.
    ///
    /// A receiver that had only layer 0 may take this frame's layer, and those between, from here on. It is the bit Y of
    /// RFC 7741; of frames of layer 0 it is `false`.
    public var isLayerSync: Bool
    /// Whether no other frame refers to this one, so that anyone may leave it out.
    public var isDiscardable: Bool
    /// Counts the frames of temporal layer 0, modulo 65,536; a frame of a higher layer bears the last one's.
    public var baseLayerIndex: UInt16

    /// A description with the given fields.
    public init(
        number: UInt32,
        simulcastLayer: UInt8 = 0,
        timestamp: MonotonicInstant,
        isKeyframe: Bool,
        temporalLayer: UInt8 = 0,
        isLayerSync: Bool = false,
        isDiscardable: Bool = false,
        baseLayerIndex: UInt16 = 0
    ) {
        self.number = number
        self.simulcastLayer = simulcastLayer
        self.timestamp = timestamp
        self.isKeyframe = isKeyframe
        self.temporalLayer = temporalLayer
        self.isLayerSync = isLayerSync
        self.isDiscardable = isDiscardable
        self.baseLayerIndex = baseLayerIndex
    }
}

/// A compressed picture: what is known of it, and its bytes, which lie in a shared read-only buffer.
public struct EncodedFrame: Sendable {
    /// What is known of the frame.
    public var info: EncodedFrameInfo
    /// The buffer that the frame's bytes lie in.
    package let buffer: PacketBuffer
    /// Where in `buffer`'s message they lie.
    package let range: Range<Int>

    /// The frame of `info` whose bytes are `range` of `buffer`'s message.
    package init(info: EncodedFrameInfo, buffer: PacketBuffer, range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= buffer.count, "\(range) of \(buffer.count) bytes")
        self.info = info
        self.buffer = buffer
        self.range = range
    }

    /// The size of the compressed picture.
    public var size: DataSize { DataSize(bytes: range.count) }

    /// Lends the compressed picture, whose length in bytes is `size`.
    ///
    /// Any thread; the span ends with the call. Throws what `body` throws.
    public func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try buffer.withBytes { bytes throws(Failure) in try body(bytes.extracting(range)) }
    }
}
