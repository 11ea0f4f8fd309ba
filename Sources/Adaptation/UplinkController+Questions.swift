package import MediaCore

/// Questions about a single encoding; unlike `status`, they allocate nothing.
extension UplinkController {
    /// Why an encoding's newest picture waits; `nil` if it does not.
    package func waitReason(of id: LaneID) -> WaitReason? {
        lanes.firstIndex { $0.id == id }.flatMap { lanes[$0].waiting }
    }

    /// An encoding's share of the connection's rate.
    package func share(of id: LaneID) -> Bitrate? {
        lanes.firstIndex { $0.id == id }.map { Bitrate(bitsPerSecond: Int(lanes[$0].share)) }
    }
}
