import Capture
import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import V4L2Capture

@Suite("Cameras that are announced", .timeLimit(.minutes(1)))
struct CameraWatchTests {
    private func node(_ number: Int, _ inode: UInt64 = 1) -> CameraRoster.Node {
        CameraRoster.Node(path: "/dev/video\(number)", inode: inode)
    }

    private let start = MonotonicInstant(nanoseconds: 1_000_000_000)

    @Test("A node is opened when it is new, and anew when it was made anew")
    func roster() {
        var roster = CameraRoster()
        #expect(roster.look([node(0), node(1)], at: start).unknown == [node(0), node(1)])
        roster.opened(node(0), camera: testDevice)
        roster.opened(node(1), camera: nil)
        #expect(roster.look([node(0), node(1)], at: start).unknown.isEmpty)
        let (gone, unknown) = roster.look([node(0, 2), node(1)], at: start)
        #expect(gone == [testDevice] && unknown == [node(0, 2)])
        roster.opened(node(0, 2), camera: testDevice)
        #expect(roster.look([], at: start).gone == [testDevice] && roster.look([], at: start).gone.isEmpty)
    }

    // It was opened every two seconds for ever.
    @Test("A node that could not be opened is tried ever less often, and at once when nodes change or it is made anew")
    func refused() {
        var roster = CameraRoster()
        let tries = (0..<300).filter { second in
            let now = start + .seconds(second)
            guard roster.look([node(0)], at: now).unknown == [node(0)] else { return false }
            roster.refused(node(0), at: now)
            return true
        }
        #expect(tries.prefix(6) == [0, 1, 3, 7, 15, 31] && tries.count == 14, "\(tries)")
        let late = start + .seconds(299)
        #expect(roster.look([node(0)], at: late).unknown.isEmpty)
        #expect(roster.look([node(0, 2)], at: late).unknown == [node(0, 2)])
        roster.refused(node(0, 2), at: late)
        roster.nodesChanged()
        #expect(roster.look([node(0, 2)], at: late).unknown == [node(0, 2)])
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

    // Its node was looked at once, and the virtual camera of a program that was started later never came.
    @Test("A loopback device is announced when a program begins to write to it, and is gone when that ends, each time")
    func loopback() async throws {
        let card = "Loopback"
        let silent = CameraScript(card: card, driver: "v4l2 loopback", deviceCapabilities: 0x0400_0002)
        let written = CameraScript(card: card, driver: "v4l2 loopback", deviceCapabilities: 0x0400_0001)
        let system = ScriptedSystem(["/dev/video0": CameraScript(), "/dev/video1": silent])
        var changes = CameraSource.deviceChanges(of: system).makeAsyncIterator()
        #expect(await changes.next() == .added(testDevice))
        for _ in 0..<2 {
            system.plug(["/dev/video0": CameraScript(), "/dev/video1": written])
            guard case .added(let device) = await changes.next() else {
                Issue.record("it is announced")
                return
            }
            #expect(device.name == card)
            system.plug(["/dev/video0": CameraScript(), "/dev/video1": silent])
            #expect(await changes.next() == .removed(device))
        }
    }

    @Test("A node that may change is opened at each look, and a change is reported once")
    func changeable() {
        var roster = CameraRoster()
        var told: [CaptureDeviceChange?] = []
        for camera in [nil, testDevice, testDevice, nil, nil] as [CaptureDevice?] {
            #expect(roster.look([node(0)], at: start).unknown == [node(0)])
            told.append(roster.opened(node(0), camera: camera, mayChange: true))
        }
        #expect(told == [nil, .added(testDevice), nil, .removed(testDevice), nil])
        #expect(roster.look([], at: start).gone.isEmpty)
    }

    @Test("Cameras that come, and whose permissions change, are announced when the system tells of it, not at a look")
    func told() async throws {
        let folder = try TemporaryDirectory()
        let (first, second) = (CameraScript(), CameraScript(card: "Second"))
        let system = ScriptedSystem(["/dev/video0": first], usesRealClock: true, nodeFolder: folder.path)
        // The next look comes long after the test's time limit.
        var changes = CameraSource.deviceChanges(of: system, pause: .seconds(3600)).makeAsyncIterator()
        #expect(await changes.next() == .added(testDevice))
        system.plug(["/dev/video0": first], openFailures: ["/dev/video2": EACCES])
        try store("".utf8, at: folder("video2"))
        try await eventually("it is tried") { system.record.withLock { $0.refusals > 0 } }
        system.plug(["/dev/video0": first, "/dev/video2": second])
        #expect(chmod(folder("video2"), 0o600) == 0)
        guard case .added(let device) = await changes.next() else {
            Issue.record("the second camera is announced")
            return
        }
        #expect(device.path == "/dev/video2")
        system.plug(["/dev/video0": first])
        #expect(unlink(folder("video2")) == 0)
        #expect(await changes.next() == .removed(device))
    }

    @Test("The real machine's nodes can be watched, and the watch ends with its reader")
    func realMachine() async throws {
        #expect(KernelCameraSystem().makeNodeNotifier() != nil)
        let reader = Task {
            for await _ in CameraSource.deviceChanges() {}
        }
        try await Task.sleep(for: .milliseconds(20))
        reader.cancel()
        await reader.value
    }
}

/// Changes in a folder as the kernel tells them.
@Suite("The notifier of nodes", .timeLimit(.minutes(1)))
struct NodeNotifierTests {
    private var far: MonotonicInstant { MonotonicClock.now + .seconds(3600) }

    @Test("Each change of a node ends the wait, and changes of other files do not")
    func changes() throws {
        let folder = try TemporaryDirectory()
        let (notifier, stop) = (try #require(NodeNotifier(folder: folder.path)), try StopSignal())
        try store("".utf8, at: folder("video0"))
        #expect(notifier.wait(until: far, or: stop))
        #expect(chmod(folder("video0"), 0o600) == 0)
        #expect(notifier.wait(until: far, or: stop))
        #expect(rename(folder("video0"), folder("video1")) == 0)
        #expect(notifier.wait(until: far, or: stop))
        #expect(unlink(folder("video1")) == 0)
        #expect(notifier.wait(until: far, or: stop))
        while notifier.wait(until: MonotonicClock.now, or: stop) {}
        try store("".utf8, at: folder("tty0"))
        #expect(!notifier.wait(until: MonotonicClock.now + .milliseconds(50), or: stop))
    }

    @Test("A stop ends the wait, and a folder that is not there cannot be watched")
    func stop() throws {
        let folder = try TemporaryDirectory()
        let (notifier, stop) = (try #require(NodeNotifier(folder: folder.path)), try StopSignal())
        stop.request()
        #expect(!notifier.wait(until: far, or: stop))
        #expect(NodeNotifier(folder: folder("absent")) == nil)
    }
}
