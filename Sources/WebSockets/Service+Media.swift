import CWebSockets
import Glibc
import MediaCore
import Threading

/// Media first: in the middle of a turn that takes long, media are read and sent.
///
/// Thousands of busy peers can make a turn of the loop long, although each of them gets only a small share of it.
extension Service {
    /// The longest time that peers with media may take before other work goes on.
    private static let mediaShare = Duration.milliseconds(1)

    /// Reads and sends media as soon as the current callback returns, if this turn of the loop already takes long.
    func workIsDone() {
        guard let mediaSockets, !mediaSockets.isEmpty else { return }
        interruption?.requestIfDue()
    }

    /// Reads from the peers that send media, and sends what is urgent; must not be called in one of libwebsockets'
    /// callbacks.
    func serveMedia() {
        if let mediaSockets, !mediaSockets.isEmpty {
            let start = MonotonicClock.now
            while mediaSockets.forEachReadable({ read(from: $0) }) {
                if MonotonicClock.now.duration(since: start) >= Self.mediaShare { break }
            }
        }
        senders.sendUrgent()
    }

    /// Reads once from a peer, unless its messages have to wait.
    ///
    /// A peer that is not read here must not be reported again and again; it is watched again from its next packet on.
    private func read(from connection: WebSocketConnection) {
        guard let context = unsafe context, connection.phase == .open, connection.deferred.isEmpty else {
            mediaSockets?.remove(connection)
            return
        }
        // libev's callback for the socket does the same; it then finds nothing more to read.
        var event = pollfd(fd: connection.socket, events: Int16(POLLIN), revents: Int16(POLLIN))
        _ = unsafe lws_service_fd(context, &event)
    }
}
