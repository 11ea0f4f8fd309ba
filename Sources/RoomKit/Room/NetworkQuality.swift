/// A participant of a room: this program, or another one.
public protocol Participant: AnyObject, Sendable {
    /// The server's id for the participant, `PA…`.
    var sid: String { get }
    /// The name under which the participant joined.
    var identity: String { get }
    /// How well the participant's network carries its media, as the server last reported; `five` before that.
    var networkQualityLevel: NetworkQualityLevel { get }
}

extension LocalParticipant: Participant {}

extension RemoteParticipant: Participant {}

/// How well a participant's network carries its media.
///
/// Section 10.2 of `docs/protocol.md` says how the server chooses the level.
public enum NetworkQualityLevel: Int, Comparable, CaseIterable, Sendable {
    /// Broken: nothing passes.
    case zero
    /// Bad.
    case one
    /// Poor.
    case two
    /// Fair.
    case three
    /// Good.
    case four
    /// Excellent: nothing is left out.
    case five

    /// Whether the network on the left is worse.
    public static func < (left: NetworkQualityLevel, right: NetworkQualityLevel) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// Why the server sends nothing of a track that is subscribed to.
public enum TrackSwitchOffReason: String, Sendable {
    /// This program's network does not carry it.
    case network
}
