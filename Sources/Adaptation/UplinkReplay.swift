/// Makes the decisions of a recorded run again.
package struct UplinkReplay: Sendable {
    /// An input of the log, and what became of it now.
    package struct Step: Hashable, Sendable {
        /// The entry of the log.
        package var entry: AdaptationLog.Entry
        /// The answer that the controller gives now; `nil` if the input is no question.
        package var decision: FrameDecision?
        /// Why a picture waits, or what last changed the size and the frame rate that are encoded; `nil` if nobody
        /// receives the encoding, and without a question.
        package var reason: String?
        /// Why the connection's rate is what it is.
        package var rateReason: RateReason
        /// Whether the controller answered the same when the log was made.
        package var isSame: Bool { decision == entry.decision }
    }

    /// The controller after the last step.
    package private(set) var controller: UplinkController
    private let log: AdaptationLog
    private var position = 0

    /// A replay from the beginning of `log`.
    package init(_ log: AdaptationLog) {
        self.log = log
        controller = UplinkController(log.settings)
    }

    /// Takes the next input in; `nil` after the last.
    package mutating func next() -> Step? {
        guard position < log.entries.count else { return nil }
        let entry = log.entries[position]
        position += 1
        let decision = controller.apply(entry.input, at: entry.time)
        return Step(
            entry: entry,
            decision: decision,
            reason: reason(for: decision, to: entry.input),
            rateReason: controller.rateReason
        )
    }

    private func reason(for decision: FrameDecision?, to input: UplinkInput) -> String? {
        guard case .decide(let lane, _, _) = input else { return nil }
        switch decision {
        case .wait: return controller.waitReason(of: lane).map { "\($0)" }
        case .encode: return controller.status.lanes.first { $0.id == lane }?.reason?.rawValue
        case .notWanted, nil: return nil
        }
    }
}
