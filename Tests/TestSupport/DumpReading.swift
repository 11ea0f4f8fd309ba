package import MediaCore
import MediaFiles
package import RoomKit
package import SyntheticSources
import VP8Codec

/// The pictures of a decoded dump of the test pattern, and the lines of its log.
package struct DumpReading {
    /// The size that the file states.
    package var dimensions: Dimensions
    /// The numbers in the pictures' barcodes, in order; pictures without a readable one are left out.
    package var numbers: [UInt32] = []
    /// The sizes of the pictures, each once.
    package var pictureSizes: Set<Dimensions> = []
    /// The sequence checker's result for the barcodes.
    package var counts: FrameSequenceChecker.Counts
    /// The lines of `.frames.jsonl`.
    package var log: [FrameLogEntry]

    /// Decodes the dump at `path`, and reads the log beside it.
    package init(_ path: String) throws {
        let base = path.prefix(path.count - (path.hasSuffix(".webm") ? 5 : 4))
        log = try FrameLogEntry.read(text(of: "\(base).frames.jsonl"))
        let reader = try EncodedVideoFormat.openReader(path: path)
        dimensions = reader.dimensions
        var decoder = try VP8Decoder()
        var checker = FrameSequenceChecker()
        while let frame = try Self.next(reader) {
            let timestamp = MonotonicInstant(nanoseconds: frame.time.wholeNanoseconds)
            let picture = try reader.withFrameBytes { bytes throws(VP8Error) in
                try decoder.decode(bytes, timestamp: timestamp) { VideoBuffer(dimensions: $0) }
            }
            guard let picture else { throw TestFailure("a frame without a picture in \(path)") }
            pictureSizes.insert(picture.dimensions)
            let reading = Barcode.read(from: picture.buffer)
            checker.observe(reading)
            if case .value(let barcode) = reading { numbers.append(barcode.number) }
        }
        counts = checker.counts
    }

    private static func next(_ reader: any EncodedVideoReader) throws -> StoredFrame? {
        do {
            return try reader.nextFrame()
        } catch let error where error.code == .truncated {
            return nil
        }
    }

    /// The faults of the dump; empty if nothing was lost, doubled, reordered or torn.
    ///
    /// A gap in the wire's frame numbers is a fault unless a whole temporal layer was left out. In that case the index
    /// of layer 0 continues without a gap. New beginnings are faults, too, unlike for `room-client verify`: no test starts
    /// the source of a track again.
    package var faults: [String] {
        var faults: [String] = []
        if counts.frames == 0 { faults.append("no frames") }
        if counts.frames != log.count { faults.append("\(counts.frames) pictures, \(log.count) lines in the log") }
        if counts.duplicated > 0 { faults.append("\(counts.duplicated) doubled") }
        if counts.reordered > 0 { faults.append("\(counts.reordered) reordered") }
        if counts.torn > 0 { faults.append("\(counts.torn) torn") }
        if counts.unreadable > 0 { faults.append("\(counts.unreadable) unreadable") }
        if counts.restarted > 0 { faults.append("\(counts.restarted) new beginnings") }
        for (former, entry) in zip(log, log.dropFirst()) {
            if entry.number <= former.number { faults.append("frame \(entry.number) after \(former.number)") }
            let step = (entry.base - former.base + 65_536) % 65_536
            if !entry.key && step != (entry.layer == 0 ? 1 : 0) {
                faults.append("layer 0 lost between frames \(former.number) and \(entry.number)")
            }
        }
        return faults
    }

    /// Frames between the first and the last that are not in the log.
    package var missing: Int {
        guard let first = log.first, let last = log.last else { return 0 }
        return Int(last.number - first.number) + 1 - log.count
    }
}
