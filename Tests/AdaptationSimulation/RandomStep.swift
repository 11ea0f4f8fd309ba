package import Adaptation
import MediaCore

/// A link that breaks down and comes back, with random rates, delay, times and content; each seed gives another one.
///
/// It breaks down once, or is unsteady: it breaks down and comes back some times before it stays.
package struct RandomStep: Sendable {
    /// The link.
    package let trace: LinkTrace
    /// The flow over it.
    package let flow: SimulatedFlow.Configuration
    /// When the link breaks down for the first time and comes back for the last time, and the end of all, in seconds.
    package let fall: Double
    package let rise: Double
    package let end: Double
    /// The rates before and after the fall in Mbit/s.
    package let high: Double
    package let low: Double

    /// The result after the link's return.
    package struct Rise: Hashable, Sendable {
        /// How often the size changed from the return on.
        package var sizeChanges = 0
        /// The freezes that ended from the return on, and their sum in milliseconds.
        package var freezes = 0
        package var frozen = 0
        /// The seconds until the size was that of before the fall again; `nil` if it never was.
        package var secondsToFull: Double?
        /// The most size changes in any 60 s of the run.
        package var changesInMinute = 0
    }

    /// The step of that seed; the round trips of a far one take 160 to 640 ms, and others 20 to 160.
    package init(seed: UInt64, isUnsteady: Bool = false, isFar: Bool = false) {
        var random = SimulationRandom(seed: seed)
        high = 1.5 + 2.5 * random.uniform()
        low = high * (0.12 + 0.3 * random.uniform())
        fall = 15 + 10 * random.uniform()
        var stretches = [LinkTrace.Stretch(high, seconds: fall)]
        var time = fall
        let turns = isUnsteady ? 2 + Int(4 * random.uniform()) : 0
        for _ in 0..<turns {
            for rate in [low, high] {
                let length = 2 + 8 * random.uniform()
                stretches.append(.init(rate, seconds: length))
                time += length
            }
        }
        let last = isUnsteady ? 2 + 8 * random.uniform() : 8 + 20 * random.uniform()
        rise = time + last
        end = rise + (isUnsteady ? 45 : 25)
        trace = LinkTrace(stretches + [.init(low, seconds: last), .init(high, seconds: end - rise)])
        var flow = SimulatedFlow.Configuration()
        flow.delay = isFar ? 80 + Int(240 * random.uniform()) : 10 + Int(70 * random.uniform())
        flow.seed = seed
        // From a drawing to a busy scene, in equal ratios.
        let contents = [0.06, 0.12, 0.24, 0.48, 0.96, 1.92]
        flow.ceiling = contents[Int(random.uniform() * Double(contents.count))]
        flow.floor = flow.ceiling / 30
        self.flow = flow
    }

    /// Plays it with these settings.
    package func run(_ settings: UplinkController.Settings = .init()) -> Rise {
        var flow = flow
        flow.settings = settings
        let arrivals = LinkSimulation.run(trace, seconds: end, flows: [flow])[0].arrivals
        var result = Rise()
        var detector = FreezeDetector()
        var changes: [Int] = []
        var last: Dimensions?
        let before = arrivals.last { Double($0.arrived) < fall * 1000 }?.dimensions
        for arrival in arrivals {
            let isAfter = Double(arrival.arrived) >= rise * 1000
            let freeze = detector.shown(at: MonotonicInstant(microseconds: Int64(arrival.arrived) * 1000))
            if isAfter, let freeze {
                result.freezes += 1
                result.frozen += Int(freeze.wholeMicroseconds / 1000)
            }
            if isAfter, result.secondsToFull == nil, arrival.dimensions == before {
                result.secondsToFull = Double(arrival.arrived) / 1000 - rise
            }
            if let last, last != arrival.dimensions {
                if isAfter { result.sizeChanges += 1 }
                changes.append(arrival.arrived)
                result.changesInMinute = max(
                    result.changesInMinute,
                    changes.count { arrival.arrived - $0 < 60_000 }
                )
            }
            last = arrival.dimensions
        }
        return result
    }
}
