/// What a video track lowers first, its size or its frame rate, when the network or the CPU is too slow.
///
/// The meaning is that of libwebrtc and of WebRTC's `RTCDegradationPreference`.
public enum DegradationPreference: String, Hashable, Sendable, CaseIterable {
    /// Keep the frame rate and make the pictures smaller: for moving pictures.
    case maintainFramerate
    /// Keep the size and send fewer pictures: for text and details, such as a screen.
    case maintainResolution
    /// Lower both in turn, by libwebrtc's table of frame rates for sizes.
    case balanced
}
