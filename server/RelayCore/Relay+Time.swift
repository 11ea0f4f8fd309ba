package import MediaCore
import RoomProtocol

extension Relay {
    /// When `deadlineReached` must be called; the driver also learns it from the effect `callBack`.
    package var nextDeadline: MonotonicInstant? {
        Self.earliest(connectionDeadlines.next, participantDeadlines.next, trackDeadlines.next)
    }

    /// The earliest of three deadlines; an array of them would be allocated each time.
    static func earliest(
        _ first: MonotonicInstant?,
        _ second: MonotonicInstant?,
        _ third: MonotonicInstant?
    ) -> MonotonicInstant? {
        var earliest = first
        if let second { earliest = min(earliest ?? second, second) }
        if let third { earliest = min(earliest ?? third, third) }
        return earliest
    }

    /// How many subscribers are compared before the connections have their turn again: for about a millisecond.
    private static var longestReview: Int { 4096 }
    /// How long the rest waits, so that the connections have their turn.
    private static var reviewPause: Duration { .milliseconds(1) }

    /// Does what is due, or a part of it, and the rest a moment later; call it at `nextDeadline`.
    package mutating func deadlineReached(at now: MonotonicInstant) {
        while let id = connectionDeadlines.popDue(at: now) {
            switch connections[id]?.phase {
            case .awaitingJoin: fail(id, ErrorMessage(.timedOut, "no \"join\" came in time", fatal: true), at: now)
            case .joined: release(id)
            case .closing, nil:
                connections[id]?.isCutSaid = true
                overdue.append(id)
            }
        }
        // Each is handled once, so that a deadline which is set again at once cannot hold up the loop.
        var due: [SlotID] = []
        while let id = participantDeadlines.popDue(at: now) { due.append(id) }
        for id in due where participants.contains(id) { reviewNetwork(of: id, at: now) }
        due.removeAll()
        while let id = trackDeadlines.popDue(at: now) { due.append(id) }
        let steps = countedWork.boundsSteps
        for id in due where tracks.contains(id) {
            if countedWork.boundsSteps - steps < Self.longestReview {
                trackDeadlineReached(id, at: now)
            } else {
                trackDeadlines.set(now + Self.reviewPause, for: id)
            }
        }
        dropSlowConnections(at: now)
    }

    private mutating func trackDeadlineReached(_ id: TrackID, at now: MonotonicInstant) {
        for encoding in tracks.hot[id.index].encodings {
            if let deadline = encodings.hot[encoding.index].idleDeadline, deadline <= now {
                becomeIdle(encoding, at: now)
            }
            if encodings[encoding]?.keyframes.deadlineReached(at: now) == true { askForKeyframe(of: encoding) }
        }
        if let due = tracks[id]?.wanted.due, due <= now { reviewWanted(id, at: now) }
        refreshDeadline(of: id)
    }

    /// Updates the deadline queue so that `deadlineReached` is called when a track needs it, and only then.
    mutating func refreshDeadline(of track: TrackID) {
        var earliest = tracks[track]?.wanted.due
        for encoding in tracks.hot[track.index].encodings {
            if let idle = encodings.hot[encoding.index].idleDeadline { earliest = min(earliest ?? idle, idle) }
            let keyframe = encodings[encoding]?.keyframes.nextDeadline
            if let keyframe { earliest = min(earliest ?? keyframe, keyframe) }
        }
        trackDeadlines.set(earliest, for: track)
    }
}
