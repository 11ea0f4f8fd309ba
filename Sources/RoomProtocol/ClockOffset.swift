package import MediaCore

/// A participant's estimate of the server's clock.
package struct ClockEstimate: Hashable, Sendable {
    /// The source of the estimate.
    package enum Basis: String, Sendable {
        /// Both ends read the same clock: they run on one machine, in one boot.
        case sameHost = "same-host"
        /// The offset is estimated from `timeSync` round trips.
        case estimated
    }

    /// The source of the estimate.
    package var basis: Basis
    /// Room time minus local time.
    package var offset: Duration
    /// The largest possible error of `offset`: half of the shortest round trip.
    package var errorBound: Duration

    /// An estimate with the given fields.
    package init(basis: Basis, offset: Duration, errorBound: Duration) {
        self.basis = basis
        self.offset = offset
        self.errorBound = errorBound
    }

    /// The room time at `instant` of the local clock.
    package func roomTime(at instant: MonotonicInstant) -> RoomTime {
        RoomTime(microseconds: (instant + offset).microseconds)
    }

    /// The instant of the local clock at `time`.
    package func instant(at time: RoomTime) -> MonotonicInstant {
        MonotonicInstant(microseconds: time.microseconds) - offset
    }
}

/// Estimates the offset of the server's clock from `timeSync` round trips; the shortest one in a window counts.
package struct ClockOffsetEstimator: Sendable {
    private struct Sample {
        var offset: Duration
        var roundTrip: Duration
    }

    /// The number of round trips in the window.
    ///
    /// With one every 5 s it spans less than a minute, in which two crystals
    /// drift apart by some 2 ms at 50 ppm.
    private static let windowLength = 8
    /// How far two clocks drift apart within the window at most: 100 ppm each, in less than a minute.
    private static let longestDrift = Duration.milliseconds(10)

    private var samples: [Sample] = []
    private let claimsSameHost: Bool

    /// - Parameter claimsSameHost: Whether client and server read the same boot id.
    package init(claimsSameHost: Bool) {
        self.claimsSameHost = claimsSameHost
    }

    /// The number of round trips received.
    package private(set) var sampleCount = 0

    /// The round trips of the window, oldest first.
    package var roundTrips: [Duration] { samples.map(\.roundTrip) }

    /// Takes the answer to a `timeSync`.
    ///
    /// An answer that seems to have arrived before its question is ignored. Former round trips that contradict this one
    /// are forgotten.
    package mutating func receive(sent: MonotonicInstant, serverTime: RoomTime, received: MonotonicInstant) {
        let roundTrip = received.duration(since: sent)
        guard roundTrip >= .zero else { return }
        let middle = sent + roundTrip / 2
        let offset = MonotonicInstant(microseconds: serverTime.microseconds).duration(since: middle)
        // The true offset lies within half a round trip of each sample's, unless a clock has leapt: that of a machine
        // that was suspended stands still meanwhile.
        samples.removeAll { sample in
            Self.abs(sample.offset - offset) > (sample.roundTrip + roundTrip) / 2 + Self.longestDrift
        }
        samples.append(Sample(offset: offset, roundTrip: roundTrip))
        if samples.count > Self.windowLength { samples.removeFirst() }
        sampleCount += 1
    }

    /// The current estimate; `nil` before the first round trip with a server on another machine.
    ///
    /// A server with the same boot id counts as reading the same clock, unless the round trips contradict this (two
    /// time namespaces of one kernel).
    package var estimate: ClockEstimate? {
        let best = samples.min { $0.roundTrip < $1.roundTrip }
        if claimsSameHost {
            guard let best, Self.abs(best.offset) > best.roundTrip / 2 + .milliseconds(1) else {
                return ClockEstimate(basis: .sameHost, offset: .zero, errorBound: .zero)
            }
        }
        return best.map { ClockEstimate(basis: .estimated, offset: $0.offset, errorBound: $0.roundTrip / 2) }
    }

    private static func abs(_ duration: Duration) -> Duration {
        duration < .zero ? .zero - duration : duration
    }
}
