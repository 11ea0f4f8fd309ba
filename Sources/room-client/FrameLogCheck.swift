import MediaCore
import RoomKit

/// Judges the lines of a dump's log, in order: a pure value.
///
/// Frame numbers count in each simulcast layer on its own. So gaps, doubled and reordered frames are looked for within
/// a layer. Frames of a layer that the relay sent while another one was received are no gap.
///
/// TCP loses nothing, so whatever is missing was left out by somebody. It is no fault if everything after it can be
/// decoded: the next frame is a keyframe, or only higher temporal layers are missing.
///
/// A dump of raw pictures has only frames that were decoded, so nothing that it lacks was lost on the way: the recorder
/// left the other frames out, or the program did not decode them.
struct FrameLogCheck {
    /// The counts for one simulcast layer.
    struct Layer: Encodable {
        var simulcastLayer: Int
        var frames = 0
        /// Frames in gaps after which the next frame cannot be decoded.
        var lost = 0
        /// Frames that were left out up to a keyframe.
        var skipped = 0
        /// Frames of higher temporal layers that were left out.
        var layersLeftOut = 0
        /// Frames in such gaps of a dump of raw pictures.
        var notRecorded = 0
        var duplicated = 0
        var reordered = 0
    }

    /// The counts for each simulcast layer, by its number.
    private(set) var layers: [Int: Layer] = [:]
    /// How many times the frames changed to another simulcast layer.
    private var switches = 0
    /// How many times a picture had another size than the one before.
    private(set) var sizeChanges = 0

    /// Frames from the relay's cache.
    private var catchUp = 0
    /// Frames that were decoded and not shown, other than those from the relay's cache.
    private var notShown = 0
    /// Frames that were not decoded.
    private var notDecoded = 0
    /// The freezes between the pictures that were shown.
    private var freezes = FreezeDetector()
    private var hasShown = false
    /// Frames that show the picture before again, because the source stood still.
    private var repeated = 0

    /// The frame with the highest number of each simulcast layer.
    private var newest: [Int: FrameLogEntry] = [:]
    private var layer: Int?
    private var size: Dimensions?
    private var newestCapture = Int64.min
    private var isOverlapping = false
    /// The count for frames without which the next one cannot be decoded, or could not be if they had not arrived.
    private let gaps: WritableKeyPath<Layer, Int>

    /// Creates a check that has seen no line.
    ///
    /// - Parameter isRaw: Whether the dump has raw pictures instead of compressed frames.
    init(isRaw: Bool = false) {
        gaps = isRaw ? \.notRecorded : \.lost
    }

    /// Takes the next line.
    ///
    /// - Returns: Whether the picture repeats an earlier moment because of a change of the simulcast layer, or because
    ///   the track was paused and is received again; its barcode was seen before.
    mutating func observe(_ entry: FrameLogEntry) -> Bool {
        let layer = entry.simulcastLayer ?? 0
        let isSwitch = self.layer.map { $0 != layer } ?? false
        self.layer = layer
        if isSwitch { switches += 1 }
        // After a pause the relay begins with the cached keyframe, which may have been received before.
        let isResumption = entry.catchUp && entry.key && newest[layer].map { entry.number <= $0.number } ?? false
        if isResumption { newest[layer] = nil }
        judgeNumber(of: entry, in: layer, isSwitch: isSwitch)
        if let dimensions = entry.dimensions {
            if let size, size != dimensions { sizeChanges += 1 }
            size = dimensions
        }
        noteDisplay(of: entry)
        isOverlapping = (isOverlapping || isSwitch || isResumption) && entry.captured <= newestCapture
        newestCapture = max(newestCapture, entry.captured)
        return isOverlapping
    }

    private mutating func noteDisplay(of entry: FrameLogEntry) {
        if entry.catchUp { catchUp += 1 }
        guard let decoded = entry.decoded else {
            notDecoded += 1
            return
        }
        if entry.repeated == true { repeated += 1 }
        if entry.isShown {
            hasShown = true
            freezes.shown(entry.shownFrame, at: MonotonicInstant(microseconds: decoded))
        } else if !entry.catchUp {
            notShown += 1
        }
    }

    private mutating func judgeNumber(of entry: FrameLogEntry, in layer: Int, isSwitch: Bool) {
        var counts = layers[layer] ?? Layer(simulcastLayer: layer)
        defer { layers[layer] = counts }
        counts.frames += 1
        // Another simulcast layer begins with a keyframe; without one, at least that keyframe is missing.
        if isSwitch && !entry.key { counts[keyPath: gaps] += 1 }
        guard let previous = newest[layer] else {
            newest[layer] = entry
            return
        }
        if entry.number > previous.number { newest[layer] = entry }
        if entry.number == previous.number { counts.duplicated += 1 }
        if entry.number < previous.number { counts.reordered += 1 }
        let missing = Int(entry.number) - Int(previous.number) - 1
        guard missing > 0, !isSwitch else { return }
        // Frames of temporal layer 0 are never left out on purpose, so their count has no gap.
        let step = (entry.base &- previous.base) & 0xFFFF
        if entry.key {
            counts.skipped += missing
        } else if step == (entry.layer == 0 ? 1 : 0) {
            counts.layersLeftOut += missing
        } else {
            counts[keyPath: gaps] += missing
        }
    }

    /// Adds the result to what the pictures themselves say.
    func add(to counts: inout DumpCounts) {
        for layer in layers.values {
            counts.lost += layer.lost
            counts.skipped += layer.skipped
            counts.layersLeftOut += layer.layersLeftOut
            counts.notRecorded += layer.notRecorded
            counts.duplicated += layer.duplicated
            counts.reordered += layer.reordered
        }
        // A frame that the numbers miss was sent.
        let missing = counts.lost + counts.skipped + counts.layersLeftOut + counts.notRecorded
        counts.notSent = max(0, counts.notSent - missing)
        counts.simulcastSwitches = switches
        counts.catchUp = catchUp
        counts.notShown = notShown
        counts.notDecoded = notDecoded
        counts.repeated = repeated
        // Without a shown picture nothing is known of freezes.
        if hasShown {
            counts.freezeCount = freezes.count
            counts.totalFreezesDuration = freezes.totalDuration.seconds
        }
    }
}

extension FrameLogEntry {
    /// The frame as the freeze detector takes it.
    var shownFrame: FreezeDetector.Frame {
        FreezeDetector.Frame(number: number, simulcastLayer: simulcastLayer ?? 0, isRepeat: repeated ?? false)
    }
}
