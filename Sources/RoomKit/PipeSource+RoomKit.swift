public import Capture
import MediaFiles
public import SyntheticSources

extension PipeSource {
    /// Creates a source of the Y4M pictures that another program writes to a pipe.
    ///
    /// Each start opens the pipe, and fails if it cannot be opened, or is a file: that is played by a `ClipSource`.
    ///
    /// - Parameters:
    ///   - path: A named pipe; `-` for standard input.
    ///   - kind: What the pictures show.
    public convenience init(path: String, kind: VideoSourceKind = .other) {
        self.init(kind: kind) { isStopRequested in
            guard !InputPath.isStored(path) else { throw MediaFileError(notLive: path) }
            return try Y4MReader(path: path, isStopRequested: isStopRequested)
        }
    }
}
