/// Finds out whether a path carries more than is sent over it, by sending a few frames together.
///
/// The frames wait for one another, 100 ms at most, and leave at one moment. The queue that they cause tells the rate
/// of the path. Nothing is sent that the peer would not get anyway, and no frame comes late enough to be seen: on a
/// path without room, two frames tell so, and the queue is that of one frame. Three trains, of two, three and four
/// frames, must pass one after the other. Where frames come more rarely than 30 times a second, fewer of them make a
/// train, which has as many bytes, because each is larger.
package struct PathProbe: Sendable {
    /// What the trains have shown.
    package enum Finding: Sendable {
        case nothing, carries, carriesNot
        /// Frames come so rarely that no two may wait for one another.
        case tooFewFrames
    }

    private enum Phase: Sendable {
        case idle
        /// Waits for two frames, which show the time from one to the next.
        case measuring(since: Int64?)
        /// Frames wait for one another: until one comes after `until`, or else to the time `latest`, which is known
        /// once a frame waits.
        case gathering(until: Int64, latest: Int64?)
        /// The train leaves, or is on its way.
        case sent
    }

    private struct Write: Sendable {
        /// The bytes that were written up to its end.
        var end: UInt64
        var time: Int64
    }

    /// The numbers of frames in the trains, where they come often enough.
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
    /// The time from one frame to the next by which `mostShown` is meant: where frames come more rarely, they are
    /// larger, and a path with room needs no longer for them.
    private static let longestInterval: Int64 = 33_334
    /// After this many times without a second frame in time, there are too few.
    private static let mostMisses = 4
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
    /// The frames of the tested track that the train has.
    private var trainFrames: Int64 = 0
    /// How often no second frame came while a frame may wait.
    private var misses = 0
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
        misses = 0
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
        guard case .gathering(let end, let latest) = phase else { return false }
        if now < min(end, latest ?? end) { return true }
        phase = .sent
        writes.removeAll(keepingCapacity: true)
        trainFrames = 0
        return false
    }

    /// Notes that a frame waits, because `holds` said so.
    package mutating func frameWaits(at now: Int64) {
        guard case .gathering(let end, nil) = phase else { return }
        phase = .gathering(until: end, latest: now + Self.longestHold)
    }

    /// Until when frames wait for one another although no other comes; `nil` while none waits.
    package var holdEnd: Int64? {
        if case .gathering(_, let latest) = phase { latest } else { nil }
    }

    /// Notes a media packet that was handed to the socket; `end` counts all bytes up to its end.
    ///
    /// The frames of all tracks leave in the trains. The time from one frame to the next is that of the tested track:
    /// between two tracks it may be any.
    package mutating func wrote(
        end: UInt64,
        isOfTestedTrack: Bool = true,
        endsFrame: Bool = true,
        at now: Int64
    ) {
        switch phase {
        case .idle, .gathering: break
        case .measuring(let since):
            guard isOfTestedTrack, now >= restsUntil else { return }
            guard let since, now - since >= Self.trainTime / 2 else {
                phase = .measuring(since: since ?? now)
                return
            }
            gather(interval: now - since, at: now)
        case .sent:
            if writes.count == Self.mostWrites {
                writes[Self.mostWrites - 1].end = end
            } else {
                writes.append(Write(end: end, time: now))
            }
            if isOfTestedTrack, endsFrame, now - writes[0].time <= Self.trainTime { trainFrames += 1 }
        }
    }

    /// Lets as many frames wait for one another as come while the first of them may wait.
    private mutating func gather(interval: Int64, at now: Int64) {
        self.interval = interval
        guard interval <= Self.longestHold else {
            phase = .measuring(since: now)
            return miss()
        }
        let frames = min(Self.sizes[size], 1 + Self.longestHold / interval)
        // What leaves before the last frame has come still belongs to its train.
        let early = min(interval / 8, Self.trainTime / 2)
        phase = .gathering(until: now + frames * interval - early, latest: nil)
    }

    private mutating func miss() {
        misses += 1
        if misses == Self.mostMisses { finish(.tooFewFrames) }
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
        guard excess > 0, trainFrames > 1 else {
            nextTrain(at: now)
            return miss()
        }
        misses = 0
        // What came behind the train had been sent with the last of its frames at the earliest.
        let start = newest.end == last.end ? first.time : last.time
        let time = Double(written - start) + max(0, Double(queue) - usualQueue)
        shownRate = excess / max(time, Self.resolution)
        guard shownRate >= min(Self.margin * need, mostShown(first, last, newest)) else { return finish(.carriesNot) }
        size += 1
        if size < Self.sizes.count { nextTrain(at: now) } else { finish(.carries) }
    }

    /// The rate that a path with room shows at least, from the train of the writes from `first` to `last`, if `newest`
    /// is the newest write that was acknowledged.
    private func mostShown(_ first: Write, _ last: Write, _ newest: Write) -> Double {
        guard newest.end == last.end else {
            // What came behind the train was not written before: no path shows more in that time.
            return Self.leastPart * Double(newest.end - first.end) * 8e6 / Double(max(1, newest.time - last.time))
        }
        // If nothing was acknowledged before the next frame, a train shows no more than all its frames in that time.
        let frames = Double(trainFrames)
        let mean = Double(last.end - first.end) * 8e6 / max(1, frames - 1)
        return Self.leastPart * frames * mean / Double(min(interval, Self.longestInterval))
    }

    /// Ends a probe that takes too long.
    package mutating func checkTime(at now: Int64) {
        if isRunning, now - began > Self.longestTime { finish(misses > 1 ? .tooFewFrames : .carriesNot) }
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
