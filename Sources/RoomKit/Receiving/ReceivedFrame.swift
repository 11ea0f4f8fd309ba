import MediaCore
import RoomProtocol
import VideoProcessing

/// A compressed frame as it was received, with its times; all times are on this machine's clock.
struct ReceivedFrame: Sendable {
    /// The frame; its timestamp is the time of capture.
    var frame: EncodedFrame
    /// When its last byte arrived.
    var received: MonotonicInstant
    /// When the relay received its first byte.
    var relayed: MonotonicInstant?
    /// When it was decoded; `nil` if it was not.
    var decoded: MonotonicInstant?
    /// The size of its picture as it was encoded, once decoded; a frame without a picture has that of the one before.
    var dimensions: Dimensions?
    /// The size of its picture as it is shown, once decoded; a frame without a picture has that of the one before.
    var uprightDimensions: Dimensions?
    /// Whether its picture was decoded in time, and handed to the slots of the renderers if there are any.
    var isShown = false
    /// The decoded picture, if a renderer or sink wanted it.
    var picture: VideoFrame?
    /// Whether it came from the relay's cache; such frames are decoded but not shown, and no age is recorded.
    var isCatchUp: Bool
    /// Whether it came from there and is shown nevertheless, because the source stands still at its picture.
    var isPresent = false
    /// The clock estimate that converted the capture time to this machine's clock.
    var clock: ClockEstimate
    /// What the publisher sent with it: orientation and metadata.
    var extensions = PacketExtensions()

    /// The size in which a picture that was encoded in the size `encoded` is shown with this frame's orientation.
    func upright(_ encoded: Dimensions) -> Dimensions {
        extensions.rotation.swapsDimensions ? encoded.transposed : encoded
    }

    /// A decoded picture of this frame, made upright and with the frame's metadata.
    func finished(_ picture: VideoFrame, by scaler: FrameScaler) -> VideoFrame {
        var picture = picture
        picture.rotation = extensions.rotation
        picture.isMirrored = extensions.isMirrored
        picture.metadata = extensions.metadata
        picture.isRepeat = frame.info.isRepeat
        picture.isSubstitute = frame.info.isSubstitute
        return picture.isUpright ? picture : scaler.upright(picture)
    }
}

/// Takes the compressed frames of a track, in order, on the track's decoder thread; must return quickly.
protocol ReceivedFrameSink: AnyObject, Sendable {
    /// Whether the frames must contain their `picture`.
    var wantsPictures: Bool { get }

    /// Takes the frames that were decoded before the sink was added, from the last keyframe on, without pictures; must
    /// not call the track.
    func begin(with earlier: [ReceivedFrame])

    /// Takes a frame that has been decoded.
    func receive(_ frame: ReceivedFrame)

    /// Notes that the track has ended and no further frame comes; called once, on any thread.
    func end()
}

/// Keeps the frames of a track from its last keyframe on, as long as they are few.
///
/// A recorder is added a moment after a track's first frames have arrived. With the kept frames, a recording begins at
/// that keyframe. Otherwise the recorder would have to request a new keyframe, which costs every subscriber bandwidth.
struct KeyframeCache: Sendable {
    /// The relay's cache and some live frames: 3 s and one second more of one temporal layer at 60 fps, or 200 frames of
    /// a picture that stands still and 40 more.
    private static let maximumFrames = 240
    private static let maximumSize = DataSize.mebibytes(4)

    /// The last keyframe and all frames after it; empty if they were too many.
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
