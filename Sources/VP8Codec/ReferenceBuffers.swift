/// Decides which of VP8's three reference buffers a frame refers to, and which it updates.
///
/// LAST always holds the newest frame of layer 0. With one or two layers, each frame of layer 0 also updates one of
/// GOLDEN and ARF, by turns:
///
/// ```
///     frame    0      1      2      3
///     LAST     0      1      2      3
///     GOLDEN   0      1      1      3
///     ARF      0      0      2      2
/// ```
///
/// So one of the two still holds the frame before the newest. If the newest frame is not sent, for example because it
/// came out too large, the next frame refers to the one before, and no keyframe is needed. This works because a frame
/// changes nothing but the buffers that it updates: the entropy tables are always those of the format
/// (`g_error_resilient`).
///
/// With three layers GOLDEN holds the latest frame of the middle layer, and there is no buffer left for this. ARF keeps
/// an older frame of layer 0.
struct ReferenceBuffers: Hashable {
    /// A set of buffers.
    struct Buffers: OptionSet, Hashable {
        let rawValue: UInt8

        static let last = Buffers(rawValue: 1)
        static let golden = Buffers(rawValue: 2)
        static let alternate = Buffers(rawValue: 4)
    }

    /// What one frame does with the buffers.
    struct Use: Hashable {
        /// The buffers that the frame may refer to.
        var refersTo: Buffers
        /// The buffers that hold the frame afterwards.
        var updates: Buffers
    }

    /// The buffer, GOLDEN or ARF, that holds the newest frame of layer 0 that was sent, or an older one.
    private var kept = Buffers.alternate
    /// Whether `kept` holds the newest frame, not an older one.
    private var keptIsNewest = true
    /// Whether LAST holds a frame that was sent.
    private(set) var newestIsSent = true

    /// Whether the frames of layer 0 that follow refer to the newest one that was sent, not to an older one.
    var newestIsHeld: Bool { newestIsSent || keptIsNewest }

    /// Whether the newest frame that was sent is still there if the next one is encoded and not sent.
    ///
    /// If not, a frame that changes nothing makes it so, because it updates the other buffer, too.
    var outlivesLast: Bool { keptIsNewest }

    /// Creates the state after a keyframe.
    init() {}

    /// The buffers for a frame of `role`, one of `layerCount` layers, that does not become a keyframe.
    ///
    /// With one layer, libvpx gives a frame that updates ARF the target size of the frame before
    /// (`calc_pframe_target_size` in `vp8/encoder/ratectrl.c`). So the frame after a keyframe must not update it, nor
    /// the first frame for which the `targetIsNew`: they came out up to 19 times too large.
    func use(for role: TemporalLayerPattern.Role, layerCount: Int, targetIsNew: Bool) -> Use {
        let newest = newestIsSent ? Buffers.last : kept
        if role.temporalLayer == 0 {
            let updatesOther = layerCount < 3 && !(targetIsNew && other == .alternate)
            return Use(refersTo: newest, updates: updatesOther ? [.last, other] : .last)
        }
        return Use(
            refersTo: role.refersToMiddleLayer ? [newest, .golden] : newest,
            updates: role.isReference ? .golden : []
        )
    }

    /// Whether the frames go on without a keyframe if one of this role is encoded and not sent.
    static func canTakeBack(_ role: TemporalLayerPattern.Role, layerCount: Int) -> Bool {
        role.temporalLayer > 0 || layerCount < 3
    }

    /// Notes that a frame was encoded, and whether it was sent.
    mutating func encoded(_ use: Use, isSent: Bool) {
        if use.updates.contains(.last) {
            newestIsSent = isSent
            guard isSent else { return }
            keptIsNewest = use.updates.contains(other)
            if keptIsNewest { kept = other }
        } else if use.updates.contains(.golden) {
            // From here on, GOLDEN may hold what not every receiver has.
            if kept == .golden { (kept, keptIsNewest) = (.alternate, false) }
        }
    }

    /// Notes that a keyframe was sent, which all buffers hold now.
    mutating func keyframeSent() {
        self = ReferenceBuffers()
    }

    private var other: Buffers { kept == .golden ? .alternate : .golden }
}
