import MediaCore

/// Chooses the quantizers of frames that show the same picture as the one before, so that it becomes sharp.
///
/// libvpx would leave such a picture as it is. Its estimate of a frame's size comes from the motion before, and it finds
/// that nearly nothing is to be coded at the quantizer that it chose last (measured, libvpx 1.12: frames of 200 bytes for
/// 10 s, where each might have had 30,000). So each frame gets a quantizer with half the step of the one that it refines, about 6 dB.
struct StillPictureRefinement {
    /// The finest quantizer, in the scale of libvpx's settings: a page of text then has more than 41 dB, and nobody sees a
    /// difference.
    private static let finest = 9
    /// A frame uses this much of what it may have if it is encoded again: the estimate is not exact.
    private static let used = 0.9

    /// By which part of its step a quantizer is made finer, at most.
    private static let largestPart = 0.5

    /// The quantizer, from 0 to 127, of the latest frame of layer 0, which the next frames refer to.
    private var reference: UInt8?
    /// By which part of its step the next frame's quantizer is made finer: less where the frames before came out too large.
    private var part = largestPart

    /// Begins a frame.
    ///
    /// - Returns: The quantizer, in the scale of libvpx's settings, to try first; `nil` if the frame shows a new picture.
    mutating func begin(isRepeat: Bool) -> Int? {
        guard isRepeat, let reference else {
            part = Self.largestPart
            return nil
        }
        let (coarsest, step) = (FrameSizeModel.setting(for: reference), Double(FrameSizeModel.step(of: reference)))
        let finer = min(coarsest - 1, FrameSizeModel.setting(forStep: step * (1 - part)))
        return min(coarsest, max(Self.finest, finer))
    }

    /// The quantizer for another try, because the frame came to `size` with `tried`, which is more than `limit`; `nil` if
    /// there is none between that and the quantizer of the frame that it refines.
    ///
    /// With the latter, next to nothing is coded; that is the one for the last try. In between, the size grows with the
    /// distance of the steps to the power of about 4/3 (measured with pages of text).
    mutating func quantizer(
        for limit: DataSize,
        afterResultOf size: DataSize,
        with tried: UInt8,
        isLastTry: Bool
    ) -> Int? {
        guard let reference else { return nil }
        let coarsest = FrameSizeModel.setting(for: reference)
        let (from, to) = (Double(FrameSizeModel.step(of: reference)), Double(FrameSizeModel.step(of: tried)))
        let excess = min(1, Self.used * Double(limit.bytes) / Double(max(size.bytes, 1))).squareRoot()
        part = max(0, min(Self.largestPart, (from - to) / from * excess * excess.squareRoot()))
        let setting = isLastTry ? coarsest : min(coarsest, FrameSizeModel.setting(forStep: from * (1 - part)))
        return setting > FrameSizeModel.setting(for: tried) ? setting : nil
    }

    /// Notes a frame that was sent.
    mutating func encoded(_ info: EncodedFrameInfo, size: DataSize, limit: DataSize?) {
        if info.temporalLayer == 0 { reference = info.quantizer }
        if size.bytes < (limit?.bytes ?? .max) / 2 { part = min(Self.largestPart, 2 * part + 0.02) }
    }
}
