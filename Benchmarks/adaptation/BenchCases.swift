import Adaptation
import AdaptationSimulation
import MediaCore

extension BenchCase {
    private typealias Stretch = LinkTrace.Stretch

    static let all: [BenchCase] = schedules + cellular + several + lateAcknowledgements

    private static let step = [
        Stretch(2.5, seconds: 30), Stretch(0.5, seconds: 30), Stretch(2.5, seconds: 40),
    ]

    private static var schedules: [BenchCase] {
        var cases = [
            BenchCase(
                name: "step",
                trace: LinkTrace(step),
                seconds: 100,
                flows: [flow(delay: 50)],
                recovery: (60, 1.9e6)
            ),
            BenchCase(
                name: "step-busy",
                trace: LinkTrace(step),
                seconds: 100,
                flows: [flow(delay: 50, floor: 0.065)],
                recovery: (60, 1.9e6)
            ),
            BenchCase(
                name: "rfc5.1",
                trace: LinkTrace([
                    Stretch(1, seconds: 40), Stretch(2.5, seconds: 20), Stretch(0.6, seconds: 20),
                    Stretch(1, seconds: 20),
                ]),
                seconds: 100,
                flows: [flow(1.5, delay: 50)]
            ),
            BenchCase(
                name: "tenth",
                trace: LinkTrace([Stretch(2.5, seconds: 30), Stretch(0.25, seconds: 10), Stretch(2.5, seconds: 60)]),
                seconds: 100,
                flows: [flow(delay: 50)],
                recovery: (40, 1.9e6)
            ),
            BenchCase(
                name: "outage3",
                trace: LinkTrace([Stretch(2.5, seconds: 30), Stretch(0, seconds: 3), Stretch(2.5, seconds: 60)]),
                seconds: 93,
                flows: [flow(delay: 50)],
                recovery: (33, 1.9e6)
            ),
            BenchCase(
                name: "ramp",
                trace: .ramp(from: 0.5, to: 3, seconds: 60),
                seconds: 60,
                flows: [flow(4)]
            ),
            BenchCase(name: "onoff", trace: .onOff(3, seconds: 100, seed: 9), seconds: 100, flows: [flow(4)]),
            BenchCase(
                name: "stalls",
                trace: LinkTrace.constant(2, seconds: 100).withStalls(each: 2, of: 80, seed: 3),
                seconds: 100,
                flows: [flow(4, delay: 25)]
            ),
        ]
        let fixed = [
            (0.1, 50), (0.2, 50), (0.3, 20), (0.5, 50), (1, 60), (2, 20), (2, 100), (8, 10), (0.5, 250), (1, 150),
            (2, 300),
        ]
        for (rate, delay) in fixed {
            cases.append(
                BenchCase(
                    name: "fixed\(rate)-\(delay)",
                    trace: .constant(rate, seconds: 60),
                    seconds: 60,
                    flows: [flow(4, delay: delay)],
                    warmUp: 0
                )
            )
        }
        for (name, rate, delay) in [("lan", 1000.0, 0), ("fifty", 50, 5), ("fifty-far", 50, 50)] {
            cases.append(
                BenchCase(
                    name: name,
                    trace: .constant(rate, seconds: 20),
                    seconds: 20,
                    flows: [flow(2.5, delay: delay)],
                    warmUp: 0,
                    recovery: (0, 2.45e6)
                )
            )
        }
        return cases
    }

    private static var cellular: [BenchCase] {
        let bursts = [5.0, 20, 50, 100]
        let delays = [10, 20, 50]
        return (1...12).map { seed in
            BenchCase(
                name: "markov\(seed)",
                trace: .markov(seed: UInt64(seed), burst: bursts[seed % 4], outage: seed % 3 == 0 ? 0 : 0.06),
                seconds: 100,
                flows: [flow(4, delay: delays[seed % 3])]
            )
        }
    }

    private static var several: [BenchCase] {
        var cases: [BenchCase] = []
        for count in [2, 3] {
            cases.append(
                BenchCase(
                    name: "flows\(count)",
                    trace: .constant(3.5, seconds: 120),
                    seconds: 120,
                    flows: (0..<count).map { flow(4, delay: 50, start: Double($0) * 15, size: (320, 240), floor: 0) },
                    warmUp: 20
                )
            )
        }
        // A download that comes later, and one that fills the queue already (RFC 8867, 5.6).
        for (name, rate, joins, begins) in [("bulk", 3.5, 0.0, 10.0), ("bulk-2", 2, 0, 10), ("rfc5.6", 2, 5, 0)] {
            cases.append(
                BenchCase(
                    name: name,
                    trace: .constant(rate, seconds: 120),
                    seconds: 120,
                    flows: [flow(2.5, delay: 50, start: joins, size: (320, 240), floor: 0)],
                    bulk: SimulatedBulk(from: begins, to: 100),
                    warmUp: 25
                )
            )
        }
        cases.append(
            BenchCase(
                name: "rfc5.2",
                trace: LinkTrace([
                    Stretch(4, seconds: 25), Stretch(2, seconds: 25), Stretch(3.5, seconds: 25),
                    Stretch(1, seconds: 25), Stretch(2, seconds: 25),
                ]),
                seconds: 125,
                flows: [flow(1.5, delay: 50), flow(1.5, delay: 50)],
                warmUp: 15
            )
        )
        cases.append(
            BenchCase(
                name: "rfc5.5",
                trace: .constant(4, seconds: 300),
                seconds: 300,
                flows: [10, 25, 50, 100, 150].enumerated().map { flow(4, delay: $1, start: Double($0) * 10) },
                warmUp: 20
            )
        )
        var paused = (0..<3).map { flow(4, delay: 50, start: Double($0) * 2) }
        paused[1].wishes = [.init(from: 40, nil), .init(from: 60, LayerBounds(temporalLayers: 1))]
        cases.append(
            BenchCase(name: "rfc5.8", trace: .constant(3.5, seconds: 120), seconds: 120, flows: paused, warmUp: 66)
        )
        return cases
    }

    /// Links that carry the media well and the acknowledgements badly.
    private static var lateAcknowledgements: [BenchCase] {
        let kinds: [(String, SimulatedFlow.Lateness)] = [
            ("acks+250", .step(250, from: 10)), ("acks-saw300", .sawtooth(300)), ("acks-burst60", .bursts(60)),
            ("acks-burst200", .bursts(200)),
        ]
        var cases = kinds.map { name, lateness in
            var flow = flow()
            flow.lateness = lateness
            return BenchCase(name: name, trace: .constant(50, seconds: 60), seconds: 60, flows: [flow])
        }
        for (name, lateness) in kinds {
            var flow = flow(delay: 50)
            flow.lateness = lateness
            cases.append(BenchCase(name: "step-\(name)", trace: LinkTrace(step), seconds: 100, flows: [flow]))
        }
        return cases
    }
}
