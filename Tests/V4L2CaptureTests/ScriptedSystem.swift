import Glibc
import MediaCore
import Threading

@testable import V4L2Capture

/// A machine with scripted cameras, and what has been done to them.
final class ScriptedSystem: CameraSystem {
    struct Record {
        var openNodes = 0
        var mappedBuffers = 0
        var calls: [UInt: Int] = [:]
        var requestedRate: (frames: UInt32, seconds: UInt32)?
        /// The time on this machine, which passes as frames come; nanoseconds.
        var clock: Int64 = 0
        var looksAtClock = 0
        /// How often a node could not be opened.
        var refusals = 0
    }

    private struct Plugged {
        var scripts: [String: CameraScript]
        var openFailures: [String: Int32]
        var links: [StableLink]
        var hardware: [String: CameraHardware] = [:]
        var inodes: [String: UInt64] = [:]
    }

    let record = Monitor(Record())
    /// What is plugged in, to be changed by the test.
    private let plugged: Monitor<Plugged>
    private let usesRealClock: Bool
    /// The folder whose changes are told as those of the nodes; `nil` if no changes are told.
    private let nodeFolder: String?
    /// The program that has every node open; `nil` if none is known.
    private let otherProgram: String?

    init(
        _ scripts: [String: CameraScript],
        openFailures: [String: Int32] = [:],
        links: [StableLink] = [],
        otherProgram: String? = "somebody (pid 42)",
        usesRealClock: Bool = false,
        nodeFolder: String? = nil
    ) {
        self.otherProgram = otherProgram
        self.nodeFolder = nodeFolder
        self.usesRealClock = usesRealClock
        plugged = Monitor(Plugged(scripts: scripts, openFailures: openFailures, links: links))
    }

    convenience init(_ script: CameraScript, usesRealClock: Bool = false) {
        self.init(["/dev/video0": script], usesRealClock: usesRealClock)
    }

    /// Unplugs everything, and plugs these cameras in.
    func plug(
        _ scripts: [String: CameraScript],
        links: [StableLink] = [],
        hardware: [String: CameraHardware] = [:],
        openFailures: [String: Int32] = [:],
        inodes: [String: UInt64] = [:]
    ) {
        plugged.withLock {
            $0 = Plugged(
                scripts: scripts,
                openFailures: openFailures,
                links: links,
                hardware: hardware,
                inodes: inodes
            )
        }
    }

    func inode(of path: String) -> UInt64? {
        plugged.withLock { plugged in
            plugged.scripts[path] == nil && plugged.openFailures[path] == nil ? nil : plugged.inodes[path] ?? 1
        }
    }

    func makeNodeNotifier() -> NodeNotifier? { nodeFolder.flatMap { NodeNotifier(folder: $0) } }

    func hardware(of path: String) -> CameraHardware? { plugged.withLock { $0.hardware[path] } }

    func sleep(until deadline: MonotonicInstant, or stop: StopSignal) {
        if usesRealClock { return stop.wait(until: deadline) }
        record.withLock { $0.clock = max($0.clock, deadline.nanoseconds) }
        // Time passes fast, yet not so fast that slates fill the memory.
        stop.wait(until: MonotonicClock.now + .milliseconds(1))
    }

    var now: MonotonicInstant {
        let clock = record.withLock { record in
            record.looksAtClock += 1
            return record.clock
        }
        return usesRealClock ? MonotonicClock.now : MonotonicInstant(nanoseconds: clock)
    }

    private var scripts: [String: CameraScript] { plugged.withLock { $0.scripts } }
    private var openFailures: [String: Int32] { plugged.withLock { $0.openFailures } }
    private var links: [StableLink] { plugged.withLock { $0.links } }
    func nodePaths() -> [String] { (Array(scripts.keys) + Array(openFailures.keys)).sorted() }
    func stableLinks() -> [StableLink] { links }
    func resolve(_ path: String) -> String? {
        links.first { $0.path == path }?.node ?? (nodePaths().contains(path) ? path : nil)
    }
    func holder(of path: String) -> String? { otherProgram }

    func open(_ path: String) throws(SystemCallFailure) -> any V4L2Node {
        if let status = openFailures[path] {
            record.change { $0.refusals += 1 }
            throw SystemCallFailure(attempt: "open", status: status)
        }
        guard let script = scripts[path] else { throw SystemCallFailure(attempt: "open", status: ENOENT) }
        script.whileOpening()
        return ScriptedNode(script, record)
    }

    var isAllClosed: Bool { record.withLock { $0.openNodes == 0 && $0.mappedBuffers == 0 } }
    func calls(_ request: UInt) -> Int { record.withLock { $0.calls[request] ?? 0 } }
}
