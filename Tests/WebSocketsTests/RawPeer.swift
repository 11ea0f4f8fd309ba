import Glibc
import Testing

@testable import WebSockets

/// A plain TCP socket that does as a hostile peer does.
final class RawPeer {
    private var descriptor: Int32

    init(port: UInt16, receiveBuffer: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if var size = receiveBuffer {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        var address = loopback(port)
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(status == 0)
    }

    init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { if descriptor >= 0 { close(descriptor) } }

    func send(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    func send(_ text: String) { send(Array(text.utf8)) }

    /// Reads what there is, at least a byte unless the peer has hung up.
    func receive() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(0, count)))
    }

    func receive(count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let more = receive()
            guard !more.isEmpty else { break }
            bytes += more
        }
        return bytes
    }

    /// Reads until the peer hangs up.
    func receiveAll() -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let more = receive()
            guard !more.isEmpty else { return bytes }
            bytes += more
        }
    }

    /// Reads until the peer hangs up or sends a close message.
    func receiveUntilClose() -> [UInt8] {
        var bytes: [UInt8] = []
        while closePayload(of: bytes) == nil {
            let more = receive()
            guard !more.isEmpty else { break }
            bytes += more
        }
        return bytes
    }

    func handshake(subprotocols: String? = "room.v1") throws -> String {
        let line = subprotocols.map { "Sec-WebSocket-Protocol: \($0)\r\n" } ?? ""
        send(
            "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\(line)\r\n"
        )
        var answer: [UInt8] = []
        while !answer.contains("\r\n\r\n".utf8) {
            var byte: UInt8 = 0
            guard recv(descriptor, &byte, 1, 0) == 1 else { break }
            answer.append(byte)
        }
        return String(decoding: answer, as: UTF8.self)
    }

    /// Closes with a reset instead of an end.
    func reset() {
        guard descriptor >= 0 else { return }
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
        close(descriptor)
        descriptor = -1
    }
}

/// What a close frame among a server's frames holds; `nil` if there is none.
func closePayload(of bytes: [UInt8]) -> [UInt8]? {
    var rest = bytes[...]
    while rest.count >= 2 {
        let frame = Array(rest.prefix(10))
        var (header, count) = (2, Int(frame[1]))
        if count >= 126 {
            header = count == 126 ? 4 : 10
            guard frame.count >= header else { return nil }
            count = frame[2..<header].reduce(0) { $0 << 8 | Int($1) }
        }
        guard rest.count >= header + count else { return nil }
        if frame[0] == 0x88 { return Array(rest.dropFirst(header).prefix(count)) }
        rest = rest.dropFirst(header + count)
    }
    return nil
}

/// Bytes that are the same in every run.
struct SeededBytes {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt8 {
        // The constants of Knuth's MMIX generator, whose high bits are the good ones.
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 56)
    }

    mutating func next(count: Int) -> [UInt8] {
        (0..<count).map { _ in next() }
    }
}

/// A masked frame, as a client sends it; the mask is zero.
func frame(opcode: UInt8, final: Bool = true, masked: Bool = true, declared: Int? = nil, _ payload: [UInt8]) -> [UInt8]
{
    let count = declared ?? payload.count
    let mask: UInt8 = masked ? 0x80 : 0
    var bytes = [(final ? 0x80 : 0) | opcode]
    switch count {
    case ..<126: bytes.append(mask | UInt8(count))
    case ..<65_536: bytes += [mask | 126, UInt8(count >> 8), UInt8(count & 255)]
    default: bytes += [mask | 127] + (0..<8).reversed().map { UInt8((count >> ($0 * 8)) & 255) }
    }
    return bytes + (masked ? [0, 0, 0, 0] : []) + payload
}

func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return address
}

/// A listening TCP socket that does not speak WebSocket.
final class RawServer {
    let port: UInt16
    private let descriptor: Int32

    init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = loopback(0)
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(status == 0 && listen(descriptor, 8) == 0)
        self.descriptor = descriptor
        port = SocketAddress(localOf: descriptor).port
    }

    deinit { close(descriptor) }

    func accept() -> RawPeer { RawPeer(descriptor: Glibc.accept(descriptor, nil, nil)) }
}
