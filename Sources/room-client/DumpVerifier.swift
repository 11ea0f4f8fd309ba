import Foundation
import MediaCore
import MediaFiles
import RoomKit
import Threading

/// Checks one dump: the pictures by their barcodes, the frames by the log beside the dump.
struct DumpVerifier {
    /// The result, and the latency of each shown frame in milliseconds.
    struct Outcome {
        var result: VerificationResult
        var latencies: [Double]
    }

    private let path: String

    init(path: String) {
        self.path = path
    }

    func verify() throws -> Outcome {
        let log = try readLog()
        // One entry for each frame in the file; `nil` for a frame that is not shown.
        var readings: [BarcodeReading?] = []
        var sizes = SizeCount()
        let dimensions = try readFrames { buffer in
            readings.append(buffer.map { Barcode.read(from: $0) })
            if let buffer { sizes.observe(buffer.dimensions) }
        }
        var result = VerificationResult(file: path, width: dimensions.width, height: dimensions.height)
        result.sizeChanges = sizes.changes
        guard let log else {
            judge(readings, into: &result)
            return Outcome(result: result, latencies: [])
        }
        // The dump may still be growing, so the log is read before the file and again after it.
        result.notInFile = max(0, log.count - readings.count)
        result.notInLog = max(0, readings.count - (try readLog()?.count ?? 0))
        let logged = Array(log.prefix(readings.count))
        var check = FrameLogCheck()
        var repeated: Set<Int> = []
        for (index, entry) in logged.enumerated() where check.observe(entry) { repeated.insert(index) }
        judge(readings.enumerated().filter { !repeated.contains($0.offset) }.map(\.element), into: &result)
        note(check, into: &result)
        // The pictures of a Y4M file all have its size.
        result.sizeChanges = max(result.sizeChanges, check.sizeChanges)
        result.frames = readings.count { $0 != nil }
        result.notSent = max(0, result.notSent - result.layersLeftOut - result.lost)
        let latencies = latencies(of: logged)
        note(logged.filter(\.isShown), into: &result)
        result.latencyMs = Percentiles(of: latencies)
        return Outcome(result: result, latencies: latencies)
    }

    /// Adds what the barcodes of the pictures say.
    private func judge(_ readings: [BarcodeReading?], into result: inout VerificationResult) {
        var checker = FrameSequenceChecker()
        for case let reading? in readings { checker.observe(reading) }
        let counts = checker.counts
        result.frames = counts.frames
        result.duplicated = counts.duplicated
        result.reordered = counts.reordered
        result.torn = counts.torn
        result.unreadable = counts.unreadable
        result.frozen = counts.frozen
        result.notSent = counts.notSent
    }

    /// Adds what the log says.
    private func note(_ check: FrameLogCheck, into result: inout VerificationResult) {
        result.simulcastLayers = check.layers.values.sorted { $0.simulcastLayer < $1.simulcastLayer }
        for layer in result.simulcastLayers {
            result.lost += layer.lost
            result.layersLeftOut += layer.layersLeftOut
            result.duplicated += layer.duplicated
            result.reordered += layer.reordered
        }
        result.simulcastSwitches = check.switches
        result.catchUp = check.catchUp
        result.notShown = check.notShown
        result.freezeCount = check.freezes.count
        result.totalFreezesDuration = check.freezes.totalDuration.seconds
    }

    /// Adds the worst clock behind the latencies to the result.
    private func note(_ shown: [FrameLogEntry], into result: inout VerificationResult) {
        guard !shown.isEmpty else { return }
        result.clock = shown.allSatisfy { $0.clock == "same-host" } ? "same-host" : "estimated"
        result.clockErrorMs = shown.compactMap(\.clockError).max().map { Double($0) / 1000 }
    }

    /// The `.frames.jsonl` of the dump; `nil` if there is none.
    private func readLog() throws -> [FrameLogEntry]? {
        let log = "\((path as NSString).deletingPathExtension).frames.jsonl"
        guard unsafe access(log, R_OK) == 0 else {
            if errno == ENOENT { return nil }
            throw MediaFileError(.open, log, status: errno)
        }
        guard let data = FileManager.default.contents(atPath: log) else {
            throw MediaFileError(.read, log, status: EIO)
        }
        do {
            return try FrameLogEntry.read(String(decoding: data, as: UTF8.self))
        } catch {
            throw MediaFileError(.damaged, .read, log, "a line is no frame's; move it away to verify without it")
        }
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
    private func latencies(of log: [FrameLogEntry]) -> [Double] {
        log.filter(\.isShown).compactMap { entry in
            // As floating point: a damaged log may have any times.
            entry.decoded.map { (Double($0) - Double(entry.captured)) / 1000 }
        }
    }
}

/// Counts how many times pictures had another size than the one before.
private struct SizeCount {
    private(set) var changes = 0
    private var size: Dimensions?

    mutating func observe(_ size: Dimensions) {
        if let former = self.size, former != size { changes += 1 }
        self.size = size
    }
}
