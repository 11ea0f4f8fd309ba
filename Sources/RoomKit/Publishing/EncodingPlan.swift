import Adaptation
import MediaCore
import RoomProtocol

/// The properties of one encoding of a track.
struct EncodingPlan: Hashable, Sendable {
    /// The number of the simulcast layer, 0 for the smallest.
    var simulcastLayer = 0
    /// By how much the sides are divided: 1 for the largest encoding.
    var divisor = 1
    /// The rate that the largest encoding never exceeds; `nil` for the default of the picture's size.
    var highestBitrate: Bitrate?
    /// The rate that the encoder gets at least; `nil` for none.
    var lowestBitrate: Bitrate?
    /// Which encodings get more of a rate that does not suffice for all.
    var priority = UplinkController.Lane.Priority.standard
    /// What is lowered first.
    var preference = DegradationPreference.balanced
    /// Whether the frames are compressed already, and passed on as they are.
    var isRelayed = false
}

extension EncodingPlan {
    /// The encoding's limits for pictures of the size `dimensions` that come at most at `frameRate`.
    func lane(of route: PublishingRoute, in dimensions: Dimensions, at frameRate: FrameRate) -> UplinkController.Lane {
        let size = dimensions.divided(by: divisor)
        var lane = UplinkController.Lane(
            largestDimensions: size,
            frameRate: frameRate,
            highestBitrate: highestBitrate(in: dimensions, of: route.codec),
            priority: priority,
            preference: preference,
            simulcastLayer: simulcastLayer
        )
        lane.track = Int(route.packetizer.trackAlias)
        lane.lowestBitrate = lowestBitrate
        lane.isRelayed = isRelayed
        return lane
    }

    /// The rate that the encoding never exceeds, for a track with pictures of the size `dimensions`.
    ///
    /// A smaller encoding gets what suits its size. It never gets more than its part of the largest one's rate, so that
    /// receivers with less have something to choose from.
    func highestBitrate(in dimensions: Dimensions, of codec: TrackCodec) -> Bitrate {
        let largest = highestBitrate ?? codec.defaultBitrate(dimensions.divided(by: 1))
        guard divisor > 1 else { return largest }
        let usual = SizeBitrates(for: dimensions.divided(by: divisor)).highest
        return min(usual, Bitrate(bitsPerSecond: largest.bitsPerSecond / divisor))
    }
}

extension [EncodingPlan] {
    /// The encodings as they are announced, for upright pictures of the size `dimensions`; `nil` if there is one.
    func announced(for dimensions: Dimensions, of codec: TrackCodec) -> [SimulcastLayer]? {
        guard count > 1 else { return nil }
        return map { plan in
            let size = dimensions.divided(by: plan.divisor)
            return SimulcastLayer(
                simulcastLayer: plan.simulcastLayer,
                width: size.width,
                height: size.height,
                bitrate: plan.highestBitrate(in: dimensions, of: codec).bitsPerSecond
            )
        }
    }
}

extension Dimensions {
    /// This size with both sides divided by `divisor`, and even.
    func divided(by divisor: Int) -> Dimensions {
        Dimensions(width: max(2, width / divisor & ~1), height: max(2, height / divisor & ~1))
    }
}
