import Foundation
import Glibc
import TestTools
import Testing
import Threading

@testable import WebSockets

@Suite("What the kernel knows of a path")
struct TCPPathTests {
    /// Two connected sockets of the loopback interface.
    private struct Pair: ~Copyable {
        let near: Int32
        let far: Int32

        init() throws {
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { Glibc.close(listener) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            near = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            let near = near
            let isConnected = unsafe withUnsafeMutablePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    unsafe bind(listener, address, length) == 0 && listen(listener, 1) == 0
                        && getsockname(listener, address, &length) == 0 && connect(near, address, length) == 0
                }
            }
            far = accept(listener, nil, nil)
            try #require(isConnected && far >= 0)
        }

        deinit {
            Glibc.close(near)
            Glibc.close(far)
        }
    }

    @Test("The count of packets that the peer has had grows with what is sent")
    func deliveredPackets() async throws {
        let pair = try Pair()
        let path = TCPPath(socket: pair.near)
        let before = try #require(path.deliveredPackets)
        for _ in 0..<20 {
            #expect(unsafe send(pair.near, "x", 1, 0) == 1)
            // Each in a packet of its own.
            usleep(2000)
        }
        let count = try #require(path.deliveredPackets) &- before
        #expect((10...21).contains(count), "\(count)")
    }

    /// Linux has BBR as a module, which may be missing.
    @Test("Only a socket with BBR is asked whether it measures the round trip", arguments: ["bbr", "reno"])
    func algorithm(name: String) throws {
        let pair = try Pair()
        guard TCPPath.set(name, of: pair.near) else { return #expect(name == "bbr", "every Linux has \(name)") }
        let path = TCPPath(socket: pair.near)
        #expect(path.usesBBR == (name == "bbr") && path.congestionControl == name)
    }

    @Test("A congestion control that the system does not have is known as such, and leaves the system's own")
    func unknownAlgorithm() throws {
        #expect(TCPPath.isUsable(congestionControl: "reno"))
        let pair = try Pair()
        let own = try #require(TCPPath(socket: pair.near).congestionControl)
        for name in ["none such", "", String(repeating: "x", count: 100)] {
            #expect(!TCPPath.isUsable(congestionControl: name) && !TCPPath.set(name, of: pair.near))
        }
        #expect(TCPPath(socket: pair.near).congestionControl == own)
    }

    @Test("Both ends of a connection have the congestion control that they were given, and else the system's")
    func connection() throws {
        let system = try String(contentsOfFile: "/proc/sys/net/ipv4/tcp_congestion_control", encoding: .utf8)
        for name in ["reno", nil] {
            let names = Monitor<[String?]>([])
            let whenOpened = { @Sendable (connection: WebSocketConnection) in
                let name = connection.path.congestionControl
                names.change { $0.append(name) }
            }
            var options = ListenerOptions()
            options.congestionControl = name
            let server = try Server(options: options, whenOpened: whenOpened)
            defer { server.loop.shutdown() }
            var client = try server.options()
            client.congestionControl = name
            server.loop.connect(client, handler: Recorder(whenOpened: whenOpened))
            let expected = name ?? system.filter { !$0.isWhitespace }
            #expect(names.wait { $0.count == 2 ? $0 : nil } == [expected, expected])
        }
    }

    @Test("A socket without TCP has no count, and a closed one neither")
    func without() {
        var ends: [Int32] = [0, 0]
        #expect(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        #expect(TCPPath(socket: ends[0]).deliveredPackets == nil && !TCPPath(socket: ends[0]).isMeasuringRoundTrip)
        for end in ends { Glibc.close(end) }
        #expect(TCPPath(socket: -1).deliveredPackets == nil && TCPPath(socket: -1).congestionControl == nil)
    }
}
