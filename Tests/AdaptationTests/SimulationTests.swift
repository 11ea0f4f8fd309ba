import AdaptationSimulation
import MediaCore
import Testing

@testable import Adaptation

@Suite struct SimulationTests {
    // `swift run -c release adaptation-bench golden` prints them; a change of the law changes them.
    @Test(
        "Generated links give exactly these results: frames, bytes, sum of delays, keyframes, last rate",
        arguments: [
            ("step", [1675, 11736818, 163040, 3, 2442301]),
            ("ramp", [1096, 7877880, 75137, 4, 2511520]),
            ("onOff", [887, 8510357, 74671, 1, 2511520]),
            ("outage", [1194, 9060431, 83060, 1, 1964068]),
            ("markov1", [906, 3341204, 114033, 7, 663161]),
            ("markov2", [910, 4360342, 127313, 6, 500850]),
            ("stalls", [1184, 8944747, 80835, 1, 1931919]),
            ("thin", [533, 896040, 95370, 3, 183990]),
            ("wide", [600, 5911404, 3688, 1, 2511520]),
        ] as [(String, [Int])]
    )
    func golden(name: String, expected: [Int]) throws {
        let item = try #require(SimulationCase.named(name))
        #expect(item.result == expected)
    }

    @Test(
        "No frame is older than the link's own silences explain, whatever the link does",
        arguments: UInt64(100)..<120
    )
    func boundedAge(seed: UInt64) {
        let bursts = [5.0, 20, 50, 100]
        let trace = LinkTrace.markov(seed: seed, seconds: 60, burst: bursts[Int(seed % 4)])
        let flow = LinkSimulation.run(trace, seconds: 60, flows: [SimulatedFlow.Configuration()])[0]
        let figures = SimulationFigures(flow, from: 5, to: 60)
        #expect(figures.frames > 100)
        // Half of the frames come within 0.3 s, on links that pause for up to 2.5 s and go down to 150 kbit/s.
        #expect(figures.p50 < 300)
        #expect(figures.largest < 6000)
    }

    // The rate went down to 60 kbit/s and no further: after 400 s on a link of 20, frames were 44 s old.
    @Test("Frames become no older with time, on whatever link", arguments: [0.02, 0.03, 0.04, 0.06])
    func thinnest(megabits: Double) {
        var flow = SimulatedFlow.Configuration()
        flow.delay = 50
        let result = LinkSimulation.run(.constant(megabits, seconds: 240), seconds: 240, flows: [flow])[0]
        let figures = SimulationFigures(result, from: 180, to: 240)
        #expect(figures.frames > 30)
        // What the link takes for 3,000 bytes, which may always be on their way, and for a frame.
        #expect(figures.p95 < Int(60 / megabits) + 500, "\(figures)")
    }

    @Test(
        "A steady link is used to 85 percent and more, and its queue stays short",
        arguments: [0.5, 1, 2, 3],
        [10, 50, 100]
    )
    func steady(megabits: Double, delay: Int) {
        var flow = SimulatedFlow.Configuration()
        flow.delay = delay
        flow.lane.highestBitrate = .kilobitsPerSecond(4000)
        let trace = LinkTrace.constant(megabits, seconds: 40)
        let result = LinkSimulation.run(trace, seconds: 40, flows: [flow])[0]
        let figures = SimulationFigures(result, from: 10, to: 40)
        #expect(figures.rate > 0.85 * megabits * 1e6)
        // On a thin link, one frame takes long by itself.
        #expect(figures.p95 < delay + 130, "\(figures.p95)")
        #expect(figures.freezes <= 4)
    }

    // The rate grew for a round trip behind each queue, and the gate stayed closed until half of a long path was empty:
    // on 1 Mbit/s and 600 ms, two freezes each 5 s.
    @Test("So is one with a long way, without freezes", arguments: [0.5, 1, 2, 3], [150, 200, 300])
    func far(megabits: Double, delay: Int) {
        var flow = SimulatedFlow.Configuration()
        flow.delay = delay
        let trace = LinkTrace.constant(megabits, seconds: 60)
        let result = LinkSimulation.run(trace, seconds: 60, flows: [flow])[0]
        let figures = SimulationFigures(result, from: 10, to: 60)
        #expect(figures.rate > 0.8 * min(megabits, 2.4) * 1e6)
        #expect(figures.p95 < delay + 220, "\(figures.p95)")
        #expect(figures.frozen < 500, "\(figures)")
    }

    @Test("Equal flows get equal shares", arguments: [2, 3])
    func fairness(count: Int) {
        var flow = SimulatedFlow.Configuration()
        flow.delay = 50
        flow.floor = 0
        flow.ceiling = 4
        flow.lane.largestDimensions = Dimensions(width: 320, height: 240)
        flow.lane.highestBitrate = .kilobitsPerSecond(4000)
        var flows: [SimulatedFlow.Configuration] = []
        for index in 0..<count {
            flow.start = Double(index) * 15
            flow.seed = UInt64(index)
            flows.append(flow)
        }
        let results = LinkSimulation.run(.constant(3.5, seconds: 120), seconds: 120, flows: flows)
        let rates = results.map { SimulationFigures($0, from: 60, to: 120).rate }
        #expect(SimulationFigures.jain(rates) >= 0.95)
        #expect(rates.reduce(0, +) > 0.85 * 3.5e6)
    }

    @Test("Full rate within 2 s of joining where the link carries it", arguments: [(1000.0, 0), (50, 5), (50, 50)])
    func start(megabits: Double, delay: Int) throws {
        var flow = SimulatedFlow.Configuration()
        flow.delay = delay
        let result = LinkSimulation.run(.constant(megabits, seconds: 5), seconds: 5, flows: [flow])[0]
        let full = try #require(result.states.first { $0.rate >= 2_450_000 })
        #expect(full.time <= 2000)
    }

    @Test("The way back after a breakdown costs one keyframe, whatever the rates, the delay and the content")
    func wayBack() {
        let rises = (UInt64(0)..<40).map { RandomStep(seed: $0).run() }
        #expect(rises.count { $0.sizeChanges <= 1 } >= 34, "\(rises.map(\.sizeChanges))")
        #expect(rises.allSatisfy { $0.sizeChanges <= 2 && $0.changesInMinute <= 6 && $0.frozen < 300 })
        #expect(rises.count { $0.secondsToFull ?? .infinity <= 12 } >= 38, "\(rises.map(\.secondsToFull))")
    }

    // The keyframe of the smaller size was made for the rate half-way down, and took half a second.
    @Test("A fall to a fifth freezes the picture for less than 0.3 s")
    func fall() {
        var flow = SimulatedFlow.Configuration()
        flow.delay = 50
        let trace = LinkTrace([.init(2.5, seconds: 30), .init(0.5, seconds: 30)])
        let result = LinkSimulation.run(trace, seconds: 60, flows: [flow])[0]
        let figures = SimulationFigures(result, from: 5, to: 60)
        #expect(figures.frozen < 300 && figures.sizeChanges <= 1, "\(figures)")
    }

    @Test(
        "Beside a download a flow keeps a part of what it had, and takes it back when that ends",
        arguments: [2.0, 3.5, 6]
    )
    func download(megabits: Double) throws {
        var flow = SimulatedFlow.Configuration()
        flow.delay = 50
        flow.floor = 0
        flow.ceiling = 4
        flow.lane.largestDimensions = Dimensions(width: 320, height: 240)
        let bulk = SimulatedBulk(from: 15, to: 75)
        let trace = LinkTrace.constant(megabits, seconds: 90)
        let result = LinkSimulation.run(trace, seconds: 90, flows: [flow], bulk: bulk)[0]
        let beside = SimulationFigures(result, from: 25, to: 75)
        // Before the download it has up to 2.5 Mbit/s.
        #expect(beside.rate >= 0.35 * min(2.5, megabits) * 1e6)
        #expect(beside.p95 < 450)
        let back = try #require(
            result.states.first { $0.time > 75_000 && Double($0.rate) > 0.8 * min(2.5, megabits) * 1e6 }
        )
        #expect(back.time < 81_000)
        let after = SimulationFigures(result, from: 82, to: 90)
        #expect(after.p95 < 200, "\(after)")
    }

    @Test(
        "A path that becomes longer is no download: its full rate is back",
        arguments: [120, 200]
    )
    func longerPath(by milliseconds: Int64) {
        var detector = CompetingFlows(CompetingFlows.Settings())
        var ended: Int64?
        for step in 0..<1000 {
            let now = Int64(step) * 33_333
            // The delay rises after 5 s and stays; the law cuts its rate, and the delivery follows.
            let isLonger = now > 5_000_000
            let rate = isLonger ? max(100_000, 1e6 - Double(now - 5_000_000) * 0.4) : 1e6
            let queue = isLonger ? Double(milliseconds) * 1000 : 0
            let least = now > 15_000_000 ? queue : 0
            let change = detector.update(queue: queue, least: least, low: 30_000, delivered: rate, at: now)
            if change == .ended { ended = now }
        }
        #expect(ended.map { $0 < 25_000_000 } == true)
        #expect(detector.begun == nil)
    }

    @Test("A queue that grows with our rate is ours: the rate falls again, and nothing is tried for half a minute")
    func refuted() {
        var detector = CompetingFlows(CompetingFlows.Settings())
        var changes: [CompetingFlows.Change] = []
        var queue = 0.0
        for step in 0..<600 {
            let now = Int64(step) * 33_333
            let rate = now < 5_000_000 ? 1e6 : max(100_000, 1e6 - Double(now - 5_000_000) * 0.4)
            queue = now < 5_000_000 ? 0 : detector.begun == nil ? 120_000 : queue + 20_000
            let change = detector.update(queue: queue, least: 0, low: 30_000, delivered: rate, at: now)
            if change != .none { changes.append(change) }
        }
        #expect(changes == [.began, .refuted])
    }

    @Test("A thin link is not overrun at the start", arguments: [0.3, 0.5, 1, 2])
    func thinStart(megabits: Double) {
        let flow = LinkSimulation.run(.constant(megabits, seconds: 20), seconds: 20, flows: [.init()])[0]
        let first = flow.arrivals.first?.arrived ?? 0
        // At 0.3 Mbit/s the second frame waits behind the first keyframe, for 506 ms.
        let late = flow.arrivals.filter { $0.captured > first && $0.arrived - $0.captured > 510 }
        #expect(late.isEmpty, "\(late.map { $0.arrived - $0.captured })")
    }

    // A message takes longer than a silence may: the rate while the link delivers seemed half as large again, and its
    // frames waited for 0.4 s on average and 0.9 s at worst.
    @Test(
        "A thin link is believed to carry what it does",
        arguments: [0.08, 0.1, 0.15, 0.2, 0.25],
        [20, 50, 100]
    )
    func thinBelief(megabits: Double, delay: Int) {
        var flow = SimulatedFlow.Configuration()
        flow.delay = delay
        flow.lostPart = 0.01
        let trace = LinkTrace([.init(megabits, seconds: 60)], bytes: 50)
        let result = LinkSimulation.run(trace, seconds: 60, flows: [flow])[0]
        let states = result.states.filter { $0.time >= 10_000 }
        let rate = Double(states.reduce(0) { $0 + $1.rate }) / Double(states.count)
        #expect(rate < 1.2 * megabits * 1e6, "\(rate)")
        let figures = SimulationFigures(result, from: 10, to: 60)
        // What is lost comes again a round trip later.
        let oldest = 100 + Double(3 * delay) + 45 / megabits
        #expect(figures.rate > 0.85 * megabits * 1e6 && Double(figures.p95) < oldest, "\(figures)")
    }

    @Test("After an outage the newest frame is there within half a second", arguments: [1.0, 2, 3, 5])
    func outage(length: Double) throws {
        var flow = SimulatedFlow.Configuration()
        flow.delay = 50
        let trace = LinkTrace([.init(2.5, seconds: 20), .init(0, seconds: length), .init(2.5, seconds: 20)])
        let result = LinkSimulation.run(trace, seconds: 30, flows: [flow])[0]
        let end = Int((20 + length) * 1000)
        let fresh = try #require(result.arrivals.first { $0.arrived >= end && $0.arrived - $0.captured < 200 })
        #expect(fresh.arrived <= end + 500)
    }

    // The age of the oldest byte counted, as if only the way of the media could be slow: every third frame was left
    // out.
    @Test(
        "Acknowledgements that come late or together cost no frames while the link carries the media well",
        arguments: [.step(250, from: 10), .sawtooth(300), .bursts(200)] as [SimulatedFlow.Lateness]
    )
    func lateAcknowledgements(lateness: SimulatedFlow.Lateness) {
        var flow = SimulatedFlow.Configuration()
        flow.lateness = lateness
        let result = LinkSimulation.run(.constant(50, seconds: 40), seconds: 40, flows: [flow])[0]
        let figures = SimulationFigures(result, from: 5, to: 40)
        #expect(figures.frameRate > 29.5 && figures.rate > 2.3e6, "\(figures)")
        // One gap is left: nobody knows why the first late acknowledgement does not come.
        #expect(figures.freezes <= 1 && figures.sizeChanges <= 1, "\(figures)")
    }

    @Test("Late acknowledgements do not hide the queue of a link that breaks down to a fifth")
    func lateAcknowledgementsOfQueue() {
        var flow = SimulatedFlow.Configuration()
        flow.delay = 50
        flow.lateness = .step(250, from: 10)
        let trace = LinkTrace([.init(2.5, seconds: 20), .init(0.5, seconds: 40)])
        let result = LinkSimulation.run(trace, seconds: 60, flows: [flow])[0]
        #expect(SimulationFigures(result, from: 25, to: 60).p95 < 400)
        #expect(SimulationFigures(result, from: 15, to: 60).largest < 2500)
    }

    @Test("A trace that is none is refused")
    func noTrace() {
        for text in ["", "\n", "a\n", "5\n3\n", "1 2\n", "-1\n", "99999999999\n", "0\n"] {
            #expect(throws: LinkTrace.Malformed.self) { try LinkTrace(text: text) }
        }
    }
}
