/// Finds out whether a path carries more than is sent over it, by sending a few frames together.
///
/// The frames wait for one another, 100 ms at most, and leave at one moment. The queue that they cause tells the rate of
/// the path. Nothing is sent that the peer would not get anyway, and no frame comes late enough to be seen: on a path
/// without room, two frames tell so, and the queue is that of one frame. Three trains, of two, three and four frames, must
/// pass one after the other.
package struct PathProbe: Sendable {
    /// What the trains have shown.
    package enum Finding: Sendable {
        case nothing, carries, carriesNot
    }

    private enum Phase: Sendable {
        case idle
        /// Waits for two frames, which show the time from one to the next.
        case measuring(since: Int64?)
        /// Frames wait for one another.
        case gathering(until: Int64)
        /// The train leaves, or is on its way.
        case sent
    }

    private struct Write: Sendable {
        /// The bytes that were written up to its end.
        var end: UInt64
        var time: Int64
    }

    /// The numbers of frames in the trains.
    private static let sizes: [Int64] = [2, 3, 4]
    /// How long a frame waits at most; later than after 120 ms, temporal layers would be left out.
    private static let longestHold: Int64 = 105_000
    /// Packets that are written within this time belong to the train.
    private static let trainTime: Int64 = 10_000
    /// The time from one train to the next.
    private static let rest: Int64 = 250_000
    /// A probe that takes longer has shown that the path is not in order.
    private static let longestTime: Int64 = 4_000_000
    /// Shorter times cannot be told from the jitter of two machines.
    private static let resolution: Double = 4_000
    /// More than this is no jitter, but a queue that has not drained yet.
    private static let mostJitter = 10_000.0
    /// The part of the needed rate that must be left for what varies.
    private static let margin = 1.1
    /// The part of what a train can show at most that must be shown, where that is less than the needed rate.
    private static let leastPart = 0.85
    private static let mostWrites = 16

    // What each write needs comes first.

    /// Whether `wrote` must be called.
    package private(set) var isRunning = false
    private var phase = Phase.idle
    private var writes: [Write] = []
    private var size = 0
    private var began: Int64 = 0
    private var restsUntil: Int64 = 0
    private var interval: Int64 = 0
    private var need = 0.0
    /// The queue without trains, in microseconds: the jitter of the path.
    private var usualQueue = 0.0

    /// The result of the last probe.
    package private(set) var finding = Finding.nothing
    /// The rate that the last train has shown, in bits per second.
    package private(set) var shownRate = 0.0

    /// Creates the probe of a path that was just opened.
    package init() {}

    /// Begins to find out whether the path carries `need` bits per second.
    package mutating func begin(need: Double, at now: Int64) {
        finding = .nothing
        self.need = need
        began = now
        restsUntil = now
        size = 0
        isRunning = true
        phase = .measuring(since: nil)
    }

    /// Ends the probe, and forgets what it has shown.
    package mutating func cancel() {
        finding = .nothing
        stop()
    }

    /// Whether a frame waits for others before it is sent.
    package mutating func holds(at now: Int64) -> Bool {
        guard case .gathering(let end) = phase else { return false }
        if now < end { return true }
        phase = .sent
        writes.removeAll(keepingCapacity: true)
        return false
    }

    /// Whether frames have waited for one another for long enough, although no other has come.
    package func isHoldOver(at now: Int64) -> Bool {
        if case .gathering(let end) = phase { now >= end } else { false }
    }

    /// Notes a media packet that was handed to the socket; `end` counts all bytes up to its end.
    ///
    /// The frames of all tracks leave in the trains. The time from one frame to the next is that of the tested track:
    /// between two tracks it may be any.
    package mutating func wrote(end: UInt64, isOfTestedTrack: Bool = true, at now: Int64) {
        switch phase {
        case .idle, .gathering: break
        case .measuring(let since):
            guard isOfTestedTrack, now >= restsUntil else { return }
            guard let since, now - since >= Self.trainTime / 2 else {
                phase = .measuring(since: since ?? now)
                return
            }
            interval = now - since
            let wait = Self.sizes[size] * interval - interval / 8
            // After a gap in what the publisher sends, the next frame comes sooner than after such an interval.
            phase = .gathering(until: now + min(wait, min(interval, Self.longestHold) + Self.longestHold))
        case .sent:
            if writes.count == Self.mostWrites {
                writes[Self.mostWrites - 1].end = end
            } else {
                writes.append(Write(end: end, time: now))
            }
        }
    }

    /// Notes that the peer has `bytes` bytes, of which the newest were written at `written` and waited for `queue`
    /// microseconds on the way.
    package mutating func acknowledged(bytes: UInt64, written: Int64, queue: Int64, at now: Int64) {
        guard case .sent = phase else {
            if !isRunning { usualQueue += (min(Double(queue), Self.mostJitter) - usualQueue) / 16 }
            return checkTime(at: now)
        }
        checkTime(at: now)
        guard let first = writes.first, let newest = writes.last(where: { $0.end <= bytes }),
            let last = writes.last(where: { $0.time - first.time <= Self.trainTime }),
            newest.end >= last.end, now - first.time > Self.trainTime
        else { return }
        // A normal frame waits for its own bytes, too: those of the train's first one say nothing.
        let excess = Double(newest.end - first.end) * 8e6
        guard excess > 0 else { return nextTrain(at: now) }
        // What came behind the train had been sent with the last of its frames at the earliest.
        let start = newest.end == last.end ? first.time : last.time
        let time = Double(written - start) + max(0, Double(queue) - usualQueue)
        shownRate = excess / max(time, Self.resolution)
        guard shownRate >= min(Self.margin * need, mostShown(first, last, newest)) else { return finish(.carriesNot) }
        size += 1
        if size < Self.sizes.count { nextTrain(at: now) } else { finish(.carries) }
    }

    /// The rate that a path with room shows at least, from the train of the writes from `first` to `last`, if `newest` is
    /// the newest write that was acknowledged.
    private func mostShown(_ first: Write, _ last: Write, _ newest: Write) -> Double {
        guard newest.end == last.end else {
            // What came behind the train was not written before: no path shows more in that time.
            return Self.leastPart * Double(newest.end - first.end) * 8e6 / Double(max(1, newest.time - last.time))
        }
        // If nothing was acknowledged before the next frame, a train shows no more than all its frames in that time.
        let frames = Double(Self.sizes[size])
        let mean = Double(last.end - first.end) * 8e6 / max(1, frames - 1)
        return Self.leastPart * frames * mean / Double(interval)
    }

    /// Ends a probe that takes too long.
    package mutating func checkTime(at now: Int64) {
        if isRunning, now - began > Self.longestTime { finish(.carriesNot) }
    }

    private mutating func nextTrain(at now: Int64) {
        restsUntil = now + Self.rest
        phase = .measuring(since: nil)
    }

    private mutating func finish(_ finding: Finding) {
        self.finding = finding
        stop()
    }

    private mutating func stop() {
        isRunning = false
        phase = .idle
    }
}
