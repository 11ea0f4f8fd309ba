/// The kind of content in a source's pictures; it decides whether a published track lowers size or frame rate first.
public enum VideoContentHint: String, CaseIterable, Sendable {
    /// Nothing is known: the frame rate and the size are lowered in turn.
    case none
    /// Motion, such as from a vehicle's camera: the size is lowered before the frame rate.
    case motion
    /// Details, such as in a drawing: the frame rate is lowered before the size.
    case detail
    /// Text, such as on a screen: the frame rate is lowered before the size.
    case text
}
