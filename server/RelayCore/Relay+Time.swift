package import MediaCore
import RoomProtocol

extension Relay {
    /// When `deadlineReached` must be called.
    package var nextDeadline: MonotonicInstant? {
        guard let connection = connectionDeadlines.next else { return trackDeadlines.next }
        return min(connection, trackDeadlines.next ?? connection)
    }

    /// Does what is due; call it at `nextDeadline`.
    package mutating func deadlineReached(at now: MonotonicInstant) {
        while let id = connectionDeadlines.popDue(at: now) {
            if case .awaitingJoin = connections[id]?.phase {
                fail(id, ErrorMessage(.timedOut, "no \"join\" came in time", fatal: true), at: now)
            } else {
                connections[id]?.isCutSaid = true
                overdue.append(id)
            }
        }
        // Each track is handled once, so that a deadline which is set again at once cannot hold up the loop.
        var due: [TrackID] = []
        while let id = trackDeadlines.popDue(at: now) { due.append(id) }
        for id in due where tracks.contains(id) {
            if let deadline = tracks.hot[id.index].idleDeadline, deadline <= now { becomeIdle(id, at: now) }
            if let due = tracks[id]?.wanted.due, due <= now { reviewWanted(id, at: now) }
            if tracks[id]?.keyframes.deadlineReached(at: now) == true { askForKeyframe(of: id) }
            refreshDeadline(of: id)
        }
        dropSlowConnections(at: now)
    }

    /// Updates the deadline queue so that `deadlineReached` is called when a track needs it, and only then.
    mutating func refreshDeadline(of track: TrackID) {
        let idle = tracks.hot[track.index].idleDeadline
        let keyframe = tracks[track]?.keyframes.nextDeadline
        var earliest = tracks[track]?.wanted.due
        if let idle { earliest = min(earliest ?? idle, idle) }
        if let keyframe { earliest = min(earliest ?? keyframe, keyframe) }
        trackDeadlines.set(earliest, for: track)
    }
}
