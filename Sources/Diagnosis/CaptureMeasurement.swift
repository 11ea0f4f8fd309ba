package import Capture
package import MediaCore
import Threading

/// What a source delivers in about a second.
package struct CaptureMeasurement: Hashable, Sendable {
    /// The size of its frames.
    package var dimensions: Dimensions
    /// The format that it captures in; `nil` if it does not say.
    package var format: VideoFormat?
    /// Frames per second, by their time stamps; `nil` after a single frame.
    package var framesPerSecond: Double?
    /// The time from the start to the first frame.
    package var timeToFirstFrame: Duration
    /// Frames that the source handed over.
    package var frames: Int
    /// Frames that the device itself left out.
    package var missed: Int
    /// Frames that were dropped although they were whole, because nobody took them in time.
    package var dropped: Int
    /// Damaged frames.
    package var damaged: Int

    /// How long a source may take for its first frame.
    private static let patience = Duration.seconds(6)
    /// How often the first frame is looked for.
    private static let interval = Duration.milliseconds(5)

    /// Counts what comes.
    private final class Counter: VideoSink {
        let first = Monitor<(dimensions: Dimensions, time: MonotonicInstant)?>(nil)
        var sourceRequirements: VideoFormatRequest { VideoFormatRequest() }
        func onVideoFormatRequest(_ request: VideoFormatRequest) {}
        func onVideoFrame(_ frame: VideoFrame) {
            guard !frame.isSubstitute else { return }
            first.withLock { $0 = $0 ?? (frame.dimensions, MonotonicClock.now) }
        }
    }

    /// Starts `source`, captures for `duration` from the first frame on, and stops it.
    ///
    /// - Throws: The error of the source's start or failure; `CancellationError`.
    /// - Returns: `nil` if no frame came in time.
    package init?(of source: any VideoCapturer, for duration: Duration) async throws {
        let counter = Counter()
        let began = MonotonicClock.now
        try await source.startCapture(for: counter)
        do {
            let deadline = MonotonicClock.now + Self.patience
            while counter.first.withLock({ $0 }) == nil, MonotonicClock.now < deadline, source.failure == nil {
                try await Task.sleep(for: Self.interval)
            }
            if counter.first.withLock({ $0 }) != nil { try await Task.sleep(for: duration) }
        } catch {
            await source.stopCapture(for: counter)
            throw error
        }
        format = source.captureFormat
        await source.stopCapture(for: counter)
        if let failure = source.failure { throw failure }
        guard let first = counter.first.withLock({ $0 }) else { return nil }
        let counts = source.captureStatistics
        dimensions = first.dimensions
        timeToFirstFrame = first.time.duration(since: began)
        frames = counts.framesCaptured
        missed = counts.framesMissed
        damaged = counts.framesDropped[.corrupt]
        // Frames beyond the requested rate are left out on purpose.
        dropped = counts.framesDropped.total - damaged - counts.framesDropped[.notWanted]
        let intervals = counts.framesCaptured + counts.framesMissed - 1
        let seconds = counts.captureDuration.seconds
        framesPerSecond = intervals > 0 && seconds > 0 ? Double(intervals) / seconds : nil
    }
}

extension CaptureMeasurement {
    /// A rate below this part of the stated one is worth a note: automatic exposure in the dark halves it.
    private static let leastRatePart = 0.9

    /// What was found.
    func findings(_ check: Check, _ name: String) -> [Finding] {
        let rate = framesPerSecond.map { "\(FrameRate(numerator: max(1, Int($0 * 10)), denominator: 10)) fps" }
        let format = format.map { " \($0.pixelFormat)" } ?? ""
        let words =
            "\(name) gives \(dimensions)\(format) at \(rate ?? "one frame"), the first after "
            + "\(timeToFirstFrame.millisecondText); \(missed + dropped) dropped, \(damaged) damaged"
        if damaged > 0 {
            let advice = "use another cable or USB port, or a smaller --size: damaged frames come from the bus"
            return [.note(check, "damagedFrames", words, advice)]
        }
        if let stated = self.format?.frameRate.framesPerSecond, let framesPerSecond, check == .cameras,
            framesPerSecond < stated * Self.leastRatePart
        {
            let advice =
                "the camera promised \(FrameRate(numerator: Int(stated * 10), denominator: 10)): give it more light, or "
                + "fix the exposure (devices --controls; connect --control)"
            return [.note(check, "slowFrames", words, advice)]
        }
        return [.ok(check, words)]
    }
}
