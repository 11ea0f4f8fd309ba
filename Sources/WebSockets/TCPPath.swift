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

    /// The congestion control for media whose sender follows the path itself, where the system has it.
    ///
    /// BBR holds back what is sent every 10 s. Over emulated links, publishers used 3 to 17 % more of the link with
    /// CUBIC than with BBR, at a lower 95th percentile of the delay (docs/benchmarks/network.md).
    package static let latencyControl = "cubic"

    /// Sets the congestion control of a socket, if the system allows it.
    ///
    /// - Returns: Whether it is set.
    @discardableResult
    static func set(_ congestionControl: String, of socket: Int32) -> Bool {
        var name = congestionControl
        return name.withUTF8 { bytes in
            unsafe setsockopt(
                socket,
                Int32(IPPROTO_TCP),
                TCP_CONGESTION,
                bytes.baseAddress,
                socklen_t(bytes.count)
            ) == 0
        }
    }

    /// Whether this program may use a congestion control; the system allows those of
    /// `/proc/sys/net/ipv4/tcp_allowed_congestion_control`, and root may use all that it has.
    package static func isUsable(congestionControl name: String) -> Bool {
        let descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { Glibc.close(descriptor) }
        return set(name, of: descriptor)
    }

    /// The name of the socket's congestion control; `nil` on sockets without TCP.
    package var congestionControl: String? {
        unsafe withUnsafeTemporaryAllocation(byteCount: Self.longestName, alignment: 1) { name in
            var length = socklen_t(name.count)
            guard unsafe getsockopt(socket, Int32(IPPROTO_TCP), TCP_CONGESTION, name.baseAddress, &length) == 0 else {
                return nil
            }
            return unsafe String(decoding: name.prefix(Int(length)).prefix { $0 != 0 }, as: UTF8.self)
        }
    }

    /// `TCP_CA_NAME_MAX` of linux/tcp.h.
    private static let longestName = 16

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
