import Foundation
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
        let dimensions = try readFrames { readings.append($0.map { Barcode.read(from: $0) }) }
        var result = VerificationResult(file: path, width: dimensions.width, height: dimensions.height)
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
        guard let log else { return Outcome(result: result, latencies: []) }
        // The dump may still be growing, so the log is read before the file and again after it.
        result.notInFile = max(0, log.count - readings.count)
        result.notInLog = max(0, readings.count - (try readLog()?.count ?? 0))
        let logged = Array(log.prefix(readings.count))
        judge(logged, into: &result)
        result.notSent = max(0, counts.notSent - result.layersLeftOut - result.lost)
        let latencies = latencies(of: logged, readings)
        note(logged.filter { !$0.catchUp }, into: &result)
        result.latencyMs = Percentiles(of: latencies)
        return Outcome(result: result, latencies: latencies)
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

    /// Counts gaps, duplicates and reordering in the frames' numbers.
    private func judge(_ log: [FrameLogEntry], into result: inout VerificationResult) {
        var previous: FrameLogEntry?
        for entry in log {
            defer { if previous.map({ entry.number > $0.number }) ?? true { previous = entry } }
            if entry.catchUp { result.catchUp += 1 }
            guard let previous else { continue }
            if entry.number == previous.number { result.duplicated += 1 }
            if entry.number < previous.number { result.reordered += 1 }
            let missing = Int(entry.number) - Int(previous.number) - 1
            guard missing > 0 else { continue }
            // Frames of temporal layer 0 are never left out on purpose, so their count has no gap.
            let step = (entry.base &- previous.base) & 0xFFFF
            if step == (entry.layer == 0 ? 1 : 0) { result.layersLeftOut += missing } else { result.lost += missing }
        }
    }

    /// The time from capture to decoding, for every frame that was shown.
    ///
    /// If both ends share a clock, the capture time is the one in the barcode.
    private func latencies(of log: [FrameLogEntry], _ readings: [BarcodeReading?]) -> [Double] {
        var latencies: [Double] = []
        for (index, entry) in log.enumerated() where !entry.catchUp {
            var captured = entry.captured
            if entry.clock == "same-host", index < readings.count, case .value(let barcode) = readings[index] {
                captured = barcode.timestamp.microseconds
            }
            latencies.append(Double(entry.decoded - captured) / 1000)
        }
        return latencies
    }
}
