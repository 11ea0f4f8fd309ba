/// What limits the quality of an encoding, and for how long each reason did.
package struct QualityLimitation: Hashable, Sendable {
    /// The reasons of W3C's `qualityLimitationReason`.
    package enum Reason: UInt8, Hashable, Sendable {
        case none
        case bandwidth
        case cpu
        case other
    }

    /// The reason that holds now.
    package var reason = Reason.none

    package init() {}
}
