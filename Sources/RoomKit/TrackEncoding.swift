import MediaCore
import RoomProtocol
import Threading
import VP8Codec
import VideoProcessing

/// One track's encoder on its thread, with frame numbers that go on when the encoder is opened anew.
struct TrackEncoding: ~Copyable {
    /// The packets of the frame encoded last.
    var packets: [PacketBuffer] = []

    private let packetizer: Packetizer
    private let targetBitrate: Bitrate?
    private let frameRate: FrameRate
    private let pool = PacketBufferPool()
    private let turner = FrameScaler()
    private let scaler = FrameScaler()
    private var encoder: VP8Encoder?
    private var largest = Dimensions(width: 0, height: 0)
    /// The numbers of the next frame, whichever encoder makes it.
    private var nextNumber: UInt32 = 0
    private var baseLayerIndex: UInt16 = .max

    init(packetizer: Packetizer, targetBitrate: Bitrate?, frameRate: FrameRate) {
        self.packetizer = packetizer
        self.targetBitrate = targetBitrate
        self.frameRate = frameRate
        packets.reserveCapacity(64)
    }

    /// Encodes a frame and cuts it into `packets`; `nil` if the encoder left it out.
    ///
    /// - Throws: `encodingFailed`; then the next frame has to be a keyframe.
    mutating func encode(
        _ frame: VideoFrame,
        sizing: FrameTransform,
        forceKeyframe: Bool,
        clock: ClockBox
    ) throws(RoomError) -> EncodedFrameInfo? {
        let outcome: EncodedFrameInfo??
        do throws(VP8Error) {
            let sized = scaler.apply(sizing, to: turner.upright(frame))
            outcome = try encodeUpright(sized, forceKeyframe: forceKeyframe, clock: clock)
        } catch {
            throw RoomError(.encodingFailed, "\(error)")
        }
        guard let outcome else { return nil }
        guard let info = outcome else {
            let problem = "A picture of \(frame.dimensions) comes to more than \(WireFormat.maximumFrame)"
            throw RoomError(.encodingFailed, "\(problem), which cannot be sent: lower its size or the bit rate.")
        }
        nextNumber &+= 1
        baseLayerIndex = info.baseLayerIndex
        return info
    }

    /// - Returns: `nil` if the encoder left the frame out, `.some(nil)` if what it made is too large to be sent.
    private mutating func encodeUpright(
        _ frame: VideoFrame,
        forceKeyframe: Bool,
        clock: ClockBox
    ) throws(VP8Error) -> EncodedFrameInfo?? {
        try fit(frame.dimensions)
        let captureTime = clock.estimate.roomTime(at: frame.timestamp)
        let number = nextNumber
        let nextBaseIndex = baseLayerIndex &+ 1
        let currentBaseIndex = baseLayerIndex
        var packets: [PacketBuffer] = []
        swap(&packets, &self.packets)
        let packetizer = packetizer
        let pool = pool
        defer { swap(&packets, &self.packets) }
        return try encoder?.encode(frame, forceKeyframe: forceKeyframe) { info, bytes -> EncodedFrameInfo? in
            guard bytes.byteCount <= WireFormat.maximumFrame.bytes else { return nil }
            var info = info
            info.number = number
            info.baseLayerIndex = info.temporalLayer == 0 ? nextBaseIndex : currentBaseIndex
            packetizer.packetize(
                info,
                bytes: bytes,
                captureTime: captureTime,
                encodeDelay: MonotonicClock.now.duration(since: frame.timestamp),
                makeBuffer: { pool.take(count: $0) },
                emit: { packets.append($0) }
            )
            return info
        }
    }

    /// Makes the encoder one for pictures of `dimensions`: a size above its first one takes a new encoder.
    private mutating func fit(_ dimensions: Dimensions) throws(VP8Error) {
        guard let current = encoder?.dimensions, dimensions.width <= largest.width, dimensions.height <= largest.height
        else {
            let settings = VP8EncoderSettings(
                dimensions: dimensions,
                targetBitrate: targetBitrate,
                frameRate: frameRate
            )
            encoder = nil
            encoder = try VP8Encoder(settings)
            largest = dimensions
            return
        }
        if current != dimensions {
            let bitrate = targetBitrate ?? VP8EncoderSettings.defaultBitrate(for: dimensions)
            try encoder?.reconfigure(targetBitrate: bitrate, dimensions: dimensions)
        }
    }
}
