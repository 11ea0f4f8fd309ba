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
        // One entry for each frame in the file; `nil` for a frame that is not shown.
        var readings: [BarcodeReading?] = []
        var sizes = SizeCount()
        let dimensions = try readFrames { buffer in
            readings.append(buffer.map { Barcode.read(from: $0) })
            if let buffer { sizes.observe(buffer.dimensions) }
        }
        var result = VerificationResult(file: path, size: sizes.mostFrequent ?? dimensions, published: dimensions)
        guard let log else {
            judge(readings, into: &result.counts)
            result.counts.sizeChanges = sizes.changes
            return Outcome(result: result, ages: [])
        }
        // The dump may still be growing, so the log is read before the file and again after it.
        let logged = Array(log.prefix(readings.count))
        result.counts.notInFile = log.count - logged.count
        result.counts.notInLog = max(0, readings.count - (try DumpFiles.readLog(of: path)?.count ?? 0))
        var check = FrameLogCheck()
        var repeated: Set<Int> = []
        for (index, entry) in logged.enumerated() where check.observe(entry) { repeated.insert(index) }
        judge(readings.enumerated().filter { !repeated.contains($0.offset) }.map(\.element), into: &result.counts)
        check.add(to: &result.counts)
        result.counts.substitutes = logged.count { $0.substitute == true }
        result.counts.frames = readings.count { $0 != nil }
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
    private func judge(_ readings: [BarcodeReading?], into counts: inout DumpCounts) {
        var checker = FrameSequenceChecker()
        for case let reading? in readings { checker.observe(reading) }
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

    /// Passes the picture of every frame of the dump to `body`, in order.
    private func readFrames(_ body: (VideoBuffer?) -> Void) throws -> Dimensions {
        if path.hasSuffix(".y4m") {
            let reader = try Y4MReader(path: path)
            let buffer = VideoBuffer(dimensions: reader.dimensions)
            do {
                while try reader.readFrame(into: buffer) { body(buffer) }
            } catch let error as MediaFileError where error.code == .truncated {
                // As in the other formats, a dump may end anywhere.
            }
            return reader.dimensions
        }
        return try CompressedPictures.read(path, body)
    }

    /// The time from capture to decoding in milliseconds, for every frame that was shown.
    private func ages(of shown: [FrameLogEntry]) -> [Double] {
        // As floating point: a damaged log may have any times.
        shown.compactMap { entry in entry.decoded.map { (Double($0) - Double(entry.captured)) / 1000 } }
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
