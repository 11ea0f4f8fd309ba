import MediaCore
import MediaFiles
import RoomKit

/// Checks one dump: the pictures by their barcodes, the frames by the log beside the dump.
struct DumpVerifier {
    /// The result, and the age of each shown frame in milliseconds.
    struct Outcome {
        var result: VerificationResult
        var ages: [Double]
    }

    private let path: String

    init(path: String) {
        self.path = path
    }

    func verify() throws -> Outcome {
        let log = try DumpFiles.readLog(of: path)
        var frames: [DumpedFrame] = []
        var sizes = SizeCount()
        let extent = try readFrames { buffer, stored in
            frames.append(DumpedFrame(reading: buffer.map { Barcode.read(from: $0) }, stored: stored))
            if let buffer { sizes.observe(buffer.dimensions) }
        }
        let published = extent.dimensions
        var result = VerificationResult(file: path, size: sizes.mostFrequent ?? published, published: published)
        result.unread = extent.unread
        result.isLogged = log != nil
        guard let log else {
            judge(frames, into: &result.counts)
            result.counts.sizeChanges = sizes.changes
            return Outcome(result: result, ages: [])
        }
        // The dump may still be growing, so the log is read before the file and again after it.
        let logged = Array(log.prefix(frames.count))
        result.counts.notInFile = log.count - logged.count
        result.counts.notInLog = max(0, frames.count - (try DumpFiles.readLog(of: path)?.count ?? 0))
        var check = FrameLogCheck(isRaw: isRaw)
        for (index, entry) in logged.enumerated() {
            frames[index].isSeenBefore = check.observe(entry)
            frames[index].isRepeat = entry.repeated == true
            guard let stored = frames[index].stored, !stored.matches(entry) else { continue }
            result.counts.notAsLogged += 1
            result.firstNotAsLogged = result.firstNotAsLogged ?? index + 1
        }
        judge(frames, into: &result.counts)
        check.add(to: &result.counts)
        result.counts.substitutes = logged.count { $0.substitute == true }
        result.counts.frames = frames.count { $0.reading != nil }
        // The pictures of a Y4M file all have its size.
        result.counts.sizeChanges = max(sizes.changes, check.sizeChanges)
        result.simulcastLayers = check.layers.values.sorted { $0.simulcastLayer < $1.simulcastLayer }
        let shown = logged.filter(\.isShown)
        note(shown, into: &result.counts)
        let ages = ages(of: shown)
        result.latencyMs = Percentiles(of: ages)
        return Outcome(result: result, ages: ages)
    }

    /// Sets what the barcodes of the pictures say.
    private func judge(_ frames: [DumpedFrame], into counts: inout DumpCounts) {
        var checker = FrameSequenceChecker()
        for frame in frames where !frame.isSeenBefore {
            if let reading = frame.reading { checker.observe(reading, isRepeat: frame.isRepeat) }
        }
        counts.frames = checker.counts.frames
        counts.duplicated = checker.counts.duplicated
        counts.reordered = checker.counts.reordered
        counts.torn = checker.counts.torn
        counts.unreadable = checker.counts.unreadable
        counts.frozen = checker.counts.frozen
        counts.notSent = checker.counts.notSent
    }

    /// Sets the worst clock behind the frame ages.
    private func note(_ shown: [FrameLogEntry], into counts: inout DumpCounts) {
        guard !shown.isEmpty else { return }
        counts.clock = shown.allSatisfy { $0.clock == "same-host" } ? "same-host" : "estimated"
        counts.clockErrorMs = shown.compactMap(\.clockError).max().map { Double($0) / 1000 }
    }

    /// Whether the dump has raw pictures instead of compressed frames.
    private var isRaw: Bool { path.lowercased().hasSuffix(".y4m") }

    /// Passes every frame of the dump to `body`, in order: its picture, if it is shown, and its description, if it is
    /// compressed.
    private func readFrames(_ body: (VideoBuffer?, StoredFrame?) -> Void) throws -> DumpExtent {
        guard isRaw else { return try CompressedPictures.read(path, body) }
        let reader = try Y4MReader(path: path)
        let buffer = VideoBuffer(dimensions: reader.dimensions)
        var extent = DumpExtent(dimensions: reader.dimensions)
        do {
            while try reader.readFrame(into: buffer) { body(buffer, nil) }
        } catch let error as MediaFileError {
            extent.unread = try .cutOff(by: error)
        }
        return extent
    }

    /// The time from capture to decoding in milliseconds, for every frame that was shown.
    private func ages(of shown: [FrameLogEntry]) -> [Double] {
        // As floating point: a damaged log may have any times.
        shown.compactMap { entry in entry.decoded.map { (Double($0) - Double(entry.captured)) / 1000 } }
    }
}

/// A frame of a dump.
private struct DumpedFrame {
    /// The barcode of its picture; `nil` for a frame that is not shown.
    var reading: BarcodeReading?
    /// Its description in the file; `nil` for a raw picture.
    var stored: StoredFrame?
    /// Whether its picture repeats an earlier moment, as `FrameLogCheck` says.
    var isSeenBefore = false
    /// Whether it shows the picture before again, because the source stood still, as the log says.
    var isRepeat = false
}

extension StoredFrame {
    /// Whether the frame can be the one of a line of the log.
    fileprivate func matches(_ entry: FrameLogEntry) -> Bool {
        size.bytes == entry.bytes && isKeyframe == entry.key
    }
}

/// Counts the pictures of each size, and how many times one had another size than the one before.
private struct SizeCount {
    private(set) var changes = 0
    private var size: Dimensions?
    private var pictures: [Dimensions: Int] = [:]

    /// The size of the most pictures, the largest of several; `nil` without a picture.
    var mostFrequent: Dimensions? {
        pictures.max { ($0.value, $0.key.area) < ($1.value, $1.key.area) }?.key
    }

    mutating func observe(_ size: Dimensions) {
        if let former = self.size, former != size { changes += 1 }
        self.size = size
        pictures[size, default: 0] += 1
    }
}
