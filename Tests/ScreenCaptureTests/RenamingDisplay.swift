import Glibc
import TestTools
import Threading

/// An X server that has an extension of another name: a way to a real server, which is asked for one that it has.
final class RenamingDisplay: Sendable {
    /// The display's name, as in `127.0.0.1:20000`.
    let name: String
    private let socket: SilentServer

    /// A way to `server` on which requests contain `real` instead of `asked`, a name of the same length.
    ///
    /// It takes one connection after the other.
    init(_ server: VirtualDisplay, asked: String, real: String) throws {
        precondition(asked.utf8.count == real.utf8.count)
        let (socket, path) = (try SilentServer(), "/tmp/.X11-unix/X\(server.name.dropFirst())")
        self.socket = socket
        // Displays on the network have ports from 6000 on; the system's free ports lie above.
        name = "127.0.0.1:\(socket.port - 6000)"
        _ = try WorkerThread(name: "renaming display") {
            while let client = socket.acceptUntilStopped() {
                guard let server = try? RawPeer(unixPath: path) else { return }
                client.exchange(with: server) { renamed($0, Array(asked.utf8), Array(real.utf8)) }
            }
        }
    }

    deinit { socket.stop() }
}

/// `bytes` with one name instead of another.
private func renamed(_ bytes: [UInt8], _ name: [UInt8], _ other: [UInt8]) -> [UInt8] {
    var result = bytes
    for start in bytes.indices.dropLast(name.count - 1) where bytes[start..<start + name.count].elementsEqual(name) {
        result.replaceSubrange(start..<start + name.count, with: other)
    }
    return result
}
