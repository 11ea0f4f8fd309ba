import MediaCore

/// Chooses the quantizers with which a frame stays within its target's limit.
struct FrameSizeLimiter {
    /// How much larger than the limit a frame may be without being encoded again: 10 %, which is what the estimate of
    /// the size is worth.
    private static let tolerance = 1.1
    /// A limit below this many average frames is kept by the range of quantizers from the start; above it, only frames
    /// that exceed it are encoded again, because libvpx aims at an average frame by itself.
    private static let averageFramesWithoutRange = 1.5
    /// So many frames of layer 0 after a picture that stood still keep a limit by the range, too: libvpx takes the
    /// small frames of the repeats for the usual size, and begins the motion with frames that take a second of the
    /// bitrate (measured, libvpx 1.12).
    private static let recovery = 8

    private var sizes = FrameSizeModel()
    private var finest = FinestQuantizer()
    /// How many frames of motion keep their limit by the range of quantizers, because a picture stood still before
    /// them.
    private var framesToRecover = 0

    /// Whether a frame of this size is so much larger than `limit` that it should be encoded again.
    static func exceeds(_ size: DataSize, _ limit: DataSize) -> Bool {
        Double(size.bytes) > Double(limit.bytes) * tolerance
    }

    /// The quantizers with which to encode the next frame first.
    func firstQuantizers(for target: EncodingTarget, isKeyframe: Bool) -> QuantizerRange {
        let finest = isKeyframe ? QuantizerRange.usual.lowest : self.finest.lowest
        guard let limit = AppliedTarget.limit(target, isKeyframe: isKeyframe) else {
            return QuantizerRange(from: finest)
        }
        let averageFrame = Double(target.bitrate.bitsPerSecond) / 8 / target.frameRate.framesPerSecond
        let isRangeNeeded = Double(limit.bytes) < Self.averageFramesWithoutRange * averageFrame
        guard isKeyframe || framesToRecover > 0 || isRangeNeeded else { return QuantizerRange(from: finest) }
        let lowest = sizes.quantizer(for: limit, dimensions: target.dimensions, isKeyframe: isKeyframe)
        return QuantizerRange(from: max(lowest ?? finest, finest))
    }

    /// The quantizers with which a frame would fit that came out at `size` with `quantizer`, from 0 to 127.
    ///
    /// - Returns: `nil` if it fits already, or no quantizer is coarse enough.
    mutating func quantizers(
        after size: DataSize,
        _ quantizer: UInt8,
        for target: EncodingTarget,
        isKeyframe: Bool
    ) -> QuantizerRange? {
        guard let limit = AppliedTarget.limit(target, isKeyframe: isKeyframe), Self.exceeds(size, limit) else {
            return nil
        }
        let used = FrameSizeModel.setting(for: quantizer)
        let lowest = sizes.quantizer(for: limit, dimensions: target.dimensions, isKeyframe: isKeyframe)
        guard let lowest, lowest > used else { return nil }
        if !isKeyframe { finest.cameOutTooLarge(with: used) }
        return QuantizerRange(from: lowest)
    }

    /// Notes the size that a frame came to with a quantizer from 0 to 127.
    mutating func encoded(_ size: DataSize, quantizer: UInt8, dimensions: Dimensions, isKeyframe: Bool) {
        sizes.encoded(size, quantizer: quantizer, dimensions: dimensions, isKeyframe: isKeyframe)
    }

    /// Notes that a frame of layer 0 was sent; `isRepeat` if it made a picture sharper that stands still.
    mutating func sent(isRepeat: Bool) {
        finest.sent()
        framesToRecover = isRepeat ? Self.recovery : max(0, framesToRecover - 1)
    }

    /// The expected bytes of a keyframe of this size with one of libvpx's settings; `nil` if there was no keyframe yet.
    func keyframeBytes(with setting: Int, dimensions: Dimensions) -> Double? {
        sizes.keyframeBytes(with: setting, dimensions: dimensions)
    }
}
