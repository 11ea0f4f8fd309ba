import MediaCore

/// What became of a flow; times in milliseconds.
package struct SimulationFigures: Hashable, Sendable {
    /// Bits per second that arrived.
    package var rate = 0.0
    /// Delay from capture to the last byte: median, 95th and 99th percentile, and the largest.
    package var p50 = 0
    package var p95 = 0
    package var p99 = 0
    package var largest = 0
    /// Age of the newest frame that is there: mean and 95th percentile.
    package var signalMean = 0.0
    package var signal95 = 0
    /// Frames a second.
    package var frameRate = 0.0
    /// The harmonic mean of the frame rate over time: long gaps count for as long as they last.
    package var harmonicFrameRate = 0.0
    /// Freezes by WebRTC's definition, and the time that they take.
    package var freezes = 0
    package var frozen = 0
    package var frames = 0
    package var keyframes = 0
    package var sizeChanges = 0
    /// The longest time between two frames.
    package var longestGap = 0

    /// The figures of what was captured from `start` to `end`, in seconds.
    package init(_ flow: SimulatedFlow, from start: Double, to end: Double) {
        self.init(of: flow.arrivals, from: start, to: end)
    }

    /// The figures of a track's frames that were captured from `start` to `end`, in seconds.
    package init(of arrivals: [SimulatedFlow.Arrival], from start: Double, to end: Double) {
        let begin = Int(start * 1000)
        let last = Int(end * 1000)
        let arrivals = arrivals.filter { $0.captured >= begin && $0.arrived < last }
        guard let first = arrivals.first else { return }
        frames = arrivals.count
        let delays = arrivals.map { $0.arrived - $0.captured }.sorted()
        p50 = Self.percentile(delays, 0.5)
        p95 = Self.percentile(delays, 0.95)
        p99 = Self.percentile(delays, 0.99)
        largest = delays[delays.count - 1]
        var bytes = 0
        for arrival in arrivals { bytes += arrival.size }
        rate = Double(bytes) * 8 / (end - start)
        frameRate = Double(frames) / (end - start)
        harmonicFrameRate = Self.harmonicRate(arrivals)
        keyframes = arrivals.count { $0.isKeyframe }
        sizeChanges = zip(arrivals, arrivals.dropFirst()).count { $0.dimensions != $1.dimensions }
        longestGap = zip(arrivals, arrivals.dropFirst()).reduce(0) { max($0, $1.1.arrived - $1.0.arrived) }
        noteSignal(arrivals, from: first.arrived, to: last)
        noteFreezes(arrivals)
    }

    private static func harmonicRate(_ arrivals: [SimulatedFlow.Arrival]) -> Double {
        var sum = 0.0
        var squares = 0.0
        for (earlier, later) in zip(arrivals, arrivals.dropFirst()) {
            let gap = Double(later.arrived - earlier.arrived) / 1000
            sum += gap
            squares += gap * gap
        }
        return squares > 0 ? sum / squares : 0
    }

    private static func percentile(_ sorted: [Int], _ part: Double) -> Int {
        sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]
    }

    private mutating func noteSignal(_ arrivals: [SimulatedFlow.Arrival], from start: Int, to end: Int) {
        var ages: [Int] = []
        var newest = 0
        var sum = 0
        for time in stride(from: start, to: end, by: 16) {
            while newest + 1 < arrivals.count, arrivals[newest + 1].arrived <= time { newest += 1 }
            ages.append(time - arrivals[newest].captured)
            sum += time - arrivals[newest].captured
        }
        guard !ages.isEmpty else { return }
        ages.sort()
        signalMean = Double(sum) / Double(ages.count)
        signal95 = Self.percentile(ages, 0.95)
    }

    private mutating func noteFreezes(_ arrivals: [SimulatedFlow.Arrival]) {
        var detector = FreezeDetector()
        for arrival in arrivals { detector.shown(at: MonotonicInstant(microseconds: Int64(arrival.arrived) * 1000)) }
        freezes = detector.count
        frozen = Int(detector.totalDuration.wholeMicroseconds / 1000)
    }

    /// Jain's index of fairness: 1 if all are equal, 1/n if one has everything.
    package static func jain(_ rates: [Double]) -> Double {
        var sum = 0.0
        var squares = 0.0
        for rate in rates {
            sum += rate
            squares += rate * rate
        }
        return sum * sum / (Double(rates.count) * squares)
    }
}
