import MediaCore
import RelayCore
import RoomProtocol

/// One connection as seen from its client.
final class Peer {
    let id: SlotID
    var messages: [ServerMessage] = []
    var packets: [PacketBuffer] = []
    var close: (code: RoomErrorCode, reason: String)?
    var receivers: [UInt32: Receiver] = [:]
    /// The relay's acknowledgements of what this peer publishes.
    var acknowledgements: [MediaAcknowledgement] = []
    /// Bytes of all messages that it has been sent.
    var bytesTaken = 0
    /// Bytes of all messages that it has sent.
    var bytesSent = 0
    var problems: [String] = []
    var joined: Joined?
    /// What it has been sent, in order.
    var order: [Item] = []
    var aliases: [String: UInt32] = [:]
    /// Bytes that the socket can take now.
    var credit = 0

    /// Something that a peer is sent, as far as its place among the others matters.
    enum Item: Equatable {
        case switchedOff, switchedOn, keyframe, frame
    }

    init(id: SlotID) { self.id = id }

    var keyframeRequests: Int {
        messages.count { if case .keyframeRequest = $0 { true } else { false } }
    }

    var errors: [RoomErrorCode] {
        messages.compactMap { if case .error(let error) = $0 { RoomErrorCode(rawValue: error.code) } else { nil } }
    }

    var layersWanted: [[Int]] {
        messages.compactMap { if case .layersWanted(let body) = $0 { body.simulcastLayers } else { nil } }
    }

    var allProblems: [String] { problems + receivers.values.flatMap(\.problems) }

    func forgetMessages() { messages = [] }

    func receiver(_ camera: Camera) -> Receiver? { receivers[camera.track.alias] }
}
