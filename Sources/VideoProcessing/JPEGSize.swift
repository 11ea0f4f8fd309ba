import MediaCore

/// The size that a camera's JPEG pictures have, where it is not the one that the driver states.
///
/// Some cameras ignore the size that they were set to, or send whole blocks of 16 pixels. But a damaged header may claim
/// any size. So another size is believed once several pictures in a row have claimed it.
struct JPEGSize {
    /// This many pictures in a row must claim the same size.
    static let claimsNeeded = 3
    /// The most times that the stated area is believed; a few bytes can claim a picture of 16,383 pixels squared.
    private static let mostTimesArea = 4

    private var stated: Dimensions?
    private var believed: Dimensions?
    private var claimed: Dimensions?
    private var claims = 0

    /// The size that the next picture should have.
    func expected(stated: Dimensions) -> Dimensions {
        stated == self.stated ? believed ?? stated : stated
    }

    /// Records a picture of the expected size.
    mutating func noteExpected() { claimed = nil }

    /// Records that a picture's header claims `dimensions`, which were not expected; whether to believe it.
    mutating func accepts(_ dimensions: Dimensions, stated: Dimensions) -> Bool {
        if stated != self.stated {
            self = JPEGSize()
            self.stated = stated
        }
        if dimensions == stated {
            (believed, claimed) = (nil, nil)
            return true
        }
        guard dimensions.area <= Self.mostTimesArea * stated.area else { return false }
        if dimensions != claimed { (claimed, claims) = (dimensions, 0) }
        claims += 1
        guard claims >= Self.claimsNeeded else { return false }
        believed = dimensions
        return true
    }
}
