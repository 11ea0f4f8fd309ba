import MediaCore

/// The quantizers that libvpx may choose from, in the scale of its settings: from 0 for the finest to 63.
struct QuantizerRange: Hashable {
    var lowest: Int
    var highest: Int

    /// libwebrtc's range for cameras (`libvpx_vp8_encoder.cc`).
    static let usual = QuantizerRange(lowest: 2, highest: 56)
    /// The coarsest quantizer that there is.
    static let coarsest = 63

    /// The range above `lowest`, with the coarsest quantizers only if the usual ones end below it.
    init(from lowest: Int) {
        self.init(
            lowest: min(max(lowest, Self.usual.lowest), Self.coarsest),
            highest: lowest < Self.usual.highest ? Self.usual.highest : Self.coarsest
        )
    }

    /// The range of one quantizer.
    init(exactly setting: Int) {
        self.init(lowest: setting, highest: setting)
    }

    private init(lowest: Int, highest: Int) {
        self.lowest = lowest
        self.highest = highest
    }
}

/// Estimates the size that a frame comes to with another quantizer, from the frames before.
///
/// The size is about inversely proportional to the quantizer's step. At coarse steps it falls faster, so the estimate
/// is too large there rather than too small. Keyframes and other frames are estimated separately.
struct FrameSizeModel {
    /// Bytes for each pixel, times the quantizer's step, of the latest keyframe and of the latest other frame.
    private var keyframe: Double?
    private var other: Double?

    /// Notes the size that a frame came to with a quantizer from 0 to 127.
    mutating func encoded(_ size: DataSize, quantizer: UInt8, dimensions: Dimensions, isKeyframe: Bool) {
        let step = Double(Self.step(of: quantizer))
        let effort = Double(size.bytes) * step / Double(dimensions.area)
        if isKeyframe { keyframe = effort } else { other = effort }
    }

    /// The finest quantizer, from 0 to 63, with which a frame of this kind is expected to stay within `limit`.
    ///
    /// Returns `nil` if there was no such frame yet, and 63 if no quantizer is coarse enough.
    func quantizer(for limit: DataSize, dimensions: Dimensions, isKeyframe: Bool) -> Int? {
        guard let effort = isKeyframe ? keyframe : other else { return nil }
        let step = effort * Double(dimensions.area) / Double(max(limit.bytes, 1))
        return Self.setting(forStep: step)
    }

    /// The expected bytes of a keyframe of this size with one of libvpx's settings; `nil` if there was no keyframe yet.
    func keyframeBytes(with setting: Int, dimensions: Dimensions) -> Double? {
        keyframe.map { $0 * Double(dimensions.area) / Double(Self.steps[Self.indices[setting]]) }
    }

    /// The step of a quantizer from 0 to 127.
    static func step(of quantizer: UInt8) -> Int { steps[Int(min(quantizer, 127))] }

    /// The quantizer in the scale of libvpx's settings: the finest whose step is at least `step`, or the coarsest.
    static func setting(forStep step: Double) -> Int {
        indices.firstIndex { Double(steps[$0]) >= step } ?? QuantizerRange.coarsest
    }

    /// The quantizer in the scale of libvpx's settings: the finest that is at least as coarse as `quantizer`.
    static func setting(for quantizer: UInt8) -> Int {
        indices.firstIndex { $0 >= Int(quantizer) } ?? QuantizerRange.coarsest
    }

    /// The steps of the quantizers 0 to 127 (RFC 6386, section 14.1, `ac_qlookup`).
    private static let steps: [Int] =
        Array(4...58) + Array(stride(from: 60, through: 116, by: 2)) + Array(stride(from: 119, through: 173, by: 3))
        + Array(stride(from: 177, through: 229, by: 4)) + [234, 239, 245, 249, 254, 259, 264, 269, 274, 279, 284]

    /// The quantizer, from 0 to 127, of each of libvpx's 64 settings (`q_trans` in `vp8/encoder/onyx_if.c`).
    private static let indices: [Int] =
        Array(0...5) + Array(7...10) + [12, 13, 15] + Array(17...21) + Array(23...31)
        + Array(stride(from: 33, through: 61, by: 2)) + Array(stride(from: 64, through: 127, by: 3))
}
