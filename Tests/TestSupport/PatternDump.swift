import FoundationEssentials
import MediaCore
import MediaFiles
package import RoomKit
import RoomProtocol
import SyntheticSources
package import TestTools
import VP8Codec

/// A dump of the test pattern that no subscriber recorded, with the log that belongs to it.
///
/// Its frames are of temporal layer 0 and 33.333 ms apart, and each was shown 10 ms after its capture.
package struct PatternDump {
    /// The path of the video file.
    package let path: String
    /// The lines of the log, one for each frame; `storeLog` writes them.
    package var log: [FrameLogEntry] = []

    /// Encodes pictures into a new file, and writes its log.
    ///
    /// - Parameters:
    ///   - name: The file's name, whose ending gives the format: `.ivf`, `.webm` or `.y4m`.
    ///   - directory: Where it is made.
    ///   - numbers: The numbers in the barcodes of the pictures; the capture times follow from them.
    ///   - keyframes: The positions of the keyframes beside the first.
    /// - Throws: An error if a file cannot be written, or a keyframe is where none is wanted.
    package init(
        _ name: String = "dump.ivf",
        in directory: TemporaryDirectory,
        numbers: [Int] = Array(0..<24),
        keyframes: Set<Int> = []
    ) throws {
        path = directory(name)
        if name.lowercased().hasSuffix(".y4m") {
            try storePictures(numbers)
        } else {
            try encode(numbers, keyframes, name.hasSuffix(".webm") ? .webm : .ivf)
        }
        try storeLog()
    }

    /// The path of the log beside the file.
    package var logPath: String { "\(path.split(separator: ".").dropLast().joined(separator: ".")).frames.jsonl" }

    /// Writes `log` beside the file, in place of what was there.
    ///
    /// - Parameter lineEnd: What ends each line.
    /// - Throws: An error if it cannot be written.
    package func storeLog(lineEnd: String = "\n") throws {
        let encoder = JSONEncoder()
        let lines = try log.map { String(decoding: try encoder.encode($0), as: UTF8.self) + lineEnd }
        try store(Array(lines.joined().utf8), at: logPath)
    }

    private static func captureTime(of number: Int) -> MonotonicInstant {
        MonotonicInstant(microseconds: 1_000_000 + 33_333 * Int64(number))
    }

    private static func picture(_ number: Int) -> VideoFrame {
        let buffer = VideoBuffer(dimensions: testSize)
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            for index in luma.indices { luma[index] = 60 }
            for index in chromaU.indices { chromaU[index] = 128 }
            for index in chromaV.indices { chromaV[index] = 128 }
        }
        let time = captureTime(of: number)
        Barcode(number: UInt32(number), timestamp: time).paint(into: buffer)
        return VideoFrame(buffer: buffer, timestamp: time)
    }

    private mutating func storePictures(_ numbers: [Int]) throws {
        let writer = try Y4MWriter(path: path, dimensions: testSize, frameRate: FrameRate(30))
        for (index, number) in numbers.enumerated() {
            try writer.write(Self.picture(number))
            try addLine(index, number, isKeyframe: index == 0, bytes: 1000)
        }
    }

    private mutating func encode(_ numbers: [Int], _ keyframes: Set<Int>, _ format: EncodedVideoFormat) throws {
        let settings = VP8EncoderSettings(dimensions: testSize, frameRate: FrameRate(30), temporalLayerCount: 1)
        var encoder = try VP8Encoder(settings)
        let writer = try format.makeWriter(path: path, dimensions: testSize, codec: .vp8)
        let start = Self.captureTime(of: 0)
        for (index, number) in numbers.enumerated() {
            // The stamps of the encoder increase, whatever the pictures' are.
            var picture = Self.picture(number)
            picture.timestamp = start + .microseconds(33_333) * index
            let isKeyframe = index == 0 || keyframes.contains(index)
            let encoded = try encoder.encode(picture, forceKeyframe: isKeyframe) { info, bytes in
                let buffer = PacketBuffer(capacity: max(bytes.byteCount, 1))
                buffer.count = bytes.byteCount
                buffer.withMutableBytes { $0.copy(bytes, at: 0) }
                return EncodedFrame(info: info, buffer: buffer, range: 0..<bytes.byteCount)
            }
            guard let encoded, encoded.info.isKeyframe == isKeyframe else {
                throw TestFailure("the encoder left out frame \(index), or made it a keyframe")
            }
            try writer.write(encoded)
            try addLine(index, number, isKeyframe: isKeyframe, bytes: encoded.size.bytes)
        }
        try writer.finish()
    }

    private mutating func addLine(_ index: Int, _ number: Int, isKeyframe: Bool, bytes: Int) throws {
        let captured = Self.captureTime(of: number).microseconds
        let line = """
            {"number":\(index),"simulcastLayer":0,"layer":0,"base":\(index),"key":\(isKeyframe),"bytes":\(bytes),\
            "width":\(testSize.width),"height":\(testSize.height),"captured":\(captured),"received":\(captured + 5000),\
            "decoded":\(captured + 10_000),"shown":true,"catchUp":false,"clock":"estimated","clockError":100}

            """
        log += try FrameLogEntry.read(line)
    }
}
