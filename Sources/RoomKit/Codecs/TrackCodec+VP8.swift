import MediaCore
import MediaFiles
import RoomProtocol
import VP8Codec

extension TrackCodec {
    /// VP8 (RFC 6386), by libvpx.
    static let vp8 = TrackCodec(
        kind: TrackKind.video,
        name: VideoCodec.vp8,
        stored: .vp8,
        maximumDimensions: VP8Decoder.maximumDimensions,
        defaultBitrate: { dimensions in VP8EncoderSettings.defaultBitrate(for: dimensions) },
        makeEncoder: { settings in try VP8FrameEncoder(settings) },
        makeDecoder: { try VP8FrameDecoder() },
        keyframeDimensions: { bytes in VP8Bitstream.keyframeDimensions(of: bytes) }
    )
}

private final class VP8FrameEncoder: FrameEncoder {
    private var encoder: VP8Encoder

    init(_ settings: FrameEncoderSettings) throws(VP8Error) {
        encoder = try VP8Encoder(
            VP8EncoderSettings(
                dimensions: settings.largestDimensions,
                frameRate: settings.frameRate,
                temporalLayerCount: 1
            )
        )
    }

    var isSharp: Bool { encoder.isSharp }

    func encode(
        _ frame: VideoFrame,
        target: EncodingTarget,
        forceKeyframe: Bool,
        _ body: (EncodedFrameInfo, RawSpan) -> Bool
    ) throws -> EncodedFrameInfo? {
        try encoder.encode(frame, target: target, forceKeyframe: forceKeyframe) { info, bytes in
            body(info, bytes) ? info : nil
        }
    }
}

private final class VP8FrameDecoder: FrameDecoder {
    private var decoder: VP8Decoder

    init() throws(VP8Error) {
        decoder = try VP8Decoder()
    }

    func decode(
        _ bytes: RawSpan,
        timestamp: MonotonicInstant,
        makeBuffer: (Dimensions) -> VideoBuffer?
    ) throws(DecodingFailure) -> VideoFrame? {
        do throws(VP8Error) {
            return try decoder.decode(bytes, timestamp: timestamp, makeBuffer: makeBuffer)
        } catch {
            throw DecodingFailure(isFinal: error.code == .pictureTooLarge, description: "\(error)")
        }
    }
}
