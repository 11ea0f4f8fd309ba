import MediaFiles
public import SyntheticSources

extension ClipSource {
    /// Creates a source that plays the Y4M file at `path`.
    ///
    /// Each start opens the file, and fails if the file cannot be opened. A pipe can be played only once.
    ///
    /// - Parameters:
    ///   - path: The file; `-` for standard input.
    ///   - loop: Whether the clip begins again at its end.
    public convenience init(path: String, loop: Bool = false) {
        self.init(interruptibleReader: { try Y4MReader(path: path, isStopRequested: $0) }, loop: loop)
    }
}
