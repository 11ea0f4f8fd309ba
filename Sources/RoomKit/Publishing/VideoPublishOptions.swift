public import Adaptation
import Capture
public import MediaCore

/// How a track is encoded, and what it lowers first when the network or the CPU is too slow.
public struct VideoPublishOptions: Sendable {
    /// How large a track's share is of a connection that does not carry all tracks; every track gets a share.
    public enum Priority: String, CaseIterable, Sendable {
        /// Gives way to others, for example a preview.
        case low
        /// The default.
        case standard
        /// Comes before others, for example the view that somebody drives by.
        case high
    }

    /// The highest bitrate of the largest encoding, for all temporal layers together; `nil` for the default of the
    /// picture's size.
    ///
    /// It is clamped to `supportedBitrates`. The default is 1.7 Mbit/s up to 640x480, and 2.5 Mbit/s above 960x540.
    /// Less is sent if the network carries less, or if no receiver can use as much. A smaller encoding of simulcast
    /// gets no more than half of this, and the smallest of three no more than a quarter.
    public var maxBitrate: Bitrate?
    /// The lowest bitrate for encoding, however little the network carries; `nil` for none.
    ///
    /// It keeps fine detail at the cost of motion: where the network carries less, frames are left out, down to a few a
    /// second. A receiver whose own network carries less loses frames too. It is clamped to `supportedBitrates` and to
    /// `maxBitrate`, and holds for each simulcast layer, clamped to the highest bitrate of that layer.
    public var minBitrate: Bitrate?
    /// Whether the track is sent in two or three sizes, so that a slow receiver does not make the others' pictures
    /// worse; `nil` to decide by size and CPU.
    ///
    /// Each size has half the sides of the next one. There are three from 960x540 on, two from 320x180 on, and one for
    /// smaller pictures. A size is encoded only while somebody receives it. `nil` means yes for pictures with at least
    /// as many pixels as 640x480, if the program may use two processors or more. The server must support it, too.
    public var simulcast: Bool?
    /// Whether the size or the frame rate is lowered first when less can be sent.
    ///
    /// If it is `nil`, the source's `contentHint` decides. A track of details or text, such as a screen, keeps its
    /// size. A track of motion keeps its frame rate. Other tracks are `balanced`.
    public var degradationPreference: DegradationPreference?
    /// The share of the connection, if the program publishes several tracks.
    public var priority = Priority.standard

    /// Where frames that were captured turned or mirrored are made upright.
    public enum Orientation: String, CaseIterable, Sendable {
        /// The publisher turns and mirrors them before encoding. This is the default.
        case applied
        /// They are encoded as captured and carry a tag, by which each subscriber turns and mirrors them.
        case tagged
    }

    /// Where frames are made upright.
    public var orientation = Orientation.applied

    /// Whether the track is sent to the server even while nobody receives it, to measure the path to the server.
    package var isSentUnreceived = false

    /// The bitrates at which a track can be published: 10 kbit/s to 40 Mbit/s.
    ///
    /// A server ends the session of a publisher that sends more than 50 Mbit/s in the long run, unless its
    /// `media.trackRate` is set to another limit. The rest is for packet headers and for frames that come out larger
    /// than planned. 3840x2160 at 30 fps takes some 30 Mbit/s.
    public static let supportedBitrates = Bitrate.kilobitsPerSecond(10)...Bitrate.kilobitsPerSecond(40_000)

    /// The limit for pictures that are published or received: they may have at most as many pixels as this size has.
    public static var maximumDimensions: Dimensions { TrackCodec.forPublishing.maximumDimensions }

    /// Creates default options.
    public init() {}
}

extension VideoPublishOptions {
    /// The same options, with the default preference for tracks of `source`.
    func completed(for source: any VideoSource) -> VideoPublishOptions {
        var options = self
        let preference: DegradationPreference =
            switch source.contentHint {
            case .none: .balanced
            case .motion: .maintainFramerate
            case .detail, .text: .maintainResolution
            }
        options.degradationPreference = options.degradationPreference ?? preference
        return options
    }

    /// The highest bitrate for the encoder; `nil` for the default of the picture's size.
    var targetBitrate: Bitrate? {
        maxBitrate.map { min(max($0, Self.supportedBitrates.lowerBound), Self.supportedBitrates.upperBound) }
    }

    /// The lowest bitrate for the encoder; `nil` if there is none.
    private var floorBitrate: Bitrate? {
        minBitrate.map {
            min(max($0, Self.supportedBitrates.lowerBound), targetBitrate ?? Self.supportedBitrates.upperBound)
        }
    }

    /// The encodings of a track with pictures of the size `dimensions`, the smallest first.
    ///
    /// `processors` is how many the program may use.
    func plans(for dimensions: Dimensions, processors: Int) -> [EncodingPlan] {
        let divisors = usesSimulcast(for: dimensions, processors: processors) ? Self.divisors(for: dimensions) : [1]
        return divisors.enumerated().map { plan(simulcastLayer: $0, divisor: $1) }
    }

    /// The only encoding, where the server supports no simulcast.
    var singlePlan: EncodingPlan { plan(simulcastLayer: 0, divisor: 1) }

    /// The only encoding of a source that compresses its frames itself.
    var relayPlan: EncodingPlan {
        var plan = singlePlan
        (plan.highestBitrate, plan.lowestBitrate, plan.isRelayed) = (nil, nil, true)
        return plan
    }

    private func usesSimulcast(for dimensions: Dimensions, processors: Int) -> Bool {
        simulcast ?? (dimensions.area >= Self.usualSimulcastArea && processors >= Self.usualSimulcastProcessors)
    }

    /// By how much the sides of each encoding are divided, the smallest encoding first.
    private static func divisors(for dimensions: Dimensions) -> [Int] {
        if dimensions.area >= 960 * 540 { return [4, 2, 1] }
        return dimensions.area >= 320 * 180 ? [2, 1] : [1]
    }

    /// The size from which a second encoding is worth its CPU time unless the application says so.
    private static let usualSimulcastArea = 640 * 480
    /// Each encoding has a thread; on a single processor they would delay each other.
    private static let usualSimulcastProcessors = 2

    private func plan(simulcastLayer: Int, divisor: Int) -> EncodingPlan {
        let priority: UplinkController.Lane.Priority =
            switch priority {
            case .low: .low
            case .standard: .standard
            case .high: .high
            }
        return EncodingPlan(
            simulcastLayer: simulcastLayer,
            divisor: divisor,
            highestBitrate: targetBitrate,
            lowestBitrate: floorBitrate,
            priority: priority,
            preference: degradationPreference ?? .balanced
        )
    }
}
