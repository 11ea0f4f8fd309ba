package import MediaCore
package import MediaFiles

/// The codecs of this library: each entry says how a codec's tracks are named, encoded, decoded and stored.
///
/// To add a codec, add an entry to `all`, and its name to `VideoCodec.all`, which lists what the server accepts.
package struct TrackCodec: Sendable {
    /// The `kind` of its tracks on the wire.
    package let kind: String
    /// Its `codec` on the wire.
    package let name: String
    /// Its name in files.
    package let stored: StoredVideoCodec
    /// The limit for encoding and decoding: pictures may have at most the area of this size.
    package let maximumDimensions: Dimensions
    /// The bitrate above which pictures of this size hardly improve.
    package let defaultBitrate: @Sendable (Dimensions) -> Bitrate
    /// Opens an encoder; throws if the settings cannot be used, or there is no memory for it.
    package let makeEncoder: @Sendable (FrameEncoderSettings) throws -> any FrameEncoder
    /// Opens a decoder; throws if there is no memory for it.
    package let makeDecoder: @Sendable () throws -> any FrameDecoder
    /// Reads the picture's size from a keyframe; `nil` for other frames and other bytes.
    package let keyframeDimensions: @Sendable (RawSpan) -> Dimensions?

    /// Every codec that tracks may have; the first is used for new tracks.
    package static let all = [vp8]

    /// The codec of the tracks that we publish.
    package static var forPublishing: TrackCodec { all[0] }

    /// The codec of an announced track; `nil` if this library does not support it.
    package static func named(_ name: String?, kind: String) -> TrackCodec? {
        all.first { $0.kind == kind && $0.name == name }
    }

    /// The codec of a file; `nil` if this library does not support it.
    package static func stored(_ stored: StoredVideoCodec) -> TrackCodec? {
        all.first { $0.stored == stored }
    }

    /// Whether pictures of this size can be encoded and decoded.
    package func allows(_ dimensions: Dimensions) -> Bool { dimensions.area <= maximumDimensions.area }
}

/// The settings of a frame encoder.
package struct FrameEncoderSettings: Sendable {
    /// The size of the first frames; for a larger one the encoder takes more memory.
    package var dimensions: Dimensions
    /// The highest rate at which frames will come, approximately.
    package var frameRate: FrameRate

    package init(dimensions: Dimensions, frameRate: FrameRate) {
        self.dimensions = dimensions
        self.frameRate = frameRate
    }
}

/// Encodes the frames of one track; confine to one thread.
package protocol FrameEncoder: AnyObject {
    /// Whether a repeat of the picture that was encoded last would make it no sharper.
    var isSharp: Bool { get }

    /// Encodes a frame for `target` and lends the compressed frame to `body`.
    ///
    /// The frame has the size of `target`. If the size differs from the one before, the frame becomes a keyframe; no
    /// other change of the target makes a keyframe. `body` is called at most once. It returns whether the compressed
    /// frame will be sent. If it returns `false`, the frame's number is used again, and the next frame does not refer
    /// to it; if that is not possible, the next frame becomes a keyframe.
    ///
    /// - Returns: The frame's properties, with `quantizer` and `dimensions`; `nil` if the encoder left the frame out to
    ///   hold its rate, or `body` returned `false`.
    /// - Throws: An error if the library fails; the next frame then becomes a keyframe.
    func encode(
        _ frame: VideoFrame,
        target: EncodingTarget,
        forceKeyframe: Bool,
        _ body: (EncodedFrameInfo, RawSpan) -> Bool
    ) throws -> EncodedFrameInfo?
}

/// Decodes the frames of one track; confine to one thread.
package protocol FrameDecoder: AnyObject {
    /// Decodes one frame; after an error, decoding continues with the next keyframe.
    ///
    /// For a frame that is shown, `makeBuffer` is called with its size. It returns a buffer of that size that nobody
    /// else holds, or `nil` if nobody wants the picture.
    ///
    /// - Returns: The picture; `nil` if `makeBuffer` returned `nil`, or the frame is not shown.
    func decode(
        _ bytes: RawSpan,
        timestamp: MonotonicInstant,
        makeBuffer: (Dimensions) -> VideoBuffer?
    ) throws(DecodingFailure) -> VideoFrame?
}

/// Why a frame was not decoded.
package struct DecodingFailure: Error, CustomStringConvertible {
    /// Whether later frames will fail too, for example because the pictures are too large.
    package var isFinal: Bool
    /// What happened, as a sentence.
    package var description: String
}
