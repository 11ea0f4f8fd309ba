import MediaCore
import RoomProtocol
import Threading

/// Encodes pictures for one encoding of a track and cuts them into packets; confined to the encoding's thread.
///
/// The first picture opens the encoder. The encoder numbers the frames.
struct TrackEncoding: ~Copyable {
    /// The packets of the frame encoded last.
    var packets: [PacketBuffer] = []

    private let codec: TrackCodec
    private let packetizer: Packetizer
    private let simulcastLayer: UInt8
    private let settings: FrameEncoderSettings
    private let pool = PacketBufferPool()
    private var encoder: (any FrameEncoder)?

    /// Creates an encoding for frames of `settings.dimensions` at first.
    init(codec: TrackCodec, packetizer: Packetizer, simulcastLayer: UInt8, settings: FrameEncoderSettings) {
        self.codec = codec
        self.packetizer = packetizer
        self.simulcastLayer = simulcastLayer
        self.settings = settings
        packets.reserveCapacity(64)
    }

    /// The bytes of `packets`.
    var packetBytes: Int { packets.reduce(0) { $0 + $1.count } }

    /// Whether a repeat of the picture that was encoded last would make it no sharper.
    var isSharp: Bool { encoder?.isSharp ?? true }

    /// Encodes a picture of the target's size and cuts it into `packets`; returns `nil` if the encoder left it out.
    ///
    /// `picture.isRepeat` says that the frame encoded last shows the same picture. It makes a part of it sharper, and
    /// marks it for the subscribers.
    ///
    /// - Throws: `encodingFailed`; the next frame is then a keyframe.
    mutating func encode(
        _ picture: VideoFrame,
        target: EncodingTarget,
        forceKeyframe: Bool,
        clock: ClockBox
    ) throws(RoomError) -> EncodedFrameInfo? {
        guard codec.allows(picture.dimensions) else {
            let problem = "A picture of \(picture.dimensions) cannot be sent"
            throw RoomError(.encodingFailed, "\(problem): ask the source for at most \(codec.maximumDimensions).")
        }
        var isTooLarge = false
        let info: EncodedFrameInfo?
        do {
            info = try encode(
                picture,
                target,
                forceKeyframe: forceKeyframe,
                clock: clock,
                isTooLarge: &isTooLarge
            )
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
        _ target: EncodingTarget,
        forceKeyframe: Bool,
        clock: ClockBox,
        isTooLarge: inout Bool
    ) throws -> EncodedFrameInfo? {
        let encoder = try self.encoder ?? codec.makeEncoder(settings)
        self.encoder = encoder
        let extensions = PacketExtensions(
            rotation: picture.rotation,
            isMirrored: picture.isMirrored,
            metadata: picture.metadata
        )
        let captureTime = clock.estimate.roomTime(at: picture.timestamp)
        var packets: [PacketBuffer] = []
        swap(&packets, &self.packets)
        let (packetizer, pool, simulcastLayer) = (packetizer, pool, simulcastLayer)
        defer { swap(&packets, &self.packets) }
        return try encoder.encode(picture, target: target, forceKeyframe: forceKeyframe) { info, bytes in
            guard bytes.byteCount <= WireFormat.maximumFrame.bytes else {
                isTooLarge = true
                return false
            }
            var frame = info
            frame.simulcastLayer = simulcastLayer
            frame.isRepeat = picture.isRepeat
            frame.isSubstitute = picture.isSubstitute
            packetizer.packetize(
                frame,
                bytes: bytes,
                captureTime: captureTime,
                encodeDelay: MonotonicClock.now.duration(since: picture.timestamp),
                extensions: extensions,
                makeBuffer: { pool.take(count: $0) },
                emit: { packets.append($0) }
            )
            return true
        }
    }
}
