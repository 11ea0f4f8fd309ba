import MediaCore

/// A camera that was plugged in or unplugged.
public enum CaptureDeviceChange: Hashable, Sendable {
    /// The camera can be opened now.
    case added(CaptureDevice)
    /// The camera is gone.
    case removed(CaptureDevice)
}

/// Finds out which cameras came and went between two looks at the machine's nodes.
///
/// A pure value: the caller looks.
struct CameraRoster {
    /// A node as it stands in the file system; a node that was made anew has another number.
    struct Node: Hashable {
        var path: String
        var inode: UInt64
    }

    /// The nodes that were opened, and the camera behind each; `nil` if it is no camera.
    private var known: [Node: CaptureDevice?] = [:]
    /// The known nodes that become a camera, or none, with the program that writes to them.
    private var changeable: Set<Node> = []
    /// The nodes that could not be opened: how long the last wait was, and when they are tried again.
    private var refused: [Node: (wait: Duration, due: MonotonicInstant)] = [:]
    /// The first wait until a node that could not be opened is tried again; it doubles with each further one.
    private static let firstWait = Duration.seconds(1)
    /// The longest such wait.
    private static let longestWait = Duration.seconds(30)

    /// Takes the nodes that there are now.
    ///
    /// - Returns: The cameras that are gone, and the nodes to open: new ones, those that could not be opened before and
    ///   are due again, and those that may have changed without a notice.
    mutating func look(_ nodes: [Node], at now: MonotonicInstant) -> (gone: [CaptureDevice], unknown: [Node]) {
        let present = Set(nodes)
        let gone = known.filter { !present.contains($0.key) }
        for node in gone.keys { known[node] = nil }
        refused = refused.filter { present.contains($0.key) }
        changeable.formIntersection(present)
        let unknown = nodes.filter { node in
            (known[node] == nil || changeable.contains(node)) && (refused[node].map { now >= $0.due } ?? true)
        }
        return (gone.values.compactMap(\.self).sorted { $0.path < $1.path }, unknown)
    }

    /// Records that nodes or their permissions changed: whatever could not be opened is due again.
    mutating func nodesChanged() { refused = [:] }

    /// Records a node that could not be opened.
    mutating func refused(_ node: Node, at now: MonotonicInstant) {
        let wait = min(refused[node].map { $0.wait * 2 } ?? Self.firstWait, Self.longestWait)
        refused[node] = (wait, now + wait)
    }

    /// Records what a node is that was opened; `mayChange` if it is to be opened again at each look.
    ///
    /// - Returns: What is to be reported.
    @discardableResult
    mutating func opened(_ node: Node, camera: CaptureDevice?, mayChange: Bool = false) -> CaptureDeviceChange? {
        let former = known[node] ?? nil
        refused[node] = nil
        if mayChange { changeable.insert(node) } else { changeable.remove(node) }
        known.updateValue(camera, forKey: node)
        if let former { return camera == nil ? .removed(former) : nil }
        return camera.map { .added($0) }
    }
}
