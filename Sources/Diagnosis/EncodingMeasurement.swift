import Capture
package import MediaCore
import RoomKit
import SyntheticSources
import Threading

/// How long the encoder takes for a picture of the test pattern, at the usual bit rate of its size.
package struct EncodingMeasurement: Hashable, Sendable {
    /// The size of the pictures.
    package var dimensions: Dimensions
    /// The rate at which they are to be encoded.
    package var frameRate: FrameRate
    /// The mean time for a frame that is no keyframe.
    package var meanTime: Duration

    /// The part of the interval that one encoding may take: the rest is for capturing, scaling and the network.
    private static let usablePart = 0.8
    /// The pictures that are painted, at most, and encoded to and fro.
    private static let mostPictures = 10
    /// The most memory for them, unless three pictures need more.
    private static let memory = DataSize.mebibytes(64)
    /// The frames that are encoded, at most.
    private static let frames = 40
    /// The time after which no further frame is encoded.
    private static let longest = Duration.milliseconds(700)
    /// How long painting and encoding may take in all, for a machine that hangs.
    private static let limit = Duration.seconds(15)

    /// A measurement with the given values.
    package init(dimensions: Dimensions, frameRate: FrameRate, meanTime: Duration) {
        self.dimensions = dimensions
        self.frameRate = frameRate
        self.meanTime = meanTime
    }

    /// Encodes for less than a second.
    ///
    /// - Returns: `nil` if the encoder cannot be opened, fails, or takes longer than 15 s with the painting before it,
    ///   or the task is cancelled.
    package static func measure(_ dimensions: Dimensions, _ frameRate: FrameRate) async -> EncodingMeasurement? {
        // The pattern would be painted in the largest size that there is.
        guard dimensions.isCodable, TrackCodec.forPublishing.allows(dimensions) else { return nil }
        let pattern = PatternSource(dimensions: dimensions, frameRate: FrameRate(60))
        return await measure(pattern, dimensions, frameRate, within: limit)
    }

    /// Encodes pictures of `source`, which are painted and encoded within `limit`.
    static func measure(
        _ source: any VideoSource,
        _ dimensions: Dimensions,
        _ frameRate: FrameRate,
        within limit: Duration
    ) async -> EncodingMeasurement? {
        let deadline = MonotonicClock.now + limit
        let wanted = pictureCount(dimensions)
        let painted = await BlockingCall.runTask(within: limit) {
            var pictures: [VideoFrame] = []
            for await frame in source.frames {
                pictures.append(frame)
                if pictures.count == wanted { break }
            }
            return pictures
        }
        guard let painted, painted.count == wanted else { return nil }
        let left = max(.zero, deadline.duration(since: MonotonicClock.now))
        let mean = await BlockingCall.run(within: left) { encode(painted, dimensions, frameRate) }
        guard let mean, let mean else { return nil }
        return EncodingMeasurement(dimensions: dimensions, frameRate: frameRate, meanTime: mean)
    }

    /// How many pictures of this size are painted.
    static func pictureCount(_ dimensions: Dimensions) -> Int {
        let bytes = max(1, dimensions.area * 3 / 2)
        return max(3, min(mostPictures, memory.bytes / bytes))
    }

    private static func encode(_ pictures: [VideoFrame], _ dimensions: Dimensions, _ frameRate: FrameRate) -> Duration?
    {
        let codec = TrackCodec.forPublishing
        let settings = FrameEncoderSettings(dimensions: dimensions, frameRate: frameRate)
        guard let encoder = try? codec.makeEncoder(settings) else { return nil }
        let bitrate = codec.defaultBitrate(dimensions)
        let target = EncodingTarget(dimensions: dimensions, bitrate: bitrate, frameRate: frameRate)
        let began = MonotonicClock.now
        var total = Duration.zero
        var count = 0
        for number in 0..<frames where MonotonicClock.now.duration(since: began) < longest || count == 0 {
            // No picture follows itself, which would cost the encoder next to nothing.
            let turn = number % (2 * pictures.count - 2)
            var frame = pictures[turn < pictures.count ? turn : 2 * pictures.count - 2 - turn]
            frame.timestamp = began + frameRate.interval * number
            let start = MonotonicClock.now
            guard (try? encoder.encode(frame, target: target, forceKeyframe: number == 0) { _, _ in true }) != nil
            else {
                return nil
            }
            guard number > 0 else { continue }
            total += MonotonicClock.now.duration(since: start)
            count += 1
        }
        return count > 0 ? total / count : nil
    }

    /// Whether the encoder keeps the rate.
    package var isInTime: Bool { meanTime < frameRate.interval * Self.usablePart }

    /// The highest whole rate that the encoder keeps, at least 1.
    private var sustainableRate: Int {
        max(1, Int(Self.usablePart / max(meanTime.seconds, 0.000_001)))
    }

    private var words: String { "\(dimensions) in \(meanTime.millisecondText)" }

    /// The encoder gave no result for a size.
    package static func failure(_ dimensions: Dimensions) -> Finding {
        .problem(
            .encoder,
            "encoderFailed",
            "the encoder cannot be opened for \(dimensions), fails, or takes longer than \(Int(limit.seconds)) s",
            "try a smaller --size, look for programs that take the CPU or the memory, and reinstall libvpx"
        )
    }

    /// What was found about several sizes; `isWanted` says that they were asked for.
    package static func findings(_ measurements: [EncodingMeasurement], processors: Int, isWanted: Bool) -> [Finding] {
        let places = processors == 1 ? "1 CPU" : "\(processors) CPUs"
        let good = measurements.filter(\.isInTime)
        let list = good.map(\.words).joined(separator: ", ")
        let interval = good.first.map { " of \($0.frameRate.interval.millisecondText) a frame" } ?? ""
        let fine = good.isEmpty ? [] : [Finding.ok(.encoder, "\(list)\(interval), \(places)")]
        let slow = measurements.filter { !$0.isInTime }.map { slow in
            Finding.problem(
                if: isWanted,
                .encoder,
                "tooSlow",
                "\(slow.words) a frame, \(places): too slow for \(slow.frameRate) fps",
                "publish with --fps \(slow.sustainableRate), or a smaller --size; else the publisher lowers both itself"
            )
        }
        return fine + slow
    }
}
