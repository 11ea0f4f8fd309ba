package import MediaCore
package import MediaFiles

/// The codecs of this library: one entry says how tracks of a codec are named, encoded, decoded and stored.
///
/// A further codec is a further entry in `all`.
package struct TrackCodec: Sendable {
    /// The `kind` of its tracks on the wire.
    package let kind: String
    /// Its `codec` on the wire.
    package let name: String
    /// How files name it.
    package let stored: StoredVideoCodec
    /// The size whose area is the largest that is encoded and decoded.
    package let maximumDimensions: Dimensions
    /// Opens an encoder; throws where it cannot have the settings, or there is no memory for it.
    let makeEncoder: @Sendable (FrameEncoderSettings) throws -> any FrameEncoder
    /// Opens a decoder; throws where there is no memory for it.
    package let makeDecoder: @Sendable () throws -> any FrameDecoder
    /// The size of the picture that a keyframe states; `nil` for other frames and other bytes.
    package let keyframeDimensions: @Sendable (RawSpan) -> Dimensions?

    /// Every codec that tracks may have, the one for new tracks first.
    package static let all = [vp8]

    /// The codec of the tracks that we publish.
    static var forPublishing: TrackCodec { all[0] }

    /// The codec of a track as announced; `nil` for one that this library does not know.
    package static func named(_ name: String?, kind: String) -> TrackCodec? {
        all.first { $0.kind == kind && $0.name == name }
    }

    /// The codec of a file; `nil` for one that this library does not know.
    package static func stored(_ stored: StoredVideoCodec) -> TrackCodec? {
        all.first { $0.stored == stored }
    }

    /// Whether pictures of this size are encoded and decoded.
    func allows(_ dimensions: Dimensions) -> Bool { dimensions.area <= maximumDimensions.area }
}

/// How a frame encoder is opened.
struct FrameEncoderSettings: Sendable {
    /// The size of the first frames, and the largest that later ones may have.
    var dimensions: Dimensions
    /// What all temporal layers together come to; `nil` for the usual rate of the size.
    var targetBitrate: Bitrate?
    /// The rate at which frames will about come.
    var frameRate: FrameRate
}

/// Encodes the frames of one track; confine to one thread.
protocol FrameEncoder: AnyObject {
    /// Encodes a frame and lends the packet to `body`.
    ///
    /// A frame of another size than the one before begins with a keyframe; neither side is longer than in the settings.
    /// `body` is called at most once, and returns whether the packet will be sent; if not, its number is used again and
    /// the next frame becomes a keyframe.
    ///
    /// - Returns: What is known of the frame; `nil` if the encoder left it out to hold its rate, or `body` did not take
    ///   it.
    /// - Throws: When the library fails; the next frame becomes a keyframe.
    func encode(
        _ frame: VideoFrame,
        forceKeyframe: Bool,
        _ body: (EncodedFrameInfo, RawSpan) -> Bool
    ) throws -> EncodedFrameInfo?
}

/// Decodes the frames of one track; confine to one thread.
package protocol FrameDecoder: AnyObject {
    /// Decodes one frame; after an error, decoding goes on with the next keyframe.
    ///
    /// `makeBuffer` is called for a frame that is shown, with its size. It returns a buffer of that size which the caller
    /// alone holds, or `nil` if nobody wants the picture.
    ///
    /// - Returns: The picture; `nil` if `makeBuffer` returned `nil`, and for a frame that is not shown.
    func decode(
        _ bytes: RawSpan,
        timestamp: MonotonicInstant,
        makeBuffer: (Dimensions) -> VideoBuffer?
    ) throws(DecodingFailure) -> VideoFrame?
}

/// Why a frame was not decoded.
package struct DecodingFailure: Error, CustomStringConvertible {
    /// Whether no other frame of the track will do better, as with pictures that are too large.
    package var isFinal: Bool
    /// What happened, as a sentence.
    package var description: String
}
