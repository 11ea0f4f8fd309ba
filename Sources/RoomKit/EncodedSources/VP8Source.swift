public import Capture
import MediaCore
import MediaFiles
import Threading

/// Plays a file of VP8 frames, or passes on what another encoder pipes, without encoding anything.
///
/// A file comes at its own speed. Frames from a pipe are passed on as they come. A track sends them as they are, in one
/// encoding: there is no simulcast and no adaptation of rate or size, and `qualityLimitation` says `other`. On a
/// network that is too slow, frames are dropped up to the next keyframe. A subscriber who comes in between waits for it
/// too, so the frames should have a keyframe every few seconds. The program before a pipe may be started again: its new
/// stream is gone on with, also if the former one was cut off.
///
/// The end of the clip is reported as `CaptureEvent.finished`. A file that cannot be read on, and frames that cannot be
/// passed on (`VP8SourceError`), are reported as `CaptureEvent.failed`. The source has then stopped. Releasing the last
/// reference also stops it. May be used from any thread.
public final class VP8Source: VideoCapturer, CoreCapturer, EncodedVideoSource {
    /// The core that captures for this source.
    package let core: CaptureCore
    /// What the source shows.
    public let kind: VideoSourceKind
    /// Whether the frames show a screen.
    public var isScreencast: Bool { kind == .screen }

    private let onKeyframeRequest: (@Sendable () -> Void)?

    /// Creates a source of the frames in an IVF or WebM file.
    ///
    /// Each start opens the file, and fails if it cannot be opened or does not begin with frames that can be passed on.
    /// A pipe can be played only once.
    ///
    /// - Parameters:
    ///   - path: The file or named pipe; `-` for standard input.
    ///   - loop: Whether the clip begins again at its end; a pipe never does.
    ///   - kind: What the source shows.
    ///   - onKeyframeRequest: Called when a subscriber or a new track needs a keyframe, so that the encoder behind a
    ///     pipe can be told. It is called at most once a second for each track, on a thread of the track, or of Swift's
    ///     pool before the first keyframe, and must not hold either up. The thread that reads calls it, too, when
    ///     frames are dropped up to a keyframe.
    public init(
        path: String,
        loop: Bool = false,
        kind: VideoSourceKind = .file,
        onKeyframeRequest: (@Sendable () -> Void)? = nil
    ) {
        self.kind = kind
        self.onKeyframeRequest = onKeyframeRequest
        core = CaptureCore(threadName: "vp8 clip", explainShortage: { CaptureError($0) }) { context in
            var player = VP8Player(
                path: path,
                isLooped: loop,
                context: context,
                requestKeyframe: onKeyframeRequest
            )
            try player.run()
        }
    }

    deinit {
        core.abandon(waiting: true)
    }

    /// Calls the application's `onKeyframeRequest`.
    public func requestFrame() { onKeyframeRequest?() }

    /// Checks the beginning of a file that can be read again: a keyframe, and frames that can be passed on.
    ///
    /// - Throws: A `MediaFileError` or a `VP8SourceError`.
    package static func check(path: String) throws { _ = try VP8Player.examine(path) }
}

/// The work of a `VP8Source`'s thread.
private struct VP8Player {
    let path: String
    let isLooped: Bool
    let context: CaptureContext
    private let entrance: EncodedEntrance
    private var hasWarned = false

    /// The frames that are looked at before a file is played: some seconds.
    private static let examinedFrames = 120

    init(path: String, isLooped: Bool, context: CaptureContext, requestKeyframe: (@Sendable () -> Void)?) {
        self.path = path
        self.isLooped = isLooped
        self.context = context
        entrance = EncodedEntrance(to: context.sinks, requestKeyframe: requestKeyframe)
    }

    mutating func run() throws {
        guard InputPath.canBeOpenedAgain(path) else { return try readOnce() }
        let format = try Self.examine(path)
        context.opened(format)
        var schedule = ClipSchedule(interval: format.frameRate.interval)
        repeat {
            let reader = try EncodedVideoFormat.openReader(path: path)
            entrance.beginAnew()
            schedule.rewind()
            guard try play(reader, schedule: &schedule) else { return }
        } while isLooped
    }

    /// Passes a pipe's frames on as they come, and plays a file that standard input was taken from.
    private mutating func readOnce() throws {
        let reader = try EncodedVideoFormat.openReader(path: path) { [context] in context.isStopRequested }
        let format = Self.format(reader.dimensions, FrameRate(30))
        context.opened(format)
        guard !InputPath.isStored(path) else {
            var schedule = ClipSchedule(interval: format.frameRate.interval)
            _ = try play(reader, schedule: &schedule)
            return
        }
        var frames = FrameCount(path)
        repeat {
            while try reader.nextFrame() != nil, !context.isStopRequested {
                try pass(reader, at: MonotonicClock.now, &frames)
            }
            // The program before the pipe may have been started again.
            entrance.beginAnew()
        } while try !context.isStopRequested && reader.beginNextFile()
        try frames.checkEnd()
    }

    /// Plays a file once; returns `false` when a stop is requested.
    private mutating func play(_ reader: any EncodedVideoReader, schedule: inout ClipSchedule) throws -> Bool {
        var frames = FrameCount(path)
        while let frame = try reader.nextFrame() {
            if !frames.hasKeyframe, !frame.isKeyframe {
                // None of them can be shown, so nobody waits for them.
                guard !context.isStopRequested else { return false }
                try pass(reader, at: MonotonicClock.now, &frames)
                continue
            }
            let due = schedule.due(frame.time, at: MonotonicClock.now)
            guard context.wait(until: due) else { return false }
            try pass(reader, at: due, &frames)
        }
        try frames.checkEnd()
        return true
    }

    private mutating func pass(
        _ reader: any EncodedVideoReader,
        at time: MonotonicInstant,
        _ frames: inout FrameCount
    ) throws {
        frames.number += 1
        let fate = try reader.withFrameBytes { bytes throws(VP8SourceError) in
            try entrance.take(bytes, at: time, named: frames.name)
        }
        guard fate == .keyframeMissing else {
            frames.hasKeyframe = true
            return
        }
        if frames.number == 1, !hasWarned {
            hasWarned = true
            context.warn(frames.lateKeyframe)
        }
    }

    /// Reads the beginning of a file.
    ///
    /// - Returns: The size of the first keyframe, and the rate of the frames.
    static func examine(_ path: String) throws -> VideoFormat {
        let reader = try EncodedVideoFormat.openReader(path: path)
        var frames = FrameCount(path)
        var dimensions: Dimensions?
        var (first, last) = (Duration.zero, Duration.zero)
        while frames.number < examinedFrames || dimensions == nil {
            let next: StoredFrame?
            do throws(MediaFileError) {
                next = try reader.nextFrame()
            } catch {
                // The frames before are good; playing reports it.
                guard error.code == .truncated, dimensions != nil else { throw error }
                break
            }
            guard let frame = next else { break }
            frames.number += 1
            let size = try reader.withFrameBytes { bytes throws(VP8SourceError) in
                try VP8SourceError.inspect(bytes, named: frames.name)
            }
            dimensions = dimensions ?? size
            if frames.number == 1 { first = frame.time }
            last = max(last, frame.time)
        }
        frames.hasKeyframe = dimensions != nil
        try frames.checkEnd()
        let rate = Double(frames.number - 1) / max(0.001, min((last - first).seconds, 1e6))
        let known = last > first ? FrameRate(numerator: Int(min(max(rate, 0.1), 240) * 1000), denominator: 1000) : nil
        return format(dimensions ?? reader.dimensions, known ?? FrameRate(30))
    }

    private static func format(_ dimensions: Dimensions, _ rate: FrameRate) -> VideoFormat {
        let pixelFormat = PixelFormat(fourCC: StoredVideoCodec.vp8.ivfName) ?? .i420
        return VideoFormat(dimensions: dimensions, frameRate: rate, pixelFormat: pixelFormat)
    }
}

/// Counts the frames of a clip, for errors.
private struct FrameCount {
    /// The number of the current frame, from 1.
    var number = 0
    var hasKeyframe = false
    private let path: String

    init(_ path: String) {
        self.path = path
    }

    private var file: String { path == "-" ? "the standard input" : path }

    /// The current frame in an error.
    var name: String { "Frame \(number) of \(file)" }

    /// The warning about a first frame that is no keyframe.
    var lateKeyframe: VP8SourceError {
        VP8SourceError(.startsWithoutKeyframe, "The first frames of \(file) refer to earlier ones that are not there")
    }

    /// Throws if no frame could be shown.
    func checkEnd() throws(VP8SourceError) {
        guard !hasKeyframe else { return }
        let finding = number == 0 ? "There are no frames in \(file)" : "There is no keyframe in \(file)"
        throw VP8SourceError(.noKeyframe, finding)
    }
}
