import Glibc
import TestTools

/// A Wayland compositor that has nothing: it answers that its list of what it has is complete.
package final class BareCompositor: Sendable {
    /// What `WAYLAND_DISPLAY` is then.
    package let path: String

    private let descriptor: Int32

    /// Listens at `path` for one client.
    package init(at path: String) throws {
        self.path = path
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let status = withUnixAddress(path) { bind(descriptor, $0, $1) }
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        guard status == 0, listen(descriptor, 1) == 0 else { throw TestFailure("no socket at \(path): errno \(errno)") }
    }

    /// Takes the client, reads its requests for the list (12 bytes) and for a sign of its end (12 bytes), and gives the
    /// sign: the event `done` of the client's object 3, which has 12 bytes.
    package func answer() -> Bool {
        let client = RawPeer(descriptor: accept(descriptor, nil, nil))
        guard client.receive(exactly: 24).count == 24 else { return false }
        let words: [UInt32] = [3, 12 << 16, 0]
        return client.send(words.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } })
            && client.receiveUntilClose().isEmpty
    }

    deinit {
        close(descriptor)
        unlink(path)
    }
}
