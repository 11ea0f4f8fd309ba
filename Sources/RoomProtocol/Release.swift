/// The release of this code; `CONTRIBUTING.md` describes how to make one.
package enum Release {
    /// The version, by Semantic Versioning.
    ///
    /// The library and both programs have it, and so do `join` and `joined`.
    package static let version = "0.1.0"
}
