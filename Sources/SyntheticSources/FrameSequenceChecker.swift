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
        /// Pictures that came too late: with a number that is new and lower than one that arrived before, or captured
        /// before a picture that arrived before.
        package var reordered = 0
        /// Pictures whose top and bottom come from different frames.
        package var torn = 0
        /// Pictures without a readable barcode.
        package var unreadable = 0
        /// How many times the picture froze.
        package var frozen = 0
        /// How many times the numbers started again with later capture times, as after a restart of the sender.
        package var restarted = 0
    }

    /// The results so far.
    package private(set) var counts = Counts()

    private let frozenAfter: Int
    /// The picture with the highest number since the numbers last started.
    private var newest: Barcode?
    /// Bit n is set if the number `newest.number - n` has arrived.
    private var seen: UInt64 = 0
    /// The last picture's number, and how many pictures in a row had it.
    private var current: UInt32?
    private var repetitions = 0
    private var unreadableSinceValue = 0

    /// Creates a checker that has seen no picture.
    ///
    /// - Parameter frozenAfter: The number of pictures in a row with the same number that count as frozen; by default
    ///   half a second at 30 fps. At least 2.
    package init(frozenAfter: Int = 15) {
        self.frozenAfter = max(frozenAfter, 2)
    }

    /// Takes the reading of the next picture.
    ///
    /// - Parameters:
    ///   - reading: The barcode of the picture.
    ///   - isRepeat: Whether the sender says that the picture is the one before again. Its barcode may then be that of
    ///     the newest picture.
    package mutating func observe(_ reading: BarcodeReading, isRepeat: Bool = false) {
        counts.frames += 1
        switch reading {
        case .value(let barcode):
            if isRepeat && barcode == newest { return }
            noteRepetition(of: barcode.number)
            note(barcode)
        case .torn(let top, let bottom):
            counts.torn += 1
            repetitions = 0
            current = nil
            // Observe both in their order, so that the newer one does not make the older one count as missing.
            let isTopOlder = bottom.number &- top.number < 1 << 31
            advance(to: isTopOlder ? top : bottom)
            advance(to: isTopOlder ? bottom : top)
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

    private mutating func note(_ barcode: Barcode) {
        guard !advance(to: barcode), let newest else { return }
        let distance = newest.number &- barcode.number
        // The capture time tells a restart from a late picture, however old that is.
        if distance > 0, barcode.isLater(than: newest) {
            counts.restarted += 1
            begin(with: barcode)
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

    /// Moves on to `barcode` if its number is higher than all before, and it was not captured before them.
    ///
    /// A higher number with an earlier time is that of a late picture from before a restart.
    ///
    /// - Returns: Whether it moved on.
    @discardableResult
    private mutating func advance(to barcode: Barcode) -> Bool {
        guard let newest else {
            begin(with: barcode)
            return true
        }
        let step = barcode.number &- newest.number
        // Serial number arithmetic (RFC 1982): the number wraps around.
        guard step > 0, step < 1 << 31, !newest.isLater(than: barcode) else { return false }
        counts.notSent += max(0, Int(step) - 1 - unreadableSinceValue)
        unreadableSinceValue = 0
        seen = (step < 64 ? seen << step : 0) | 1
        self.newest = barcode
        return true
    }

    private mutating func begin(with barcode: Barcode) {
        newest = barcode
        seen = 1
        unreadableSinceValue = 0
    }
}
