import MediaCore

/// Chooses which part of a picture that stands still is encoded anew, and how finely, so that the picture becomes
/// sharp.
///
/// libvpx would leave such a picture as it is. Its estimate of a frame's size comes from the motion before, and it
/// finds that nearly nothing is to be coded at the quantizer that it chose last (measured, libvpx 1.12: frames of 200
/// bytes for 10 s, where each might have had 30,000). So each frame gets a fixed quantizer, for as many macroblocks as
/// fit; the others are left as they are. Two passes go over the picture in the order of reading: after the first one,
/// text is legible, and after the second one, nobody sees a difference.
///
/// Coarse passes over the whole picture would use more bits: a page full of small text at 1280x720, encoded in steps of
/// the quantizer that fit into a frame each, takes 540 kB up to 36.5 dB, and 400 kB this way (measured, libvpx 1.12).
struct StillPictureRefinement {
    /// A part of the picture, and how to encode it.
    struct Part: Equatable {
        /// The quantizer, in the scale of libvpx's settings.
        var quantizer: Int
        /// The macroblocks, counted row by row.
        var blocks: Range<Int>
    }

    /// The quantizers of the passes, in the scale of libvpx's settings.
    ///
    /// A page of text has about 36 dB after the first pass, and more than 41 dB after the second.
    private static let quantizers = [20, 9]
    /// The share of the allowed size that a part aims at, because the estimate is not exact.
    private static let used = 0.9
    /// The least that a macroblock counts for in the estimate, in bytes: after an empty margin comes text.
    private static let leastDensity = 8.0
    /// The same where nothing of this picture was refined yet: the last keyframe may have shown an empty page, and what
    /// is encoded too large for nothing is still subtracted from what libvpx grants the motion that follows.
    private static let firstDensity = 40.0
    /// How many times as many macroblocks a part may have as the one before, for the same reason.
    private static let growth = 4

    /// Whether the newest frame of layer 0, which the next frames refer to, shows the present picture.
    private var isShown = false
    /// The present pass; the number of passes when all are done.
    private var pass = 0
    /// The first macroblock that the pass has not reached.
    private var next = 0
    /// The average size of a macroblock in the latest part, in bytes; `nil` at first.
    private var density: Double?
    /// How many macroblocks the latest part had; `nil` at first.
    private var latestCount: Int?

    /// Whether the picture is as sharp as it becomes.
    var isDone: Bool { isShown && pass == Self.quantizers.count }

    /// Whether text in the picture is legible: the first pass is done.
    var isLegible: Bool { isShown && pass > 0 }

    /// Begins a frame that shows a new picture, or the same one in a keyframe.
    mutating func beginNewPicture() { isShown = false }

    /// The part to encode in a frame that shows the same picture as the one before; `nil` to encode all of it as usual,
    /// because no frame that the next ones refer to shows it yet.
    ///
    /// The part is empty if there is nothing to refine, or `isKept` is false: there would be nothing to refer to if it
    /// came out too large. `estimate` says what the whole picture of
    /// `blocks` macroblocks comes to with a quantizer, in bytes.
    func part(of blocks: Int, isKept: Bool, limit: DataSize, estimate: (Int) -> Double?) -> Part? {
        guard isShown else { return nil }
        guard pass < Self.quantizers.count, isKept else {
            return Part(quantizer: Self.quantizers[min(pass, Self.quantizers.count - 1)], blocks: next..<next)
        }
        let quantizer = Self.quantizers[pass]
        let density = density ?? max(Self.firstDensity, (estimate(quantizer) ?? 0) / Double(max(blocks, 1)))
        let most = latestCount.map { Self.growth * $0 } ?? blocks
        let count = min(most, Self.count(in: limit, at: density))
        return Part(quantizer: quantizer, blocks: next..<min(blocks, next + count))
    }

    /// A smaller part to try, because `part` came to `size`, which is more than `limit`; `nil` if there is none.
    mutating func part(insteadOf part: Part, of size: DataSize, limit: DataSize, isLastTry: Bool) -> Part? {
        guard part.blocks.count > 1 else { return nil }
        let density = Double(size.bytes) / Double(part.blocks.count)
        self.density = density
        // All of the remaining detail may lie at the beginning of the rest.
        let count = Self.count(in: limit, at: isLastTry ? 2 * density : density)
        return Part(quantizer: part.quantizer, blocks: part.blocks.prefix(min(count, part.blocks.count - 1)))
    }

    /// Notes that a frame of layer 0 was sent, with the part of the picture of `blocks` macroblocks that it refines;
    /// `nil` for the whole picture, which came out with `quantizer`, from 0 to 127.
    mutating func sent(_ part: Part?, of blocks: Int, quantizer: UInt8, size: DataSize) {
        guard let part else {
            let setting = FrameSizeModel.setting(for: quantizer)
            let pass = Self.quantizers.firstIndex { $0 < setting } ?? Self.quantizers.count
            (isShown, self.pass, next) = (true, pass, 0)
            (density, latestCount) = (nil, nil)
            return
        }
        guard !part.blocks.isEmpty else { return }
        density = Double(size.bytes) / Double(part.blocks.count)
        latestCount = part.blocks.count
        next = part.blocks.upperBound
        guard next >= blocks else { return }
        (pass, next) = (pass + 1, 0)
        // The next pass begins elsewhere, and is finer.
        (density, latestCount) = (nil, nil)
    }

    /// How many macroblocks of `density` bytes fit into `limit`; at least one.
    private static func count(in limit: DataSize, at density: Double) -> Int {
        Int(max(1, min(used * Double(limit.bytes) / max(leastDensity, density), 1e6)))
    }
}
