/// An error whose kind has a stable name, for logs and JSON.
///
/// `description` is for people, and may change with any version.
public protocol CodedError: Error {
    /// The name of the error's kind, such as `noSuchDevice`; it stays the same in later versions.
    var codeName: String { get }
}
