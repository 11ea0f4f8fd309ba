import VP8Codec
import WebSockets

/// The C libraries that this program runs with.
package struct LoadedLibraries: Hashable, Sendable {
    /// Their names with the versions that are loaded, as in "libvpx 1.12.0".
    package var versions: [String]

    /// Asks the libraries, and looks which files are loaded.
    ///
    /// - Parameters:
    ///   - maps: A file in the format of `/proc/PID/maps`.
    ///   - packages: The folder of Debian's list of packages, which may be absent.
    package init(maps: String = "/proc/self/maps", packages: String = "/var/lib/dpkg") {
        let files = Self.files(in: maps)
        versions = [
            "libvpx \(VP8Library.version.drop { $0 == "v" })", "libwebsockets \(WebSocketLibrary.version)",
        ]
        let others = [
            ("libyuv", "libyuv.so"), ("libjpeg-turbo", "libturbojpeg.so"), ("libv4l", "libv4lconvert.so"),
        ]
        for (name, start) in others {
            guard let path = files.first(where: { $0.split(separator: "/").last?.hasPrefix(start) == true }) else {
                continue
            }
            versions.append("\(name) \(Self.version(of: path, start, packages))")
        }
    }

    /// The version of a library without a function for it: that of its package, or else the end of the file's name.
    private static func version(of path: String, _ start: String, _ packages: String) -> String {
        let name = path.split(separator: "/").last ?? ""
        let suffix = name.dropFirst(start.count + 1)
        return packageVersion(of: path, packages) ?? (suffix.isEmpty ? "?" : String(suffix))
    }

    private static func files(in maps: String) -> [String] {
        let paths = SystemFile.lines(of: maps).compactMap { line in
            line.firstIndex(of: "/").map { String(line[$0...]) }
        }
        return Set(paths).sorted()
    }

    /// The version of the Debian package that a library came with; `nil` for other libraries.
    private static func packageVersion(of path: String, _ packages: String) -> String? {
        // A package is named like its library and the number of its interface, as in libturbojpeg0.
        let stem = path.split(separator: "/").last?.prefix { $0 != "." } ?? ""
        let owner = SystemFile.names(in: "\(packages)/info").first { list in
            guard list.hasPrefix(stem), list.hasSuffix(".list") else { return false }
            return SystemFile.lines(of: "\(packages)/info/\(list)").contains(Substring(path))
        }
        guard let owner, let status = SystemFile.text(of: "\(packages)/status") else { return nil }
        let package = owner.dropLast(".list".count).prefix { $0 != ":" }
        guard let entry = status.firstRange(of: "\nPackage: \(package)\n") else { return nil }
        let fields = status[entry.upperBound...].split(separator: "\n", omittingEmptySubsequences: false)
        let version = fields.prefix { !$0.isEmpty }.first { $0.hasPrefix("Version: ") }
        return version.map { Self.upstream($0.dropFirst("Version: ".count)) }
    }

    /// A package's version without Debian's epoch and revision.
    private static func upstream(_ version: Substring) -> String {
        let text = version.firstIndex(of: ":").map { version[version.index(after: $0)...] } ?? version
        return String(text.lastIndex(of: "-").map { text[..<$0] } ?? text)
    }
}
