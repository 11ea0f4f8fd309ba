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

    /// Whether both are the same function of what is plugged into one place, and state the same model and serial number.
    func isAtSamePlace(as other: CameraHardware) -> Bool {
        place == other.place && isSameDevice(as: other)
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

/// The folder in which udev names cameras by make and serial number.
private let stableNames = "/dev/v4l/by-id/"

extension CameraDirectory {
    /// Opens `camera` at its current node, and never another camera.
    ///
    /// A camera with a name under `/dev/v4l/by-id` is found by that name. A camera with a serial number is found by it,
    /// in whatever port. Any other camera is found in its port, by bus and card name. The number of a node is not used:
    /// after unplugging, another camera may have it.
    func open(_ camera: CaptureDevice) throws(CameraError) -> (device: V4L2Device, path: String) {
        if let link = camera.stableLinks.first(where: { $0.hasPrefix(stableNames) }) {
            if let path = system.resolve(link) {
                let device = try open(path)
                guard device.capability.card == camera.name, isSameSerial(camera, path) else { throw gone(camera) }
                return (device, path)
            }
            // udev makes the link a moment after the node; without a serial number there is nothing else to go by.
            guard camera.serialNumber != nil else { throw gone(camera) }
        }
        if let hardware = camera.hardware, hardware.serialNumber != nil {
            guard let path = path(of: hardware) else { throw gone(camera) }
            let device = try open(path)
            guard device.capability.card == camera.name else { throw gone(camera) }
            return (device, path)
        }
        return try openByPlace(camera)
    }

    /// Whether the node at `path` has the camera's serial number, as far as that is known.
    private func isSameSerial(_ camera: CaptureDevice, _ path: String) -> Bool {
        guard let own = camera.hardware, let found = system.hardware(of: path) else { return true }
        return own.serialNumber == found.serialNumber
    }

    /// The node of the device with the serial number of `hardware`; of several, the one in the same port.
    private func path(of hardware: CameraHardware) -> String? {
        let found = system.nodePaths().filter { system.hardware(of: $0)?.isSameDevice(as: hardware) == true }
        if found.count <= 1 { return found.first }
        return found.first { system.hardware(of: $0)?.place == hardware.place }
    }

    /// Opens a camera without a serial number.
    private func openByPlace(_ camera: CaptureDevice) throws(CameraError) -> (device: V4L2Device, path: String) {
        var refusal: CameraError?
        // Try the old node first. It is the likeliest, and for a camera with several nodes it is the right one.
        for path in [camera.path] + system.nodePaths().filter({ $0 != camera.path }) {
            // Nodes that cannot be this camera are not opened, because that wakes some cameras.
            let match = camera.hardware.map { own in system.hardware(of: path)?.isAtSamePlace(as: own) ?? false }
            if match == false { continue }
            do {
                let device = try open(path)
                if device.capability.card == camera.name, device.capability.busInfo == camera.busInfo {
                    return (device, path)
                }
            } catch {
                if path == camera.path || match == true { refusal = error }
            }
        }
        guard let refusal, refusal.code != .noSuchDevice else { throw gone(camera) }
        throw refusal
    }

    private func gone(_ camera: CaptureDevice) -> CameraError {
        CameraError(
            .noSuchDevice,
            device: "\(camera.name) (\(camera.busInfo))",
            attempt: "open",
            explanation: "the camera is not there; plug it in again, into the same port if it has no serial number"
        )
    }
}
