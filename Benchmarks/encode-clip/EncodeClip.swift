import ArgumentParser
import MediaCore
import MediaFiles
import Threading
import VP8Codec
import VideoProcessing

/// Encodes a clip as fast as possible with the encoder of published tracks, following a schedule of targets.
///
/// Prints a line of JSON for each picture of the clip.
@main
struct EncodeClip: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "encode-clip",
        abstract: "Encodes a Y4M clip as published tracks are encoded, and prints a line of JSON for each picture."
    )

    @Argument(help: "The Y4M file; it is played again and again.")
    var clip: String

    @Option(help: "Where the IVF file goes.")
    var output: String?

    @Option(
        help:
            "Targets as SECONDS:KBPS[:WIDTHxHEIGHT[:LAYERS[:LIMIT]]],…; LIMIT in percent of an average frame, 0 for none."
    )
    var schedule: String

    @Option(help: "How many pictures to encode; default: those of the clip.")
    var frames: Int?

    @Option(help: "Makes every so many pictures a keyframe.")
    var keyframeInterval: Int?

    mutating func run() throws {
        let reader = try Y4MReader(path: clip)
        let steps = try schedule.split(separator: ",").map { try Step($0, reader.dimensions) }
        guard let first = steps.first else { throw ValidationError("the schedule is empty") }
        var encoder = try VP8Encoder(
            VP8EncoderSettings(
                dimensions: reader.dimensions,
                targetBitrate: first.bitrate,
                frameRate: reader.frameRate,
                temporalLayerCount: first.layers
            )
        )
        let writer = try output.map { try IVFWriter(path: $0, dimensions: reader.dimensions, codec: .vp8) }
        let scaler = FrameScaler()
        let interval = reader.frameRate.interval
        let buffer = VideoBuffer(dimensions: reader.dimensions)
        for index in 0..<(frames ?? .max) {
            if try !reader.readFrame(into: buffer) {
                guard frames != nil else { break }
                try reader.rewind()
                _ = try reader.readFrame(into: buffer)
            }
            let time = interval * index
            let step = steps.last { $0.start <= time } ?? first
            let picture = scaler.scale(
                VideoFrame(buffer: buffer, timestamp: MonotonicInstant(nanoseconds: 0) + time),
                to: step.dimensions
            )
            let before = MonotonicClock.threadCPUTime
            let isKeyframeDue = keyframeInterval.map { index % $0 == 0 } ?? false
            let coded = try encoder.encode(
                picture,
                target: step.target(reader.frameRate),
                forceKeyframe: isKeyframeDue
            ) { info, bytes in EncodedFrame(info: info, bytes: bytes) }
            let duration = MonotonicClock.threadCPUTime - before
            if let coded { try writer?.write(coded) }
            print(Self.line(index, coded, step, duration))
        }
        try writer?.finish()
    }

    private static func line(_ index: Int, _ coded: EncodedFrame?, _ step: Step, _ duration: Duration) -> String {
        let common =
            "\"index\":\(index),\"kbps\":\(step.bitrate.kilobitsPerSecond),\"us\":\(duration.wholeMicroseconds)"
        guard let coded else { return "{\(common),\"bytes\":0}" }
        let info = coded.info
        return
            "{\(common),\"bytes\":\(coded.size.bytes),\"keyframe\":\(info.isKeyframe),\"quantizer\":\(info.quantizer),"
            + "\"layer\":\(info.temporalLayer),\"size\":\"\(info.dimensions)\"}"
    }
}

/// What to encode for from a time on.
private struct Step {
    var start: Duration
    var bitrate: Bitrate
    var dimensions: Dimensions
    var layers = 1
    /// In percent of an average frame; 0 for none.
    var limit = 0

    init(_ text: Substring, _ dimensions: Dimensions) throws {
        let parts = text.split(separator: ":")
        let error = ValidationError("\(text) is no SECONDS:KBPS[:WIDTHxHEIGHT[:LAYERS[:LIMIT]]]")
        guard parts.count >= 2, let seconds = Double(parts[0]), let kilobits = Int(parts[1]) else { throw error }
        start = .milliseconds(Int(seconds * 1000))
        bitrate = .kilobitsPerSecond(kilobits)
        self.dimensions = dimensions
        if parts.count > 2 {
            let sides = parts[2].split(separator: "x").compactMap { Int($0) }
            guard sides.count == 2 else { throw error }
            self.dimensions = Dimensions(width: sides[0], height: sides[1])
        }
        if parts.count > 3 { layers = Int(parts[3]) ?? 1 }
        if parts.count > 4 { limit = Int(parts[4]) ?? 0 }
    }

    func target(_ frameRate: FrameRate) -> EncodingTarget {
        let average = Double(bitrate.bitsPerSecond) / 8 / frameRate.framesPerSecond
        return EncodingTarget(
            dimensions: dimensions,
            bitrate: bitrate,
            frameRate: frameRate,
            temporalLayerCount: layers,
            largestFrame: limit > 0 ? DataSize(bytes: Int(average * Double(limit) / 100)) : nil
        )
    }
}

extension EncodedFrame {
    /// A frame with a copy of `bytes`.
    fileprivate init(info: EncodedFrameInfo, bytes: RawSpan) {
        let buffer = PacketBuffer(capacity: bytes.byteCount)
        buffer.count = bytes.byteCount
        buffer.withMutableBytes { target in
            unsafe target.withUnsafeMutableBytes { target in
                unsafe bytes.withUnsafeBytes { unsafe target.copyMemory(from: $0) }
            }
        }
        self.init(info: info, buffer: buffer, range: 0..<bytes.byteCount)
    }
}
