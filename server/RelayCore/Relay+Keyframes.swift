import MediaCore
import RoomProtocol

/// When publishers are asked for keyframes: for each encoding apart.
extension Relay {
    /// The first packet of a keyframe came.
    mutating func keyframeBegan(_ encoding: EncodingID, at now: MonotonicInstant) {
        encodings[encoding]?.keyframes.keyframeArrived()
        refreshDeadline(of: encodings.hot[encoding.index].track)
        for subscriber in encodings.hot[encoding.index].waiting { readyToChange(subscriber, to: encoding) }
    }

    /// Handles a subscriber that needs a keyframe of the encoding that it receives.
    ///
    /// One that leaves that for a smaller encoding needs a keyframe of the smaller one, if one comes.
    mutating func requestKeyframe(
        for id: ParticipantID,
        subscription index: Int,
        because need: KeyframeBackoff.Need,
        at now: MonotonicInstant
    ) {
        if let smaller = smallerTarget(of: id, subscription: index),
            encodings[smaller]?.keyframes.isUnanswered(at: now) != true
        {
            let moment = descentMoment(to: smaller, for: id, subscription: index, at: now)
            return wantKeyframe(of: smaller, notBefore: moment, at: now)
        }
        let encoding = participants.hot[id.index].subscriptions[index].encoding
        let moment = keyframeMoment(of: encoding, for: id, subscription: index, because: need, at: now)
        wantKeyframe(of: encoding, notBefore: moment, at: now)
    }

    /// When the publisher may be asked for the keyframe that a subscriber needs.
    ///
    /// What a subscriber needs of a paused publisher costs nobody anything, and does not count.
    mutating func keyframeMoment(
        of encoding: EncodingID,
        for id: ParticipantID,
        subscription index: Int,
        because need: KeyframeBackoff.Need,
        at now: MonotonicInstant
    ) -> MonotonicInstant {
        let (moment, backoff) = nextKeyframeMoment(of: encoding, for: id, subscription: index, because: need, at: now)
        participants.hot[id.index].subscriptions[index].backoff = backoff
        return moment
    }

    /// What `keyframeMoment` would give, and the backoff after it, for a subscriber that may need the keyframe.
    func nextKeyframeMoment(
        of encoding: EncodingID,
        for id: ParticipantID,
        subscription index: Int,
        because need: KeyframeBackoff.Need,
        at now: MonotonicInstant
    ) -> (moment: MonotonicInstant, backoff: KeyframeBackoff) {
        var backoff = participants.hot[id.index].subscriptions[index].backoff
        guard tracks[encodings.hot[encoding.index].track]?.info.enabled == true else { return (now, backoff) }
        let othersPay = encodings.hot[encoding.index].hasUsers(besides: id)
        return (backoff.needed(because: need, othersPay: othersPay, at: now), backoff)
    }

    /// Lets the only subscriber that is left of an encoding have the keyframe at once that it waits for.
    mutating func hurryKeyframe(of encoding: EncodingID, at now: MonotonicInstant) {
        guard encodings[encoding]?.keyframes.nextDeadline != nil,
            let last = encodings.hot[encoding.index].onlyUser,
            let index = participants.hot[last.index].index(of: encodings.hot[encoding.index].track)
        else { return }
        let subscription = participants.hot[last.index].subscriptions[index]
        let isWaiting =
            subscription.target == encoding
            || subscription.cursor.isWaitingForKeyframe(in: encodings.hot[encoding.index].stream)
        if isWaiting { wantKeyframe(of: encoding, notBefore: now, at: now) }
    }

    /// Asks a track's publisher for a keyframe of an encoding as soon as that is allowed.
    ///
    /// A paused publisher is not asked: it resumes with a keyframe.
    mutating func wantKeyframe(
        of encoding: EncodingID,
        notBefore moment: MonotonicInstant,
        byRecorder isByRecorder: Bool = false,
        at now: MonotonicInstant
    ) {
        let track = encodings.hot[encoding.index].track
        guard tracks[track]?.info.enabled == true else { return }
        if isByRecorder { encodings[encoding]?.keyframes.isWantedByRecorder = true }
        if encodings[encoding]?.keyframes.wanted(notBefore: moment, at: now) == true { askForKeyframe(of: encoding) }
        refreshDeadline(of: track)
    }

    /// Expects a keyframe from a publisher that must begin with one; if none comes, the publisher is asked.
    mutating func expectKeyframe(of encoding: EncodingID, at now: MonotonicInstant) {
        let track = encodings.hot[encoding.index].track
        guard tracks[track]?.info.enabled == true, encodings.hot[encoding.index].hasUsers else { return }
        encodings[encoding]?.keyframes.keyframeExpected(at: now)
        refreshDeadline(of: track)
    }

    /// Asks a track's publisher for a keyframe of an encoding, which it names if there are several.
    mutating func askForKeyframe(of encoding: EncodingID) {
        let track = encodings.hot[encoding.index].track
        guard let info = tracks[track]?.info else { return }
        let layer = tracks.hot[track.index].encodings.count > 1 ? encodings.hot[encoding.index].simulcastLayer : nil
        let message = ServerMessage.keyframeRequest(KeyframeRequest(trackId: info.id, simulcastLayer: layer))
        send(message, toParticipant: tracks.hot[track.index].publisher)
    }
}
