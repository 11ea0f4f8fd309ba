import CV4L2
import Glibc
import MediaCore
import Threading

/// A name under `/dev/v4l` that a camera keeps when its node's number changes.
struct StableLink: Equatable {
    /// The name, as in `/dev/v4l/by-id/usb-…`.
    var path: String
    /// The node that it currently leads to.
    var node: String
}

/// The machine's information about video nodes; tests replace it by a script.
protocol CameraSystem: Sendable {
    /// The current instant on `CLOCK_MONOTONIC`.
    var now: MonotonicInstant { get }

    /// The paths of all video nodes, by number.
    func nodePaths() -> [String]

    /// The names under `/dev/v4l`, sorted.
    func stableLinks() -> [StableLink]

    /// The node that `path` leads to after all links; `nil` if there is nothing.
    func resolve(_ path: String) -> String?

    /// Opens a node.
    func open(_ path: String) throws(SystemCallFailure) -> any V4L2Node

    /// What the kernel knows of the hardware behind the node at `path`; `nil` if that cannot be found out.
    ///
    /// The node is not opened.
    func hardware(of path: String) -> CameraHardware?

    /// The number that a node has in the file system, which changes when the node is made anew; `nil` without the node.
    func inode(of path: String) -> UInt64?

    /// Watches for changes of the nodes; `nil` if that is not possible.
    func makeNodeNotifier() -> NodeNotifier?

    /// Waits until `deadline`, or until `stop` is requested.
    func sleep(until deadline: MonotonicInstant, or stop: StopSignal)

    /// The program, besides the caller, that has the node at `path` open, as in "cheese (pid 4711)".
    ///
    /// `nil` if that cannot be found out.
    func holder(of path: String) -> String?
}

/// The machine that this program runs on, asked through the kernel.
struct KernelCameraSystem: CameraSystem {
    /// Where sysfs is.
    var sysfs = "/sys"

    var now: MonotonicInstant { MonotonicClock.now }

    func nodePaths() -> [String] {
        fileNames(in: "/dev").compactMap { nodeNumber(of: "/dev/\($0)") }.sorted().map { "/dev/video\($0)" }
    }

    func stableLinks() -> [StableLink] {
        ["/dev/v4l/by-id", "/dev/v4l/by-path"].flatMap { folder in
            fileNames(in: folder).sorted().compactMap { name in
                resolve("\(folder)/\(name)").map { StableLink(path: "\(folder)/\(name)", node: $0) }
            }
        }
    }

    func resolve(_ path: String) -> String? {
        guard let resolved = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    func open(_ path: String) throws(SystemCallFailure) -> any V4L2Node {
        try KernelNode(path: path)
    }

    func hardware(of path: String) -> CameraHardware? {
        // Not by its name: a container may have the node under another one.
        var status = stat()
        guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFCHR else { return nil }
        let (major, minor) = (gnu_dev_major(status.st_rdev), gnu_dev_minor(status.st_rdev))
        return CameraHardware(folder: "\(sysfs)/dev/char/\(major):\(minor)", resolve: resolve, read: firstLine)
    }

    func inode(of path: String) -> UInt64? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? UInt64(status.st_ino) : nil
    }

    func makeNodeNotifier() -> NodeNotifier? { NodeNotifier() }

    func sleep(until deadline: MonotonicInstant, or stop: StopSignal) {
        stop.wait(until: deadline)
    }

    func holder(of path: String) -> String? {
        let node = resolve(path) ?? path
        let own = getpid()
        for process in fileNames(in: "/proc").compactMap({ Int32($0) }).sorted() {
            let files = "/proc/\(process)/fd"
            let count = fileNames(in: files).count { linkTarget("\(files)/\($0)") == node }
            // One of our own process's descriptors is the caller's.
            if process == own ? count > 1 : count > 0 {
                let name = process == own ? "this program" : firstLine(of: "/proc/\(process)/comm") ?? "a program"
                return "\(name) (pid \(process))"
            }
        }
        return nil
    }
}

/// The number of the node at `path`, as in `/dev/video3`; `nil` if the path is not that of such a node.
func nodeNumber(of path: String) -> Int? {
    let prefix = "/dev/video"
    let digits = path.dropFirst(prefix.count)
    guard path.hasPrefix(prefix), !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
        return nil
    }
    return Int(digits)
}

/// The names in a folder, in no particular order; empty if the folder cannot be read.
private func fileNames(in folder: String) -> [String] {
    guard let directory = unsafe opendir(folder) else { return [] }
    defer { unsafe closedir(directory) }
    var names: [String] = []
    while let entry = unsafe readdir(directory) {
        let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
            unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != "." && name != ".." { names.append(name) }
    }
    return names
}

private func linkTarget(_ path: String) -> String? {
    // 256 bytes are longer than any path of a video node.
    unsafe withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { bytes -> String? in
        guard let target = unsafe bytes.bindMemory(to: CChar.self).baseAddress else { return nil }
        let length = unsafe readlink(path, target, bytes.count)
        return length < 0 ? nil : unsafe String(decoding: bytes.prefix(length), as: UTF8.self)
    }
}

/// The first line of a small file; `nil` if it is empty or cannot be read.
func firstLine(of path: String) -> String? {
    // Without O_NONBLOCK, opening a pipe waits for its writer.
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { return nil }
    defer { close(file) }
    return unsafe withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { bytes -> String? in
        let length = unsafe read(file, bytes.baseAddress, bytes.count)
        guard length > 0 else { return nil }
        return unsafe String(decoding: bytes.prefix(length).prefix { $0 != 0x0A }, as: UTF8.self)
    }
}
