import MediaCore
import Threading
import VideoProcessing

/// Holds the newest picture for an encoding, until the encoder takes it.
///
/// Depth 1; the newest picture wins. The encoder looks at the picture when it comes, and leaves it in the slot while it
/// may not be encoded yet. It looks again after each nudge and at the time that it chose. If no picture is there, it
/// wakes only when one is expected, or at that time. The thread that puts never waits.
final class FrameSlot: Sendable {
    /// A picture, and its number in the track's `PictureTally`.
    struct Picture: Sendable {
        var frame: VideoFrame
        var ticket: UInt64
        /// How the picture is brought to the size that was requested from the source and that it does not make itself.
        var sizing = FrameTransform()
        /// The shape that it was given.
        var shape = PictureShape()
        /// The largest size that it can be encoded in.
        var largest: Dimensions

        var appearance: Appearance { Appearance(of: frame, sizing: sizing) }
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
        /// The largest size that it can be encoded in; `nil` if there is no picture.
        var largest: Dimensions?
    }

    private struct State: Sendable {
        var picture: Picture?
        /// Whether the picture has not been looked at.
        var isNew = false
        /// Whether something has changed since the last look.
        var isNudged = false
        /// Whether somebody waits for a picture that the encoder must find.
        var isExpected = false
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

    /// Puts in what `make` returns, unless a picture is there already.
    func putIfEmpty(_ make: () -> Picture?) {
        monitor.change { state in
            guard state.picture == nil, !state.isClosed else { return }
            state.picture = make()
            state.isNew = state.picture != nil
        }
    }

    /// Makes the encoder look at the picture again, if one waits.
    func nudge() {
        monitor.change { $0.isNudged = true }
    }

    /// Makes the encoder look although there may be no picture, because somebody waits for one.
    func expectPicture() {
        monitor.change { ($0.isNudged, $0.isExpected) = (true, true) }
    }

    /// Waits for a new picture, for a nudge while a picture is there, for one that is expected, or for `time`.
    ///
    /// - Returns: `nil` once the slot is closed.
    func look(by time: MonotonicInstant?) -> Look? {
        let look = monitor.wait(until: time) { state -> Look?? in
            if state.isClosed { return .some(nil) }
            guard state.isExpected || state.picture != nil && (state.isNew || state.isNudged) else { return nil }
            defer { (state.isNew, state.isNudged, state.isExpected) = (false, false, false) }
            return Look(isNewFrame: state.isNew, largest: state.picture?.largest)
        }
        return look ?? monitor.withLock { Look(isNewFrame: false, largest: $0.picture?.largest) }
    }

    /// Leaves the picture in the slot; a picture that replaces it counts it as dropped for `reason`.
    func hold(_ reason: FrameDropReason) {
        monitor.withLock { $0.reason = reason }
    }

    /// Takes the picture out, if its largest size is `largest` or that is `nil`: since the last look, a newer one of
    /// another size may have come.
    ///
    /// Pictures that come and go before the next look count as dropped by a busy encoder.
    func take(in largest: Dimensions? = nil) -> Picture? {
        monitor.withLock { state in
            guard largest == nil || state.picture?.largest == largest else { return nil }
            defer { (state.picture, state.isNew, state.reason) = (nil, false, .encoderBusy) }
            return state.picture
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

extension FrameSlot.Picture {
    /// A picture in the shape that the track gives it.
    init(_ picture: ShapedFrame, ticket: UInt64, largest: Dimensions) {
        self.init(
            frame: picture.frame,
            ticket: ticket,
            sizing: picture.sizing,
            shape: picture.shape,
            largest: largest
        )
    }
}
