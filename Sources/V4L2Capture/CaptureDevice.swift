import Glibc

/// A camera, as the machine described it when it was asked.
public struct CaptureDevice: Hashable, Sendable {
    /// The node's path, as in `/dev/video0`; after unplugging, another camera may get the same path.
    public var path: String
    /// The camera's own name; several cameras of one make have the same name.
    public var name: String
    /// The camera's place on the bus, as in `usb-0000:00:14.0-1`; it differs for cameras with the same name.
    public var busInfo: String
    /// The kernel driver.
    public var driver: String
    /// Its names under `/dev/v4l/by-id` and `/dev/v4l/by-path`, which stay when the node's number changes.
    public var stableLinks: [String]
    /// The serial number that the camera states, if it has one; it tells cameras of one make apart.
    public var serialNumber: String? { hardware?.serialNumber }
    /// What the kernel says about the hardware.
    var hardware: CameraHardware?
    /// Where it was seen last; this is no part of what two descriptions are compared by.
    var sighting: CameraSighting?
    /// The folder in sysfs of the port where it was seen last.
    var lastPlace: String? { sighting?.place ?? hardware?.place }

    /// The number in a `path` of the form `/dev/video0`, which can also name the camera.
    public var nodeNumber: Int? { V4L2Capture.nodeNumber(of: path) }

    /// Creates a description with the given fields.
    public init(path: String, name: String, busInfo: String, driver: String, stableLinks: [String] = []) {
        self.path = path
        self.name = name
        self.busInfo = busInfo
        self.driver = driver
        self.stableLinks = stableLinks
    }

    init(
        path: String,
        name: String,
        busInfo: String,
        driver: String,
        stableLinks: [String],
        hardware: CameraHardware?
    ) {
        self.init(path: path, name: name, busInfo: busInfo, driver: driver, stableLinks: stableLinks)
        self.hardware = hardware
    }

    /// Whether both describe the same camera at the same node.
    public static func == (one: CaptureDevice, other: CaptureDevice) -> Bool {
        one.path == other.path && one.name == other.name && one.busInfo == other.busInfo && one.driver == other.driver
            && one.stableLinks == other.stableLinks && one.hardware == other.hardware
    }

    /// Hashes what two descriptions are compared by.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(path)
        hasher.combine(name)
        hasher.combine(busInfo)
        hasher.combine(hardware)
    }
}

extension CaptureDevice: CustomStringConvertible {
    /// The camera as `/dev/video0 (Camera name, bus)`.
    public var description: String { "\(path) (\(name), \(busInfo))" }
}

/// What a look at the machine's video nodes found.
package struct CameraSurvey: Sendable {
    /// The cameras that can be opened, by node number.
    package var cameras: [CaptureDevice] = []
    /// Why each other node cannot be opened; it may be a camera.
    package var refusals: [CameraError] = []

    /// Creates the result of a look.
    package init(cameras: [CaptureDevice] = [], refusals: [CameraError] = []) {
        self.cameras = cameras
        self.refusals = refusals
    }
}

/// Finds cameras among the machine's video nodes.
struct CameraDirectory {
    let system: any CameraSystem

    /// What a node turned out to be.
    enum Finding {
        case camera(CaptureDevice)
        /// No camera: a metadata or output node, or the end of a pipeline; `mayChange` if a program's writing to it makes
        /// it one.
        case other(mayChange: Bool)
        /// It could not be opened.
        case refused
    }

    /// All cameras that can be opened, by node number.
    func devices() -> [CaptureDevice] {
        system.nodePaths().compactMap { path in
            if case .camera(let device) = look(at: path) { device } else { nil }
        }
    }

    /// All cameras that can be opened, and why each other node cannot be; by node number.
    ///
    /// Nodes that have no hardware behind them, those that capture no video, and the ends of pipelines are left out.
    func survey() -> CameraSurvey {
        var survey = CameraSurvey()
        for path in system.nodePaths() {
            do throws(CameraError) {
                let node = try open(path)
                guard !node.capability.isPipelineEnd else { continue }
                survey.cameras.append(describe(node.capability, path: path, links: system.stableLinks()))
            } catch {
                guard ![.notACamera, .noSuchDevice, .deviceLost].contains(error.code) else { continue }
                survey.refusals.append(error)
            }
        }
        return survey
    }

    /// Opens the node at `path` briefly to see what it is.
    func look(at path: String) -> Finding {
        guard let node = try? system.open(path), let device = try? V4L2Device(node: node) else { return .refused }
        let capability = device.capability
        guard capability.isCamera, !capability.isPipelineEnd else { return .other(mayChange: capability.isLoopback) }
        return .camera(describe(device.capability, path: path, links: system.stableLinks()))
    }

    /// The first camera; see `CameraSource.defaultDevice()`.
    func firstDevice() throws(CameraError) -> CaptureDevice {
        let survey = survey()
        // A depth camera may come before the one with pictures.
        if survey.cameras.count > 1, let device = survey.cameras.first(where: hasReadableFormat) { return device }
        if let device = survey.cameras.first { return device }
        let forbidden = survey.refusals.first { $0.code == .permissionDenied }
        if let refusal = forbidden ?? survey.refusals.first { throw refusal }
        throw absence(system.nodePaths())
    }

    private func hasReadableFormat(_ camera: CaptureDevice) -> Bool {
        (try? open(camera.path)).map { FormatEnumeration.isAnyReadable(of: $0) } ?? false
    }

    /// The error for a machine without a camera, whose nodes are `nodes`.
    private func absence(_ nodes: [String]) -> CameraError {
        let explanation =
            if nodes.isEmpty {
                "no /dev/video node exists; plug one in, or give a container the device"
            } else if nodes.contains(where: { (try? open($0))?.capability.isPipelineEnd == true }) {
                "none of \(nodes.joined(separator: ", ")) captures video by itself; the built-in camera must be set up by "
                    + "libcamera first, which can write to a loopback device; or plug one in"
            } else {
                "none of \(nodes.joined(separator: ", ")) captures video; plug one in"
            }
        return CameraError(
            .noSuchDevice,
            device: "on this machine",
            attempt: "find a camera",
            explanation: explanation
        )
    }

    /// The camera that `text` names; see `CameraSource.captureDevice(matching:)`.
    func device(matching text: String) throws(CameraError) -> CaptureDevice {
        if text.hasPrefix("/") { return try device(at: text) }
        let devices = devices()
        let digits = !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
        if digits, let number = Int(text) {
            if let device = devices.first(where: { nodeNumber(of: $0.path) == number }) { return device }
            return try self.device(at: "/dev/video\(number)")
        }
        let exact = devices.filter { device in
            device.name == text || device.busInfo == text || device.linkNames.contains(text)
        }
        let lowercase = text.lowercased()
        let matches =
            !exact.isEmpty || text.isEmpty
            ? exact
            : devices.filter { device in
                ([device.name, device.busInfo] + device.linkNames).contains { $0.lowercased().contains(lowercase) }
            }
        if matches.count == 1, let match = matches.first { return match }
        throw matches.isEmpty ? notFound(text) : ambiguous(text, matches)
    }

    /// All formats that the camera at `path` offers.
    func formats(of path: String) throws(CameraError) -> [CaptureFormat] {
        let device = try open(path)
        do {
            return try FormatEnumeration.read(device)
        } catch {
            throw CameraError(error, device: path, isOpen: true) { system.holder(of: path) }
        }
    }

    /// Opens the camera whose node is at `path`.
    func open(_ path: String) throws(CameraError) -> V4L2Device {
        let device: V4L2Device
        do {
            device = try V4L2Device(node: system.open(path))
        } catch {
            switch error.status {
            case ENODEV, ENXIO: throw nodeNumber(of: path) == nil ? notACamera(path) : nothingBehind(path, error.status)
            // The errors include those for paths that are no character device: a folder, a running program, a read-only
            // disk.
            case ENOTTY, EINVAL, EISDIR, ETXTBSY, EROFS: throw notACamera(path)
            default: throw CameraError(error, device: path, isOpen: false) { system.holder(of: path) }
            }
        }
        guard device.capability.isCamera else { throw notACamera(path, isLoopback: device.capability.isLoopback) }
        return device
    }

    /// The camera whose node is at `path`, or at the end of its links.
    private func device(at path: String) throws(CameraError) -> CaptureDevice {
        guard let resolved = system.resolve(path) else { throw notFound(path) }
        return describe(try open(resolved).capability, path: resolved, links: system.stableLinks())
    }

    func describe(_ capability: DeviceCapability, path: String, links: [StableLink]) -> CaptureDevice {
        let device = CaptureDevice(
            path: path,
            name: capability.card,
            busInfo: capability.busInfo,
            driver: capability.driver,
            stableLinks: links.filter { $0.node == path }.map(\.path),
            hardware: system.hardware(of: path)
        )
        return sighted(device, at: path)
    }

    /// The error for a name that a user gave.
    private func notFound(_ text: String) -> CameraError {
        let known = devices()
        if known.isEmpty, case .failure(let error) = Result(catching: firstDevice) { return error }
        let list = known.map(\.description).joined(separator: "; ")
        return CameraError(
            .noSuchDevice,
            device: text,
            attempt: "find camera",
            explanation: "there is none of that name; the cameras are: \(list)"
        )
    }

    /// The error for a node whose device has gone.
    private func nothingBehind(_ path: String, _ status: Int32) -> CameraError {
        CameraError(
            .noSuchDevice,
            device: path,
            attempt: "open",
            status: status,
            explanation: "the node is there, but no device behind it; plug the camera in again"
        )
    }

    private func ambiguous(_ text: String, _ matches: [CaptureDevice]) -> CameraError {
        let list = matches.map(\.description).joined(separator: "; ")
        return CameraError(
            .ambiguousDevice,
            device: text,
            attempt: "choose camera",
            explanation: "several fit: \(list); give a path or the bus"
        )
    }

    private func notACamera(_ path: String, isLoopback: Bool = false) -> CameraError {
        CameraError(
            .notACamera,
            device: path,
            attempt: "capture from",
            explanation: isLoopback
                ? "no program writes to this loopback device; start the one that does first"
                : "it is no node that pictures stream from: a metadata or output node, or no video device at all"
        )
    }
}

extension CaptureDevice {
    /// Whether it is a device of v4l2loopback, which shows what another program writes, and has no hardware.
    var isLoopback: Bool { driver == loopbackDriver }

    /// The last components of `stableLinks`.
    fileprivate var linkNames: [String] {
        stableLinks.compactMap { $0.split(separator: "/").last.map(String.init) }
    }
}
