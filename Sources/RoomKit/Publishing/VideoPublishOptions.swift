public import Adaptation
import Capture
public import MediaCore

/// How a track is encoded, and what it gives up when the network or the CPU does not carry it whole.
public struct VideoPublishOptions: Sendable {
    /// Which tracks get more of a connection that does not carry all of them; no track gets nothing.
    public enum Priority: String, CaseIterable, Sendable {
        /// Gives way to others, for example a preview.
        case low
        /// The default.
        case standard
        /// Comes before others, for example the view that somebody drives by.
        case high
    }

    /// The highest bitrate, for all temporal layers together; `nil` for the default of the picture's size.
    ///
    /// It is clamped to `supportedBitrates`. The default is 1.7 Mbit/s up to 640x480, and 2.5 Mbit/s above 960x540. Less
    /// is sent if the network carries less, or if no receiver can use as much.
    public var maxBitrate: Bitrate?
    /// What is given up first when less can be sent.
    ///
    /// If it is `nil`, the source's `contentHint` decides: of details and text, as on a screen, the size is maintained, of
    /// motion the frame rate, and other tracks are `balanced`.
    public var degradationPreference: DegradationPreference?
    /// The share of the connection, if the program publishes several tracks.
    public var priority = Priority.standard

    /// Who makes frames upright that were captured turned or mirrored.
    public enum Orientation: String, CaseIterable, Sendable {
        /// The publisher turns and mirrors them before encoding. This is the default.
        case applied
        /// They are encoded as captured and carry a tag, by which each subscriber turns and mirrors them.
        case tagged
    }

    /// Who makes frames upright.
    public var orientation = Orientation.applied

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

    /// The encodings of a track.
    var plans: [EncodingLane.Plan] {
        let priority: UplinkController.Lane.Priority =
            switch priority {
            case .low: .low
            case .standard: .standard
            case .high: .high
            }
        let preference = degradationPreference ?? .balanced
        return [EncodingLane.Plan(highestBitrate: targetBitrate, priority: priority, preference: preference)]
    }
}
