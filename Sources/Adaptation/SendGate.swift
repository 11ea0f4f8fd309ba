/// Decides whether a frame may be encoded now, and how large it may become, so that it reaches the receiver in time.
///
/// It is asked for each captured frame, and again after each acknowledgement while a frame waits.
package struct SendGate: Hashable, Sendable {
    /// The settings; times in microseconds.
    package struct Settings: Hashable, Sendable {
        /// The age of the oldest byte on its way, beyond the round trip, from which nothing more is sent.
        package var longestSilence = 80_000.0
        /// The size of the window beyond the rate, in bytes: a thin path could otherwise carry no frame at all.
        package var slack = 3_000.0
        /// The part of the window that is open although the oldest byte is too old, while acknowledgements come: a
        /// queue that drains need not be empty before the next frame is on its way.
        package var agedPart = 0.5
        /// The most of the window that is closed then, in microseconds of the rate, beside `slack`.
        ///
        /// The window of a long path is mostly its round trip: a queue has drained long before half of it is empty.
        package var agedClosing = 100_000.0
        /// How recent the last acknowledgement must be for that.
        package var recency: Int64 = 40_000
        /// The number of bytes on their way below which no silence is seen: acknowledgements of the other direction are
        /// not acknowledged one by one.
        package var silentBytes: Int64 = 1_200
        /// The smallest budget of a frame, in bytes.
        package var smallestFrame = 600.0
        /// How many frames are left out before one is sent that the window does not allow.
        package var mostSkips = 3
        /// The round trip that is assumed before the first acknowledgement.
        package var assumedRoundTrip: Int64 = 100_000

        package init() {}
    }

    private let settings: Settings
    private var skips = 0

    package init(_ settings: Settings = Settings()) {
        self.settings = settings
    }

    /// The bytes that may be on their way.
    ///
    /// A receiver that thins its acknowledgements, or whose acknowledgements come late, has more than we know.
    package func window(_ path: PathEstimator, _ controller: RateController) -> Double {
        window(path, controller, unsaid: path.unsaidTime)
    }

    /// The bytes of the window beyond those that are on their way while no queue stands.
    ///
    /// A sender that fills the path always has the rest of the window on its way.
    package func spareWindow(_ path: PathEstimator, _ controller: RateController) -> Double {
        let roundTrip = path.shortestRoundTrip ?? settings.assumedRoundTrip
        return window(path, controller) - controller.rate / 8e6 * Double(roundTrip)
    }

    private func window(_ path: PathEstimator, _ controller: RateController, unsaid: Int64) -> Double {
        let roundTrip = path.shortestRoundTrip ?? settings.assumedRoundTrip
        return controller.rate / 8e6 * (Double(roundTrip + unsaid) + controller.targetQueue) + settings.slack
    }

    /// When the path has room for a frame at the present rate, as long as it carries that rate and the receiver, which
    /// thins its acknowledgements, does not say so; in microseconds.
    package func opening(_ path: PathEstimator, _ controller: RateController, frameInterval: Int64) -> Int64 {
        guard let oldest = path.oldestUnacknowledgedWrite else { return .min }
        let roundTrip = path.shortestRoundTrip ?? settings.assumedRoundTrip
        let bytesPerMicrosecond = controller.rate / 8e6
        let window = window(path, controller, unsaid: 0)
        let room = max(window - bytesPerMicrosecond * Double(frameInterval) / 2, Double(settings.silentBytes))
        let excess = Double(path.unacknowledgedBytes) - room
        guard excess > 0 else { return .min }
        return oldest + roundTrip + Int64(min(excess / bytesPerMicrosecond, 1e9))
    }

    /// Whether the path has room for a frame at the present rate; `queued` are the bytes that were encoded and not
    /// written yet.
    package func isOpen(
        _ path: PathEstimator,
        _ controller: RateController,
        queued: Int,
        frameInterval: Int64,
        at now: Int64
    ) -> Bool {
        let frame = controller.rate / 8e6 * Double(frameInterval)
        return isOpen(path, controller, queued: queued, frame: frame, at: now)
    }

    /// Whether the path has room for a frame of about `frame` bytes.
    package func isOpen(
        _ path: PathEstimator,
        _ controller: RateController,
        queued: Int,
        frame: Double,
        at now: Int64
    ) -> Bool {
        let pending = Double(path.unacknowledgedBytes) + Double(queued)
        // A path without anything on it has room for any frame.
        guard pending <= max(window(path, controller) - frame / 2, Double(settings.silentBytes)) else { return false }
        guard path.unacknowledgedBytes > settings.silentBytes, let oldest = path.oldestUnacknowledgedWrite else {
            return true
        }
        let roundTrip = path.shortestRoundTrip ?? settings.assumedRoundTrip
        let allowed =
            Double(roundTrip + path.unsaidTime) + settings.longestSilence + controller.jitterAllowance
            + controller.competingQueue
        if Double(now - oldest) <= allowed { return true }
        guard settings.agedPart > 0, now - (path.lastAcknowledgement ?? 0) <= settings.recency else { return false }
        let window = window(path, controller)
        let mostClosed = settings.slack + controller.rate / 8e6 * settings.agedClosing
        return pending <= max(settings.agedPart * window, window - mostClosed) - frame / 2
    }

    /// As `isOpen`, once for each captured frame of about `frame` bytes.
    ///
    /// After several that were left out, one may pass to keep the estimate alive.
    package mutating func admits(
        _ path: PathEstimator,
        _ controller: RateController,
        queued: Int,
        frame: Double,
        at now: Int64
    ) -> Bool {
        if isOpen(path, controller, queued: queued, frame: frame, at: now) {
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

    /// The bytes that still fit into the window, at least those of the smallest frame.
    package func room(_ path: PathEstimator, _ controller: RateController, queued: Int) -> Double {
        let pending = Double(path.unacknowledgedBytes) + Double(queued)
        return max(settings.smallestFrame, window(path, controller) - pending)
    }
}
