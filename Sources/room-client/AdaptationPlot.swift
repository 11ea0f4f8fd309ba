import Adaptation
import Charts
import MediaCore

/// Draws a recorded run of an `UplinkController`: what it knew, what it chose, and what became of the pictures.
struct AdaptationPlot {
    /// One encoding.
    private struct Lane {
        var name: String
        /// Rows of the chosen size.
        var heights: [TimeChart.Point] = []
        /// The chosen frame rate.
        var frameRates: [TimeChart.Point] = []
        var encoded = AmountsOverTime(window: 1)
        /// Why the newest picture waits; `nil` if it does not.
        var waiting: Loss?
    }

    /// Why a picture was not encoded.
    fileprivate enum Loss: String, CaseIterable {
        case network
        case frameRate = "frame rate"
        case keyframeInterval = "keyframe interval"
        case allocation
        case cpu = "CPU"
        case encoder
    }

    private let title: String
    private var origin: Int64?
    private var now = 0.0
    private var lanes: [Int: Lane] = [:]
    private var capacity: [TimeChart.Point] = []
    private var rate: [TimeChart.Point] = []
    private var queue: [TimeChart.Point] = []
    private var bits = AmountsOverTime(window: 0.5)
    private var losses: [Loss: AmountsOverTime] = [:]
    private var outages: [TimeChart.Span] = []
    private var outageSince: Double?
    /// How long the rate had each reason, in seconds.
    private var reasons: [RateReason: Double] = [:]
    /// The reason after the last step.
    private var reason = RateReason.start
    private var counts = (frames: 0, encoded: 0, acknowledgements: 0)

    /// The drawing of `log`, whose file is called `title`.
    init(_ log: AdaptationLog, title: String) {
        self.title = title
        var replay = UplinkReplay(log)
        while let step = replay.next() { take(step, replay.controller) }
        if let outageSince { outages.append(TimeChart.Span(outageSince, now)) }
    }

    private mutating func take(_ step: UplinkReplay.Step, _ controller: UplinkController) {
        // Some inputs have no time of their own.
        if step.entry.time > 0 || origin != nil {
            let start = origin ?? step.entry.time
            origin = start
            let before = now
            now = max(now, (Double(step.entry.time) - Double(start)) / 1e6)
            reasons[reason, default: 0] += now - before
        }
        reason = step.rateReason
        switch step.entry.input {
        case .added(let lane):
            let id = controller.status.lanes.last?.id ?? 0
            lanes[id] = Lane(name: "layer \(lane.simulcastLayer) (\(lane.largestDimensions))")
        case .acknowledged:
            counts.acknowledgements += 1
            noteStatus(controller.status)
        case .decide(let id, let isNewFrame, _):
            noteDecision(step.decision, id, isNewFrame, controller.status)
        case .queueFull(let id):
            noteDecision(.wait(until: nil), id, true, controller.status)
        case .encoded(let report, let id):
            guard let report else {
                lose(.encoder)
                return
            }
            counts.encoded += 1
            bits.add(Double(report.bytes) * 8, at: now)
            lanes[id]?.encoded.add(1, at: now)
        case .replaced(let lane, let id):
            lanes[id]?.name = "layer \(lane.simulcastLayer) (\(lane.largestDimensions))"
        case .removed, .wanted, .wrote, .wroteText, .wroteAcknowledgement, .delivered, .queueChanged:
            break
        }
    }

    private mutating func noteStatus(_ status: UplinkStatus) {
        capacity.append(TimeChart.Point(now, Double(status.capacity.bitsPerSecond) / 1000))
        rate.append(TimeChart.Point(now, Double(status.rate.bitsPerSecond) / 1000))
        if let delay = status.queueDelay { queue.append(TimeChart.Point(now, delay.milliseconds)) }
        noteMode(status.mode)
    }

    private mutating func noteMode(_ mode: UplinkStatus.Mode) {
        if mode == .outage {
            outageSince = outageSince ?? now
        } else if let start = outageSince {
            outages.append(TimeChart.Span(start, now))
            outageSince = nil
        }
    }

    private mutating func noteDecision(
        _ decision: FrameDecision?,
        _ id: Int,
        _ isNewFrame: Bool,
        _ status: UplinkStatus
    ) {
        noteMode(status.mode)
        if isNewFrame, decision != .notWanted {
            counts.frames += 1
            // The picture that waited is replaced by this one.
            if let reason = lanes[id]?.waiting { lose(reason) }
            lanes[id]?.waiting = nil
        }
        switch decision {
        case .encode(let target):
            lanes[id]?.waiting = nil
            lanes[id]?.heights.append(TimeChart.Point(now, Double(target.dimensions.height)))
            lanes[id]?.frameRates.append(TimeChart.Point(now, target.frameRate.framesPerSecond))
        case .wait:
            let reason = status.lanes.first { $0.id == id }?.waiting
            if isNewFrame { lanes[id]?.waiting = reason.map(Loss.init) }
        case .notWanted:
            lanes[id]?.waiting = nil
        case nil:
            break
        }
    }

    private mutating func lose(_ reason: Loss) {
        losses[reason, default: AmountsOverTime(window: 1)].add(1, at: now)
    }
}

extension AdaptationPlot {
    /// The parts of the time for which the rate had its most frequent reasons.
    private var reasonShares: String {
        guard now > 0 else { return "" }
        return reasons.sorted { ($0.value, $0.key.rawValue) > ($1.value, $1.key.rawValue) }
            .prefix(4)
            .map { "\($0.key.rawValue) \(Int(($0.value / now * 100).rounded())) %" }
            .joined(separator: ", ")
    }

    /// The chart.
    var chart: TimeChart {
        let lanes = lanes.sorted { $0.key < $1.key }.map(\.value)
        func series(_ points: (Lane) -> [TimeChart.Point]) -> [TimeChart.Series] {
            lanes.map { TimeChart.Series($0.name, .steps, points($0)) }
        }
        let isAlone = lanes.count == 1
        let chosen = isAlone ? lanes.map { TimeChart.Series("chosen", .steps, $0.frameRates) } : []
        let panels = [
            TimeChart.Panel(
                "Rate",
                unit: "kbit/s",
                note: reasonShares,
                series: [
                    TimeChart.Series("capacity estimate", .line, capacity),
                    TimeChart.Series("chosen rate", .line, rate),
                    TimeChart.Series("encoded", .steps, bits.points(factor: 1 / 1000)),
                ],
                spans: outages,
                spanName: "outage"
            ),
            TimeChart.Panel("Queue", unit: "ms", series: [TimeChart.Series("", .line, queue)]).scaledToValues(),
            TimeChart.Panel("Height", unit: "pixels", series: series(\.heights)),
            TimeChart.Panel(
                "Frame rate",
                unit: "1/s",
                series: lanes.map { TimeChart.Series(isAlone ? "encoded" : $0.name, .steps, $0.encoded.points()) }
                    + chosen
            ),
            TimeChart.Panel(
                "Pictures left out",
                unit: "1/s",
                series: Loss.allCases.compactMap { reason in
                    losses[reason].map { TimeChart.Series(reason.rawValue, .steps, $0.points()) }
                }
            ),
        ]
        return TimeChart(
            title: title,
            subtitle:
                "\(counts.frames) pictures, \(counts.encoded) encoded, \(counts.acknowledgements) acknowledgements",
            sections: [TimeChart.Section(panels: panels)]
        )
    }
}

extension AdaptationPlot.Loss {
    fileprivate init(_ reason: WaitReason) {
        self =
            switch reason {
            case .network: .network
            case .frameRate: .frameRate
            case .keyframeInterval: .keyframeInterval
            case .allocation: .allocation
            case .cpu: .cpu
            }
    }
}
