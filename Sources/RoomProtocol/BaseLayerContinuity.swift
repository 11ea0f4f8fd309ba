/// Distinguishes a lost frame from temporal layers that were left out on purpose (`docs/protocol.md`, section 6.6).
package struct BaseLayerContinuity: Sendable {
    private var latest: UInt16?

    /// Creates the state of a track before its first frame.
    package init() {}

    /// Takes the header of the next frame.
    ///
    /// - Returns: Whether a frame of temporal layer 0 is missing before this one, so that this one cannot be decoded.
    package mutating func noteFrame(_ header: MediaPacketHeader) -> Bool {
        guard let latest, !header.isKeyframe else {
            latest = header.baseLayerIndex
            return false
        }
        guard header.baseLayerIndex &- latest == (header.temporalLayer == 0 ? 1 : 0) else { return true }
        self.latest = header.baseLayerIndex
        return false
    }
}
