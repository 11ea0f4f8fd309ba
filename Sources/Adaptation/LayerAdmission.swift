/// Decides whether a simulcast layer above the lowest is encoded, from what the layers below it leave of the rate.
///
/// A layer that is paused comes back when enough has been left for it for some time. The rate grows only a little
/// beyond what is sent, so that it may never show that there is enough for a large layer. Such a layer is therefore
/// also tried when the layers below have gone well for that time with a good part to spare. The first attempt needs no
/// such time, because a server that asks for a layer gives it up soon if it does not come. Each attempt that fails
/// doubles the time until the next.
///
/// A pure value.
package struct LayerAdmission: Hashable, Sendable {
    /// The settings; times in microseconds.
    package struct Settings: Hashable, Sendable {
        /// How long enough must have been left for a layer that is paused.
        package var patience: Int64 = 2_000_000
        /// The same after attempts that failed, each of which doubles it.
        package var longestPatience: Int64 = 60_000_000
        /// How long a layer may take to show that the path carries it.
        package var trialTime: Int64 = 4_000_000
        /// An attempt has failed if the layer is paused within this time.
        package var failureTime: Int64 = 20_000_000
        /// A layer is tried if this part of what the lower layers use is left; the rate grows to 1.5 times that use.
        package var spare = 0.4
        /// A layer that is being tried ends at once if less than this part of what the lower layers use is left.
        package var leastSpare = 0.2

        package init() {}
    }

    /// Whether the layer is encoded.
    private(set) var isAdmitted = true
    private var isBegun = false
    /// Since when enough has been left for the layer while it is paused; `nil` if there is not enough.
    private var enoughSince: Int64?
    private var admittedAt: Int64?
    /// How long there must be enough; zero for the first attempt.
    private var patience: Int64 = 0

    /// Nobody receives the layer any more; the next decision is made as at the start.
    mutating func reset() {
        self = LayerAdmission()
    }

    /// Decides anew whether the layer is encoded.
    ///
    /// - Parameters:
    ///   - left: The rate that the lower layers leave, in bits per second.
    ///   - used: The rate that the lower layers use.
    ///   - lowest: The rate below which the layer is not worth encoding.
    ///   - margin: How many times `lowest` must be left for a layer that is paused.
    ///   - settings: The settings.
    ///   - now: The time in microseconds, which never goes back.
    /// - Returns: Whether the layer is encoded.
    mutating func update(
        left: Double,
        used: Double,
        lowest: Double,
        margin: Double,
        _ settings: Settings,
        at now: Int64
    ) -> Bool {
        guard isBegun else {
            isBegun = true
            isAdmitted = left >= lowest
            return isAdmitted
        }
        if isAdmitted {
            let isTrial = admittedAt.map { now - $0 < settings.trialTime } ?? false
            guard left < (isTrial ? min(lowest, settings.leastSpare * used) : lowest) else { return true }
            let hasFailed = admittedAt.map { now - $0 < settings.failureTime } ?? false
            let longer = max(settings.patience, min(settings.longestPatience, 2 * patience))
            patience = hasFailed ? longer : settings.patience
            (isAdmitted, enoughSince) = (false, nil)
            return false
        }
        guard left >= min(margin * lowest, settings.spare * used) else {
            enoughSince = nil
            return false
        }
        let since = enoughSince ?? now
        enoughSince = since
        guard now - since >= patience else { return false }
        (isAdmitted, admittedAt) = (true, now)
        return true
    }
}
