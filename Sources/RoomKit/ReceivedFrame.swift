import MediaCore
import RoomProtocol

/// A compressed frame as it came, with its times; all of them on this machine's clock.
struct ReceivedFrame: Sendable {
    /// The frame; its timestamp is the time of capture.
    var frame: EncodedFrame
    /// When its last byte came.
    var received: MonotonicInstant
    /// When the relay received its first byte.
    var relayed: MonotonicInstant?
    /// When it was decoded.
    var decoded: MonotonicInstant?
    /// The picture, where somebody wanted it.
    var picture: VideoFrame?
    /// Whether it came from the relay's cache: decoded, not shown, and of no age.
    var isCatchUp: Bool
    /// How the capture time was brought to this machine's clock.
    var clock: ClockEstimate
}

/// Takes the compressed frames of a track, in order, on the track's thread; must return quickly.
protocol ReceivedFrameSink: AnyObject, Sendable {
    /// Whether `picture` is to be there.
    var wantsPictures: Bool { get }

    /// Takes a frame that has been decoded.
    func receive(_ frame: ReceivedFrame)
}
