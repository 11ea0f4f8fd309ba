import Capture
import MediaCore
import RoomKit
import TestSupport
import TestTools
import Testing
import Threading

@testable import ScreenCapture

/// A display that is reached through TCP, as with `ssh -X`: pixels come through the connection.
@Suite("A remote display", .timeLimit(.minutes(1)))
struct RemoteDisplayTests {
    // xcb waits for the rest of a picture without a limit, and the source, its track and its room never ended.
    @Test("A source stops while a picture is stuck on its way")
    func stuckPicture() async throws {
        let display = try await VirtualDisplay()
        let link = try DisplayLink(to: display)
        let source = ScreenSource(target: .screen, display: link.display, showsCursor: false)
        let sink = LastFrame()
        try await source.startCapture(for: sink)
        try await eventually("the screen") { sink.now.count > 0 }
        link.isStopping.change { $0 = true }
        try display.fill(display.root, PixelArea(whole: Dimensions(width: 640, height: 480)), 0x2030D0)
        try await eventually("a picture is stuck") { link.isStuck }
        await source.stopCapture(for: sink)
        #expect(source.failure == nil)
        link.isReleased.change { $0 = true }
    }
}

/// Passes on what a client and a display's server send, until it stops in the middle of a picture.
private final class DisplayLink: Sendable {
    /// The name for the client.
    let display: String
    /// Whether the next picture gets stuck.
    let isStopping = Monitor(false)
    /// Ends the standstill.
    let isReleased = Monitor(false)
    private let stuck = Monitor(false)

    var isStuck: Bool { stuck.withLock { $0 } }

    init(to display: VirtualDisplay) throws {
        // Display n of TCP listens at port 6000 + n.
        let number = try #require((100..<200).first { (try? SilentServer(port: 6000 + UInt16($0))) != nil })
        let listener = try SilentServer(port: 6000 + UInt16(number))
        self.display = "127.0.0.1:\(number)"
        let socket = "/tmp/.X11-unix/X\(display.name.dropFirst())"
        let (isStopping, isReleased, stuck) = (isStopping, isReleased, stuck)
        _ = try WorkerThread(name: "display link") {
            guard let client = listener.acceptUntilStopped(), let server = try? RawPeer(unixPath: socket) else {
                return
            }
            server.exchange(with: client) { bytes in
                guard isStopping.withLock({ $0 }), bytes.count > 4096 else { return bytes }
                client.send(Array(bytes.prefix(1000)))
                stuck.change { $0 = true }
                _ = isReleased.wait { $0 ? true : nil }
                return []
            }
        }
    }
}
