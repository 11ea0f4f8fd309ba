import MediaCore
import Threading

/// Holds the newest picture for an encoding, until the encoder takes it.
///
/// Depth 1; the newest picture wins. The encoder looks at the picture when it comes, and leaves it in the slot while it
/// may not be encoded yet. It looks again after each nudge and at the time that it chose. The thread that puts never
/// waits.
final class FrameSlot: Sendable {
    /// A picture, and its number in the track's `PictureTally`.
    struct Picture: Sendable {
        var frame: VideoFrame
        var ticket: UInt64
    }

    /// A picture that is not encoded.
    struct Loss: Hashable, Sendable {
        var ticket: UInt64
        var reason: FrameDropReason
    }

    /// A look at the picture in the slot.
    struct Look: Hashable, Sendable {
        /// Whether the picture has not been looked at before.
        var isNewFrame: Bool
    }

    private struct State: Sendable {
        var picture: Picture?
        /// Whether the picture has not been looked at.
        var isNew = false
        /// Whether something has changed since the last look.
        var isNudged = false
        /// Why the picture in the slot waits.
        var reason = FrameDropReason.encoderBusy
        var isClosed = false
    }

    private let monitor = Monitor(State())

    /// Puts a picture in.
    ///
    /// - Returns: The picture that it replaces, with the reason why that one had to wait; the picture itself once the
    ///   slot is closed.
    func put(_ picture: Picture) -> Loss? {
        monitor.change { state in
            guard !state.isClosed else { return Loss(ticket: picture.ticket, reason: .late) }
            let loss = state.picture.map { Loss(ticket: $0.ticket, reason: state.reason) }
            state.picture = picture
            state.isNew = true
            return loss
        }
    }

    /// Makes the encoder look at the picture again, if one waits.
    func nudge() {
        monitor.change { $0.isNudged = true }
    }

    /// Waits for a new picture, or for a nudge or `time` while a picture is there.
    ///
    /// - Returns: `nil` once the slot is closed.
    func look(by time: MonotonicInstant?) -> Look? {
        let look = monitor.wait(until: time) { state -> Look?? in
            if state.isClosed { return .some(nil) }
            guard state.picture != nil, state.isNew || state.isNudged else { return nil }
            defer { (state.isNew, state.isNudged) = (false, false) }
            return Look(isNewFrame: state.isNew)
        }
        return look ?? Look(isNewFrame: false)
    }

    /// Leaves the picture in the slot; a picture that replaces it counts it as dropped for `reason`.
    func hold(_ reason: FrameDropReason) {
        monitor.withLock { $0.reason = reason }
    }

    /// Takes the picture out; pictures that come and go before the next look count as dropped by a busy encoder.
    func take() -> Picture? {
        monitor.withLock { state in
            defer { (state.picture, state.isNew, state.reason) = (nil, false, .encoderBusy) }
            return state.picture
        }
    }

    /// Puts a picture back that was taken, unless a newer one has come.
    ///
    /// - Returns: The picture as dropped, if it was not put back.
    func putBack(_ picture: Picture) -> Loss? {
        monitor.withLock { state in
            if state.isClosed { return Loss(ticket: picture.ticket, reason: .late) }
            if state.picture != nil { return Loss(ticket: picture.ticket, reason: .encoderBusy) }
            state.picture = picture
            return nil
        }
    }

    /// Closes the slot: every look ends, now and later.
    ///
    /// - Returns: The picture that was still in it, as dropped.
    func close() -> Loss? {
        monitor.change { state in
            state.isClosed = true
            defer { state.picture = nil }
            return state.picture.map { Loss(ticket: $0.ticket, reason: .late) }
        }
    }
}
