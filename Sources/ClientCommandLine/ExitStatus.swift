import Glibc
package import MediaCore
import MediaFiles
import RoomKit

/// The exit codes of the client's programs: 1, and those that `sysexits.h` defines.
package enum ExitStatus: Int32 {
    case problems = 1
    case usage = 64
    case badData = 65
    case noInput = 66
    case unavailable = 69
    case software = 70
    case inputOutput = 74
    case `protocol` = 76
    case noPermission = 77

    /// The codes as text for people; a line has fewer than 80 characters, so that help screens do not wrap it.
    package static let table = """
        Exit codes:
          0   done, also after Ctrl-C, SIGTERM, SIGQUIT or SIGHUP
          1   doctor found a problem
          64  an option, or a display in DISPLAY, that cannot be used
          65  a file whose content is damaged, or a dump in which verify found faults
          66  no such camera, monitor, window, file or directory, or no X display is
              named to capture; also if the directory of an output does not exist
          69  no room server or X server answered, the server refused the client for
              now, such as at its limit, the connection was lost, the camera is busy,
              was unplugged or gives no picture, no picture came for --snapshot, or
              there is no room-view or no display for a window
          70  an internal fault
          74  a file or disk could not be read or written, nobody read the output, or
              an output exists already
          76  the server refused the client for good, or broke the protocol
          77  no permission
        """

    /// Where commands send those who look for the codes.
    package static let pointer = "Exit codes: room-client --help"

    /// The code for an error.
    package init(_ error: any Error) {
        self =
            switch error {
            case let error as CommandFailure: error.status
            case let error as RoomError: Self.code(for: error)
            case let error as CameraError: Self.code(for: error)
            case let error as ScreenError: Self.code(for: error)
            case let error as MediaFileError: Self.code(for: error)
            case let error as RecordingError: Self.code(for: error.cause)
            case let error as SyntheticSourceError: error.code == .outOfResources ? .unavailable : .badData
            case is VP8SourceError: .badData
            default: .software
            }
    }

    private static func code(for error: RoomError) -> ExitStatus {
        switch error.code {
        // Pictures cannot be encoded if --size or --max-bitrate is too large.
        case .invalidURL, .encodingFailed: .usage
        case .refused: error.isTemporary ? .unavailable : .protocol
        case .protocolViolation: .protocol
        case .logFailed: error.fileError.map { code(for: $0) } ?? .inputOutput
        case .noFramesCaptured, .outOfResources, .serverUnavailable, .connectionLost, .notConnected: .unavailable
        default: .software
        }
    }

    private static func code(for error: CameraError) -> ExitStatus {
        switch error.code {
        case .noSuchDevice, .notACamera: .noInput
        case .noOrientation where error.status == ENOENT: .noInput
        case .ambiguousDevice, .noSuchFormat, .unsupportedFormat, .noSuchControl, .controlOutOfRange: .usage
        case .permissionDenied: .noPermission
        default: .unavailable
        }
    }

    private static func code(for error: ScreenError) -> ExitStatus {
        switch error.code {
        case .noDisplay, .noSuchMonitor, .noSuchWindow: .noInput
        case .invalidDisplay, .ambiguousWindow, .regionOutside, .unsupportedFormat: .usage
        default: .unavailable
        }
    }

    private static func code(for error: MediaFileError) -> ExitStatus {
        switch error.code {
        case .notFound: .noInput
        case .notPermitted: .noPermission
        case .wrongFormat, .unsupported, .damaged, .truncated: .badData
        default: .inputOutput
        }
    }
}

/// Why a command cannot do its work, if no other module has an error for it.
package struct CommandFailure: Error, CustomStringConvertible {
    /// The exit code.
    package let status: ExitStatus
    /// What is wrong and what to do about it.
    package let description: String
    /// The error that caused the failure, if it has a name.
    package let cause: (any CodedError)?

    /// Creates the error for an exit code, with a sentence.
    package init(_ status: ExitStatus, _ description: String) {
        self.status = status
        self.description = description
        cause = nil
    }

    /// Creates the error for `cause`, with a sentence that suits the command better than that of the cause.
    package init(causedBy cause: any CodedError, _ description: String) {
        status = ExitStatus(cause)
        self.description = description
        self.cause = cause
    }
}
