public import MediaCore
import RoomProtocol

/// What an application needs of a remote track: the server sends no more than that, if it can.
///
/// Set with `Room.setPreferences(_:of:)`, before the track is subscribed to or at any time later.
public struct VideoSubscriptionPreferences: Hashable, Sendable {
    /// The size in pixels at which the upright picture is shown; `nil` for any.
    ///
    /// If the track has several encodings, the server sends the smallest one that covers this size. Once every subscriber
    /// of a track has such a preference, its publisher encodes the smallest of its sizes that covers the largest one. A
    /// picture covers a size if it has nine tenths of its width or height, so that there is nothing to see of scaling.
    public var dimensions: Dimensions?
    /// The highest frame rate of use; `nil` for any.
    ///
    /// It is kept by leaving out frames, evenly, so the rate may be less: for 10 of 30 frames a second it is 7.5. Layer
    /// 0, a quarter of the frames, always comes. Once all subscribers have such a preference, the publisher captures no
    /// more than the highest of these rates. Ready-made VP8 frames (`VP8Source`) mostly cannot be left out.
    public var frameRate: FrameRate?
    /// How much the track matters beside the others that this participant receives: low, standard and high get one, two
    /// and four parts of what the network carries.
    public var priority: VideoPublishOptions.Priority
    /// Whether nothing is sent for now, although the track stays subscribed to.
    ///
    /// Its publisher stops encoding if nobody else receives it. The time without pictures is no freeze.
    public var isPaused: Bool

    /// Creates preferences; without arguments, everything that the network carries is sent.
    public init(
        dimensions: Dimensions? = nil,
        frameRate: FrameRate? = nil,
        priority: VideoPublishOptions.Priority = .standard,
        isPaused: Bool = false
    ) {
        self.dimensions = dimensions
        self.frameRate = frameRate
        self.priority = priority
        self.isPaused = isPaused
    }
}

extension Subscribe {
    /// The highest frame rate that a `subscribe` may state (docs/protocol.md).
    private static var highestFrameRate: Double { 1000 }

    /// Asks for a track as `preferences` have it.
    init(trackId: String, _ preferences: VideoSubscriptionPreferences) {
        self.init(
            trackId: trackId,
            width: preferences.dimensions.map { max(1, $0.width) },
            height: preferences.dimensions.map { max(1, $0.height) },
            frameRate: preferences.frameRate.map { min($0.framesPerSecond, Self.highestFrameRate) },
            priority: preferences.priority == .standard ? nil : preferences.priority.rawValue,
            paused: preferences.isPaused ? true : nil
        )
    }
}
