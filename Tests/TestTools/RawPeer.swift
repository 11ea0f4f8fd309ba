package import Glibc

/// A plain TCP socket for acting like a hostile peer; its calls block, and give up after some seconds.
package final class RawPeer {
    private var descriptor: Int32

    /// Connects to a port of this machine, with a receive buffer of `receiveBuffer` bytes.
    package init(port: UInt16, receiveBuffer: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        if var size = receiveBuffer {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = loopback(port)
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw TestFailure("no connection to port \(port): errno \(errno)") }
    }

    /// Connects to the Unix socket at `path`.
    package init(unixPath path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let status = withUnixAddress(path) { connect(descriptor, $0, $1) }
        guard status == 0 else { throw TestFailure("no connection to \(path): errno \(errno)") }
    }

    /// Takes a connected socket over.
    package init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// The result of a call that is made again when a stop of this process interrupted it, as it does calls with a
    /// limit.
    private func uninterrupted(_ call: () -> Int) -> Int {
        while true {
            let result = call()
            guard result < 0, errno == EINTR else { return result }
        }
    }

    /// Sends all of `bytes`, unless the peer hangs up.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = uninterrupted {
                rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Sends a text as it is, outside of any message.
    package func send(_ text: String) { send(Array(text.utf8)) }

    /// Sends what the socket takes at once; gives the number of bytes, negative once the peer has hung up.
    package func sendWithoutWaiting(_ bytes: [UInt8]) -> Int {
        let count = bytes.withUnsafeBytes {
            Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        }
        return count < 0 && errno == EAGAIN ? 0 : count
    }

    /// Sends a text message.
    @discardableResult
    package func send(text: String) -> Bool { send(clientFrame(opcode: 1, Array(text.utf8))) }

    /// Passes on what this peer sends, changed by `change`, and what `other` sends, until one of them hangs up.
    package func exchange(with other: RawPeer, _ change: ([UInt8]) -> [UInt8]) {
        while true {
            var files = [descriptor, other.descriptor].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            guard uninterrupted({ Int(poll(&files, 2, -1)) }) > 0 else { return }
            for (file, (sender, receiver)) in zip(files, [(self, other), (other, self)]) where file.revents != 0 {
                let bytes = sender.receive()
                guard !bytes.isEmpty, receiver.send(sender === self ? change(bytes) : bytes) else { return }
            }
        }
    }

    /// Reads what there is, at least a byte unless the peer has hung up.
    package func receive(atMost count: Int = 65_536) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let count = uninterrupted { recv(descriptor, &bytes, bytes.count, 0) }
        return Array(bytes.prefix(max(0, count)))
    }

    /// Reads `count` bytes, fewer if the peer hangs up.
    package func receive(count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let more = receive()
            guard !more.isEmpty else { break }
            bytes += more
        }
        return bytes
    }

    /// Reads `count` bytes and no more, fewer if the peer hangs up.
    package func receive(exactly count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let more = receive(atMost: count - bytes.count)
            guard !more.isEmpty else { break }
            bytes += more
        }
        return bytes
    }

    /// Reads until the peer sends a close message or hangs up.
    package func receiveUntilClose() -> [UInt8] { receive { closePayload(of: $0) != nil } }

    /// Reads until `isEnough` holds for all that came, or the peer hangs up.
    package func receive(until isEnough: ([UInt8]) -> Bool) -> [UInt8] {
        var bytes: [UInt8] = []
        while !isEnough(bytes) {
            let more = receive()
            guard !more.isEmpty else { break }
            bytes += more
        }
        return bytes
    }

    /// Reads what is there without waiting.
    package func receiveWithoutWaiting(atMost count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        return Array(bytes.prefix(max(0, count)))
    }

    /// Reads until the peer hangs up.
    package func receiveAll() -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let more = receive()
            guard !more.isEmpty else { return bytes }
            bytes += more
        }
    }

    /// Reads until the peer hangs up; returns the close code of its close message, which may be in what was read
    /// `earlier`.
    package func closeCode(after earlier: [UInt8] = []) -> Int? {
        guard let payload = closePayload(of: earlier + receiveAll()), payload.count >= 2 else { return nil }
        return Int(payload[0]) << 8 | Int(payload[1])
    }

    /// Sends a WebSocket handshake that offers `subprotocols`, with more `headers`; the head of the answer.
    @discardableResult
    package func handshake(
        subprotocols: String? = "room.v1",
        path: String = "/",
        host: String = "x",
        headers: [String] = []
    ) -> String {
        let lines = (subprotocols.map { ["Sec-WebSocket-Protocol: \($0)"] } ?? []) + headers
        let line = lines.map { "\($0)\r\n" }.joined()
        let request =
            "GET \(path) HTTP/1.1\r\nHost: \(host)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\(line)\r\n"
        send(Array(request.utf8))
        var answer: [UInt8] = []
        while answer.suffix(4) != [13, 10, 13, 10] {
            let byte = receive(atMost: 1)
            guard !byte.isEmpty else { break }
            answer += byte
        }
        return String(decoding: answer, as: UTF8.self)
    }

    /// Shuts down sending; data from the peer can still be read.
    package func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Ends with a reset instead of an orderly close.
    package func reset() {
        guard descriptor >= 0 else { return }
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
        close(descriptor)
        descriptor = -1
    }
}

/// Calls `body` with the address of the Unix socket at `path`.
package func withUnixAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
}

/// The messages of a server among the bytes that it sent; one that is cut is left out.
package func messages(in bytes: [UInt8]) -> [(opcode: UInt8, payload: [UInt8])] {
    var found: [(opcode: UInt8, payload: [UInt8])] = []
    var rest = bytes[...]
    while rest.count >= 2 {
        let head = Array(rest.prefix(10))
        var (header, count) = (2, Int(head[1]))
        if count >= 126 {
            header = count == 126 ? 4 : 10
            guard head.count >= header else { break }
            count = head[2..<header].reduce(0) { $0 << 8 | Int($1) }
        }
        guard rest.count >= header + count else { break }
        found.append((head[0] & 15, Array(rest.dropFirst(header).prefix(count))))
        rest = rest.dropFirst(header + count)
    }
    return found
}

/// The contents of the last close message among a server's messages; `nil` if there is none.
package func closePayload(of bytes: [UInt8]) -> [UInt8]? {
    messages(in: bytes).last { $0.opcode == 8 }?.payload
}

/// A frame as a client sends it, with a mask of zeros; `declared` is the length that its header claims.
package func clientFrame(
    opcode: UInt8,
    isFinal: Bool = true,
    isMasked: Bool = true,
    declared: Int? = nil,
    _ payload: [UInt8]
) -> [UInt8] {
    let count = declared ?? payload.count
    let mask: UInt8 = isMasked ? 0x80 : 0
    var bytes: [UInt8] = [(isFinal ? 0x80 : 0) | opcode]
    switch count {
    case ..<126: bytes.append(mask | UInt8(count))
    case ..<65_536: bytes += [mask | 126, UInt8(count >> 8), UInt8(count & 255)]
    default: bytes += [mask | 127] + (0..<8).reversed().map { UInt8((count >> ($0 * 8)) & 255) }
    }
    return bytes + (isMasked ? [0, 0, 0, 0] : []) + payload
}

/// A listening TCP socket that sends nothing, or `greeting`, to each client that connects.
package final class SilentServer: Sendable {
    /// The port.
    package let port: UInt16
    private let descriptor: Int32

    /// Listens at a free port, or at `port`.
    package init(port: UInt16 = 0) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = loopback(port)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = descriptor
        let status = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(socket, address, length) == 0 && listen(socket, 8) == 0
                    && getsockname(socket, address, &length) == 0
            }
        }
        guard status else { throw TestFailure("cannot listen: errno \(errno)") }
        self.port = UInt16(bigEndian: address.sin_port)
    }

    deinit { close(descriptor) }

    /// Takes a connection.
    package func accept() -> RawPeer { RawPeer(descriptor: Glibc.accept(descriptor, nil, nil)) }

    /// Takes a connection; `nil` once `stop` has been called.
    package func acceptUntilStopped() -> RawPeer? {
        let peer = Glibc.accept(descriptor, nil, nil)
        return peer < 0 ? nil : RawPeer(descriptor: peer)
    }

    /// Takes no more connections, and ends a wait for one.
    package func stop() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Takes a connection, sends it `bytes` and hangs up.
    package func answer(_ bytes: [UInt8]) {
        let peer = Glibc.accept(descriptor, nil, nil)
        guard peer >= 0 else { return }
        // Read first: closing with unread bytes would reset the connection, and the answer would be lost.
        var request = [UInt8](repeating: 0, count: 4096)
        _ = recv(peer, &request, request.count, 0)
        _ = Glibc.send(peer, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        close(peer)
    }
}

/// An address at which a request for a connection gets no answer, as behind a firewall that swallows packets.
///
/// The queue of its socket is full, so that the system ignores what comes.
package final class UnansweringServer: Sendable {
    /// The numeric address.
    package let host: String
    private let descriptors: [Int32]

    /// Takes `port` of `host`, an address of the loopback's network.
    package init(host: String, port: UInt16) throws {
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        var address = loopback(port)
        address.sin_addr.s_addr = inet_addr(host)
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        // The last peers are more than the queue holds.
        let descriptors = (0..<6).map { _ in socket(AF_INET, kind, 0) }
        self.host = host
        self.descriptors = descriptors
        let isListening = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard bind(descriptors[0], address, size) == 0, listen(descriptors[0], 0) == 0 else { return false }
                for peer in descriptors.dropFirst() { _ = connect(peer, address, size) }
                return true
            }
        }
        guard isListening else { throw TestFailure("cannot listen at \(host):\(port): errno \(errno)") }
    }

    deinit { for descriptor in descriptors { close(descriptor) } }
}

private func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return address
}
