public import Adaptation
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

    /// What can change while the track is published, with `LocalVideoTrack.setEncodingParameters(_:)`.
    public var encodingParameters = VideoEncodingParameters()

    /// See `VideoEncodingParameters.maxBitrate`.
    public var maxBitrate: Bitrate? {
        get { encodingParameters.maxBitrate }
        set { encodingParameters.maxBitrate = newValue }
    }

    /// See `VideoEncodingParameters.minBitrate`.
    public var minBitrate: Bitrate? {
        get { encodingParameters.minBitrate }
        set { encodingParameters.minBitrate = newValue }
    }

    /// See `VideoEncodingParameters.degradationPreference`.
    public var degradationPreference: DegradationPreference? {
        get { encodingParameters.degradationPreference }
        set { encodingParameters.degradationPreference = newValue }
    }

    /// See `VideoEncodingParameters.priority`.
    public var priority: Priority {
        get { encodingParameters.priority }
        set { encodingParameters.priority = newValue }
    }

    /// Whether the track is sent in two or three sizes, so that a slow receiver does not make the others' pictures
    /// worse; `nil` to decide by size and CPU.
    ///
    /// Each size has half the sides of the next one. There are three from 960x540 on, two from 320x180 on, and one for
    /// smaller pictures. A size is encoded only while somebody receives it. `nil` means yes for pictures with at least
    /// as many pixels as 640x480, if the program may use two processors or more. The server must support it, too.
    public var simulcast: Bool?

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
    var relayPlan: EncodingPlan { plan(simulcastLayer: 0, divisor: 1, isRelayed: true) }

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

    private func plan(simulcastLayer: Int, divisor: Int, isRelayed: Bool = false) -> EncodingPlan {
        var plan = EncodingPlan(simulcastLayer: simulcastLayer, divisor: divisor, isRelayed: isRelayed)
        plan.take(encodingParameters)
        return plan
    }
}
