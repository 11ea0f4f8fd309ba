import Foundation
import RoomKit
import Wording

/// The result for one dump.
struct VerificationResult: Encodable {
    var event = "file"
    var file: String
    /// Always `null`: a dump that cannot be read is an `UnreadableFile`.
    @Nullable var error: String? = nil
    /// The size of most pictures.
    var width: Int
    var height: Int
    /// The size that the file states, which is that as published.
    var publishedWidth: Int
    var publishedHeight: Int
    var counts = DumpCounts()
    /// The part of the file that was not read; its first byte is written as `unreadFrom`.
    var unread: DumpExtent.Unread?
    /// Whether there is a log beside the file.
    var isLogged = false
    /// The first of the frames that are not as in the log, counted from 1.
    var firstNotAsLogged: Int?
    /// The counts for each simulcast layer, in which frame numbers count; empty without a log.
    var simulcastLayers: [FrameLogCheck.Layer] = []
    /// The frame ages, in milliseconds.
    @Nullable var latencyMs: Percentiles? = nil

    private enum CodingKeys: CodingKey {
        case event, file, error, width, height, publishedWidth, publishedHeight, unreadFrom
        case simulcastLayers, latencyMs
    }

    init(file: String, size: Dimensions, published: Dimensions) {
        self.file = file
        (width, height) = (size.width, size.height)
        (publishedWidth, publishedHeight) = (published.width, published.height)
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
        try container.encode(_error, forKey: .error)
        try container.encode(width, forKey: .width)
        try container.encode(height, forKey: .height)
        try container.encode(publishedWidth, forKey: .publishedWidth)
        try container.encode(publishedHeight, forKey: .publishedHeight)
        try container.encode(unread?.offset, forKey: .unreadFrom)
        try container.encode(simulcastLayers, forKey: .simulcastLayers)
        try container.encode(_latencyMs, forKey: .latencyMs)
    }

    /// Whether anything is wrong; a dump without a frame says nothing good either.
    var hasFaults: Bool {
        counts.lost + counts.duplicated + counts.reordered + counts.torn + counts.notInFile + counts.notAsLogged > 0
            || counts.notInLog > Self.notLoggedAtMost || counts.frames == 0 || isUnreadPartFault
    }

    /// Whether the file should have been read to its end.
    ///
    /// A program that is killed leaves an incomplete frame. The log says whether that is all that the file lacks; without
    /// a log it may be any number of frames.
    private var isUnreadPartFault: Bool {
        switch unread {
        case nil: false
        case .incompleteFrame: !isLogged
        case .anotherFile: true
        }
    }

    /// The result as text for people.
    var words: String {
        let ages = latencyMs.map {
            String(format: ", frame age p50 %.1f p95 %.1f p99 %.1f ms, ", $0.p50, $0.p95, $0.p99 ?? $0.p95)
                + counts.clockInWords
        }
        let missing =
            (counts.notInFile > 0 ? ", \(counts.notInFile) of the log not in the file" : "")
            + (counts.notInLog > 0 ? ", \(counts.notInLog) not in the log" : "")
            + notAsLoggedWords + unreadWords
            + (counts.notDecoded > 0 ? ", \(counts.notDecoded) not decoded" : "")
        let smoothness =
            (counts.sizeChanges > 0 ? ", size changes: \(counts.sizeChanges)" : "")
            + (counts.simulcastSwitches > 0 ? ", simulcast switches: \(counts.simulcastSwitches)" : "")
            + (counts.repeated > 0 ? ", repeats of a still picture: \(counts.repeated)" : "")
            + (counts.substitutes > 0 ? ", slates: \(counts.substitutes)" : "")
            + counts.freezeWords
        let isAsPublished = (width, height) == (publishedWidth, publishedHeight)
        let published = isAsPublished ? "" : " (published as \(publishedWidth)x\(publishedHeight))"
        return """
            \(file): \(width)x\(height)\(published), \(counted(counts.frames, "frame")), \(counts.faultWords), \
            \(counts.notSent) not sent\(missing)\(barcodeWords)\(smoothness)\(ages ?? "")
            """
    }

    private var notAsLoggedWords: String {
        guard let firstNotAsLogged else { return "" }
        return ", \(counts.notAsLogged) not as in the log, first frame \(firstNotAsLogged)"
    }

    private var unreadWords: String {
        switch unread {
        case nil: ""
        case .incompleteFrame(let offset): ", cut off at byte \(offset) after \(counted(counts.frames, "frame"))"
        case .anotherFile(let offset): ", another file begins at byte \(offset) and was not read"
        }
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
    /// Files among `files` that were not read to their end, because they are cut off, or another file follows.
    var filesCut = 0
    var counts = DumpCounts()
    /// The frame ages, in milliseconds.
    @Nullable var latencyMs: Percentiles? = nil

    private enum CodingKeys: CodingKey {
        case event, files, filesUnreadable, filesEmpty, filesCut, latencyMs
    }

    private var ages: [Double] = []

    /// Whether anything is wrong in one of the files.
    private(set) var hasFaults = false

    mutating func add(_ outcome: DumpVerifier.Outcome) {
        files += 1
        if outcome.result.counts.frames == 0 { filesEmpty += 1 }
        if outcome.result.unread != nil { filesCut += 1 }
        counts.add(outcome.result.counts)
        hasFaults = hasFaults || outcome.result.hasFaults
        ages += outcome.ages
    }

    mutating func finish() {
        latencyMs = Percentiles(of: ages)
    }

    /// Writes the counts beside the other keys.
    func encode(to encoder: any Encoder) throws {
        try counts.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(event, forKey: .event)
        try container.encode(files, forKey: .files)
        try container.encode(filesUnreadable, forKey: .filesUnreadable)
        try container.encode(filesEmpty, forKey: .filesEmpty)
        try container.encode(filesCut, forKey: .filesCut)
        try container.encode(_latencyMs, forKey: .latencyMs)
    }

    /// The summary as text for people.
    var words: String {
        let unreadable = filesUnreadable == 0 ? "" : "\(counted(filesUnreadable, "file")) could not be read."
        guard files > 0 else { return unreadable }
        let missing =
            (counts.notInFile > 0 ? ", \(counts.notInFile) not in their files" : "")
            + (counts.notInLog > 0 ? ", \(counts.notInLog) not in their logs" : "")
            + (counts.notAsLogged > 0 ? ", \(counts.notAsLogged) not as in their logs" : "")
            + (filesCut > 0 ? ", files not read to their end: \(filesCut)" : "")
        let empty = filesEmpty > 0 ? ", files without a frame: \(filesEmpty)" : ""
        let ages = latencyMs.map {
            String(format: ", frame age p50 %.1f p95 %.1f max %.1f ms, ", $0.p50, $0.p95, $0.max ?? $0.p95)
                + counts.clockInWords
        }
        let result = """
            \(counted(files, "file")), \(counted(counts.frames, "frame")): \(counts.faultWords)\(missing)\(empty), \
            size changes: \(counts.sizeChanges)\(counts.freezeWords)\(ages ?? "").
            """
        return unreadable.isEmpty ? result : "\(result) \(unreadable)"
    }
}
