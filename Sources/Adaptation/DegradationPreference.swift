/// What a video track gives up first when the network or the CPU does not carry it whole.
///
/// The meaning is that of libwebrtc and of WebRTC's `RTCDegradationPreference`.
public enum DegradationPreference: String, Hashable, Sendable, CaseIterable {
    /// Keep the frame rate and make the pictures smaller: for moving pictures.
    case maintainFramerate
    /// Keep the size and send fewer pictures: for text and details, such as a screen.
    case maintainResolution
    /// Give up some of both: the frame rate only as far as the size needs it.
    case balanced
}
