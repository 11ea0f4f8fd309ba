import CWebSockets
import Glibc

/// The place at which a socket listens.
package struct ListeningAddress: Hashable, Sendable {
    /// The numeric address; `unix` for a Unix socket.
    package let host: String
    /// The TCP port; 0 for a Unix socket.
    package let port: UInt16
    /// Whether only this machine can reach it.
    package let isLoopback: Bool

    init(_ address: SocketAddress) {
        host = address.text
        port = address.family == AF_UNIX ? 0 : address.port
        isLoopback = address.family == AF_UNIX || address.isLoopback
    }
}

/// A bound, listening socket.
///
/// It is made here rather than by libwebsockets, which cannot say why an address is refused.
struct ListeningSocket: ~Copyable {
    /// The pending connections that the kernel keeps; the kernel limits this to `net.core.somaxconn`.
    private static let backlog: Int32 = 512

    /// Where it listens.
    var address: ListeningAddress { ListeningAddress(SocketAddress(localOf: descriptor)) }
    private let descriptor: Int32

    /// Binds and listens at the place in `options`.
    ///
    /// May be called on any thread; may ask a name server if the host is a name.
    init(_ options: ListenerOptions) throws(WebSocketError) {
        let attempted = "listen at \(options.place)"
        switch options.socket {
        case .tcp: try self.init(options, attempted: attempted)
        case .unix(let path): try self.init(unixPath: path, attempted: attempted)
        case .inherited(let descriptor): try self.init(inherited: descriptor, attempted: attempted)
        }
    }

    private init(unixPath path: String, attempted: String) throws(WebSocketError) {
        guard let address = SocketAddress(unixPath: path) else {
            throw WebSocketError(.badAddress, attempted: attempted, advice: "a path has 1 to 107 bytes.")
        }
        var status = EADDRNOTAVAIL
        var descriptor = Self.bind(address, status: &status)
        if descriptor < 0, status == EADDRINUSE, Self.isSocket(path), Self.isAbandoned(address) {
            unsafe unlink(path)
            descriptor = Self.bind(address, status: &status)
        }
        guard descriptor >= 0 else { throw Self.error(status, attempted: attempted, unixPath: path) }
        // The directory decides who may connect: a proxy often runs as another user.
        unsafe chmod(path, 0o666)
        self.descriptor = descriptor
    }

    private init(inherited descriptor: Int32, attempted: String) throws(WebSocketError) {
        var isListening: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        let status = unsafe getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size)
        guard status == 0, isListening == 1 else {
            throw WebSocketError(.badAddress, attempted: attempted, advice: "it is no socket that listens.")
        }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        self.descriptor = descriptor
    }

    /// Whether a socket is at `path`; a link to one is none.
    private static func isSocket(_ path: String) -> Bool {
        var information = stat()
        return unsafe lstat(path, &information) == 0 && information.st_mode & S_IFMT == S_IFSOCK
    }

    /// Whether `address` is that of a Unix socket at which nobody listens any more.
    ///
    /// It does not wait for a program that listens and does not accept.
    private static func isAbandoned(_ address: SocketAddress) -> Bool {
        let flags = Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | flags, 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        let isConnected = unsafe address.withPointer { unsafe connect(descriptor, $0, $1) == 0 }
        return !isConnected && errno == ECONNREFUSED
    }

    private init(_ options: ListenerOptions, attempted: String) throws(WebSocketError) {
        let addresses: [SocketAddress]
        switch SocketAddress.resolve(host: options.host, port: options.port, isForListening: true) {
        case .success(let found): addresses = found
        case .failure(let failure):
            throw WebSocketError(
                .badAddress,
                attempted: attempted,
                status: failure.status,
                advice: "\(failure.text); give a numeric address of this machine, such as 127.0.0.1."
            )
        }
        try Self.check(addresses, for: options, attempted: attempted)
        var status = EADDRNOTAVAIL
        for address in addresses {
            let descriptor = Self.bind(address, status: &status)
            guard descriptor >= 0 else { continue }
            self.descriptor = descriptor
            return
        }
        throw Self.error(status, attempted: attempted, port: options.port)
    }

    /// Refuses addresses that other machines can reach, if `options` say so.
    ///
    /// A name may have another address now than when it was checked, or had none then.
    private static func check(
        _ addresses: [SocketAddress],
        for options: ListenerOptions,
        attempted: String
    ) throws(WebSocketError) {
        guard options.isLoopbackOnly, let address = addresses.first(where: { !$0.isLoopback }) else { return }
        throw WebSocketError(
            .badAddress,
            attempted: attempted,
            advice: "other machines can reach its address \(address.text); give an address of the loopback interface."
        )
    }

    deinit {
        close(descriptor)
    }

    /// Gives the descriptor to the caller, who must close it.
    consuming func release() -> Int32 {
        let descriptor = descriptor
        discard self
        return descriptor
    }

    /// - Returns: The descriptor, or -1 with `status` set to `errno`.
    private static func bind(_ address: SocketAddress, status: inout Int32) -> Int32 {
        let descriptor = socket(
            address.family,
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue),
            0
        )
        guard descriptor >= 0 else {
            status = errno
            return -1
        }
        var on: Int32 = 1
        let size = socklen_t(MemoryLayout<Int32>.size)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, size)
        if address.family == AF_INET6 {
            var off: Int32 = 0
            unsafe setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &off, size)
        }
        let isBound = unsafe address.withPointer { unsafe Glibc.bind(descriptor, $0, $1) == 0 }
        guard isBound, listen(descriptor, backlog) == 0 else {
            status = errno
            close(descriptor)
            return -1
        }
        return descriptor
    }

    private static func error(_ status: Int32, attempted: String, unixPath path: String) -> WebSocketError {
        let (code, advice): (WebSocketError.Code, String) =
            switch status {
            case EADDRINUSE where isSocket(path):
                (.addressInUse, "another program listens there; choose another path.")
            case EADDRINUSE:
                (.addressInUse, "a file that is no socket is there; choose another path.")
            case ENOENT, ENOTDIR:
                (.noSuchDirectory, "its directory does not exist; create that first (mkdir -p).")
            case EROFS:
                (.permissionDenied, "choose a path where files can be written.")
            case EACCES, EPERM:
                (.permissionDenied, "check the owner and mode of its directory (ls -ld).")
            default:
                (.systemFailure, "\(systemText(status)).")
            }
        return WebSocketError(code, attempted: attempted, status: status, advice: advice)
    }

    private static func error(_ status: Int32, attempted: String, port: UInt16) -> WebSocketError {
        switch status {
        case EADDRINUSE:
            return WebSocketError(
                .addressInUse,
                attempted: attempted,
                status: status,
                advice: "another program listens there (“ss -ltnp” shows which); stop it, or choose another port."
            )
        case EACCES, EPERM:
            return WebSocketError(
                .permissionDenied,
                attempted: attempted,
                status: status,
                advice: "ports below 1024 need the right to bind them; choose a port from 1024 on."
            )
        case EADDRNOTAVAIL, EAFNOSUPPORT:
            return WebSocketError(
                .badAddress,
                attempted: attempted,
                status: status,
                advice: "the address is none of this machine's (“ip address” lists them); 0.0.0.0 means all."
            )
        default:
            return .system(attempted, status: status, advice: "\(systemText(status)).")
        }
    }
}
