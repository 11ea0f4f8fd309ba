import MediaCore

/// Turns capture timestamps into presentation times, by which libvpx measures the frame rate.
///
/// libvpx refuses a time before its first one, and takes the time from the end of one slot to the end of the next for
/// the frame interval. If that differs by less than a tenth from the length of the slot before, it moves its frame rate
/// only slowly towards it. So each slot begins here where the one before ended, and is as long as the frame's interval,
/// an interval in `intervals`, whatever the timestamps and the frame rate do. With slots of the nominal interval, ends
/// nearly coincided where the frame rate doubled, or where two frames came at once: libvpx then believed in thousands
/// of frames a second, and left nearly all frames out for the 2 to 3 s in which it averaged that out (measured, libvpx
/// 1.12).
struct EncodingTimeline {
    /// A frame's time and duration for libvpx, in µs.
    struct Slot: Equatable {
        var start: Int64
        var duration: Int64
    }

    /// The intervals that libvpx may get, in µs: from 1,000 frames a second to one.
    ///
    /// libvpx averages them over its last second (`vp8_get_compressed_data`). A longer interval makes that average
    /// swing to negative values and stay there, and four of five frames are then left out for good (measured, libvpx
    /// 1.12).
    static let intervals: ClosedRange<Int64> = 1000...1_000_000
    /// The longest interval, in µs, that counts as frame rate; a longer one is a pause, unless frames are due that
    /// slowly.
    ///
    /// A frame gets the bits of its interval. After a pause this would be a burst that takes the network long to
    /// transmit.
    static let longestStep: Int64 = 250_000

    private var previous: (timestamp: MonotonicInstant, end: Int64)?
    /// The bits of results that were not sent and that no slot has given back yet.
    private var owedBits = 0.0

    /// The slot of the next frame, captured at `timestamp`, if frames come about every `interval`.
    ///
    /// A timestamp that is not later than the one before counts as `interval` later. So does a requested keyframe,
    /// because it often comes after frames that nobody wanted. A repeat of a still picture gets the bits of the whole
    /// time, because the link was idle, and they are what makes the picture sharp. It gets no more than a frame may
    /// have: `largestFrame` is the time that such a frame takes at the bitrate, in µs. `bitrate` is the target.
    mutating func slot(
        at timestamp: MonotonicInstant,
        interval: Duration,
        isKeyframe: Bool = false,
        isRepeat: Bool = false,
        largestFrame: Int64 = intervals.upperBound,
        bitrate: Bitrate = Bitrate(bitsPerSecond: 0)
    ) -> Slot {
        let duration = Self.bounded(interval.wholeMicroseconds)
        let usual = max(Self.longestStep, duration)
        let longest = isRepeat ? max(usual, Self.bounded(largestFrame)) : usual
        guard let previous else {
            self.previous = (timestamp, duration)
            return Slot(start: 0, duration: duration)
        }
        let elapsed = timestamp.duration(since: previous.timestamp)
        let step =
            if timestamp <= previous.timestamp || isKeyframe {
                duration
            } else if elapsed < .zero {
                // The difference overflowed, so it counts as the longest possible one.
                longest
            } else {
                min(Self.bounded(elapsed.wholeMicroseconds), longest)
            }
        let length = step + repayment(bitrate, longest: Self.intervals.upperBound - step)
        self.previous = (timestamp, previous.end + length)
        return Slot(start: previous.end, duration: length)
    }

    /// The slot for encoding the same frame again, because its first result of `size` is not sent.
    ///
    /// libvpx has subtracted that result from what the target `bitrate` allows. It adds what the bitrate allows for the
    /// slot, so this one is as long as the result would have taken. If that is more than the longest interval, the next
    /// slots are longer for it.
    mutating func slotForAnotherTry(afterResultOf size: DataSize, bitrate: Bitrate, interval: Duration) -> Slot {
        let duration = Self.bounded(interval.wholeMicroseconds)
        guard let previous else { return Slot(start: 0, duration: duration) }
        owedBits += Double(size.bytes) * 8
        let length = max(duration, repayment(bitrate, longest: Self.intervals.upperBound))
        self.previous = (previous.timestamp, previous.end + length)
        return Slot(start: previous.end, duration: length)
    }

    /// How much longer a slot is, at most `longest`, to give back what is owed; in µs.
    private mutating func repayment(_ bitrate: Bitrate, longest: Int64) -> Int64 {
        let rate = Double(max(bitrate.bitsPerSecond, 1)) / 1e6
        let time = min(Double(longest), owedBits / rate)
        owedBits = max(0, owedBits - time * rate)
        return Int64(time)
    }

    private static func bounded(_ interval: Int64) -> Int64 {
        min(max(interval, intervals.lowerBound), intervals.upperBound)
    }
}
