import MediaCore
package import V4L2Capture

/// The camera to capture from.
package enum WantedCamera: Hashable, Sendable {
    /// The first one of the machine.
    case first
    /// That of a path, number, name or bus.
    case named(String)
}

/// Says what is wrong with the cameras of a machine.
package struct CameraCheck: Sendable {
    /// The machine's video nodes.
    package var nodes: [CameraInspection]
    /// Cameras that have no node.
    package var hidden: HiddenCameras
    /// The camera to capture from, or why there is none; `nil` if none is wanted, so that its absence is no problem.
    package var selection: Result<CaptureDevice, CameraError>?
    /// The most cameras without a fault that have a line each.
    private static let mostLines = 6

    /// A check with the given facts.
    package init(nodes: [CameraInspection], hidden: HiddenCameras, selection: Result<CaptureDevice, CameraError>?) {
        self.nodes = nodes
        self.hidden = hidden
        self.selection = selection
    }

    /// Looks at the machine's nodes; a driver may block the caller.
    ///
    /// - Parameter wanted: The camera to capture from; `nil` if none is wanted.
    /// - Returns: A check with the machine's facts.
    package static func ofThisMachine(wanted: WantedCamera?) -> CameraCheck {
        let selection = wanted.map { wanted in
            Result { () throws(CameraError) in
                switch wanted {
                case .first: try CameraSource.defaultDevice()
                case .named(let name): try CameraSource.captureDevice(matching: name)
                }
            }
        }
        return CameraCheck(
            nodes: CameraInspection.ofAllNodes(wanted: (try? selection?.get())?.path),
            hidden: HiddenCameras(sysfs: "/sys", devices: "/dev"),
            selection: selection
        )
    }

    /// What was found.
    ///
    /// - Parameter access: Finds out who may open a node.
    /// - Returns: The findings, at least one.
    package func findings(access: (String) -> FileAccess? = { FileAccess(path: $0) }) -> [Finding] {
        let known = nodes.compactMap { finding(of: $0, access) }
        let fine = known.count { $0.level == .ok }
        var lines = Self.mostLines
        let shown = known.filter { finding in
            guard finding.level == .ok else { return true }
            lines -= 1
            return lines >= 0
        }
        let left = fine - Self.mostLines
        let rest = left > 0 ? [Finding.ok(.cameras, "and \(left) more: room-client devices lists them")] : []
        let findings = shown + rest + hiddenFindings
        guard findings.isEmpty else { return findings }
        // A node that has another name, as in a container.
        if case .success(let device)? = selection { return [.ok(.cameras, "\(device.name) at \(device.path)")] }
        return [absence]
    }

    /// Whether another program captures from the camera at `path`.
    func isBusy(_ path: String) -> Bool {
        nodes.contains { node in
            if case .busy(let device) = node.finding { device.path == path } else { false }
        }
    }

    private var isWanted: Bool { selection != nil }

    /// Whether the node at `path` is the one to capture from, or stands in its way.
    private func isSelected(_ path: String) -> Bool {
        switch selection {
        case .success(let device): path == device.path
        // An error that names no node, such as that of the first camera, is about them all.
        case .failure(let error): error.device == path || !nodes.contains { $0.path == error.device }
        case nil: false
        }
    }

    private func finding(of node: CameraInspection, _ access: (String) -> FileAccess?) -> Finding? {
        switch node.finding {
        case .other: return nil
        case .camera(let device, let usable, let offered, let holder):
            return finding(of: device, usable, offered, holder)
        case .busy(let device):
            return .problem(
                if: isSelected(node.path),
                .cameras,
                "busy",
                "\(device.path) \(device.name): in use by another program, of another user",
                "see who has it: sudo fuser -v \(device.path)"
            )
        case .failed(let error): return finding(of: error, at: node.path, access)
        }
    }

    private func finding(of error: CameraError, at path: String, _ access: (String) -> FileAccess?) -> Finding {
        guard error.code == .permissionDenied else {
            return .problem(
                if: error.code != .busy || isSelected(path),
                .cameras,
                error.code.name,
                "\(path): \(error.explanation)",
                error.code == .busy ? "end that program, or choose another camera by --device" : Self.look
            )
        }
        let access = access(path)
        let owner = access.map { " (group \($0.groupName ?? "\($0.group)"), mode \(String($0.mode, radix: 8)))" }
        return .problem(
            .cameras,
            error.code.name,
            "\(path): \(access?.user ?? "this user") may not open it\(owner ?? "")",
            access?.advice(for: path) ?? error.explanation
        )
    }

    private func finding(
        of device: CaptureDevice,
        _ usable: [VideoFormat],
        _ offered: [PixelFormat],
        _ holder: String?
    ) -> Finding {
        guard let largest = usable.last else {
            let list = Set(offered.map(\.description)).sorted().joined(separator: ", ")
            return .problem(
                .cameras,
                "unsupportedFormat",
                "\(device.path) \(device.name): no format that can be read (\(list.isEmpty ? "it lists none" : list))",
                "choose another camera, or convert: ffmpeg … -pix_fmt yuv420p -f yuv4mpegpipe - | "
                    + "room-client connect --room … --source live:-"
            )
        }
        let formats = Set(usable.map(\.pixelFormat.description)).sorted()
        let names = formats.prefix(3).joined(separator: ", ") + (formats.count > 3 ? " …" : "")
        let place = holder.map { ", open in \($0)" } ?? ""
        return .ok(.cameras, "\(device.path) \(device.name): up to \(largest.dimensions), \(names)\(place)")
    }

    private var hiddenFindings: [Finding] {
        hidden.withoutDriver.map { name in
            .problem(
                .cameras,
                "noDriver",
                "\(name) is on USB, and no driver has taken it",
                "sudo modprobe uvcvideo; if that fails, this kernel lacks the driver: install the full kernel package"
            )
        }
            + nodeFindings
    }

    /// Nodes that are missing, unless there is a camera anyway: a container need not have them all.
    private var nodeFindings: [Finding] {
        let hasCamera = nodes.contains { node in
            switch node.finding {
            case .camera(_, let usable, _, _): !usable.isEmpty
            case .busy: true
            case .other, .failed: false
            }
        }
        guard !hasCamera, !hidden.withoutNode.isEmpty else { return [] }
        let list = hidden.withoutNode.map { "\($0.path) (\($0.name))" }.joined(separator: ", ")
        let options = hidden.withoutNode.map { "--device \($0.path)" }.joined(separator: " ")
        return [
            .problem(
                if: isWanted,
                .cameras,
                "noNode",
                "the kernel has \(list) without a node in /dev",
                "start the container with \(options), or look whether udev runs"
            )
        ]
    }

    private var absence: Finding {
        let others = nodes.map(\.path)
        return .problem(
            if: isWanted,
            .cameras,
            "noSuchDevice",
            others.isEmpty
                ? "no camera: there is no /dev/video node, and none on USB"
                : "no camera: \(others.joined(separator: ", ")) \(others.count == 1 ? "does" : "do") not capture video",
            "plug one in (room-client devices --watch tells), or publish without one: connect --source pattern, or --source screen"
        )
    }

    private static let look = "unplug the camera and plug it in again; see the last lines of: sudo dmesg"
}
