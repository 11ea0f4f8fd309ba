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

    /// Takes the nodes that there are now.
    ///
    /// - Returns: The cameras that are gone, and the nodes to open: new ones, and those that could not be opened
    ///   before.
    mutating func look(_ nodes: [Node]) -> (gone: [CaptureDevice], unknown: [Node]) {
        let present = Set(nodes)
        let gone = known.filter { !present.contains($0.key) }
        for node in gone.keys { known[node] = nil }
        return (gone.values.compactMap(\.self).sorted { $0.path < $1.path }, nodes.filter { known[$0] == nil })
    }

    /// Records a node that was opened.
    mutating func opened(_ node: Node, camera: CaptureDevice?) {
        known.updateValue(camera, forKey: node)
    }
}
