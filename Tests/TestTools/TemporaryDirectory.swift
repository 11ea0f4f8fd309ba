import Glibc

/// A directory that is removed, with its contents, when the last reference to it goes.
package final class TemporaryDirectory: Sendable {
    /// The absolute path.
    package let path: String

    /// An empty directory.
    package init() throws {
        var template = Array("/tmp/room-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw TestFailure("no temporary directory: errno \(errno)") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        removeTree(path)
    }

    /// The path of `name` in the directory.
    package func callAsFunction(_ name: String) -> String { "\(path)/\(name)" }

    /// The names of what is in the directory, sorted.
    package var names: [String] { fileNames(in: path) }
}

private func removeTree(_ path: String) {
    if unlink(path) == 0 { return }
    for name in fileNames(in: path) { removeTree("\(path)/\(name)") }
    rmdir(path)
}
