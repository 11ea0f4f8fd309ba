import Glibc
package import MediaCore
import Synchronization
import TestTools
import Threading

/// A TCP proxy in front of a server of this machine, which carries only so much to its one client, or from it; the
/// other way is free.
///
/// Its receive buffer is the link's queue. It is small, so that the server notices soon that the link is full.
package final class ThinLink: Sendable {
    /// The way that carries only so much.
    package enum Direction: Sendable {
        case toClient
        case fromClient
    }

    /// The port that the client connects to.
    package let port: UInt16

    /// Bytes in a second.
    private let rate: Double
    private let direction: Direction
    private let isOver = Atomic(false)
    private let worker = Monitor<WorkerThread?>(nil)

    /// Listens for one client of the server at `port`, whom it passes `rate` in one direction.
    package init(to port: UInt16, rate: Bitrate, direction: Direction = .toClient) throws {
        let listener = try SilentServer()
        self.port = listener.port
        self.direction = direction
        self.rate = Double(rate.bitsPerSecond) / 8
        let thread = try WorkerThread(name: "thin-link") { [self] in
            let client = listener.accept()
            guard let server = try? RawPeer(port: port, receiveBuffer: 8192) else { return }
            switch direction {
            case .toClient: pass(from: server, to: client)
            case .fromClient: pass(from: client, to: server)
            }
        }
        worker.withLock { $0 = thread }
    }

    /// Ends the connection, if there is one, and the thread.
    package func stop() {
        isOver.store(true, ordering: .releasing)
        // The thread may still wait for a client.
        _ = try? RawPeer(port: port)
        worker.withLock { $0.take() }?.join()
    }

    private func pass(from sender: RawPeer, to receiver: RawPeer) {
        let burst = 3000.0
        var allowance = burst
        var last = MonotonicClock.now
        while !isOver.load(ordering: .acquiring) {
            let now = MonotonicClock.now
            allowance = min(burst, allowance + now.duration(since: last).seconds * rate)
            last = now
            _ = sender.send(receiver.receiveWithoutWaiting(atMost: 65_536))
            if allowance >= 200 {
                let bytes = sender.receiveWithoutWaiting(atMost: Int(allowance))
                allowance -= Double(bytes.count)
                guard receiver.send(bytes) else { return }
            }
            usleep(3000)
        }
    }
}
