import MediaCore

/// Decides which decoded frames are shown, so that a late picture is left out and never shown in place of a newer one.
///
/// Every frame must be decoded, because later ones refer to it. A frame that is shown is handed
/// to the renderers' slots, which costs one more copy. A frame is decoded and not shown in three cases:
/// - A picture that is newer by more than `freshness` waits already. So a decoder that is behind catches up.
/// - The frame is later than usual by more than `staleness`, as after an outage, or when the program was stopped.
/// - The track has changed to another simulcast layer, and the picture is not newer than the one on the screen.
///
/// No case lasts: a picture is shown at least every `longestSkipping`, or `longestHiding` in the last two cases. So a
/// decoder that is too slow, and a path that has become slow for good, still show something. While the delay of stale
/// frames falls, the queue in the network drains. The picture stands still until the queue is empty, because stale
/// frames would take it back in time.
struct DisplayGate: Sendable {
    /// Pictures that arrived together within this time are all shown; three frame intervals at 60 fps.
    static let freshness = Duration.milliseconds(50)
    /// How much later than usual a frame is shown at most.
    ///
    /// The relay gives up what is 600 ms late, so that only a queue in the network brings frames that are later.
    static let staleness = Duration.seconds(1)
    static let longestSkipping = Duration.milliseconds(250)
    static let longestHiding = Duration.seconds(1)
    /// By how much the delay must fall for a queue to count as draining.
    private static let leastProgress = Duration.milliseconds(100)

    private var usual = UsualDelay()
    /// The time during which frames came and were not shown; a silence between two counts `longestSkipping` at most.
    private var hidden = Duration.zero
    private var lastHidden: MonotonicInstant?
    /// The delay from which a stale frame counts: while it falls, a queue drains, and live is near.
    private var hiddenDelay = Duration.zero
    /// Whether the last frame was left out because its decoding took long.
    private var wasHeldUp = false
    private var shownLayer: UInt8?
    private var shownCapture = MonotonicInstant(nanoseconds: .min)

    /// Whether to show a frame that is about to be decoded.
    ///
    /// - Parameters:
    ///   - frame: The frame.
    ///   - clockOffset: The offset of the server's clock by which its timestamp was made local.
    ///   - newestWaiting: When the newest frame that waits behind it was captured.
    ///   - now: The time.
    /// - Returns: Whether to show it.
    mutating func shows(
        _ frame: EncodedFrameInfo,
        clockOffset: Duration,
        newestWaiting: MonotonicInstant?,
        at now: MonotonicInstant
    ) -> Bool {
        // By the server's own stamps: when the offset is corrected, no frame becomes later than the one before.
        let delay = now.duration(since: frame.timestamp) - clockOffset
        usual.note(delay, at: now)
        let isStale = usual.excess(of: delay) > Self.staleness
        let isRepeated = shownLayer.map { $0 != frame.simulcastLayer } == true && frame.timestamp <= shownCapture
        let isReplaced = newestWaiting.map { $0.duration(since: frame.timestamp) > Self.freshness } ?? false
        if isStale || isRepeated || isReplaced {
            let longest = isStale || isRepeated ? Self.longestHiding : Self.longestSkipping
            countHidden(delay: delay, isStale: isStale, at: now)
            guard hidden >= longest else { return false }
            // A delay that has lasted for so long counts as the usual one from now on.
            if isStale { usual.reset(to: delay, at: now) }
        }
        (hidden, lastHidden) = (.zero, nil)
        shownLayer = frame.simulcastLayer
        shownCapture = frame.timestamp
        return true
    }

    /// Whether to show the frame after all, now that its decoding took `time`.
    ///
    /// If the program was stopped meanwhile, the picture is as old as the stop was long. A decoder that always takes so
    /// long shows every other picture.
    mutating func stillShows(after time: Duration) -> Bool {
        wasHeldUp = time > Self.staleness && !wasHeldUp
        return !wasHeldUp
    }

    /// Counts the time in which frames come and are not shown.
    private mutating func countHidden(delay: Duration, isStale: Bool, at now: MonotonicInstant) {
        // Silence is no hiding: what comes after an outage is the oldest of all.
        if let lastHidden {
            hidden += min(now.duration(since: lastHidden), Self.longestSkipping)
        } else {
            hiddenDelay = delay
        }
        lastHidden = now
        if isStale, delay < hiddenDelay - Self.leastProgress {
            hidden = .zero
            hiddenDelay = delay
        }
    }
}

/// The shortest delay of the last 10 to 20 seconds in which frames came.
///
/// Only differences between delays count, so that the clock's offset does not matter. While no frame comes, nothing is
/// forgotten: after an outage the usual delay is the one from before.
private struct UsualDelay: Sendable {
    private static let stretch = Duration.seconds(10)

    private var began: MonotonicInstant?
    private var current = Duration.zero
    private var previous: Duration?

    mutating func note(_ delay: Duration, at now: MonotonicInstant) {
        guard let began else { return reset(to: delay, at: now) }
        if now.duration(since: began) >= Self.stretch {
            previous = current
            current = delay
            self.began = now
        } else {
            current = min(current, delay)
        }
    }

    mutating func reset(to delay: Duration, at now: MonotonicInstant) {
        began = now
        current = delay
        previous = nil
    }

    /// How much longer `delay` is than usual.
    func excess(of delay: Duration) -> Duration {
        delay - min(current, previous ?? current)
    }
}
