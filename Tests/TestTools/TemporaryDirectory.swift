import Glibc

/// A directory that goes, with all in it, when the last reference does.
package final class TemporaryDirectory: Sendable {
    /// The absolute path.
    package let path: String

    /// An empty directory.
    package init() throws {
        var template = Array("/tmp/room-e2e-XXXXXX".utf8CString)
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

/// The names in a directory, sorted; none if it is not there.
package func fileNames(in path: String) -> [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
}

/// The bytes of a file.
package func bytes(of path: String) throws -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw TestFailure("\(path) cannot be read: errno \(errno)") }
    defer { close(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
        let count = read(file, &chunk, chunk.count)
        guard count > 0 else { return bytes }
        bytes += chunk[..<count]
    }
}

/// The text of a file.
package func text(of path: String) throws -> String {
    String(decoding: try bytes(of: path), as: UTF8.self)
}

/// Puts `bytes` into a file, in place of what was there.
package func store(_ bytes: some Collection<UInt8>, at path: String) throws {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard file >= 0 else { throw TestFailure("\(path) cannot be written: errno \(errno)") }
    defer { close(file) }
    var rest = Array(bytes)[...]
    while !rest.isEmpty {
        let count = rest.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        guard count > 0 else { throw TestFailure("\(path) cannot be written: errno \(errno)") }
        rest = rest.dropFirst(count)
    }
}

private func removeTree(_ path: String) {
    if unlink(path) == 0 { return }
    for name in fileNames(in: path) { removeTree("\(path)/\(name)") }
    rmdir(path)
}

/// By how much the resident memory of this process has grown since it was `before`, in bytes.
///
/// 0 under AddressSanitizer, which keeps what is freed for a while, to see whether it is used.
package func residentGrowth(since before: Int) throws -> Int {
    dlsym(nil, "__asan_init") == nil ? try residentBytes() - before : 0
}

/// The memory of this process that is resident, in bytes (`VmRSS`).
package func residentBytes() throws -> Int {
    let status = try text(of: "/proc/self/status")
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
    let number = line?.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) }
    guard let number else { throw TestFailure("no VmRSS in /proc/self/status") }
    return number * 1024
}
