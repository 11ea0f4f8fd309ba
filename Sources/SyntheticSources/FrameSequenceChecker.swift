/// Judges a track by the barcodes of the pictures that arrived, in the order in which they were shown.
///
/// A pure value: no clock, no picture is kept.
package struct FrameSequenceChecker: Sendable {
    /// What was found so far.
    package struct Counts: Hashable, Sendable {
        /// Pictures looked at.
        package var frames = 0
        /// Numbers that never came: frames that the sender captured and did not send, or that were lost on the way.
        ///
        /// An unreadable picture stands for one of the numbers around it.
        package var notSent = 0
        /// Pictures whose number was there already.
        package var duplicated = 0
        /// Pictures with a number lower than one before, that had not come yet.
        package var reordered = 0
        /// Pictures whose top and bottom come from different frames.
        package var torn = 0
        /// Pictures without a readable barcode.
        package var unreadable = 0
        /// How many times the picture stood still.
        package var frozen = 0
        /// How many times the numbers began anew, as when the sender was restarted.
        package var restarted = 0
    }

    /// What was found so far.
    package private(set) var counts = Counts()

    private let frozenAfter: Int
    /// The highest number so far.
    private var highest: UInt32?
    /// Bit n is set if the number `highest - n` has come.
    private var seen: UInt64 = 0
    /// The last picture's number, and how many pictures in a row bore it.
    private var current: UInt32?
    private var repetitions = 0
    private var unreadableSinceValue = 0

    /// Numbers lower than the highest by more than this are a new beginning, not a late frame: ten seconds at 30 fps,
    /// longer than any queue may hold a frame.
    private static let restartDistance: UInt32 = 300

    /// A checker that has seen nothing.
    ///
    /// - Parameter frozenAfter: Pictures in a row with the same number that count as standing still; half a second at
    ///   30 fps unless given. At least 2.
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
            // In their order, so that the newer one does not make the older one missing.
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
            // It was taken for missing when a higher number came, unless an unreadable picture stood for it.
            counts.notSent = max(0, counts.notSent - 1)
        }
    }

    /// Moves on to `number` if it is higher than all before.
    ///
    /// - Returns: Whether it is.
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
