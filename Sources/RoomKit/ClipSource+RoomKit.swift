import MediaFiles
public import SyntheticSources

extension ClipSource {
    /// A source of the pictures of the Y4M file at `path`.
    ///
    /// The file is opened at each start, and what cannot be opened fails the start. A pipe gives its pictures once.
    ///
    /// - Parameters:
    ///   - path: The file; `-` for standard input.
    ///   - loop: Whether the clip begins again at its end.
    public convenience init(path: String, loop: Bool = false) {
        self.init(interruptibleReader: { try Y4MReader(path: path, isStopRequested: $0) }, loop: loop)
    }
}
