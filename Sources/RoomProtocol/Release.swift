/// The release of this code; `CONTRIBUTING.md` describes how to make one.
package enum Release {
    /// The version, by Semantic Versioning.
    ///
    /// The library and the three programs have it, and `join` and `joined` state it.
    package static let version = "0.1.0"
}
