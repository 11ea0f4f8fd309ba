package import MediaCore

/// What a lane does with the newest captured picture.
package enum FrameDecision: Hashable, Sendable {
    /// Encode it with this target, as a keyframe if one was due.
    case encode(EncodingTarget)
    /// Keep it, and ask again after the next acknowledgement, write or new picture, at this time at the latest.
    case wait(until: MonotonicInstant?)
    /// Nobody receives this encoding.
    case notWanted
}

/// Why a lane's picture waits, and why it was left out if a newer one takes its place.
package enum WaitReason: UInt8, Hashable, Sendable {
    /// The path has no room for it.
    case network
    /// Frames come faster than the frame rate that was chosen.
    case frameRate
    /// A keyframe is due, and the last one was less than a second ago.
    case keyframeInterval
    /// The rate does not suffice for this simulcast layer; lower ones come first.
    case allocation
    /// The CPU does not suffice for this simulcast layer; lower ones come first.
    case cpu
}

/// What an encoder made of a picture.
package struct EncodingReport: Hashable, Sendable {
    /// The bytes that the frame adds to the connection, with packet headers.
    package var bytes: Int
    /// Whether the frame is a keyframe.
    package var isKeyframe: Bool
    /// The frame's quantizer, 0 (best) to 127.
    package var quantizer: UInt8
    /// The time that scaling and encoding took.
    package var encodeDuration: Duration
    /// The size of the encoded picture.
    package var dimensions: Dimensions

    /// A report with the given values.
    package init(
        bytes: Int,
        isKeyframe: Bool,
        quantizer: UInt8,
        encodeDuration: Duration,
        dimensions: Dimensions
    ) {
        self.bytes = bytes
        self.isKeyframe = isKeyframe
        self.quantizer = quantizer
        self.encodeDuration = encodeDuration
        self.dimensions = dimensions
    }
}
