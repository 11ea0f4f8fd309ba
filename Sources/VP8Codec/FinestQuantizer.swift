/// Keeps frames for a while off a quantizer with which one came out too large, where nobody would see the difference.
///
/// If a picture needs less than its bitrate, libvpx goes to finer and finer quantizers. Then it encodes what stands
/// still once more, and the frame comes out at several times the size that those before it suggest: 47,000 bytes with
/// setting 2, 12,000 with 5 (a screen of which a part moves). Such a frame is encoded again more coarsely, and without
/// this limit the next one begins with the fine quantizer as well: 1.7 encodings a frame (measured, libvpx 1.12).
struct FinestQuantizer {
    /// The coarsest quantizer that frames are kept off, in the scale of libvpx's settings.
    ///
    /// A picture gains by each step beyond it. It is that of `StillPictureRefinement`'s last pass.
    private static let coarsest = 9
    /// How many frames of layer 0 keep off the quantizer: one to a few encodings in 60 are for nothing.
    private static let duration = 60

    private var setting = QuantizerRange.usual.lowest
    private var framesLeft = 0

    /// The finest quantizer for the next frame, in the scale of libvpx's settings.
    var lowest: Int { framesLeft > 0 ? setting : QuantizerRange.usual.lowest }

    /// Notes that a frame came out too large with one of libvpx's settings, and will be encoded again.
    mutating func cameOutTooLarge(with failed: Int) {
        guard failed < Self.coarsest else { return }
        setting = failed + 1
        framesLeft = Self.duration
    }

    /// Notes that a frame of layer 0 was sent.
    mutating func sent() { framesLeft = max(0, framesLeft - 1) }
}
