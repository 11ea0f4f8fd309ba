import Foundation
import RoomKit

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
    /// The worst clock behind the latencies.
    @Nullable var clock: String? = nil
    @Nullable var clockErrorMs: Double? = nil

    /// Adds the counts of another dump.
    mutating func add(_ other: DumpCounts) {
        let sums: [WritableKeyPath<DumpCounts, Int>] = [
            \.frames, \.notSent, \.lost, \.skipped, \.layersLeftOut, \.duplicated, \.reordered, \.torn, \.unreadable,
            \.frozen, \.catchUp, \.notShown, \.notDecoded, \.sizeChanges, \.simulcastSwitches, \.notInFile, \.notInLog,
        ]
        for count in sums { self[keyPath: count] += other[keyPath: count] }
        if let theirs = other.freezeCount { freezeCount = (freezeCount ?? 0) + theirs }
        if let theirs = other.totalFreezesDuration { totalFreezesDuration = (totalFreezesDuration ?? 0) + theirs }
        if let theirs = other.clock, clock != "estimated" { clock = theirs }
        clockErrorMs = [clockErrorMs, other.clockErrorMs].compactMap(\.self).max()
    }

    /// The faults as text for people, and what was left out on purpose.
    fileprivate var faultWords: String {
        """
        \(lost) lost, \(skipped + layersLeftOut) left out, \(duplicated) doubled, \(reordered) reordered, \(torn) torn
        """
    }

    /// The freezes as text for people; empty if they are not known.
    fileprivate var freezeWords: String {
        guard let freezeCount else { return "" }
        let time = freezeCount > 0 ? String(format: " (%.2f s)", totalFreezesDuration ?? 0) : ""
        return ", freezes: \(freezeCount)\(time)"
    }

    /// Names the clock behind the latencies, for people.
    fileprivate var clockInWords: String { clockWords(clock ?? "estimated", errorMs: clockErrorMs) }
}

/// The result for one dump.
struct VerificationResult: Encodable {
    var event = "file"
    var file: String
    var width: Int
    var height: Int
    var counts = DumpCounts()
    /// The counts for each simulcast layer, in which frame numbers count; empty without a log.
    var simulcastLayers: [FrameLogCheck.Layer] = []
    @Nullable var latencyMs: Percentiles? = nil

    private enum CodingKeys: CodingKey {
        case event, file, width, height, simulcastLayers, latencyMs
    }

    /// The largest number of frames that the log may lack.
    ///
    /// A frame is written to the file before its line is written to the log, each by one system call
    /// (`RecordingFiles.write`). A program that is killed between the two leaves one frame without a line, and never a
    /// line without its frame.
    private static let notLoggedAtMost = 1

    /// Writes the counts beside the other keys.
    func encode(to encoder: any Encoder) throws {
        try counts.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(event, forKey: .event)
        try container.encode(file, forKey: .file)
        try container.encode(width, forKey: .width)
        try container.encode(height, forKey: .height)
        try container.encode(simulcastLayers, forKey: .simulcastLayers)
        try container.encode(_latencyMs, forKey: .latencyMs)
    }

    /// Whether anything is wrong; a dump without a frame says nothing good either.
    var hasFaults: Bool {
        counts.lost + counts.duplicated + counts.reordered + counts.torn + counts.notInFile > 0
            || counts.notInLog > Self.notLoggedAtMost || counts.frames == 0
    }

    /// The result as text for people.
    var words: String {
        let latency = latencyMs.map {
            String(format: ", latency p50 %.1f p95 %.1f p99 %.1f ms, ", $0.p50, $0.p95, $0.p99 ?? $0.p95)
                + counts.clockInWords
        }
        let missing =
            (counts.notInFile > 0 ? ", \(counts.notInFile) of the log not in the file" : "")
            + (counts.notInLog > 0 ? ", \(counts.notInLog) not in the log" : "")
            + (counts.notDecoded > 0 ? ", \(counts.notDecoded) not decoded" : "")
        let smoothness =
            (counts.sizeChanges > 0 ? ", size changes: \(counts.sizeChanges)" : "")
            + (counts.simulcastSwitches > 0 ? ", simulcast switches: \(counts.simulcastSwitches)" : "")
            + counts.freezeWords
        return """
            \(file): \(width)x\(height), \(counts.frames) frames, \(counts.faultWords), \
            \(counts.notSent) not sent\(missing)\(barcodeWords)\(smoothness)\(latency ?? "")
            """
    }

    private var barcodeWords: String {
        if counts.unreadable == 0 { return "" }
        return counts.unreadable == counts.frames ? ", no barcodes" : ", \(counts.unreadable) unreadable"
    }
}

/// The result for all dumps.
struct VerificationSummary: Encodable {
    var event = "summary"
    var files = 0
    /// Files that are not among `files`, because they could not be read.
    var filesUnreadable = 0
    /// Files among `files` that contain no frame.
    var filesEmpty = 0
    var counts = DumpCounts()
    @Nullable var latencyMs: Percentiles? = nil

    private enum CodingKeys: CodingKey {
        case event, files, filesUnreadable, filesEmpty, latencyMs
    }

    private var latencies: [Double] = []

    /// Whether anything is wrong in one of the files.
    private(set) var hasFaults = false

    mutating func add(_ outcome: DumpVerifier.Outcome) {
        files += 1
        if outcome.result.counts.frames == 0 { filesEmpty += 1 }
        counts.add(outcome.result.counts)
        hasFaults = hasFaults || outcome.result.hasFaults
        latencies += outcome.latencies
    }

    mutating func finish() {
        latencyMs = Percentiles(of: latencies)
    }

    /// Writes the counts beside the other keys.
    func encode(to encoder: any Encoder) throws {
        try counts.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(event, forKey: .event)
        try container.encode(files, forKey: .files)
        try container.encode(filesUnreadable, forKey: .filesUnreadable)
        try container.encode(filesEmpty, forKey: .filesEmpty)
        try container.encode(_latencyMs, forKey: .latencyMs)
    }

    /// The summary as text for people.
    var words: String {
        let unreadable = filesUnreadable == 0 ? "" : "\(counted(filesUnreadable, "file")) could not be read."
        guard files > 0 else { return unreadable }
        let missing = counts.notInFile > 0 ? ", \(counts.notInFile) not in their files" : ""
        let empty = filesEmpty > 0 ? ", files without a frame: \(filesEmpty)" : ""
        let ages = latencyMs.map {
            String(format: ", latency p50 %.1f p95 %.1f max %.1f ms, ", $0.p50, $0.p95, $0.max ?? $0.p95)
                + counts.clockInWords
        }
        let result = """
            \(counted(files, "file")), \(counted(counts.frames, "frame")): \(counts.faultWords)\(missing)\(empty), \
            size changes: \(counts.sizeChanges)\(counts.freezeWords)\(ages ?? "").
            """
        return unreadable.isEmpty ? result : "\(result) \(unreadable)"
    }
}

extension Percentiles {
    /// Computes the percentiles of samples in milliseconds, by nearest rank; `nil` without samples.
    init?(of samples: [Double]) {
        guard !samples.isEmpty else { return nil }
        let sorted = samples.sorted()
        func rank(_ percent: Double) -> Double {
            sorted[Swift.max(0, Int((percent / 100 * Double(sorted.count)).rounded(.up)) - 1)]
        }
        self.init(p50: rank(50), p95: rank(95), p99: rank(99), max: sorted[sorted.count - 1])
    }
}
