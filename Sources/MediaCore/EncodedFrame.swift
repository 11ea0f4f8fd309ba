/// Describes a compressed picture, without its bytes.
package struct EncodedFrameInfo: Hashable, Sendable {
    /// The number of the frame in its simulcast layer, counted from 0.
    package var number: UInt32
    /// The simulcast layer (a separate encoding of the track) that the frame belongs to; 0 is the smallest.
    package var simulcastLayer: UInt8
    /// When the picture was captured.
    package var timestamp: MonotonicInstant
    /// Whether the picture can be decoded without any other.
    package var isKeyframe: Bool
    /// The temporal layer of the frame: layer 0 decodes alone, each further one needs those below.
    package var temporalLayer: UInt8
    /// Whether the frame is above temporal layer 0 and refers only to the latest frame of layer 0.
    ///
    /// A receiver that had only layer 0 may take this frame's layer, and those between, from here on. This is bit Y of
    /// RFC 7741. It is `false` for frames of layer 0.
    package var isLayerSync: Bool
    /// Whether no other frame refers to this one, so that any hop may leave it out.
    package var isDiscardable: Bool
    /// Whether the source found its picture unchanged since the frame before, and this one shows the same again.
    package var isRepeat = false
    /// Whether the picture stands in for those of a camera that is gone.
    package var isSubstitute = false
    /// The number of the latest frame of temporal layer 0, modulo 65,536; frames of higher layers carry it too.
    package var baseLayerIndex: UInt16
    /// The quantizer that the encoder chose: for VP8, from 0 for the finest picture to 127.
    ///
    /// 0 in frames that came over the network, whose headers do not state it.
    package var quantizer: UInt8
    /// The size of the picture.
    ///
    /// 0x0 in frames that came over the network, whose headers do not state it.
    package var dimensions: Dimensions

    /// Creates a description with the given fields.
    package init(
        number: UInt32,
        simulcastLayer: UInt8 = 0,
        timestamp: MonotonicInstant,
        isKeyframe: Bool,
        temporalLayer: UInt8 = 0,
        isLayerSync: Bool = false,
        isDiscardable: Bool = false,
        baseLayerIndex: UInt16 = 0,
        quantizer: UInt8 = 0,
        dimensions: Dimensions = Dimensions(width: 0, height: 0)
    ) {
        self.number = number
        self.simulcastLayer = simulcastLayer
        self.timestamp = timestamp
        self.isKeyframe = isKeyframe
        self.temporalLayer = temporalLayer
        self.isLayerSync = isLayerSync
        self.isDiscardable = isDiscardable
        self.baseLayerIndex = baseLayerIndex
        self.quantizer = quantizer
        self.dimensions = dimensions
    }
}

/// A compressed picture: its description and its bytes in a shared read-only buffer.
package struct EncodedFrame: Sendable {
    /// The description of the frame.
    package var info: EncodedFrameInfo
    /// How the picture is to be shown, and the application's bytes; for frames that are to be sent.
    package var tags: Tags
    /// The buffer that holds the frame's bytes.
    package let buffer: PacketBuffer
    /// The range of the frame's bytes in `buffer`'s message.
    package let range: Range<Int>

    /// What a frame carries beside its picture, as in a `VideoFrame`.
    package struct Tags: Sendable {
        /// The clockwise turn that makes the picture upright.
        package var rotation: VideoRotation
        /// Whether left and right must be exchanged after the turn.
        package var isMirrored: Bool
        /// The application's bytes.
        package var metadata: FrameMetadata?

        /// Creates tags; by default those of an upright picture without metadata.
        package init(rotation: VideoRotation = .none, isMirrored: Bool = false, metadata: FrameMetadata? = nil) {
            self.rotation = rotation
            self.isMirrored = isMirrored
            self.metadata = metadata
        }
    }

    /// Creates a frame from `info` and the bytes in `range` of `buffer`'s message.
    package init(info: EncodedFrameInfo, tags: Tags = Tags(), buffer: PacketBuffer, range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= buffer.count, "\(range) of \(buffer.count) bytes")
        self.info = info
        self.tags = tags
        self.buffer = buffer
        self.range = range
    }

    /// The size of the compressed picture.
    package var size: DataSize { DataSize(bytes: range.count) }

    /// Lends the bytes of the compressed picture, `size` bytes long, to `body`.
    ///
    /// May be called on any thread. The span is valid only during the call. Throws what `body` throws.
    package func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try buffer.withBytes { bytes throws(Failure) in try body(bytes.extracting(range)) }
    }
}
