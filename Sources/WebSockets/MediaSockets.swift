import CWebSockets
import Glibc

/// The sockets of peers that send media, to see in the middle of a turn which of them can be read.
///
/// Confined to the loop's thread.
@safe final class MediaSockets {
    /// The most sockets that are reported at a time.
    private static let batch = 16

    private let poll: Int32
    private var connections: [Int32: WebSocketConnection] = [:]
    private let events: UnsafeMutablePointer<epoll_event>

    /// - Returns: `nil` if descriptors are short.
    init?() {
        poll = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard poll >= 0 else { return nil }
        unsafe events = .allocate(capacity: Self.batch)
        unsafe events.initialize(repeating: epoll_event(), count: Self.batch)
    }

    deinit {
        close(poll)
        unsafe events.deallocate()
    }

    var isEmpty: Bool { connections.isEmpty }

    /// Watches a connection's socket; without memory it stays unwatched, and is read in its turn.
    func insert(_ connection: WebSocketConnection) {
        var event = unsafe epoll_event()
        unsafe event.events = EPOLLIN.rawValue
        unsafe event.data.fd = connection.socket
        guard unsafe epoll_ctl(poll, EPOLL_CTL_ADD, connection.socket, &event) == 0 else { return }
        connections[connection.socket] = connection
        connection.isMediaSocket = true
    }

    /// Stops watching a connection's socket, also if it has been closed.
    func remove(_ connection: WebSocketConnection) {
        guard connection.isMediaSocket else { return }
        connection.isMediaSocket = false
        connections[connection.socket] = nil
        _ = epoll_ctl(poll, EPOLL_CTL_DEL, connection.socket, nil)
    }

    /// Calls `body` for some sockets that can be read now; `body` may remove any connection.
    ///
    /// The system reports sockets in turns, so that each gets its turn in repeated calls.
    ///
    /// - Returns: Whether there were any.
    func forEachReadable(_ body: (WebSocketConnection) -> Void) -> Bool {
        let count = unsafe Int(epoll_wait(poll, events, Int32(Self.batch), 0))
        guard count > 0 else { return false }
        for index in 0..<count {
            let socket = unsafe events[index].data.fd
            if let connection = connections[socket] { body(connection) }
        }
        return true
    }
}
