import Glibc
package import MediaCore

/// What a video node is, found out without capturing from it.
package struct CameraInspection: Sendable {
    /// What a node turned out to be.
    package enum Finding: Sendable {
        /// A camera: the formats that we can read, by increasing size, all pixel formats, and another program that has
        /// it open, where one is known. That program need not capture from it.
        case camera(CaptureDevice, usable: [VideoFormat], offered: [PixelFormat], holder: String?)
        /// A camera from which another program captures that this user may not see.
        case busy(CaptureDevice)
        /// A metadata, output or codec node, or the end of a pipeline that a program must set up first.
        case other
        /// A node that cannot be opened, or whose driver fails.
        case failed(CameraError)
    }

    /// The node's path, as in `/dev/video0`.
    package let path: String
    /// What it turned out to be.
    package let finding: Finding

    /// An inspection with a result.
    package init(path: String, finding: Finding) {
        self.path = path
        self.finding = finding
    }

    /// Opens each video node of this machine once, for a moment; a driver may block the caller.
    ///
    /// - Parameter wanted: The path of the camera that is to be captured from, which is asked whether it is busy.
    /// - Returns: What each node is, by number.
    package static func ofAllNodes(wanted: String?) -> [CameraInspection] {
        ofAllNodes(in: KernelCameraSystem(), wanted: wanted)
    }

    static func ofAllNodes(in system: any CameraSystem, wanted: String?) -> [CameraInspection] {
        let directory = CameraDirectory(system: system)
        return system.nodePaths().map { path in
            CameraInspection(path: path, finding: look(at: path, directory, isWanted: path == wanted))
        }
    }

    private static func look(at path: String, _ directory: CameraDirectory, isWanted: Bool) -> Finding {
        let system = directory.system
        do throws(CameraError) {
            let node = try directory.open(path)
            guard isWanted || !node.capability.isPipelineEnd else { return .other }
            let device = directory.describe(node.capability, path: path, links: system.stableLinks())
            let holder = system.holder(of: path)
            let mayBeAsked = isWanted && holder == nil && !device.isLoopback
            if mayBeAsked, isBusy(node) { return .busy(device) }
            do throws(SystemCallFailure) {
                let formats = try FormatEnumeration.read(node)
                return .camera(
                    device,
                    usable: formats.supportedFormats,
                    offered: formats.map(\.pixelFormat),
                    holder: holder
                )
            } catch {
                throw CameraError(error, device: path, isOpen: true) { holder }
            }
        } catch {
            return error.code == .notACamera ? .other : .failed(error)
        }
    }

    /// Whether another program captures from the camera.
    ///
    /// Most drivers refuse to free the buffers of a camera from which another program captures. Some free them instead,
    /// so only a camera may be asked that is to be captured from, and that no other program is known to have open. A
    /// loopback device is never asked: any request for buffers sets up anew those that all its users share.
    private static func isBusy(_ device: V4L2Device) -> Bool {
        do throws(SystemCallFailure) {
            _ = try device.requestBuffers(0)
            return false
        } catch {
            return error.status == EBUSY
        }
    }
}
