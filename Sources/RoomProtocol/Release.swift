/// The release that this code belongs to; `CONTRIBUTING.md` says how one is made.
package enum Release {
    /// The version, by Semantic Versioning: of the library, of both programs, and in `join` and `joined`.
    package static let version = "0.1.0"
}
