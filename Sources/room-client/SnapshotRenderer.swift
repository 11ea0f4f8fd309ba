import MediaFiles
import RoomKit
import Threading

/// Writes the first picture to a PNG file when it arrives, and the newest picture at the end.
final class SnapshotRenderer: VideoRenderer {
    private struct State: Sendable {
        var newest: VideoFrame?
        var hasWritten = false
        var failure: MediaFileError?
    }

    /// The path of the PNG file.
    let path: String
    private let state = Monitor(State())

    /// Creates a renderer, after checking that a picture can be written to `path`.
    init(path: String) throws(MediaFileError) {
        try PNGWriter.checkReplaceable(path)
        self.path = path
    }

    /// Whether no picture has arrived.
    var isEmpty: Bool { state.withLock { $0.newest == nil } }

    /// The error of writing the file, if any.
    var failure: MediaFileError? { state.withLock { $0.failure } }

    func render(_ frame: VideoFrame) {
        let isFirst = state.withLock { state in
            state.newest = frame
            defer { state.hasWritten = true }
            return !state.hasWritten
        }
        if isFirst { write(frame) }
    }

    /// Writes the newest picture.
    func finish() {
        if let frame = state.withLock({ $0.newest }) { write(frame) }
    }

    private func write(_ frame: VideoFrame) {
        do throws(MediaFileError) {
            try PNGWriter().write(frame, to: path, replacing: true)
        } catch {
            state.withLock { $0.failure = error }
        }
    }
}
