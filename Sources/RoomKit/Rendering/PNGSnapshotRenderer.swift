import MediaCore
import MediaFiles
import Threading

/// Writes the first picture to a PNG file when it arrives, and the newest one when it is asked to.
///
/// The file always holds a whole picture, upright: a new one replaces it in one step. May be added to several tracks;
/// then their first and newest pictures count together.
public final class PNGSnapshotRenderer: VideoRenderer {
    private struct State: Sendable {
        var newest: VideoFrame?
        var hasBegun = false
        var isWriting = false
        var error: RecordingError?
    }

    /// The path of the PNG file.
    public let path: String
    private let state = Monitor(State())

    /// Creates a renderer, after checking that a picture can be written to `path`.
    ///
    /// - Throws: If something other than a regular file has that name, or the directory cannot be written.
    public init(path: String) throws(RecordingError) {
        do throws(MediaFileError) {
            try CompleteFile.checkReplaceable(path)
        } catch {
            throw RecordingError(error)
        }
        self.path = path
    }

    /// Whether no picture has arrived.
    public var isEmpty: Bool { state.withLock { $0.newest == nil } }

    /// Why the last attempt to write the file failed, if it did.
    public var error: RecordingError? { state.withLock { $0.error } }

    /// Keeps the picture, and writes it if it is the first.
    ///
    /// - Throws: `RecordingError` if the file cannot be written.
    public func render(_ frame: VideoFrame) throws {
        let isFirst = state.withLock { state in
            state.newest = frame
            defer { state.hasBegun = true }
            return !state.hasBegun
        }
        if isFirst { try write(frame) }
    }

    /// Writes the newest picture, if one has arrived; blocks until it is on its way to the disk.
    ///
    /// - Throws: If the file cannot be written.
    public func writeNewest() throws(RecordingError) {
        if let frame = state.withLock({ $0.newest }) { try write(frame) }
    }

    private func write(_ frame: VideoFrame) throws(RecordingError) {
        // One at a time: the first picture may still be on its way when the newest is wanted.
        _ = state.wait { state -> Bool? in
            guard !state.isWriting else { return nil }
            state.isWriting = true
            return true
        }
        var failure: RecordingError?
        do throws(MediaFileError) {
            try PNGWriter().write(frame, to: path, replacing: true)
        } catch {
            failure = RecordingError(error)
        }
        state.change { ($0.isWriting, $0.error) = (false, failure) }
        if let failure { throw failure }
    }
}
