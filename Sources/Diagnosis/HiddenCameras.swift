/// Cameras that the kernel sees and programs do not.
package struct HiddenCameras: Hashable, Sendable {
    /// USB devices of the class for video that no driver has taken, by name.
    package var withoutDriver: [String] = []
    /// Nodes that the kernel has and `/dev` has not; without the further nodes of a device, such as that of metadata.
    package var withoutNode: [Node] = []

    /// A node, and the name that the kernel has for its device.
    package struct Node: Hashable, Sendable {
        /// The path that it should have.
        package var path: String
        /// The name of the device.
        package var name: String
    }

    /// None.
    package init() {}

    /// The cameras that a sysfs (such as `/sys`) lists and a device folder (such as `/dev`) lacks.
    package init(sysfs: String, devices: String) {
        withoutDriver = Self.driverless(in: "\(sysfs)/bus/usb/devices")
        let nodes = "\(sysfs)/class/video4linux"
        for node in SystemFile.names(in: nodes) where node.hasPrefix("video") {
            guard !SystemFile.exists("\(devices)/\(node)") else { continue }
            // The first node of a device captures; its metadata come from a further one.
            guard Self.line(of: "\(nodes)/\(node)/index") ?? "0" == "0" else { continue }
            let name = Self.line(of: "\(nodes)/\(node)/name") ?? "a video device"
            withoutNode.append(Node(path: "\(devices)/\(node)", name: name))
        }
    }

    /// The class of a USB interface for video, and the subclass of the one that controls the camera (USB Video Class
    /// 1.5, section A.1 and A.2).
    private static let videoClass = "0e"
    private static let controlSubclass = "01"

    private static func driverless(in folder: String) -> [String] {
        SystemFile.names(in: folder).compactMap { interface in
            let path = "\(folder)/\(interface)"
            guard line(of: "\(path)/bInterfaceClass") == videoClass,
                line(of: "\(path)/bInterfaceSubClass") == controlSubclass,
                !SystemFile.exists("\(path)/driver")
            else { return nil }
            // "1-2:1.0" is an interface of the device "1-2".
            let device = String(interface.prefix { $0 != ":" })
            return line(of: "\(folder)/\(device)/product") ?? "USB device \(device)"
        }
    }

    private static func line(of path: String) -> String? {
        SystemFile.lines(of: path).first.map(String.init)
    }
}
