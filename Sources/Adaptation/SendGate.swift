/// Decides whether a frame may be encoded now, and how large it may become, so that it reaches the receiver in time.
///
/// It is asked for each captured frame, and again after each acknowledgement while a frame waits.
package struct SendGate: Hashable, Sendable {
    /// The settings; times in microseconds.
    package struct Settings: Hashable, Sendable {
        /// The age of the oldest byte on its way, beyond the round trip, from which nothing more is sent.
        package var longestSilence = 80_000.0
        /// What the window holds beyond the rate, in bytes: a thin path could otherwise carry no frame at all.
        package var slack = 3_000.0
        /// The smallest budget of a frame, in bytes.
        package var smallestFrame = 600.0
        /// How many frames are left out before one is sent that the window does not allow.
        package var mostSkips = 3

        package init() {}
    }

    private let settings: Settings
    private var skips = 0

    package init(_ settings: Settings = Settings()) {
        self.settings = settings
    }

    /// The bytes that may be on their way.
    package func window(_ path: PathEstimator, _ controller: RateController) -> Double {
        let roundTrip = Double(path.shortestRoundTrip ?? 50_000)
        return controller.rate / 8e6 * (roundTrip + controller.targetQueue) + settings.slack
    }

    /// Whether the path has room for a frame; `queued` are the bytes that were encoded and not written yet.
    package func isOpen(
        _ path: PathEstimator,
        _ controller: RateController,
        queued: Int,
        frameInterval: Int64,
        at now: Int64
    ) -> Bool {
        let frame = controller.rate / 8e6 * Double(frameInterval)
        let pending = Double(path.unacknowledgedBytes) + Double(queued)
        guard pending <= window(path, controller) - frame / 2 else { return false }
        guard let oldest = path.oldestUnacknowledgedWrite else { return true }
        let roundTrip = Double(path.shortestRoundTrip ?? 50_000)
        return Double(now - oldest) <= roundTrip + settings.longestSilence + controller.jitterAllowance
    }

    /// As `isOpen`, once for each captured frame: after several that were left out, one may pass to keep the estimate
    /// alive.
    package mutating func admits(
        _ path: PathEstimator,
        _ controller: RateController,
        queued: Int,
        frameInterval: Int64,
        at now: Int64
    ) -> Bool {
        if isOpen(path, controller, queued: queued, frameInterval: frameInterval, at: now) {
            skips = 0
            return true
        }
        skips += 1
        guard skips > settings.mostSkips, Double(path.unacknowledgedBytes) + Double(queued) < settings.slack else {
            return false
        }
        skips = 0
        return true
    }

    /// The bytes that the next frame may have.
    package func budget(
        _ path: PathEstimator,
        _ controller: RateController,
        queued: Int,
        frameInterval: Int64
    ) -> Double {
        let frame = controller.rate / 8e6 * Double(frameInterval)
        let room = window(path, controller) - Double(path.unacknowledgedBytes) - Double(queued)
        return max(settings.smallestFrame, min(frame, room))
    }
}
