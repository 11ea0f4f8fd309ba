/// When a link carries a packet: the milliseconds at which it takes up to 1,500 bytes, as mahimahi's traces have it.
///
/// The generated ones are exact: they use no function whose last bits differ from one C library to another.
package struct LinkTrace: Hashable, Sendable {
    /// The error for text that is no trace.
    package struct Malformed: Error, CustomStringConvertible {
        /// What is wrong.
        package var description: String
    }

    /// The milliseconds of the opportunities, in ascending order; the trace begins anew after `duration`.
    package var opportunities: [Int]
    /// The length of the trace in milliseconds.
    package var duration: Int

    /// A stretch of a schedule: so many bits per second for so many seconds.
    package struct Stretch: Hashable, Sendable {
        var bitsPerSecond: Double
        var seconds: Double

        /// A stretch of `megabits` per second for `seconds`.
        package init(_ megabits: Double, seconds: Double) {
            bitsPerSecond = megabits * 1e6
            self.seconds = seconds
        }
    }

    /// Bits of an opportunity of 1,500 bytes.
    static let packetBits = 12_000.0

    /// The bytes that an opportunity takes at most.
    package private(set) var opportunityBytes = 1500

    /// A trace of the given opportunities.
    package init(opportunities: [Int], duration: Int) {
        self.opportunities = opportunities
        self.duration = duration
    }

    /// Reads a trace of mahimahi: a line for each opportunity, in milliseconds.
    package init(text: String) throws(Malformed) {
        opportunities = []
        for (index, line) in text.split(separator: "\n").enumerated() {
            guard let time = Int(line), time >= opportunities.last ?? 0, time < 1 << 32 else {
                throw Malformed(description: "Line \(index + 1) is no time of a trace: “\(line.prefix(40))”.")
            }
            opportunities.append(time)
        }
        duration = opportunities.last ?? 0
        guard duration > 0 else { throw Malformed(description: "The trace is empty.") }
    }

    /// A link that carries the given rates one after another.
    ///
    /// `bytes` are those of an opportunity. A real link of 100 kbit/s begins with a packet at once and needs 120 ms for
    /// one of 1,500 bytes. Small opportunities come near to that; those of 1,500 bytes would be 120 ms apart.
    package init(_ stretches: [Stretch], bytes: Int = 1500) {
        opportunities = []
        opportunityBytes = bytes
        var end = 0.0
        var time = 0.0
        for stretch in stretches {
            end += stretch.seconds * 1000
            guard stretch.bitsPerSecond > 0 else {
                time = end
                continue
            }
            time = max(time, end - stretch.seconds * 1000)
            while time < end {
                opportunities.append(Int(time))
                time += Double(bytes) * 8000 / stretch.bitsPerSecond
            }
        }
        duration = Int(end)
    }

    /// A link of one rate.
    package static func constant(_ megabits: Double, seconds: Double) -> LinkTrace {
        LinkTrace([Stretch(megabits, seconds: seconds)])
    }

    /// A link whose rate rises or falls evenly, in steps of a tenth of a second.
    package static func ramp(from first: Double, to last: Double, seconds: Double) -> LinkTrace {
        let steps = Int(seconds * 10)
        return LinkTrace(
            (0..<steps).map { Stretch(first + (last - first) * Double($0) / Double(steps), seconds: 0.1) }
        )
    }

    /// A link that is there and gone in turns, for random times.
    package static func onOff(_ megabits: Double, seconds: Double, seed: UInt64) -> LinkTrace {
        var random = SimulationRandom(seed: seed)
        var stretches: [Stretch] = []
        var time = 0.0
        while time < seconds {
            let on = 2 + 4 * random.uniform()
            let off = 0.5 + 2.5 * random.uniform()
            stretches += [Stretch(megabits, seconds: on), Stretch(0, seconds: off)]
            time += on + off
        }
        return LinkTrace(stretches)
    }

    /// A cellular link: seven rates that follow each other at random, service in bursts, and sometimes none.
    ///
    /// `burst` is the mean time between bursts in milliseconds, `outage` the chance of an outage at each change.
    package static func markov(
        seed: UInt64,
        seconds: Double = 100,
        dwell: Double = 1200,
        burst: Double = 20,
        outage: Double = 0.06
    ) -> LinkTrace {
        // From 0.15 to 6 Mbit/s in equal ratios.
        let rates = [0.15, 0.277, 0.513, 0.949, 1.755, 3.245, 6.0]
        var random = SimulationRandom(seed: seed)
        var opportunities: [Int] = []
        var state = 2 + Int(random.uniform() * 4)
        var credit = 0.0
        var outageEnd = 0
        for time in 0..<Int(seconds * 1000) {
            if random.uniform() < 1 / dwell {
                let steps = [-2, -1, -1, 1, 1, 2]
                state = max(0, min(6, state + steps[Int(random.uniform() * 6)]))
                if random.uniform() < outage { outageEnd = time + 300 + Int(random.uniform() * 2200) }
            }
            guard time >= outageEnd else { continue }
            credit += rates[state] * 1000 / packetBits
            guard random.uniform() < 1 / burst else { continue }
            while credit >= 1 {
                opportunities.append(time)
                credit -= 1
            }
        }
        return LinkTrace(opportunities: opportunities, duration: Int(seconds * 1000))
    }

    /// This link with stalls at random times, as a lost packet causes them: what comes meanwhile is held back.
    package func withStalls(each interval: Double, of length: Int, seed: UInt64) -> LinkTrace {
        var random = SimulationRandom(seed: seed)
        var held = opportunities
        var end = -1
        var time = 0
        for index in held.indices {
            while time < held[index] {
                time += 1
                if time > end, random.uniform() < 1 / (interval * 1000) { end = time + length }
            }
            if held[index] < end { held[index] = end }
        }
        return LinkTrace(opportunities: held.filter { $0 < duration }, duration: duration)
    }

    /// The bits per second that the link carries from `start` to `end`, in seconds, at most `limit`.
    package func usable(from start: Double, to end: Double, limit: Double) -> Double {
        // Half a second is what a sender could follow at best.
        var sum = 0.0
        var begin = Int(start * 1000)
        let last = Int(end * 1000)
        guard last > begin, !opportunities.isEmpty else { return 0 }
        var index = 0
        var round = 0
        func next() -> Int { opportunities[index] + round * duration }
        func advance() {
            index += 1
            if index == opportunities.count { (index, round) = (0, round + 1) }
        }
        while next() < begin { advance() }
        while begin < last {
            let stop = min(last, begin + 500)
            var count = 0.0
            while next() < stop {
                count += 1
                advance()
            }
            sum += min(limit * Double(stop - begin) / 1000, count * 8 * Double(opportunityBytes))
            begin = stop
        }
        return sum / (end - start)
    }
}

/// Random numbers that are the same in every run and on every machine.
package struct SimulationRandom: Sendable {
    private var state: UInt64

    /// The numbers of `seed`.
    package init(seed: UInt64) {
        state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 1
    }

    private mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to 1.
    package mutating func uniform() -> Double { Double(next() >> 11) / 9_007_199_254_740_992 }

    /// A number with mean 0 and variance 1, nearly normal: the sum of twelve uniform ones.
    package mutating func normal() -> Double {
        var sum = -6.0
        for _ in 0..<12 { sum += uniform() }
        return sum
    }
}

/// A queue that gives its memory back in large pieces.
struct Fifo<Element> {
    private var elements: [Element] = []
    private var head = 0

    var first: Element? { head < elements.count ? elements[head] : nil }
    var isEmpty: Bool { head == elements.count }

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func removeFirst() {
        head += 1
        if head > 1024, head * 2 > elements.count {
            elements.removeSubrange(..<head)
            head = 0
        }
    }

    mutating func changeFirst(_ change: (inout Element) -> Void) { change(&elements[head]) }
}

extension Fifo: Sendable where Element: Sendable {}
