package import MediaCore
import RoomKit

/// Says what a measured network suits.
package struct NetworkCheck: Sendable {
    /// What was measured.
    package var measurement: NetworkMeasurement

    /// The sizes that people choose, the largest first.
    private static let sizes = [
        Dimensions(width: 1280, height: 720), Dimensions(width: 640, height: 480), Dimensions(width: 320, height: 240),
    ]
    /// A queue under load that makes driving by the picture hard.
    private static let longQueue = Duration.milliseconds(200)
    /// Frames of this age, there and back, are late.
    private static let longAge = Duration.milliseconds(700)
    /// Below this rate, a picture of 320x240 comes a few times a second.
    private static let leastRate = Bitrate.kilobitsPerSecond(100)

    /// A check of a measurement.
    package init(_ measurement: NetworkMeasurement) {
        self.measurement = measurement
    }

    /// The largest of the usual sizes that can have its usual rate; `nil` if none can.
    package var suitableSize: Dimensions? {
        Self.sizes.first { TrackCodec.forPublishing.defaultBitrate($0) <= measurement.usableRate }
    }

    /// What was found.
    package func findings() -> [Finding] {
        let rates = rates
        return (rates.level == .problem ? [rates] : [rates, suitability]) + queue
    }

    private var rates: Finding {
        let up = "\(measurement.isUpLimited ? "" : "at least ")\(measurement.up)"
        let down = "\(measurement.isDownLimited ? "" : "at least ")\(measurement.down)"
        guard measurement.usableRate >= Self.leastRate || !isLimited else {
            return .problem(
                .network,
                "noBandwidth",
                "up \(up), down \(down): too little for video",
                "look for other traffic and the radio's signal, then measure again"
            )
        }
        return .ok(.network, "up \(up), down \(down)")
    }

    /// Whether the network set a rate; otherwise the trial ended before the network did.
    private var isLimited: Bool { measurement.isUpLimited || measurement.isDownLimited }

    private var suitability: Finding {
        let rate = measurement.usableRate
        if !isLimited, suitableSize == nil || suitableSize == Self.sizes.last {
            let size = suitableSize.map { "suits \($0) at least" } ?? "no more was tried"
            let advice = "try a higher --max-bitrate, or longer by --seconds, to know what else it carries"
            return .note(.network, "untried", size, advice)
        }
        guard let size = suitableSize else {
            return .note(
                .network,
                "thin",
                "less than 320x240 takes; the publisher lowers size and rate by itself",
                "publish with --size 320x240 --max-bitrate \(max(50, rate.kilobitsPerSecond / 50 * 50))k"
            )
        }
        let usual = TrackCodec.forPublishing.defaultBitrate(size)
        let words = "suits \(size) at \(usual)"
        if size == Self.sizes[0] { return .ok(.network, "\(words), and what others publish in such sizes") }
        if size == Self.sizes[1] { return .ok(.network, words) }
        let advice = "publish with --size \(size) --max-bitrate \(rate.kilobitsPerSecond / 50 * 50)k"
        return .note(.network, "thin", words, advice)
    }

    private var queue: [Finding] {
        guard let rest = measurement.roundTrip, let loaded = measurement.loadedRoundTrip else {
            let words = "the server acknowledges nothing, so that the rate cannot follow the network"
            return [.note(.network, "unacknowledged", words, "use a server of this client's version")]
        }
        let age = measurement.frameAge.map { "; frames there and back \($0.millisecondText)" } ?? ""
        let words =
            "round trip \(rest.millisecondText) at rest, \(loaded.millisecondText) loaded\(age) (p95)"
        guard loaded - rest > Self.longQueue else {
            let areFramesLate = (measurement.frameAge ?? .zero) - rest > Self.longAge
            guard areFramesLate else { return [.ok(.network, words)] }
            return [.note(.network, "lateFrames", words, "look for load on this machine, and at the way back")]
        }
        let advice = "let the router keep its queue short (fq_codel, CAKE), and look for other traffic"
        return [.note(.network, "queue", words, advice)]
    }
}
