import CWebSockets
import Glibc

/// A socket whose peer has not sent the whole first line of its request yet.
struct AwaitedRequest {
    let descriptor: Int32
    let watcher: ReadWatcher
    /// The number of bytes seen so far.
    var count = 0

    /// Closes the socket.
    func drop() {
        watcher.stop()
        close(descriptor)
    }
}

/// Reads a client's requested path before libwebsockets does.
///
/// libwebsockets decodes the path and merges its segments, so "/rooms/a%2Fb" would look like "/rooms/a/b". The first
/// line is therefore read while it still lies in the socket, without taking anything out. This would not work for a
/// request over TLS.
extension WebSocketConnection {
    /// Waits for a request on `descriptor`, which the connection owns until libwebsockets does.
    func awaitRequest(on descriptor: Int32, timeout: Duration) {
        guard let events = service.events else {
            Glibc.close(descriptor)
            return service.wsiDestroyed(of: self)
        }
        let watcher = ReadWatcher(descriptor) { [unowned self] in requestArrives() }
        awaitedRequest = AwaitedRequest(descriptor: descriptor, watcher: watcher)
        watcher.start(on: events)
        setTimer(after: timeout)
    }

    private func requestArrives() {
        guard let request = awaitedRequest, case .accepted(let listener) = role else { return }
        // The watcher calls again in the next turn.
        guard service.budget.admitsHandshake() else { return }
        let limit = RequestLine.maximumCount
        let (count, path) = unsafe withUnsafeTemporaryAllocation(byteCount: limit, alignment: 1) { memory in
            let count = unsafe recv(request.descriptor, memory.baseAddress, limit, Int32(MSG_PEEK | MSG_DONTWAIT))
            let seen = unsafe UnsafeRawBufferPointer(rebasing: memory.prefix(max(0, count)))
            return (count, unsafe RequestLine.path(in: seen))
        }
        if count < 0 && (errno == EAGAIN || errno == EINTR) { return }
        // If there are no new bytes, the peer has ended its sending, or the connection has failed.
        guard count > request.count else { return service.wsiDestroyed(of: self) }
        guard let path else {
            awaitedRequest?.count = count
            return count < limit ? awaitMore(than: count, on: request.descriptor) : refuseLine(on: request.descriptor)
        }
        awaitMore(than: 0, on: request.descriptor)
        request.watcher.stop()
        awaitedRequest = nil
        requestPath = path
        listener.adopt(request.descriptor, for: self)
    }

    /// Makes the system call the socket readable only when there are more than `count` bytes, or when no more can come.
    private func awaitMore(than count: Int, on descriptor: Int32) {
        var least = Int32(count + 1)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVLOWAT, &least, socklen_t(MemoryLayout<Int32>.size))
    }

    private func refuseLine(on descriptor: Int32) {
        let answer: StaticString = "HTTP/1.1 414 URI Too Long\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        _ = unsafe send(descriptor, answer.utf8Start, answer.utf8CodeUnitCount, Int32(MSG_NOSIGNAL))
        service.wsiDestroyed(of: self)
    }
}
