import MediaCore
import Threading

extension CameraSource {
    /// The cameras that there are, and then those that are plugged in and unplugged.
    ///
    /// Begins with `added` for each camera that can be opened. A camera whose node this user may not open yet is added
    /// as soon as it may. A node is opened once, when it is new. One that could not be opened is tried again when it
    /// changes, as by its permissions, and otherwise ever less often, up to every 30 s. A loopback device, which may be a
    /// camera only while a program writes to it, is opened every two seconds. Each call makes a stream of its own, with
    /// a thread that ends with the stream. It buffers the 256 newest unread changes. It is empty if the system has no thread
    /// left.
    public static func deviceChanges() -> AsyncStream<CaptureDeviceChange> {
        deviceChanges(of: KernelCameraSystem())
    }

    /// The changes of a machine, whose nodes are looked at every `pause` at least.
    static func deviceChanges(
        of system: any CameraSystem,
        pause: Duration = .seconds(2)
    ) -> AsyncStream<CaptureDeviceChange> {
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
                CameraWatch(system: system, stop: stop, pause: pause).run { continuation.yield($0) }
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

    let system: any CameraSystem
    let stop: StopSignal
    /// How often the nodes are looked at even if no change was told, as in a container whose `/dev` is another's.
    let pause: Duration

    func run(_ report: (CaptureDeviceChange) -> Void) {
        let notifier = system.makeNodeNotifier()
        var roster = CameraRoster()
        while !stop.isRequested {
            look(&roster, report)
            guard let notifier else {
                system.sleep(until: system.now + pause, or: stop)
                continue
            }
            guard notifier.wait(until: system.now + pause, or: stop) else { continue }
            roster.nodesChanged()
            // A folder that never comes to rest is looked at all the same.
            let latest = system.now + .seconds(2)
            while !stop.isRequested, system.now < latest {
                guard notifier.wait(until: system.now + Self.settling, or: stop) else { break }
            }
        }
    }

    private func look(_ roster: inout CameraRoster, _ report: (CaptureDeviceChange) -> Void) {
        let nodes = system.nodePaths().compactMap { path in
            system.inode(of: path).map { CameraRoster.Node(path: path, inode: $0) }
        }
        let (gone, unknown) = roster.look(nodes, at: system.now)
        for device in gone { report(.removed(device)) }
        guard !unknown.isEmpty else { return }
        let directory = CameraDirectory(system: system)
        for node in unknown {
            switch directory.look(at: node.path) {
            case .camera(let device):
                if let change = roster.opened(node, camera: device, mayChange: device.isLoopback) { report(change) }
            case .other(let mayChange):
                if let change = roster.opened(node, camera: nil, mayChange: mayChange) { report(change) }
            case .refused: roster.refused(node, at: system.now)
            }
        }
    }
}
