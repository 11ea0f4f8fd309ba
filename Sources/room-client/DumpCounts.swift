import Foundation

/// What was counted in one dump, or in all dumps together.
struct DumpCounts: Encodable {
    /// Pictures in the file.
    var frames = 0
    /// Frames that were captured but left out by the publisher.
    var notSent = 0
    /// Gaps in the frames' numbers after which the next frame cannot be decoded.
    var lost = 0
    /// Frames that were left out up to a keyframe, because they were too late for this subscriber.
    var skipped = 0
    /// Frames of higher temporal layers that were left out.
    var layersLeftOut = 0
    /// Frames that a dump of raw pictures lacks, although the frames after them could be decoded.
    var notRecorded = 0
    var duplicated = 0
    var reordered = 0
    var torn = 0
    /// Pictures without a readable barcode; all of them, if the source is not the pattern.
    var unreadable = 0
    var frozen = 0
    /// Frames from the relay's cache, which were decoded but not shown.
    var catchUp = 0
    /// Other frames that were decoded but not shown: a newer picture was there already, or they were too late.
    var notShown = 0
    /// Frames that show the picture before again, because the source stood still, as the log says.
    var repeated = 0
    /// Frames that show a slate instead of the camera's picture, as the log says.
    var substitutes = 0
    /// Frames that were not decoded, as the log says.
    var notDecoded = 0
    /// How many times a picture had another size than the one before.
    var sizeChanges = 0
    /// How many times the frames changed to another simulcast layer.
    var simulcastSwitches = 0
    /// The freezes between shown pictures, by W3C's definition; `null` if no log tells when a picture was shown.
    @Nullable var freezeCount: Int? = nil
    /// The time of these freezes, in seconds.
    @Nullable var totalFreezesDuration: Double? = nil
    /// Frames of the log that the file lacks.
    var notInFile = 0
    /// Frames of the file that the log lacks.
    var notInLog = 0
    /// Frames of the file that have another length than in the log, or are keyframes only in one of them.
    var notAsLogged = 0
    /// The worst clock behind the frame ages.
    @Nullable var clock: String? = nil
    @Nullable var clockErrorMs: Double? = nil

    /// Adds the counts of another dump.
    mutating func add(_ other: DumpCounts) {
        let sums: [WritableKeyPath<DumpCounts, Int>] = [
            \.frames, \.notSent, \.lost, \.skipped, \.layersLeftOut, \.duplicated, \.reordered, \.torn, \.unreadable,
            \.frozen, \.catchUp, \.notShown, \.notDecoded, \.sizeChanges, \.simulcastSwitches, \.notInFile, \.notInLog,
            \.repeated, \.substitutes, \.notRecorded, \.notAsLogged,
        ]
        for count in sums { self[keyPath: count] += other[keyPath: count] }
        if let theirs = other.freezeCount { freezeCount = (freezeCount ?? 0) + theirs }
        if let theirs = other.totalFreezesDuration { totalFreezesDuration = (totalFreezesDuration ?? 0) + theirs }
        if let theirs = other.clock, clock != "estimated" { clock = theirs }
        clockErrorMs = [clockErrorMs, other.clockErrorMs].compactMap(\.self).max()
    }

    /// The faults as text for people, and what was left out on purpose.
    var faultWords: String {
        """
        \(lost) lost, \(skipped + layersLeftOut) left out, \(duplicated) doubled, \(reordered) reordered, \(torn) torn\
        \(notRecorded > 0 ? ", \(notRecorded) not recorded" : "")
        """
    }

    /// The freezes as text for people; empty if they are not known.
    var freezeWords: String {
        guard let freezeCount else { return "" }
        let time = freezeCount > 0 ? String(format: " (%.2f s)", totalFreezesDuration ?? 0) : ""
        return ", freezes: \(freezeCount)\(time)"
    }

    /// Names the clock behind the frame ages, for people.
    var clockInWords: String { clockWords(clock ?? "estimated", errorMs: clockErrorMs) }
}
