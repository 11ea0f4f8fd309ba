import MediaCore
import MediaFiles
import Threading
import VideoProcessing

/// Writes the pictures of a track to standard output or a new file, for programs such as `ffplay` and `ffmpeg`.
///
/// The pictures are upright and have one size, that of the first one or the one asked for: others are cropped and
/// scaled to it. A reader that is slow misses pictures, like every slow renderer. Y4M states a rate and no times, so a
/// player shows the pictures at that rate or as they come, whichever is slower. Add it to one track at a time.
public final class VideoPipeRenderer: VideoRenderer {
    /// The format of the output.
    public enum Format: String, CaseIterable, Sendable {
        /// Y4M: a header with size and rate, then the pictures.
        case y4m
        /// The planes of each picture alone (I420: Y, U, V), without padding.
        case raw
    }

    private struct State: Sendable {
        var dimensions: Dimensions?
        var frameRate: FrameRate
        var writer: RawVideoWriter?
        var isWriting = false
        /// Set by `finish` when it must wait for a call that writes.
        var idle: Promise<Void>?
        var isFinished = false
        var framesWritten = 0
        var error: RecordingError?
    }

    private let path: String
    private let format: Format
    /// Whether `init` was given a size.
    private let hasOwnDimensions: Bool
    private let scaler = FrameScaler()
    private let rotator = FrameScaler()
    private let state: Monitor<State>

    /// Creates a renderer; the first picture opens the output.
    ///
    /// - Parameters:
    ///   - path: `-` for standard output, or a file, which must not exist yet.
    ///   - format: The format of the output.
    ///   - dimensions: The size of the pictures, with sides of 1 to 16,383; `nil` for that of the first one.
    ///   - frameRate: The rate that Y4M states.
    public init(
        path: String = "-",
        format: Format,
        dimensions: Dimensions? = nil,
        frameRate: FrameRate = FrameRate(30)
    ) {
        self.path = path
        self.format = format
        let limit = Dimensions.largestCodable
        let isUsable = dimensions.map {
            (1...limit.width).contains($0.width) && (1...limit.height).contains($0.height)
        }
        hasOwnDimensions = isUsable == true
        state = Monitor(State(dimensions: hasOwnDimensions ? dimensions : nil, frameRate: frameRate))
    }

    /// The size of the pictures, once it is certain.
    public var dimensions: Dimensions? { state.withLock { $0.dimensions } }

    /// Pictures that were written completely.
    public var framesWritten: Int { state.withLock { $0.framesWritten } }

    /// Why nothing more is written; `nil` while all is well.
    public var error: RecordingError? { state.withLock { $0.error } }

    /// Sets the size and rate that the output begins with; without effect once it has begun, or on a size that `init` was
    /// given.
    ///
    /// The values may be those that a track announces: unusable ones are ignored. The last call before the first picture
    /// counts.
    public func prepare(dimensions: Dimensions, framesPerSecond: Double) {
        let limit = 1...Dimensions.largestCodable.width
        state.withLock { state in
            guard state.writer == nil else { return }
            if !hasOwnDimensions, limit.contains(dimensions.width), limit.contains(dimensions.height),
                TrackCodec.forPublishing.allows(dimensions)
            {
                state.dimensions = dimensions
            }
            if framesPerSecond <= 1000, let rate = FrameRate(framesPerSecond) { state.frameRate = rate }
        }
    }

    /// Writes a picture; blocks while the reader takes nothing.
    ///
    /// - Throws: `RecordingError` once the reader has gone or the file cannot be written.
    public func render(_ frame: VideoFrame) throws {
        // A call for a track that has ended may still write.
        let isMine = state.wait { state -> Bool? in
            if state.isFinished || state.error != nil { return false }
            if state.isWriting { return nil }
            state.isWriting = true
            return true
        }
        guard isMine == true else {
            if let error { throw error }
            return
        }
        var failure: RecordingError?
        do throws(MediaFileError) {
            try write(rotator.upright(frame))
        } catch {
            failure = RecordingError(error)
        }
        let idle = state.change { state in
            state.isWriting = false
            state.error = failure
            if failure == nil { state.framesWritten += 1 }
            return state.idle
        }
        idle?.fulfill(())
        if let failure { throw failure }
    }

    /// Writes no more, and waits at most `limit` for the reader to take a picture that has been begun.
    ///
    /// - Returns: Whether the output ends with a whole picture.
    @discardableResult
    public func finish(within limit: Duration = .seconds(1)) async -> Bool {
        let idle = state.change { state -> Promise<Void>? in
            state.isFinished = true
            guard state.isWriting else { return nil }
            state.idle = state.idle ?? Promise()
            return state.idle
        }
        guard let idle else { return true }
        return await idle.value(within: limit) != nil
    }

    private func write(_ frame: VideoFrame) throws(MediaFileError) {
        let (known, size, rate) = state.withLock { ($0.writer, $0.dimensions ?? frame.dimensions, $0.frameRate) }
        if let known { return try known.write(scaler.fit(frame, to: size)) }
        let writer = try RawVideoWriter(path: path, dimensions: size, frameRate: format == .y4m ? rate : nil)
        state.withLock { ($0.writer, $0.dimensions) = (writer, size) }
        try writer.write(scaler.fit(frame, to: size))
    }
}
