import Glibc

/// What the kernel says in sysfs about the hardware behind a video node.
struct CameraHardware: Hashable, Sendable {
    /// The device's folder in sysfs: the same for everything that is plugged into the same port.
    var place: String
    /// The node's number among the nodes of one interface: a webcam's metadata node has 1.
    var index: Int
    /// The number of the USB interface; `nil` for other buses.
    var interfaceNumber: String?
    /// Vendor and product, as in `046d:0825`; `nil` for other buses.
    var model: String?
    /// The serial number that the device states.
    var serialNumber: String?

    /// Whether both are the same function of devices of the same model with the same serial number.
    func isSameDevice(as other: CameraHardware) -> Bool {
        model == other.model && serialNumber == other.serialNumber && isSameFunction(as: other)
    }

    private func isSameFunction(as other: CameraHardware) -> Bool {
        interfaceNumber == other.interfaceNumber && index == other.index
    }
}

extension CameraHardware {
    /// Reads what sysfs says about the node whose folder is `folder`; `nil` if there is no such node.
    ///
    /// - Parameters:
    ///   - folder: As in `/sys/class/video4linux/video0`.
    ///   - resolve: Resolves the links in a path.
    ///   - read: Reads the first line of a file.
    init?(folder: String, resolve: (String) -> String?, read: (String) -> String?) {
        guard let place = resolve("\(folder)/device") else { return nil }
        self.place = place
        index = read("\(folder)/index").flatMap { Int($0) } ?? 0
        guard let interface = read("\(place)/bInterfaceNumber") else { return }
        interfaceNumber = interface
        if let vendor = read("\(place)/../idVendor"), let product = read("\(place)/../idProduct") {
            model = "\(vendor):\(product)"
        }
        if let serial = read("\(place)/../serial"), !serial.isEmpty { serialNumber = serial }
    }
}

/// Where a camera was seen last, and whether it is the only one of its kind.
struct CameraSighting: Sendable {
    /// The device's folder in sysfs.
    var place: String
    /// Whether a camera of the same model with the same serial number, or also without one, was seen in another place.
    var hasDouble: Bool
}

/// The folder in which udev names cameras by make and serial number.
private let stableNames = "/dev/v4l/by-id/"

extension CameraDirectory {
    /// Opens `camera` at its current node, and never another camera.
    ///
    /// A camera is found in the port where it was seen last. In another port it is found by its serial number only, and
    /// not if a double of it was ever seen beside it: whatever has the serial number then may be the double. A camera
    /// without a serial number is not found in another port: what is there may be any camera of its model, and the name
    /// under `/dev/v4l/by-id` leads to that one too. The number of a node is not used: after unplugging, another camera
    /// may have it.
    func open(_ camera: CaptureDevice) throws(CameraError) -> (device: V4L2Device, path: String) {
        let path: String?
        if let hardware = camera.hardware {
            let nodes = system.nodePaths()
            let isInItsPlace = nodes.contains { isInPlace(of: camera, system.hardware(of: $0)) }
            if isInItsPlace { return try openInPlace(camera) }
            path = newPath(of: camera, hardware, among: nodes)
        } else {
            guard let link = camera.stableLinks.first(where: { $0.hasPrefix(stableNames) }) else {
                return try openInPlace(camera)
            }
            path = system.resolve(link)
            // A name without a serial number in it is that of the model.
            if let path, system.hardware(of: path)?.serialNumber == nil { return try openInPlace(camera) }
        }
        guard let path else { throw gone(camera) }
        let device = try open(path)
        guard device.capability.card == camera.name else { throw gone(camera) }
        return (device, path)
    }

    /// The description of `camera`, whose node is at `path`, with where it is seen now and whether it has a double.
    func sighted(_ camera: CaptureDevice, at path: String) -> CaptureDevice {
        var camera = camera
        camera.path = path
        guard camera.hardware != nil, let place = system.hardware(of: path)?.place else { return camera }
        camera.sighting = CameraSighting(place: place, hasDouble: camera.sighting?.hasDouble ?? false)
        return withDoubles(camera)
    }

    /// The description of `camera` with whether it has a double now, or ever had one.
    func withDoubles(_ camera: CaptureDevice) -> CaptureDevice {
        guard let own = camera.hardware, camera.sighting?.hasDouble != true else { return camera }
        var camera = camera
        let place = camera.lastPlace ?? own.place
        let hasDouble = system.nodePaths().contains { path in
            system.hardware(of: path).map { $0.place != place && $0.isSameDevice(as: own) } ?? false
        }
        camera.sighting = CameraSighting(place: place, hasDouble: hasDouble)
        return camera
    }

    /// The node of a camera that is not where it was seen last; `nil` if none is certain to be this camera.
    private func newPath(of camera: CaptureDevice, _ own: CameraHardware, among nodes: [String]) -> String? {
        guard own.serialNumber != nil, camera.sighting?.hasDouble != true else { return nil }
        let found = nodes.filter { system.hardware(of: $0)?.isSameDevice(as: own) == true }
        return found.count == 1 ? found.first : nil
    }

    /// Whether a node with `hardware` is the camera's function of a device like it, in the port where it was seen last.
    private func isInPlace(of camera: CaptureDevice, _ hardware: CameraHardware?) -> Bool {
        guard let own = camera.hardware, let hardware else { return false }
        return hardware.place == camera.lastPlace && hardware.isSameDevice(as: own)
    }

    /// Opens a camera in the port where it was seen last.
    private func openInPlace(_ camera: CaptureDevice) throws(CameraError) -> (device: V4L2Device, path: String) {
        var refusal: CameraError?
        // The description names the bus of the port in which the camera was when it was described.
        let hasMoved = camera.lastPlace != camera.hardware?.place
        // Try the old node first. It is the likeliest, and for a camera with several nodes it is the right one.
        for path in [camera.path] + system.nodePaths().filter({ $0 != camera.path }) {
            // Nodes that cannot be this camera are not opened, because that wakes some cameras.
            let match = camera.hardware.map { _ in isInPlace(of: camera, system.hardware(of: path)) }
            let isOther = camera.isLoopback && path != camera.path && system.hardware(of: path) != nil
            if match == false || isOther { continue }
            do {
                let device = try open(path)
                let isOnBus = hasMoved || device.capability.busInfo == camera.busInfo
                if device.capability.card == camera.name, isOnBus { return (device, path) }
            } catch {
                if path == camera.path || match == true { refusal = error }
            }
        }
        guard let refusal, refusal.code != .noSuchDevice else { throw gone(camera) }
        throw refusal
    }

    private func gone(_ camera: CaptureDevice) -> CameraError {
        let reason =
            if camera.sighting?.hasDouble == true {
                ", because another one cannot be told from it"
            } else if let hardware = camera.hardware, hardware.model != nil, hardware.serialNumber == nil {
                ", because it has no serial number by which it is known in another one"
            } else {
                " if it has no serial number"
            }
        return CameraError(
            .noSuchDevice,
            device: "\(camera.name) (\(camera.busInfo))",
            attempt: "open",
            explanation: "the camera is not there; plug it in again, into the same port\(reason)"
        )
    }
}
