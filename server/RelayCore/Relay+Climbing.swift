import MediaCore
import RoomProtocol

/// How subscribers get larger encodings: only if their paths have shown that they carry them (`docs/protocol.md`,
/// 10.1).
extension Relay {
    /// How often a subscriber whose path is tested is looked at.
    private static var probingInterval: Duration { .milliseconds(100) }

    /// What waits for a subscriber for more seconds than this is of no use to it.
    private static var longestBacklog: Double { 1 }

    /// A larger encoding comes at this many times the rate of the smaller one at least.
    private static var leastGain: Double { 1.25 }

    /// Lets a subscriber's choice follow what the plan says, and tests its path where a larger encoding may be
    /// possible.
    ///
    /// The plan saw the subscriber as `viewer` and gives it the encoding `planned`, with the encodings coming at
    /// `rates`.
    mutating func choose(
        for id: ParticipantID,
        subscription index: Int,
        _ viewer: LayerPlan.Viewer,
        planned: Int,
        rates: [Double],
        at now: MonotonicInstant
    ) {
        let (best, evidence) = evidence(for: id, subscription: index, viewer, planned: planned, at: now)
        participants.hot[id.index].subscriptions[index].choice.update(
            best: best,
            isUrgent: viewer.isLagging || isSwamped(id, subscription: index),
            evidence: evidence,
            at: now
        )
        followTest(of: id, subscription: index, evidence, rates: rates, at: now)
    }

    /// Whether what waits for a subscriber takes its path so long that it must be left out.
    private func isSwamped(_ id: ParticipantID, subscription index: Int) -> Bool {
        guard let share = participants.hot[id.index].subscriptions[index].share else { return false }
        return Double(backlog(of: id, subscription: index)) * 8 > share * Self.longestBacklog
    }

    /// A subscriber as the plan takes it: one that must give evidence first gets no larger encoding than it has.
    func bounded(_ viewer: LayerPlan.Viewer, _ id: ParticipantID, of track: TrackID) -> LayerPlan.Viewer {
        guard needsEvidence(viewer, id, of: track) else { return viewer }
        var result = viewer
        result.largest = min(viewer.largest, viewer.current)
        return result
    }

    /// Whether a subscriber's path must show that it carries a larger encoding.
    ///
    /// It need not if nobody else gets a larger one, which would then be made for its path. Nor if it wishes for it,
    /// and its path shows no limit.
    private func needsEvidence(_ viewer: LayerPlan.Viewer, _ id: ParticipantID, of track: TrackID) -> Bool {
        guard let connection = participants.hot[id.index].connection,
            connections.bulk[connection.index].path.isAcknowledged,
            let index = participants.hot[id.index].index(of: track)
        else { return false }
        if viewer.share == nil, participants.hot[id.index].subscriptions[index].choice.isHurried { return false }
        return tracks.hot[track.index].encodings.dropFirst(viewer.current + 1).contains {
            encodings.hot[$0.index].hasUsers
        }
    }

    /// The best encoding, and what is known of whether the path carries the next larger one.
    private mutating func evidence(
        for id: ParticipantID,
        subscription index: Int,
        _ viewer: LayerPlan.Viewer,
        planned: Int,
        at now: MonotonicInstant
    ) -> (best: Int, LayerChoice.Evidence) {
        let track = participants.hot[id.index].subscriptions[index].track
        guard let connection = participants.hot[id.index].connection, needsEvidence(viewer, id, of: track) else {
            return (planned, .notNeeded)
        }
        let next = viewer.current + 1
        guard planned >= viewer.current, viewer.current < viewer.largest, !viewer.isLagging,
            !isMissing(tracks.hot[track.index].encodings[next], at: now)
        else { return (planned, .missing) }
        if connections.bulk[connection.index].probingTrack == track {
            switch connections.bulk[connection.index].path.probeFinding(at: now) {
            case .carries: return (next, .shown)
            case .carriesNot: return (next, .refuted)
            case .nothing: return (next, .missing)
            // Only an attempt can tell, and that must wait while the path's limit is known.
            case .tooFewFrames: return viewer.share == nil ? (next, .notNeeded) : (viewer.current, .missing)
            }
        }
        // The present encoding must find room before the path is tested for a larger one.
        return (connections.bulk[connection.index].path.hasRoom(at: now) ? next : viewer.current, .missing)
    }

    /// Begins or ends the test of a subscriber's path, as its choice needs it.
    private mutating func followTest(
        of id: ParticipantID,
        subscription index: Int,
        _ evidence: LayerChoice.Evidence,
        rates: [Double],
        at now: MonotonicInstant
    ) {
        guard let connection = participants.hot[id.index].connection else { return }
        let track = participants.hot[id.index].subscriptions[index].track
        let isWanted = participants.hot[id.index].subscriptions[index].choice.isTestWanted
        let isTested = connections.bulk[connection.index].probingTrack == track
        if isTested, !isWanted {
            if evidence == .shown { connections.bulk[connection.index].path.believeProbe(at: now) }
            connections.bulk[connection.index].path.endProbe()
            connections.bulk[connection.index].probingTrack = nil
            if evidence == .shown { divideKnownRate(of: id, at: now) }
            // Frames may have waited for one another.
            wakeForMedia(id)
        }
        guard isWanted else { return }
        if !isTested {
            // One test at a time: the frames of all tracks leave together.
            let isBusy = connections.bulk[connection.index].probingTrack != nil
            let isOver = !connections.bulk[connection.index].path.probe.isRunning
            let next = participants.hot[id.index].subscriptions[index].choice.layer + 1
            guard !isBusy || isOver, next < rates.count else { return lookAgain(at: track, now) }
            connections.bulk[connection.index].probingTrack = track
            // An encoding that nobody gets is made for its path, but must be worth the change.
            let need = max(rates[next], Self.leastGain * rates[next - 1])
            connections.bulk[connection.index].path.beginProbe(need: need, at: now)
        } else if let end = connections.bulk[connection.index].path.probe.holdEnd {
            guard now.microseconds < end else {
                wakeForMedia(id)
                return lookAgain(at: track, now)
            }
            // No frame waits for the next look.
            tracks[track]?.wanted.lookAgain(at: MonotonicInstant(microseconds: end))
        }
        lookAgain(at: track, now)
    }

    /// Ends the test of a subscriber's path if it is for `track`, which the subscriber receives no more.
    ///
    /// The frames of its other tracks would wait for one another up to the test's end.
    mutating func abandonTest(of id: ParticipantID, for track: TrackID) {
        guard let connection = participants.hot[id.index].connection,
            connections.bulk[connection.index].probingTrack == track
        else { return }
        connections.bulk[connection.index].path.endProbe()
        connections.bulk[connection.index].probingTrack = nil
        wakeForMedia(id)
    }

    private mutating func lookAgain(at track: TrackID, _ now: MonotonicInstant) {
        tracks[track]?.wanted.lookAgain(at: now + Self.probingInterval)
    }
}
