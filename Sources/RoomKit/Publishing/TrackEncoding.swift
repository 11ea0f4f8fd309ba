import MediaCore
import RoomProtocol
import Threading
import VideoProcessing

/// Encodes the pictures of one track and cuts them into packets; confined to the encoder's thread.
///
/// The first picture opens the encoder, with the track's announced size. The encoder numbers the frames.
struct TrackEncoding: ~Copyable {
    /// The packets of the frame encoded last.
    var packets: [PacketBuffer] = []

    private let codec: TrackCodec
    private let packetizer: Packetizer
    private let settings: FrameEncoderSettings
    private let targetBitrate: Bitrate?
    private let pool = PacketBufferPool()
    private let rotator = FrameScaler()
    private let scaler = FrameScaler()
    private var encoder: (any FrameEncoder)?

    /// Creates an encoding whose frames are no larger than `settings.largestDimensions`.
    ///
    /// `targetBitrate` is `nil` for the codec's default of the size.
    init(codec: TrackCodec, packetizer: Packetizer, settings: FrameEncoderSettings, targetBitrate: Bitrate?) {
        self.codec = codec
        self.packetizer = packetizer
        self.settings = settings
        self.targetBitrate = targetBitrate
        packets.reserveCapacity(64)
    }

    /// Encodes a picture and cuts it into `packets`; returns `nil` if the encoder left it out.
    ///
    /// `sizing` is applied to the upright picture. If the result is larger than the announced size, it is scaled down
    /// further.
    ///
    /// - Throws: `encodingFailed`; the next frame is then a keyframe.
    mutating func encode(
        _ frame: VideoFrame,
        sizing: FrameTransform,
        forceKeyframe: Bool,
        clock: ClockBox
    ) throws(RoomError) -> EncodedFrameInfo? {
        let upright = rotator.upright(frame)
        let picture = scaler.apply(limited(sizing, for: upright.dimensions), to: upright)
        guard picture.dimensions.fits(in: settings.largestDimensions) else {
            let sizes = "of \(picture.dimensions) in a track that was announced with \(settings.largestDimensions)"
            throw RoomError(.encodingFailed, "A picture \(sizes) cannot be sent: ask the source for a smaller one.")
        }
        var isTooLarge = false
        let info: EncodedFrameInfo?
        do {
            info = try encode(picture, forceKeyframe: forceKeyframe, clock: clock, isTooLarge: &isTooLarge)
        } catch {
            throw RoomError(.encodingFailed, "\(error)")
        }
        if isTooLarge {
            let problem = "A picture of \(picture.dimensions) comes to more than \(WireFormat.maximumFrame)"
            throw RoomError(.encodingFailed, "\(problem), which cannot be sent: lower its size or the bit rate.")
        }
        return info
    }

    private mutating func encode(
        _ picture: VideoFrame,
        forceKeyframe: Bool,
        clock: ClockBox,
        isTooLarge: inout Bool
    ) throws -> EncodedFrameInfo? {
        let encoder = try self.encoder ?? codec.makeEncoder(settings)
        self.encoder = encoder
        let target = EncodingTarget(
            dimensions: picture.dimensions,
            bitrate: targetBitrate ?? codec.defaultBitrate(picture.dimensions),
            frameRate: settings.frameRate,
            temporalLayerCount: 3
        )
        let captureTime = clock.estimate.roomTime(at: picture.timestamp)
        var packets: [PacketBuffer] = []
        swap(&packets, &self.packets)
        let (packetizer, pool) = (packetizer, pool)
        defer { swap(&packets, &self.packets) }
        return try encoder.encode(picture, target: target, forceKeyframe: forceKeyframe) { info, bytes in
            guard bytes.byteCount <= WireFormat.maximumFrame.bytes else {
                isTooLarge = true
                return false
            }
            packetizer.packetize(
                info,
                bytes: bytes,
                captureTime: captureTime,
                encodeDelay: MonotonicClock.now.duration(since: picture.timestamp),
                makeBuffer: { pool.take(count: $0) },
                emit: { packets.append($0) }
            )
            return true
        }
    }

    /// Returns `sizing`, or a transform that makes the picture fit if the result would exceed the announced size.
    private func limited(_ sizing: FrameTransform, for dimensions: Dimensions) -> FrameTransform {
        let size = sizing.outputDimensions(for: dimensions)
        guard !size.fits(in: settings.largestDimensions) else { return sizing }
        return FrameTransform(size: size.scaledDown(toFit: settings.largestDimensions))
    }
}

extension Dimensions {
    /// Whether neither side is longer than the same side of `limit`.
    fileprivate func fits(in limit: Dimensions) -> Bool { width <= limit.width && height <= limit.height }

    /// The largest size with this aspect ratio that fits in `limit`.
    fileprivate func scaledDown(toFit limit: Dimensions) -> Dimensions {
        let isTooWide = width * limit.height > limit.width * height
        return isTooWide
            ? Dimensions(width: limit.width, height: max(1, height * limit.width / width))
            : Dimensions(width: max(1, width * limit.height / height), height: limit.height)
    }
}
