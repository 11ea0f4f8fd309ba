import Glibc

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
