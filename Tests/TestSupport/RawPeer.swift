import Glibc
package import RoomProtocol

/// A plain TCP socket that does as a hostile peer does; its calls block, and give up after some seconds.
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

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Sends all of `bytes`, unless the peer hangs up.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

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

    /// Reads what there is, at least a byte unless the peer has hung up.
    package func receive(atMost count: Int = 65_536) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(0, count)))
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

    /// Reads until the peer hangs up; the close code of the message with which it said why.
    package func closeCode() -> Int? {
        guard let close = messages(in: receiveAll()).last(where: { $0.opcode == 8 }) else { return nil }
        let payload = close.payload
        return payload.count >= 2 ? Int(payload[0]) << 8 | Int(payload[1]) : nil
    }

    /// Sends a WebSocket handshake; the status line of the answer.
    @discardableResult
    package func handshake(subprotocol: String? = "room.v1") -> String {
        let line = subprotocol.map { "Sec-WebSocket-Protocol: \($0)\r\n" } ?? ""
        let request =
            "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\(line)\r\n"
        send(Array(request.utf8))
        var answer: [UInt8] = []
        while answer.suffix(4) != [13, 10, 13, 10] {
            let byte = receive(atMost: 1)
            guard !byte.isEmpty else { break }
            answer += byte
        }
        return String(decoding: answer.prefix { $0 != 13 }, as: UTF8.self)
    }

    /// Ends with a reset instead of an orderly close.
    package func reset() {
        guard descriptor >= 0 else { return }
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
        close(descriptor)
        descriptor = -1
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

/// A frame as a client sends it, with a mask of zeros; `declared` is the length that its header claims.
package func clientFrame(opcode: UInt8, declared: Int? = nil, _ payload: [UInt8]) -> [UInt8] {
    let count = declared ?? payload.count
    var bytes: [UInt8] = [0x80 | opcode]
    switch count {
    case ..<126: bytes.append(0x80 | UInt8(count))
    case ..<65_536: bytes += [0x80 | 126, UInt8(count >> 8), UInt8(count & 255)]
    default: bytes += [0x80 | 127] + (0..<8).reversed().map { UInt8((count >> ($0 * 8)) & 255) }
    }
    return bytes + [0, 0, 0, 0] + payload
}

/// A listening TCP socket that says nothing, or `greeting`, to whoever connects.
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

    /// Takes a connection, sends it `bytes` and hangs up.
    package func answer(_ bytes: [UInt8]) {
        let peer = accept(descriptor, nil, nil)
        guard peer >= 0 else { return }
        // What came is read first: a close with unread bytes would be a reset, and the answer lost.
        var request = [UInt8](repeating: 0, count: 4096)
        _ = recv(peer, &request, request.count, 0)
        _ = Glibc.send(peer, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        close(peer)
    }
}

private func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return address
}

/// Bytes that are the same in every run.
package struct SeededBytes {
    private var state: UInt64

    /// The bytes of `seed`.
    package init(seed: UInt64) { state = seed }

    /// The next `count` bytes.
    package mutating func next(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in
            // The constants of Knuth's MMIX generator, whose high bits are the good ones.
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
    }
}

extension RawPeer {
    /// Connects and joins `room` of the relay at `port`, without reading the answer.
    package convenience init(
        joining room: String,
        as identity: String,
        port: UInt16,
        receiveBuffer: Int32? = nil
    ) throws {
        try self.init(port: port, receiveBuffer: receiveBuffer)
        handshake()
        send(text: ClientMessage.join(Join(room: room, identity: identity)).text)
    }

    /// Reads messages until `pick` makes something of one; `nil` if the peer hangs up before.
    package func message<Value>(_ pick: (ServerMessage) -> Value?) -> Value? {
        var bytes: [UInt8] = []
        while true {
            let more = receive()
            guard !more.isEmpty else { return nil }
            bytes += more
            for message in messages(in: bytes) where message.opcode == 1 {
                let text = String(decoding: message.payload, as: UTF8.self)
                if let server = try? ServerMessage(reading: text), let value = pick(server) { return value }
            }
        }
    }

    /// Publishes a track and gives the alias for its packets.
    package func publish(_ name: String) -> UInt32? {
        let request = Publish(requestId: 1, name: name, source: "other", width: 320, height: 180, frameRate: 30)
        send(text: ClientMessage.publish(request).text)
        return message { if case .published(let body) = $0 { body.track.alias } else { nil } }
    }
}
