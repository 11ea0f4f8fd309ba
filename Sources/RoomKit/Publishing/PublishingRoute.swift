import MediaCore
import RoomProtocol

/// Connects a publisher to its session, once the server has accepted the track.
struct PublishingRoute: Sendable {
    var trackID: String
    var codec: TrackCodec
    var packetizer: Packetizer
    /// The encodings that the track was announced with, the smallest first.
    var plans: [EncodingPlan]
    /// The size of the first picture as it is encoded; later ones may be smaller or larger.
    var dimensions: Dimensions
    /// The highest rate of the pictures, as the track was announced with it.
    var frameRate: FrameRate
    /// Reads the highest rate of the pictures at present; `nil` if nothing is known.
    ///
    /// Any thread may call it.
    var readFrameRate: @Sendable () -> FrameRate? = { nil }
    var clock: ClockBox
    /// Decides what the connection carries; the tracks of the connection share it.
    var uplink: Uplink
    /// Makes the connection ask for packets; any thread may call it.
    var wake: @Sendable () -> Void
    /// Tells the server the present value of `isEnabled`.
    var announceEnabled: @Sendable () async -> Void
    /// Tells the server the present frame rate, and the highest bitrates and largest sizes of the encodings.
    ///
    /// Any thread may call it.
    var announceChanges: @Sendable () -> Void = {}
    /// Reports that pictures cannot be encoded.
    ///
    /// It is called on an encoder's thread, once for each series of failures.
    var reportFailure: @Sendable (RoomError) -> Void
    /// Reports that the pictures have another size from now on; called on the source's thread.
    var reportDimensions: @Sendable (Dimensions) -> Void = { _ in }
}
