import CWebSockets
import Glibc

/// An IPv4 or IPv6 address with a port.
struct SocketAddress: Sendable {
    /// The reason why a name does not resolve.
    struct ResolutionFailure: Error {
        /// A `getaddrinfo` status.
        let status: Int32
        let text: String
    }

    private var storage = sockaddr_storage()
    private var size = socklen_t(0)

    var family: Int32 { Int32(storage.ss_family) }

    /// The address that the socket is bound to.
    init(localOf descriptor: Int32) {
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            _ = unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe getsockname(descriptor, $0, &size)
            }
        }
        self.size = size
    }

    /// The address of a Unix socket; `nil` if `path` is empty or too long for one.
    init?(unixPath path: String) {
        let bytes = Array(path.utf8)
        let offset = MemoryLayout<sa_family_t>.size
        // A path ends with a zero; a path that begins with one has another meaning.
        guard !bytes.isEmpty, !bytes.contains(0), bytes.count < MemoryLayout<sockaddr_un>.size - offset else {
            return nil
        }
        storage.ss_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &storage) { memory in
            for (index, byte) in bytes.enumerated() { unsafe memory[offset + index] = byte }
        }
        size = socklen_t(offset + bytes.count + 1)
    }

    private init(_ source: UnsafePointer<sockaddr>, size: socklen_t) {
        self.size = size
        unsafe withUnsafeMutableBytes(of: &storage) {
            unsafe $0.copyMemory(from: UnsafeRawBufferPointer(start: source, count: Int(size)))
        }
    }

    /// Accepts a connection from a non-blocking listening socket.
    ///
    /// - Returns: The connection's descriptor and the peer's address; `nil` with `errno` set if there is none.
    static func accept(from descriptor: Int32) -> (descriptor: Int32, peer: String)? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                let accepted = unsafe Glibc.accept(descriptor, address, &size)
                guard accepted >= 0 else { return nil }
                _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
                _ = fcntl(accepted, F_SETFL, O_NONBLOCK)
                return (accepted, unsafe SocketAddress(address, size: size).text)
            }
        }
    }

    /// The port, in the machine's byte order.
    var port: UInt16 {
        unsafe withUnsafeBytes(of: storage) {
            // `sin_port` and `sin6_port` are at the same offset.
            unsafe UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
        }
    }

    /// Whether only this machine can reach it.
    var isLoopback: Bool {
        unsafe withUnsafeBytes(of: storage) { bytes in
            // `sin_addr` follows family and port; `sin6_addr` follows a flow label as well.
            guard family == AF_INET6 else { return family == AF_INET && (unsafe bytes[4]) == 127 }
            let address = unsafe bytes[8..<24]
            let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 127]
            return unsafe address.starts(with: mapped) || address.elementsEqual([UInt8](repeating: 0, count: 15) + [1])
        }
    }

    /// Why no connection can be made to an address.
    enum Obstacle: Equatable {
        /// This machine knows no way there; the system's words for that.
        case noWay(String)
        /// The program has no descriptor left; the system's words for that.
        case shortage(String)
    }

    /// Why nothing can be sent to it from here, as far as this machine knows; `nil` if something can be.
    ///
    /// It sends nothing.
    var obstacle: Obstacle? {
        let descriptor = socket(family, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { if descriptor >= 0 { close(descriptor) } }
        if descriptor >= 0, unsafe withPointer({ unsafe connect(descriptor, $0, $1) == 0 }) { return nil }
        let status = errno
        let words = unsafe String(cString: strerror(status))
        guard descriptor < 0 else { return .noWay(words) }
        return switch status {
        case EMFILE, ENFILE, ENOMEM, ENOBUFS: .shortage(words)
        case EAFNOSUPPORT: .noWay(words)
        default: nil
        }
    }

    /// The value of `text` for Unix sockets, whose peers have no addresses.
    static let unixText = "unix"

    /// The numeric address without the port.
    var text: String {
        guard family != AF_UNIX else { return Self.unixText }
        var bytes = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let status = unsafe withPointer {
            unsafe getnameinfo($0, $1, &bytes, socklen_t(bytes.count), nil, 0, NI_NUMERICHOST)
        }
        guard status == 0 else { return "" }
        return unsafe bytes.withUnsafeBufferPointer { unsafe $0.baseAddress.map { unsafe String(cString: $0) } ?? "" }
    }

    func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        unsafe withUnsafePointer(to: storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0, size) }
        }
    }

    /// The addresses of `host`, in the system's order of preference; to listen at the loopback, IPv4 comes first.
    ///
    /// With `isNumericOnly` it fails at once if a name server would have to be asked; otherwise it may block for long.
    static func resolve(
        host: String,
        port: UInt16,
        isForListening: Bool = false,
        isNumericOnly: Bool = false
    ) -> Result<[SocketAddress], ResolutionFailure> {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = (isForListening ? AI_PASSIVE : 0) | (isNumericOnly ? AI_NUMERICHOST : 0)
        var list: UnsafeMutablePointer<addrinfo>?
        let status = unsafe getaddrinfo(host, String(port), &hints, &list)
        guard status == 0 else {
            // RFC 6761, section 6.3: this is the name of the loopback, even if /etc/hosts does not say so.
            if !isNumericOnly && host.lowercased() == "localhost" {
                return .success(
                    ["127.0.0.1", "::1"].flatMap { host in
                        let addresses = resolve(
                            host: host,
                            port: port,
                            isForListening: isForListening,
                            isNumericOnly: true
                        )
                        return (try? addresses.get()) ?? []
                    }
                )
            }
            return .failure(ResolutionFailure(status: status, text: unsafe String(cString: gai_strerror(status))))
        }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = unsafe list
        while let entry = unsafe next {
            if let address = unsafe entry.pointee.ai_addr {
                addresses.append(unsafe SocketAddress(address, size: entry.pointee.ai_addrlen))
            }
            unsafe next = entry.pointee.ai_next
        }
        // A listener has one address. Of this machine alone, that is the one that clients use which are told no other.
        if isForListening, addresses.allSatisfy(\.isLoopback) {
            addresses = addresses.filter { $0.family == AF_INET } + addresses.filter { $0.family != AF_INET }
        }
        return .success(addresses)
    }
}
