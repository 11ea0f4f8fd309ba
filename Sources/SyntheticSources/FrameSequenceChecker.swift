/// Checks a track by the barcodes of its pictures, in the order in which they were shown.
///
/// A pure value: it reads no clock and keeps no picture.
package struct FrameSequenceChecker: Sendable {
    /// The results so far.
    package struct Counts: Hashable, Sendable {
        /// The number of pictures checked.
        package var frames = 0
        /// Numbers that never arrived: the sender captured these frames and did not send them, or they were lost on the
        /// way.
        ///
        /// An unreadable picture counts as one of the numbers around it.
        package var notSent = 0
        /// Pictures whose number had already arrived.
        package var duplicated = 0
        /// Pictures with a number that is new, but lower than one that arrived before.
        package var reordered = 0
        /// Pictures whose top and bottom come from different frames.
        package var torn = 0
        /// Pictures without a readable barcode.
        package var unreadable = 0
        /// How many times the picture froze.
        package var frozen = 0
        /// How many times the numbers started again, as after a restart of the sender.
        package var restarted = 0
    }

    /// The results so far.
    package private(set) var counts = Counts()

    private let frozenAfter: Int
    /// The highest number so far.
    private var highest: UInt32?
    /// Bit n is set if the number `highest - n` has arrived.
    private var seen: UInt64 = 0
    /// The last picture's number, and how many pictures in a row had it.
    private var current: UInt32?
    private var repetitions = 0
    private var unreadableSinceValue = 0

    /// A number lower than the highest by more than this is a restart, not a late frame.
    ///
    /// This is ten seconds at 30 fps,
    /// longer than any queue may hold a frame.
    private static let restartDistance: UInt32 = 300

    /// Creates a checker that has seen no picture.
    ///
    /// - Parameter frozenAfter: The number of pictures in a row with the same number that count as frozen; by default
    ///   half a second at 30 fps. At least 2.
    package init(frozenAfter: Int = 15) {
        self.frozenAfter = max(frozenAfter, 2)
    }

    /// Takes the reading of the next picture.
    package mutating func observe(_ reading: BarcodeReading) {
        counts.frames += 1
        switch reading {
        case .value(let barcode):
            noteRepetition(of: barcode.number)
            note(barcode.number)
        case .torn(let top, let bottom):
            counts.torn += 1
            repetitions = 0
            current = nil
            // Observe both in their order, so that the newer one does not make the older one count as missing.
            let isTopOlder = bottom.number &- top.number < 1 << 31
            advance(isTopOlder ? top.number : bottom.number)
            advance(isTopOlder ? bottom.number : top.number)
        case .none:
            counts.unreadable += 1
            unreadableSinceValue += 1
        }
    }

    private mutating func noteRepetition(of number: UInt32) {
        repetitions = number == current ? repetitions + 1 : 1
        current = number
        if repetitions == frozenAfter { counts.frozen += 1 }
    }

    private mutating func note(_ number: UInt32) {
        guard !advance(number), let highest else { return }
        let distance = highest &- number
        if distance > Self.restartDistance {
            counts.restarted += 1
            begin(at: number)
        } else if distance < 64, seen >> distance & 1 == 1 {
            counts.duplicated += 1
        } else {
            counts.reordered += 1
            guard distance < 64 else { return }
            seen |= 1 << distance
            // It was counted as missing when a higher number arrived, unless an unreadable picture stood for it.
            counts.notSent = max(0, counts.notSent - 1)
        }
    }

    /// Moves on to `number` if it is higher than all before.
    ///
    /// - Returns: Whether it is higher.
    @discardableResult
    private mutating func advance(_ number: UInt32) -> Bool {
        guard let highest else {
            begin(at: number)
            return true
        }
        let step = number &- highest
        // Serial number arithmetic (RFC 1982): the number wraps around.
        guard step > 0, step < 1 << 31 else { return false }
        counts.notSent += max(0, Int(step) - 1 - unreadableSinceValue)
        unreadableSinceValue = 0
        seen = (step < 64 ? seen << step : 0) | 1
        self.highest = number
        return true
    }

    private mutating func begin(at number: UInt32) {
        highest = number
        seen = 1
        unreadableSinceValue = 0
    }
}
