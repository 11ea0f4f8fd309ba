/// Recognises a queue that others keep full, for example a download over the same link, and allows for it.
///
/// What is on its way is limited to what the rate carries in a round trip and `targetQueue` (`SendGate`). So a queue of our
/// own drains within seconds once the rate is below what the path delivers. One that stays longer belongs to others, and a
/// rate that went on yielding to it would end at nothing.
///
/// The allowance is dangerous where it is wrong. Therefore it is fixed when it is granted, and it ends when the queue grows
/// further, which then is ours; the next one has to wait, each time twice as long. How much we get of the link is then up to
/// TCP, which shares by loss.
package struct CompetingQueue: Hashable, Sendable {
    /// The settings; times in microseconds.
    package struct Settings: Hashable, Sendable {
        /// How long the queue must stand.
        package var time: Int64 = 3_000_000
        /// By how much it must exceed what our own bytes explain.
        package var margin = 100_000.0
        /// The bytes of ours that may wait beside the allowed queue: on a thin path they take long.
        package var ownBytes = 1_500.0
        /// The longest queue that is allowed for.
        package var longest = 350_000.0
        /// A queue that grows by this much beyond the allowed one is ours.
        package var tolerance = 150_000.0
        /// How long it must do so: a lost packet makes a shorter one.
        package var persistence: Int64 = 500_000
        /// How long no allowance is granted after such a mistake; twice as long after each further one.
        package var pause: Int64 = 30_000_000
        /// A silence of the receiver of this length says nothing of a queue.
        package var longestGap: Int64 = 1_000_000

        package init() {}
    }

    private let settings: Settings
    private var since: Int64?
    private var longestQueue = 0.0
    /// Since when the queue has been longer than the allowance explains.
    private var exceededSince: Int64?
    private var last: Int64?
    private var pausedUntil: Int64 = 0
    private var pause: Int64

    /// By how much the queue of others raises the allowed queue, in microseconds; 0 without one.
    package private(set) var allowance = 0.0

    package init(_ settings: Settings = Settings()) {
        self.settings = settings
        pause = settings.pause
    }

    /// Takes in what an acknowledgement told; `ownQueue` is the queue that is allowed without others, in microseconds.
    package mutating func observe(_ sample: PathEstimator.Sample, ownQueue: Double, at now: Int64) {
        let queue = Double(sample.standingQueue)
        if now - (last ?? now) > settings.longestGap { reset() }
        last = now
        if allowance > 0 { return check(queue, ownQueue: ownQueue, at: now) }
        let own = ownQueue + settings.ownBytes * 8e6 / max(1, sample.activeRate)
        guard queue > own + settings.margin else { return reset() }
        let begin = since ?? now
        since = begin
        longestQueue = max(longestQueue, queue)
        guard now - begin >= settings.time, now >= pausedUntil, longestQueue <= settings.longest else { return }
        allowance = longestQueue
    }

    /// Forgets what was seen.
    private mutating func reset() {
        since = nil
        longestQueue = 0
        exceededSince = nil
        allowance = 0
    }

    private mutating func check(_ queue: Double, ownQueue: Double, at now: Int64) {
        guard queue >= ownQueue else { return reset() }
        guard queue > allowance + settings.tolerance else {
            exceededSince = nil
            return
        }
        let begin = exceededSince ?? now
        exceededSince = begin
        guard now - begin >= settings.persistence else { return }
        reset()
        pausedUntil = now + pause
        pause = min(16 * settings.pause, 2 * pause)
    }
}
