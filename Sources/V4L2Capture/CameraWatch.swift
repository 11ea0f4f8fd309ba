import CV4L2
import Glibc
import MediaCore
import Threading

extension CameraSource {
    /// The cameras that there are, and then those that are plugged in and unplugged.
    ///
    /// Begins with `added` for each camera that can be opened. A camera whose node this user may not open yet is added
    /// as soon as it may. Nodes are opened once, when they are new. Each call makes a stream of its own, with a thread
    /// that ends with the stream. It buffers the 256 newest unread changes. It is empty if the system has no thread
    /// left.
    public static func deviceChanges() -> AsyncStream<CaptureDeviceChange> {
        deviceChanges(of: KernelCameraSystem())
    }

    static func deviceChanges(of system: any CameraSystem) -> AsyncStream<CaptureDeviceChange> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: CaptureDeviceChange.self,
            bufferingPolicy: .bufferingNewest(256)
        )
        guard let stop = try? StopSignal() else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { _ in stop.request() }
        do throws(ThreadShortage) {
            // The thread ends soon after the stop; nobody has to wait for it.
            _ = try WorkerThread(name: "camera watch") {
                CameraWatch(system: system, stop: stop).run { continuation.yield($0) }
                continuation.finish()
            }
        } catch {
            continuation.finish()
        }
        return stream
    }
}

/// Looks at the machine's video nodes whenever something changes in `/dev`; confine to one thread.
private struct CameraWatch {
    /// How long nothing must change before the nodes are looked at: udev sets permissions and links in this time.
    private static let settling = Duration.milliseconds(250)
    /// How often the nodes are looked at even if no change was told, as in a container whose `/dev` is another's.
    private static let pause = Duration.seconds(2)

    let system: any CameraSystem
    let stop: StopSignal

    func run(_ report: (CaptureDeviceChange) -> Void) {
        let notifier = system.makeNodeNotifier()
        var roster = CameraRoster()
        while !stop.isRequested {
            look(&roster, report)
            guard let notifier else {
                system.sleep(until: system.now + Self.pause, or: stop)
                continue
            }
            guard notifier.wait(until: system.now + Self.pause, or: stop) else { continue }
            // A folder that never comes to rest is looked at all the same.
            let latest = system.now + Self.pause
            while !stop.isRequested, system.now < latest {
                guard notifier.wait(until: system.now + Self.settling, or: stop) else { break }
            }
        }
    }

    private func look(_ roster: inout CameraRoster, _ report: (CaptureDeviceChange) -> Void) {
        let nodes = system.nodePaths().compactMap { path in
            system.inode(of: path).map { CameraRoster.Node(path: path, inode: $0) }
        }
        let (gone, unknown) = roster.look(nodes)
        for device in gone { report(.removed(device)) }
        guard !unknown.isEmpty else { return }
        let directory = CameraDirectory(system: system)
        for node in unknown {
            switch directory.look(at: node.path) {
            case .camera(let device):
                roster.opened(node, camera: device)
                report(.added(device))
            case .other: roster.opened(node, camera: nil)
            case .refused: break
            }
        }
    }
}

/// Tells of changes in the folder of the video nodes, by inotify; confine to one thread.
final class NodeNotifier {
    private let descriptor: Int32

    /// Watches `/dev`; `nil` if the system does not let it.
    init?() {
        descriptor = cv4l2_inotify()
        guard descriptor >= 0 else { return nil }
        let changes = UInt32(IN_CREATE | IN_DELETE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO)
        guard unsafe inotify_add_watch(descriptor, "/dev", changes) >= 0 else {
            close(descriptor)
            return nil
        }
    }

    deinit {
        close(descriptor)
    }

    /// Waits for a change, until `deadline`, or until `stop` is requested.
    ///
    /// - Returns: Whether something changed.
    func wait(until deadline: MonotonicInstant, or stop: StopSignal) -> Bool {
        let left = deadline.duration(since: MonotonicClock.now).wholeMicroseconds
        var files = (
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0)
        )
        let ready = unsafe withUnsafeMutableBytes(of: &files) { bytes in
            unsafe poll(bytes.bindMemory(to: pollfd.self).baseAddress, 2, Int32(clamping: max(0, (left + 999) / 1000)))
        }
        guard ready > 0, files.0.revents != 0 else { return false }
        // The kind of change does not matter: the nodes are looked at afterwards.
        return unsafe withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { bytes in
            unsafe read(descriptor, bytes.baseAddress, bytes.count) > 0
        }
    }
}
