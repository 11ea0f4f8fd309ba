public import Adaptation
import Capture
public import MediaCore

/// How a track is encoded: the part of `VideoPublishOptions` that can change while the track is published.
///
/// `LocalVideoTrack.setEncodingParameters(_:)` changes it.
public struct VideoEncodingParameters: Hashable, Sendable {
    /// The highest bitrate of the largest encoding, for all temporal layers together; `nil` for the default of the
    /// picture's size.
    ///
    /// It is clamped to `VideoPublishOptions.supportedBitrates`. The default is 1.7 Mbit/s up to 640x480, and
    /// 2.5 Mbit/s above 960x540. Less is sent if the network carries less, or if no receiver can use as much. A smaller
    /// encoding of simulcast gets no more than half of this, and the smallest of three no more than a quarter.
    public var maxBitrate: Bitrate?
    /// The lowest bitrate for encoding, however little the network carries; `nil` for none.
    ///
    /// It keeps fine detail at the cost of motion: where the network carries less, frames are left out, down to a few a
    /// second. A receiver whose own network carries less loses frames too. It is clamped to
    /// `VideoPublishOptions.supportedBitrates` and to `maxBitrate`, and holds for each simulcast layer, clamped to the
    /// highest bitrate of that layer.
    public var minBitrate: Bitrate?
    /// Whether the size or the frame rate is lowered first when less can be sent.
    ///
    /// If it is `nil`, the source's `contentHint` decides. A track of details or text, such as a screen, keeps its
    /// size. A track of motion keeps its frame rate. Other tracks are `balanced`.
    public var degradationPreference: DegradationPreference?
    /// The share of the connection, if the program publishes several tracks.
    public var priority = VideoPublishOptions.Priority.standard

    /// Creates default parameters.
    public init() {}
}

extension VideoEncodingParameters {
    /// The same parameters, with the default preference for pictures of the kind `contentHint`.
    func completed(for contentHint: VideoContentHint) -> VideoEncodingParameters {
        var parameters = self
        let preference: DegradationPreference =
            switch contentHint {
            case .none: .balanced
            case .motion: .maintainFramerate
            case .detail, .text: .maintainResolution
            }
        parameters.degradationPreference = degradationPreference ?? preference
        return parameters
    }

    /// The highest bitrate for the encoder; `nil` for the default of the picture's size.
    var targetBitrate: Bitrate? {
        let supported = VideoPublishOptions.supportedBitrates
        return maxBitrate.map { min(max($0, supported.lowerBound), supported.upperBound) }
    }

    /// The lowest bitrate for the encoder; `nil` if there is none.
    fileprivate var floorBitrate: Bitrate? {
        let supported = VideoPublishOptions.supportedBitrates
        return minBitrate.map { min(max($0, supported.lowerBound), targetBitrate ?? supported.upperBound) }
    }
}

extension EncodingPlan {
    /// Takes over what the application has chosen for the track.
    ///
    /// Frames that are compressed already have the bitrate that their encoder gave them.
    mutating func take(_ parameters: VideoEncodingParameters) {
        priority =
            switch parameters.priority {
            case .low: .low
            case .standard: .standard
            case .high: .high
            }
        preference = parameters.degradationPreference ?? .balanced
        guard !isRelayed else { return }
        (highestBitrate, lowestBitrate) = (parameters.targetBitrate, parameters.floorBitrate)
    }
}
