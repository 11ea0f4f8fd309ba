import MediaCore

/// Decides when an encoding shows the newest picture again, because its source brings no other one.
///
/// Many sources deliver a picture only when it changes, or rarely: an application that writes pictures, a pipe, a clip
/// of one frame every ten seconds. A viewer that comes, or needs a keyframe, must not wait for the next one. And the
/// last picture must become sharp, and be marked as the present one, so that the server's cache shows it to those who
/// come later. While it stands still it is shown once a second, so that viewers can tell it from one of a connection
/// that is gone. A source that answers `requestFrame()` itself, such as a screen, does so before any of these times.
struct RepeatSchedule: Hashable, Sendable {
    /// How long somebody who needs a keyframe waits for a picture of the source, at most.
    static let patience = Duration.milliseconds(500)
    /// How long a picture is the newest before it is shown again.
    ///
    /// It is longer than the interval of a source of one picture a second, and shorter than the 1.5 s after which viewers
    /// count a picture as frozen.
    static let settling = Duration.milliseconds(1100)
    /// The time from one repeat to the next while the picture becomes sharper.
    static let sharpening = Duration.milliseconds(250)
    /// The time from one repeat to the next of a picture that is sharp, as of a screen.
    static let standstill = Duration.seconds(1)

    /// When to show the newest picture again, unless another one comes first; `nil` for not at all.
    private(set) var time: MonotonicInstant?

    /// Notes that somebody needs a keyframe.
    mutating func demanded(at now: MonotonicInstant) {
        let latest = now + Self.patience
        time = time.map { min($0, latest) } ?? latest
    }

    /// Notes that a picture was encoded, or left out by the encoder for its rate.
    ///
    /// - Parameters:
    ///   - isRepeat: Whether the encoding has shown the picture before.
    ///   - isSharp: Whether a further repeat would make it no sharper.
    ///   - standsStill: Whether it stays the present one while no other one comes; else it is shown again only on
    ///     demand.
    ///   - now: The time.
    mutating func encoded(isRepeat: Bool, isSharp: Bool, standsStill: Bool, at now: MonotonicInstant) {
        if !standsStill {
            time = nil
        } else if isRepeat {
            time = now + (isSharp ? Self.standstill : Self.sharpening)
        } else {
            time = now + Self.settling
        }
    }

    /// Notes that pictures are not encoded for now.
    mutating func pause() {
        time = nil
    }
}
