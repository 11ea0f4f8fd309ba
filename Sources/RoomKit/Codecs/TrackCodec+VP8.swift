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
    private var settings: VP8EncoderSettings

    init(_ settings: FrameEncoderSettings) throws(VP8Error) {
        self.settings = VP8EncoderSettings(
            dimensions: settings.dimensions,
            frameRate: settings.frameRate,
            temporalLayerCount: 1
        )
        encoder = try VP8Encoder(self.settings)
    }

    /// Opens the encoder anew if it is too small for frames of this size.
    ///
    /// libvpx takes the memory for its largest frame when it is opened.
    private func makeRoom(for dimensions: Dimensions) throws(VP8Error) {
        guard !dimensions.fits(in: settings.dimensions) else { return }
        var larger = settings
        larger.dimensions.width = max(larger.dimensions.width, dimensions.width)
        larger.dimensions.height = max(larger.dimensions.height, dimensions.height)
        // A picture that was turned may need less than both sizes together.
        if larger.dimensions.area > VP8Decoder.maximumDimensions.area { larger.dimensions = dimensions }
        encoder = try VP8Encoder(larger, following: encoder)
        settings = larger
    }

    var isSharp: Bool { encoder.isSharp }

    func encode(
        _ frame: VideoFrame,
        target: EncodingTarget,
        forceKeyframe: Bool,
        _ body: (EncodedFrameInfo, RawSpan) -> Bool
    ) throws -> EncodedFrameInfo? {
        try makeRoom(for: target.dimensions)
        return try encoder.encode(frame, target: target, forceKeyframe: forceKeyframe) { info, bytes in
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
