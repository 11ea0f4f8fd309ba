import CWebSockets
import Glibc

/// What the kernel knows of the path of a connection over TCP.
///
/// May be asked on any thread while the connection is open. Later, the answers may be those of another socket.
package struct TCPPath: Sendable {
    let socket: Int32
    /// Whether BBR decides what is sent when; it is asked once, because nobody changes that later.
    let usesBBR: Bool

    /// The path of a connected socket.
    init(socket: Int32) {
        self.socket = socket
        usesBBR = Self.windowGain(of: socket) != nil
    }

    private init() {
        socket = -1
        usesBBR = false
    }

    /// That of no socket, of which nothing is known.
    static let none = TCPPath()

    /// Whether TCP holds back what is sent, to measure the round trip: the queue then says nothing of the path.
    ///
    /// BBR does so for 0.2 s and a round trip every 10 s, with four packets on their way (Linux, `net/ipv4/tcp_bbr.c`,
    /// `BBR_PROBE_RTT`). `false` with other algorithms, and on sockets without TCP.
    package var isMeasuringRoundTrip: Bool { usesBBR && Self.windowGain(of: socket) == Self.unitGain }

    /// The gain of BBR's window; `nil` with other algorithms, and on sockets without TCP.
    private static func windowGain(of socket: Int32) -> UInt32? {
        // `struct tcp_bbr_info` of linux/inet_diag.h; the length tells it from what other algorithms answer.
        var info = (
            bandwidthLow: UInt32(0), bandwidthHigh: UInt32(0), minimum: UInt32(0), pacing: UInt32(0), window: UInt32(0)
        )
        let size = socklen_t(MemoryLayout.size(ofValue: info))
        var length = size
        guard unsafe getsockopt(socket, Int32(IPPROTO_TCP), TCP_CC_INFO, &info, &length) == 0, length == size else {
            return nil
        }
        return info.window
    }

    /// How many packets the peer has had in all, also behind a lost one; wraps.
    ///
    /// `nil` on sockets without TCP, and on Linux before 4.18.
    package var deliveredPackets: UInt32? {
        let end = Self.deliveredOffset + MemoryLayout<UInt32>.size
        return unsafe withUnsafeTemporaryAllocation(byteCount: end, alignment: 8) { info in
            var length = socklen_t(end)
            guard unsafe getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, info.baseAddress, &length) == 0,
                length == end
            else { return nil }
            return unsafe info.load(fromByteOffset: Self.deliveredOffset, as: UInt32.self)
        }
    }

    /// The time since the peer's kernel last acknowledged anything; `nil` on sockets without TCP.
    var timeSinceAcknowledgement: Duration? {
        var info = tcp_info()
        var length = socklen_t(MemoryLayout.size(ofValue: info))
        guard unsafe getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, &info, &length) == 0 else { return nil }
        return .milliseconds(info.tcpi_last_ack_recv)
    }

    /// The window's gain of 1, which BBR has while it measures the round trip and never else (`BBR_UNIT`).
    private static let unitGain: UInt32 = 256

    /// Where `struct tcp_info` of linux/tcp.h has `tcpi_delivered`; that of glibc ends before.
    private static let deliveredOffset = 192
}
