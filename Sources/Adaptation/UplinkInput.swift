package import RoomProtocol

/// Everything that an `UplinkController` is told, as a value, so that it can be recorded and told again.
package enum UplinkInput: Hashable, Sendable {
    /// An encoding was added.
    case added(UplinkController.Lane)
    /// An encoding's limits changed, because its pictures have another size, or the application chose other limits.
    case replaced(UplinkController.Lane, UplinkController.LaneID)
    /// An encoding was removed.
    case removed(UplinkController.LaneID)
    /// What subscribers want of an encoding changed; `nil` if nobody receives it.
    case wanted(LayerBounds?, UplinkController.LaneID)
    /// The socket took the bytes of media.
    case wrote(Int)
    /// The socket took the bytes of a text message.
    case wroteText(Int)
    /// The socket took the bytes of an acknowledgement of ours.
    case wroteAcknowledgement(Int)
    /// An acknowledgement came.
    case acknowledged(MediaAcknowledgement)
    /// The kernel counted the packets that have arrived, in a silence of the receiver.
    case delivered(UInt32)
    /// The bytes that are encoded and not written yet changed.
    case queueChanged(Int, UplinkController.LaneID)
    /// A lane asked what to do with its newest picture.
    case decide(UplinkController.LaneID, isNewFrame: Bool, keyframeDue: Bool)
    /// A new picture of a lane found its send queue full.
    case queueFull(UplinkController.LaneID)
    /// An encoder was done with a picture; `nil` if it left the picture out.
    case encoded(EncodingReport?, UplinkController.LaneID)
}
