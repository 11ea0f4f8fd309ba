/// What is lowered first when the rate or the CPU does not suffice.
public enum DegradationPreference: Hashable, Sendable {
    /// The size; every captured picture is kept.
    case maintainFramerate
    /// The frame rate; the size stays.
    case maintainResolution
    /// Both, in turns.
    case balanced
}
