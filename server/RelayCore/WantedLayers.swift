import MediaCore
import RoomProtocol

/// The encodings that somebody receives, as the track's publisher was last told, and when to tell it anew.
///
/// A bound that follows the rates of the subscribers' paths changes with every acknowledgement. The publisher is told
/// of changes that matter, a few times a second, and at once of a rate that has broken down.
struct WantedLayers: Sendable {
    /// The least time between two messages.
    private static let interval: Duration = .milliseconds(200)
    /// The least time before a message of a rate that has broken down.
    private static let urgentInterval: Duration = .milliseconds(60)
    /// A rate below this part of the last one has broken down.
    private static let urgentFall = 0.8
    /// A rate within these parts of the last one is the same.
    private static let leastFall = 0.96, leastRise = 1.06

    /// The encodings and bounds as the publisher knows them, by ascending number; none if nobody receives the track.
    private(set) var said: [WantedLayer] = []
    private var lastSaid: MonotonicInstant?
    /// When to compare again, because a change came too soon.
    private(set) var due: MonotonicInstant?

    /// Whether the publisher was sent any bound.
    var isBounded: Bool {
        said.contains { $0 != WantedLayer(simulcastLayer: $0.simulcastLayer, temporalLayers: 1) }
    }

    /// Notes what the publisher is told now; the next look stays.
    mutating func say(_ wanted: [WantedLayer], at now: MonotonicInstant) {
        said = wanted
        lastSaid = now
    }

    /// Notes what is wanted, and compares it with what the publisher knows.
    ///
    /// - Returns: Whether to tell it now; if a change has to wait, `due` says until when.
    mutating func note(_ wanted: [WantedLayer], at now: MonotonicInstant) -> Bool {
        due = nil
        guard let lastSaid, wanted.count == said.count else { return true }
        var moment: MonotonicInstant?
        for (new, old) in zip(wanted, said) {
            // Somebody waits for an encoding that begins.
            if new.simulcastLayer != old.simulcastLayer { return true }
            guard differs(new, from: old) else { continue }
            let isUrgent = Double(new.bitrate ?? .max) < Self.urgentFall * Double(old.bitrate ?? .max)
            let time = lastSaid + (isUrgent ? Self.urgentInterval : Self.interval)
            moment = min(moment ?? time, time)
        }
        guard let moment else { return false }
        guard now < moment else { return true }
        due = moment
        return false
    }

    /// Compares at `time` again, unless something else comes before.
    mutating func lookAgain(at time: MonotonicInstant) {
        due = min(due ?? time, time)
    }

    /// Does not compare again by itself.
    mutating func forgetDue() {
        due = nil
    }

    private func differs(_ wanted: WantedLayer, from said: WantedLayer) -> Bool {
        guard let new = wanted.bitrate, let old = said.bitrate else { return wanted != said }
        var same = wanted
        same.bitrate = old
        if same != said { return true }
        return Double(new) < Self.leastFall * Double(old) || Double(new) > Self.leastRise * Double(old)
    }
}
