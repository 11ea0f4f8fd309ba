package import MediaCore
import Threading

/// Holds the newest frame until its one reader takes it.
///
/// Depth 1; the newest frame wins. Any thread may put a frame in, and none waits.
package final class NewestFrameSlot: VideoSink {
    private struct State: Sendable {
        var frame: VideoFrame?
        var reader: CheckedContinuation<VideoFrame?, Never>?
        var isFinished = false
        var framesDropped = 0
    }

    private let includesSubstitutes: Bool
    private let state = Monitor(State())

    /// Creates a slot without a frame, which takes slates only if it `includesSubstitutes`.
    package init(includesSubstitutes: Bool) {
        self.includesSubstitutes = includesSubstitutes
    }

    /// None.
    package var sourceRequirements: VideoFormatRequest { VideoFormatRequest() }
    /// The frames that a newer one replaced.
    package var framesDropped: Int { state.withLock { $0.framesDropped } }

    /// Does nothing.
    package func onVideoFormatRequest(_ request: VideoFormatRequest) {}

    /// Puts a frame in, in place of the one that waits.
    package func onVideoFrame(_ frame: VideoFrame) {
        guard includesSubstitutes || !frame.isSubstitute else { return }
        let reader = state.withLock { state -> CheckedContinuation<VideoFrame?, Never>? in
            guard !state.isFinished else { return nil }
            if let reader = state.reader {
                state.reader = nil
                return reader
            }
            var frame = frame
            if let former = state.frame {
                state.framesDropped += 1
                frame.takePlace(of: former)
            }
            state.frame = frame
            return nil
        }
        reader?.resume(returning: frame)
    }

    /// Waits for a frame; after the end, the frame that still waits is the last.
    ///
    /// A second task that waits at the same time gets `nil`.
    package func next() async -> VideoFrame? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { state -> VideoFrame?? in
                    if let frame = state.frame {
                        state.frame = nil
                        return .some(frame)
                    }
                    if state.isFinished || state.reader != nil { return .some(nil) }
                    state.reader = continuation
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            finish()
        }
    }

    /// Takes no more frames; the one that waits can still be read.
    package func finish() {
        let reader = state.withLock { state in
            state.isFinished = true
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume(returning: nil)
    }
}
