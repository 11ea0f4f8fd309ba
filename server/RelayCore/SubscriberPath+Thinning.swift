extension SubscriberPath {
    /// What may be unacknowledged only because the peer thins its acknowledgements, as it does while nothing is delayed.
    ///
    /// Such a peer may have no timer: it then acknowledges a message with the next one, whenever that comes. All times
    /// are in microseconds.
    struct Thinning: Sendable {
        /// The time from which the peer may be thinning, if no acknowledgement shows more than `quietQueue` until then.
        private var quietFrom = Int64.max
        /// Whether the peer thinned until it spoke last, whatever queue that showed.
        private var hasThinned = false
        /// When the first message was written that must have been acknowledged by now even if the peer thins.
        private var overdueWrite: Int64?
        /// Whether nothing was written for a while before that.
        private var isOverdueAfterPause = false
        /// When a message was last written.
        private(set) var lastWrite: Int64 = 0

        /// Nothing is known of the peer any more.
        mutating func forget() {
            quietFrom = .max
            overdueWrite = nil
            hasThinned = false
        }

        /// Notes a message that was written `silence` after the last acknowledgement.
        mutating func wrote(at time: Int64, silence: Int64, _ settings: Settings) {
            if overdueWrite == nil, silence >= settings.quietInterval {
                overdueWrite = time
                isOverdueAfterPause = time - lastWrite >= settings.writingPause
            }
            lastWrite = time
        }

        mutating func acknowledged() { overdueWrite = nil }

        /// Notes the queue that an acknowledgement showed, and whether it came late for what it acknowledged.
        mutating func note(queue: Int64, wasLate: Bool, at time: Int64, _ settings: Settings) {
            hasThinned = wasLate && isPossible(at: time)
            quietFrom = queue <= settings.quietQueue ? min(quietFrom, time + settings.patience) : .max
        }

        /// Whether nothing has been delayed for so long that the peer may thin.
        func isPossible(at time: Int64) -> Bool { time >= quietFrom }

        /// Whether everything that is unacknowledged may be so because the peer thins.
        ///
        /// Then only what was written long after its last acknowledgement can be missing.
        func explainsAll(at time: Int64) -> Bool { isPossible(at: time) && overdueWrite == nil }

        /// Whether the peer may go on thinning although its last acknowledgement showed a queue: it may have spoken within
        /// a frame, whose own time looks like one to us.
        func mayGoOn(at time: Int64, longestAnswer: Int64) -> Bool {
            hasThinned && overdueWrite.map { time - $0 <= longestAnswer } ?? true
        }

        /// For how long the peer has not acknowledged what it must acknowledge even if it thins; `nil` if it does not
        /// thin, or nothing is overdue.
        func overdueTime(at time: Int64) -> Int64? {
            guard isPossible(at: time), let overdueWrite else { return nil }
            return time - overdueWrite
        }

        /// Whether an acknowledgement that came within `longestAnswer` of a message answers that message, the first one
        /// after a pause, so that the silence before it is none of the path.
        func isAnswerAfterPause(at time: Int64, longestAnswer: Int64) -> Bool {
            guard isOverdueAfterPause, let overdue = overdueTime(at: time) else { return false }
            return overdue <= longestAnswer
        }
    }
}
