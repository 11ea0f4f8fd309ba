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

    /// Takes the frames that were decoded before the sink was there, without pictures; must not call the track.
    func begin(with opening: [ReceivedFrame])

    /// Takes a frame that has been decoded.
    func receive(_ frame: ReceivedFrame)

    /// The track is over, and no further frame comes; called once, on any thread.
    func end()
}

/// The frames of a track from its last keyframe on, as long as they are few.
///
/// Whoever records a track learns of it a moment after its first frames have come. With these a recording is whole from
/// the keyframe on, which would otherwise have to be asked for anew, at everybody's expense.
struct TrackOpening: Sendable {
    /// More than the relay's cache holds at 60 fps, and then a second.
    private static let maximumFrames = 128
    private static let maximumSize = DataSize.mebibytes(2)

    /// A keyframe and all that followed it; empty if that was too much.
    private(set) var frames: [ReceivedFrame] = []
    private var size = DataSize.zero

    /// Adds the next frame, without its picture.
    mutating func note(_ frame: ReceivedFrame) {
        if frame.frame.info.isKeyframe {
            forget()
        } else if frames.isEmpty {
            return
        }
        size += frame.frame.size
        guard frames.count < Self.maximumFrames, size <= Self.maximumSize else { return forget() }
        var compressed = frame
        compressed.picture = nil
        frames.append(compressed)
    }

    private mutating func forget() {
        frames.removeAll(keepingCapacity: true)
        size = .zero
    }
}
