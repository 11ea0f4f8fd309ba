import MediaCore
import Threading

/// How much of a turn of the loop has gone to work that any peer can cause.
///
/// Messages with media are not limited here: their receiver limits their rate.
struct TurnBudget {
    /// The most text messages in one turn.
    private static let mostTexts = 64
    /// The time in one turn after which no further text message is begun.
    ///
    /// A relay answers one in some 50 µs, but one that it must pass on to a large room takes ten times as long. So the
    /// clock is read for each.
    private static let longestTime = Duration.milliseconds(2)
    /// The most handshakes that begin in one turn; one takes some 200 µs.
    private static let mostHandshakes = 8

    /// Counts the turns.
    private(set) var number: UInt64 = 0
    private var textCount = 0
    private var handshakeCount = 0
    private var firstText: MonotonicInstant?

    mutating func begin() {
        number &+= 1
        textCount = 0
        handshakeCount = 0
        firstText = nil
    }

    /// Whether another text message may be passed on; if so, it is counted.
    mutating func admitsText(leavingHalf: Bool = false) -> Bool {
        let parts = leavingHalf ? 2 : 1
        guard textCount < Self.mostTexts / parts else { return false }
        let now = MonotonicClock.now
        let began = firstText ?? now
        firstText = began
        guard now.duration(since: began) * parts < Self.longestTime else { return false }
        textCount += 1
        return true
    }

    /// Whether another handshake may begin; if so, it is counted.
    mutating func admitsHandshake() -> Bool {
        guard handshakeCount < Self.mostHandshakes else { return false }
        handshakeCount += 1
        return true
    }
}
