import Capture
import Glibc
import MediaCore
import Testing

@testable import V4L2Capture

@Suite("Cameras that are announced", .timeLimit(.minutes(1)))
struct CameraWatchTests {
    private func node(_ number: Int, _ inode: UInt64 = 1) -> CameraRoster.Node {
        CameraRoster.Node(path: "/dev/video\(number)", inode: inode)
    }

    @Test("A node is opened when it is new, again when it was refused, and anew when it was made anew")
    func roster() {
        var roster = CameraRoster()
        #expect(roster.look([node(0), node(1)]).unknown == [node(0), node(1)])
        roster.opened(node(0), camera: testDevice)
        // The second could not be opened.
        #expect(roster.look([node(0), node(1)]).unknown == [node(1)])
        roster.opened(node(1), camera: nil)
        #expect(roster.look([node(0), node(1)]).unknown.isEmpty)
        let (gone, unknown) = roster.look([node(0, 2), node(1)])
        #expect(gone == [testDevice] && unknown == [node(0, 2)])
        roster.opened(node(0, 2), camera: testDevice)
        #expect(roster.look([]).gone == [testDevice] && roster.look([]).gone.isEmpty)
    }

    @Test(
        "Cameras there are, that come, that may be opened only later, and that go are announced, and nodes of others not"
    )
    func changes() async throws {
        let metadata = CameraScript(deviceCapabilities: 0x0080_0000)
        let system = ScriptedSystem(["/dev/video0": CameraScript(), "/dev/video1": metadata])
        var changes = CameraSource.deviceChanges(of: system).makeAsyncIterator()
        #expect(await changes.next() == .added(testDevice))
        system.plug(["/dev/video0": CameraScript()], openFailures: ["/dev/video2": EACCES])
        try await Task.sleep(for: .milliseconds(50))
        system.plug(["/dev/video0": CameraScript(), "/dev/video2": CameraScript(card: "Second")])
        guard case .added(let second) = await changes.next() else {
            Issue.record("the second camera is announced")
            return
        }
        #expect(second.path == "/dev/video2" && second.name == "Second")
        // Another camera takes the number between two looks.
        system.plug(["/dev/video0": CameraScript(card: "Third")], inodes: ["/dev/video0": 7])
        #expect(await changes.next() == .removed(testDevice))
        #expect(await changes.next() == .removed(second))
        guard case .added(let third) = await changes.next() else {
            Issue.record("the third camera is announced")
            return
        }
        #expect(third.name == "Third")
    }

    @Test("The real machine's nodes can be watched, and the watch ends with its reader")
    func realMachine() async throws {
        let reader = Task {
            var count = 0
            for await _ in CameraSource.deviceChanges() { count += 1 }
            return count
        }
        try await Task.sleep(for: .milliseconds(20))
        reader.cancel()
        #expect(await reader.value >= 0)
    }
}
