/// Something that whoever runs a server wants to read in its log.
package enum RelayNotice: Hashable, Sendable {
    case joined(identity: String, room: String, client: String?)
    case left(identity: String, room: String)
    case published(track: String, identity: String, room: String)
    case unpublished(track: String, identity: String, room: String)
    /// A connection was ended for a fault of its peer, or refused; `identity` once it had joined.
    case failed(identity: String?, reason: String)
}

extension RelayNotice: CustomStringConvertible {
    /// The notice as a line of a log; names of peers are quoted and escaped.
    package var description: String {
        switch self {
        case .joined(let identity, let room, let client):
            "\(identity.debugDescription) joined \(room.debugDescription)"
                + (client.map { " with \($0.prefix(64).debugDescription)" } ?? "")
        case .left(let identity, let room): "\(identity.debugDescription) left \(room.debugDescription)"
        case .published(let track, let identity, let room):
            "\(identity.debugDescription) published \(track.debugDescription) in \(room.debugDescription)"
        case .unpublished(let track, let identity, let room):
            "\(identity.debugDescription) withdrew \(track.debugDescription) in \(room.debugDescription)"
        case .failed(let identity, let reason):
            "ended \(identity.map { "the session of \($0.debugDescription)" } ?? "a connection"): \(reason)"
        }
    }
}
