/// What matters in a source's pictures; it decides what a published track gives up first.
public enum VideoContentHint: String, CaseIterable, Sendable {
    /// Nothing is known: frame rate and size are given up in turn.
    case none
    /// Motion, as of a vehicle's camera: size is given up before frame rate.
    case motion
    /// Details, as of a drawing: frame rate is given up before size.
    case detail
    /// Text, as on a screen: frame rate is given up before size.
    case text
}
