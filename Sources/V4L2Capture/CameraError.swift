import Glibc
public import MediaCore

/// The reason why a camera could not be found, set up or read.
///
/// `description` is a sentence for the user: what was attempted, what is wrong, and what to do.
public struct CameraError: Error, Hashable, Sendable {
    /// The kind of error.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code's name; stable, for logs and JSON.
        public let name: String

        /// There is no such device node, or no camera with that name.
        public static let noSuchDevice = Code(name: "noSuchDevice")
        /// The given text fits several cameras.
        public static let ambiguousDevice = Code(name: "ambiguousDevice")
        /// This user has no permission to open the device.
        public static let permissionDenied = Code(name: "permissionDenied")
        /// Another program uses the device.
        public static let busy = Code(name: "busy")
        /// The device does not capture pictures by streaming.
        public static let notACamera = Code(name: "notACamera")
        /// The camera does not offer the requested format.
        public static let noSuchFormat = Code(name: "noSuchFormat")
        /// The camera offers, or insists on, only formats that we cannot read.
        public static let unsupportedFormat = Code(name: "unsupportedFormat")
        /// The camera has no control of that name.
        public static let noSuchControl = Code(name: "noSuchControl")
        /// The control does not take the value.
        public static let controlOutOfRange = Code(name: "controlOutOfRange")
        /// The control cannot be set at present.
        public static let controlRefused = Code(name: "controlRefused")
        /// The camera has only larger or faster formats than it delivers by default.
        public static let formatLimited = Code(name: "formatLimited")
        /// A file or sensor does not say how the camera is held.
        public static let noOrientation = Code(name: "noOrientation")
        /// The bus has no bandwidth left for the format.
        public static let noBandwidth = Code(name: "noBandwidth")
        /// The camera streams, but no picture arrived for `CameraSource.patience`.
        public static let noFrames = Code(name: "noFrames")
        /// At the input of a receiver, as of HDMI, comes no signal that it can take, or another one than before.
        public static let noSignal = Code(name: "noSignal")
        /// Some frames arrived damaged and were left out.
        public static let damagedFrames = Code(name: "damagedFrames")
        /// The device disappeared: it was unplugged, or its driver was unbound.
        public static let deviceLost = Code(name: "deviceLost")
        /// The system has no thread left for the camera.
        public static let outOfResources = Code(name: "outOfResources")
        /// The driver refused or failed in another way; `status` holds its `errno`.
        public static let driverFailed = Code(name: "driverFailed")

        /// The code's name.
        public var description: String { name }
    }

    /// The kind of error.
    public let code: Code
    /// The device's path, or the text that should have named a device.
    public let device: String
    /// What was attempted, as in "open" or "start streaming from".
    public let attempt: String
    /// The `errno` from the system, if a system call caused the error.
    public let status: Int32?
    /// What is wrong and what to do about it.
    public let explanation: String

    init(_ code: Code, device: String, attempt: String, status: Int32? = nil, explanation: String) {
        self.code = code
        self.device = device
        self.attempt = attempt
        self.status = status
        self.explanation = explanation
    }
}

extension CameraError {
    /// The same error with another sentence after the explanation.
    func adding(_ sentence: String) -> CameraError {
        CameraError(code, device: device, attempt: attempt, status: status, explanation: "\(explanation); \(sentence)")
    }
}

extension CameraError: CodedError {
    /// The name of `code`.
    public var codeName: String { code.name }
}

extension CameraError: CustomStringConvertible {
    /// The error as a sentence for the user.
    public var description: String { "Cannot \(attempt) \(device): \(explanation)" }
}

/// A system call that failed, before it becomes an error for the user.
struct SystemCallFailure: Error, Equatable {
    /// What was attempted; the device's path follows it in a sentence.
    let attempt: String
    /// The `errno`.
    let status: Int32
}

extension CameraError {
    /// Makes the user's error for a failed system call on `device`.
    ///
    /// - Parameters:
    ///   - failure: The failed call.
    ///   - device: The device's path.
    ///   - isOpen: Whether the device had been opened. If so, its absence means that it disappeared.
    ///   - holder: Finds the program that uses the device, if possible; called only when the device is busy.
    init(_ failure: SystemCallFailure, device: String, isOpen: Bool, holder: () -> String?) {
        let (code, explanation) = Self.explain(failure.status, isOpen: isOpen, holder: holder)
        self.init(
            code,
            device: device,
            attempt: failure.attempt,
            status: failure.status,
            explanation: explanation
        )
    }

    /// Makes the error for streaming that does not start at the end of a pipeline; `nil` if another thing is wrong.
    init?(ofPipeline failure: SystemCallFailure, device: String) {
        guard [ENOLINK, EPIPE].contains(failure.status) else { return nil }
        self.init(
            .driverFailed,
            device: device,
            attempt: failure.attempt,
            status: failure.status,
            explanation: "its pipeline must be set up by media-ctl or libcamera first; or choose another camera"
        )
    }

    private static func explain(_ status: Int32, isOpen: Bool, holder: () -> String?) -> (Code, String) {
        switch status {
        case EACCES, EPERM:
            let advice =
                "permission denied; add this user to the group that owns the device, usually `video` "
                + "(sudo usermod -aG video $USER, then log in anew), or give access by a udev rule"
            return (.permissionDenied, advice)
        case EBUSY:
            let user = holder().map { "it is in use by \($0)" } ?? "it is in use by another program"
            return (.busy, "\(user); close that first, or choose another camera")
        case ENOENT, ENXIO, ENODEV:
            return isOpen
                ? (.deviceLost, "the camera went away; plug it in again and look at its cable and power")
                : (.noSuchDevice, "there is no such device")
        case ENOSPC:
            let advice =
                "the USB bus has no bandwidth left for this format; ask for a smaller size, a lower rate or MJPG, "
                + "or plug the camera into another port"
            return (.noBandwidth, advice)
        case ENOLINK, ENOLCK:
            return (.noSignal, "no steady signal comes at its input; switch the source on, and look at the cable")
        case ERANGE:
            return (.noSignal, "it cannot take the signal at its input; set the source to another size or rate")
        case ENOMEM:
            return (.driverFailed, "the driver has no memory left for two pictures; ask for a smaller size")
        case EIO:
            let advice = "a loopback device needs a program that writes to it; another camera, plug in again"
            return (.driverFailed, "the driver failed (\(errnoText(status))); \(advice)")
        default:
            return (
                .driverFailed, "the driver failed (\(errnoText(status))); plug the camera in again if this persists"
            )
        }
    }
}

/// The system's text for an `errno`.
func errnoText(_ status: Int32) -> String {
    guard let text = unsafe strerror(status) else { return "error \(status)" }
    return unsafe String(cString: text)
}
