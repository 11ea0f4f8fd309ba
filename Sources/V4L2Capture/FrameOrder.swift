import MediaCore

/// Finds the frames that a driver left out, and those that it hands over after a newer one, by its counter.
///
/// uvcvideo copies the parts of a frame on several processors since Linux 4.20. Where one of them is held up for longer
/// than an interval, the frame is handed over behind the next one.
struct FrameOrder {
    /// What the driver's counter says of a frame.
    enum Place: Equatable {
        /// The frame follows the one before, and the driver left out so many between them.
        case next(missed: Int)
        /// The frame is older than one that was handed over before it; `wasMissed` if it was then taken for left out.
        case overtaken(wasMissed: Bool)
    }

    /// How many newer frames can come before a frame: fewer than there are buffers.
    private let reach: UInt32
    /// The newest frame.
    private var newest: (sequence: UInt32, stamp: MonotonicInstant?)?
    /// How many of the frames that were taken for left out have not come yet.
    private var outstanding = 0

    /// Creates the order of a stream with `bufferCount` buffers.
    init(bufferCount: Int) {
        reach = UInt32(clamping: bufferCount)
    }

    /// Places the frame that the driver hands over next, with its counter and its own timestamp.
    ///
    /// Both must be older than those of a frame before it, for counters and clocks of drivers may start again. A counter
    /// that stands still, or that starts again, tells of no missed frames.
    mutating func place(_ sequence: UInt32, stamp: MonotonicInstant?) -> Place {
        guard let last = newest else {
            newest = (sequence, stamp)
            return .next(missed: 0)
        }
        if (1..<reach).contains(last.sequence &- sequence), isOlder(stamp, than: last.stamp) {
            defer { outstanding = max(0, outstanding - 1) }
            return .overtaken(wasMissed: outstanding > 0)
        }
        newest = (sequence, stamp)
        let step = sequence &- last.sequence
        // 216,000 is an hour at 60 frames a second; a larger gap means that the counter started again.
        let missed = step > 1 && step < 216_000 ? Int(step) - 1 : 0
        outstanding += missed
        return .next(missed: missed)
    }

    private func isOlder(_ stamp: MonotonicInstant?, than other: MonotonicInstant?) -> Bool {
        guard let stamp, let other else { return true }
        return stamp < other
    }
}
