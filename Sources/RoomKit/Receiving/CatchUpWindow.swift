import MediaCore
import RoomProtocol

/// Tells which frames of a subscription come from the server's cache, so that they are decoded and not shown, unless
/// the last of them shows the present picture.
///
/// The server names the last of them. It may name any number, and a frame's number may be any, so the end is bounded
/// here: otherwise a faulty server could keep the picture dark for ever.
struct CatchUpWindow: Sendable {
    /// The longest time in which frames from the cache arrive.
    ///
    /// A relay keeps 3 s of them, or 1 MiB of a picture that stands still (`docs/protocol.md`, section 11), which a path
    /// of 0.8 Mbit/s carries in this time.
    static let longest = Duration.seconds(10)

    private let start: ClientSession.Subscription
    /// When the first frame came.
    private var began: MonotonicInstant?
    private var isOver: Bool

    init(_ start: ClientSession.Subscription) {
        self.start = start
        isOver = start.catchUpThrough == nil
    }

    /// Whether a frame that arrived at `now` comes from the cache; after the first live frame, none does.
    mutating func contains(_ frame: EncodedFrameInfo, at now: MonotonicInstant) -> Bool {
        guard !isOver else { return false }
        let began = began ?? now
        self.began = began
        isOver = !start.isCatchUp(frame) || now.duration(since: began) >= Self.longest
        return !isOver
    }

    /// Whether a frame from the cache shows the present picture: it is the last one, and the source stands still.
    func isPresent(_ frame: EncodedFrameInfo) -> Bool { frame.isRepeat && start.endsCatchUp(frame) }
}
