import CWebSockets
import Glibc
import MediaCore

/// A socket whose peer has not sent the whole first line of its request yet.
struct AwaitedRequest {
    let descriptor: Int32
    let watcher: ReadWatcher
    /// Starts the watcher again after a pause.
    let pauseTimer: LoopTimer
    /// The number of bytes seen so far.
    var count = 0
    /// The next pause without new bytes.
    var pause = Self.shortestPause

    /// The first pause: so small a part of a connection's set-up that nobody notices it.
    static let shortestPause = Duration.milliseconds(5)

    /// Closes the socket.
    func drop() {
        watcher.stop()
        pauseTimer.stop()
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
        let pauseTimer = LoopTimer { [unowned self] in
            if let events = service.events { awaitedRequest?.watcher.start(on: events) }
        }
        awaitedRequest = AwaitedRequest(descriptor: descriptor, watcher: watcher, pauseTimer: pauseTimer)
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
        guard count > request.count else {
            return count == request.count && !hasEnded(request.descriptor)
                ? pauseReading(request) : service.wsiDestroyed(of: self)
        }
        guard let path else {
            awaitedRequest?.count = count
            awaitedRequest?.pause = AwaitedRequest.shortestPause
            return count < limit ? awaitMore(than: count, on: request.descriptor) : refuseLine(on: request.descriptor)
        }
        awaitMore(than: 0, on: request.descriptor)
        request.watcher.stop()
        request.pauseTimer.stop()
        awaitedRequest = nil
        requestPath = path
        listener.adopt(request.descriptor, for: self)
    }

    /// Whether the peer has ended its sending, or the connection has failed.
    private func hasEnded(_ descriptor: Int32) -> Bool {
        // Glibc's module lacks POLLRDHUP, because its header wants _GNU_SOURCE; it is the same bit.
        var file = pollfd(fd: descriptor, events: Int16(EPOLLRDHUP.rawValue), revents: 0)
        return unsafe poll(&file, 1, 0) > 0
    }

    /// Looks at the socket again after a while, which doubles each time.
    ///
    /// A peer that pauses within its first line thus waits at most as long again, and one that says no more costs
    /// next to nothing.
    private func pauseReading(_ request: AwaitedRequest) {
        guard let events = service.events else { return }
        request.watcher.stop()
        request.pauseTimer.start(on: events, after: request.pause)
        awaitedRequest?.pause = request.pause * 2
    }

    /// Makes the system call the socket readable only when there are more than `count` bytes, or when no more can come.
    ///
    /// It does not do so for Unix sockets, nor for TCP when memory for received bytes is short.
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
