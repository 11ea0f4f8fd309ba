import Foundation
import MediaFiles
import RoomKit
import Threading

/// Checks one dump: its pictures by their barcodes, its frames by the log beside it.
struct DumpVerifier {
    /// What was found, and the single latencies in milliseconds.
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
        var readings: [BarcodeReading] = []
        let dimensions = try readPictures { readings.append(Barcode.read(from: $0)) }
        var result = VerificationResult(file: path, width: dimensions.width, height: dimensions.height)
        var checker = FrameSequenceChecker()
        for reading in readings { checker.observe(reading) }
        let counts = checker.counts
        result.frames = counts.frames
        result.duplicated = counts.duplicated
        result.reordered = counts.reordered
        result.torn = counts.torn
        result.unreadable = counts.unreadable
        result.frozen = counts.frozen
        result.notSent = counts.notSent
        guard let log else { return Outcome(result: result, latencies: []) }
        judge(log, into: &result)
        result.notSent = max(0, counts.notSent - result.layersLeftOut - result.lost)
        let latencies = latencies(of: log, readings)
        result.clock = log.last?.clock
        result.latencyMs = Percentiles(of: latencies)
        return Outcome(result: result, latencies: latencies)
    }

    /// The `.frames.jsonl` of the dump; `nil` if there is none.
    private func readLog() throws -> [FrameLogEntry]? {
        let base = (path as NSString).deletingPathExtension
        guard let data = FileManager.default.contents(atPath: "\(base).frames.jsonl") else { return nil }
        return try FrameLogEntry.read(String(decoding: data, as: UTF8.self))
    }

    /// Shows every picture of the dump to `body`, in order.
    private func readPictures(_ body: (VideoBuffer) -> Void) throws -> Dimensions {
        if path.hasSuffix(".y4m") {
            let reader = try Y4MReader(path: path)
            let buffer = VideoBuffer(dimensions: reader.dimensions)
            do {
                while try reader.readFrame(into: buffer) { body(buffer) }
            } catch let error as MediaFileError where error.code == .truncated {
                // As with the other formats: a dump may end anywhere.
            }
            return reader.dimensions
        }
        return try CompressedPictures.read(path, body)
    }

    /// Counts gaps, doubles and disorder in the frames' numbers.
    private func judge(_ log: [FrameLogEntry], into result: inout VerificationResult) {
        var previous: FrameLogEntry?
        for entry in log {
            defer { if previous.map({ entry.number > $0.number }) ?? true { previous = entry } }
            if entry.catchUp { result.catchUp += 1 }
            guard let previous else { continue }
            if entry.number == previous.number { result.duplicated += 1 }
            if entry.number < previous.number { result.reordered += 1 }
            guard entry.number > previous.number + 1 else { continue }
            let missing = Int(entry.number - previous.number - 1)
            // Of temporal layer 0 nothing is left out on purpose: its frames are counted without a gap.
            let step = (entry.base - previous.base + 65_536) % 65_536
            if step == (entry.layer == 0 ? 1 : 0) { result.layersLeftOut += missing } else { result.lost += missing }
        }
    }

    /// From capture to decoded, of every frame that was shown; by the barcode's time where both ends share a clock.
    private func latencies(of log: [FrameLogEntry], _ readings: [BarcodeReading]) -> [Double] {
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
