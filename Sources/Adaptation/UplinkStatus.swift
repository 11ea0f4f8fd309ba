package import MediaCore

/// The estimates and choices of an `UplinkController`, for statistics and logs.
package struct UplinkStatus: Hashable, Sendable {
    /// How the controller knows what the path carries.
    package enum Mode: UInt8, Hashable, Sendable {
        /// No acknowledgement has come yet.
        case starting
        /// Acknowledgements come.
        case acknowledged
        /// Acknowledgements came and have stopped while bytes are on their way; nothing is encoded.
        case outage
        /// The other end never acknowledges: a fixed policy applies.
        case unacknowledged
    }

    /// One encoding's part.
    package struct Lane: Hashable, Sendable {
        /// The encoding.
        package var id: Int
        /// The last target, without the limit of a single frame; `nil` before the first.
        package var target: EncodingTarget?
        /// The share of the connection's rate.
        package var share: Bitrate
        /// What changed the size or the frame rate last; `nil` before the first target.
        package var reason: DegradationLadder.Reason?
        /// What limits the quality, and for how long each reason did.
        package var limitation: QualityLimitation
        /// Why the newest picture waits; `nil` if it does not.
        package var waiting: WaitReason?
    }

    /// How the controller knows what the path carries.
    package var mode: Mode
    /// What the other end has acknowledged since the connection opened.
    package var acknowledged: DataSize
    /// The rate at which the connection sends at most, all encodings together.
    package var rate: Bitrate
    /// Why that rate is what it is.
    package var rateReason: RateReason
    /// The estimated rate that the path carries; rates that were never tried are not in it.
    package var capacity: Bitrate
    /// The queueing delay of the newest acknowledged byte; `nil` while unknown.
    package var queueDelay: Duration?
    /// The shortest time from a write to its acknowledgement; `nil` while unknown.
    package var roundTrip: Duration?
    /// Bytes that are on their way.
    package var unacknowledged: DataSize
    /// Acknowledgements that could not be true.
    package var disregardedAcknowledgements: Int
    /// The encodings, in the order in which they were added.
    package var lanes: [Lane]
}
