public import MediaCore

/// The reason why a screen or a window could not be found or captured.
///
/// `description` is a sentence for the user: what was attempted, what is wrong, and what to do.
public struct ScreenError: Error, Hashable, Sendable {
    /// The kind of error.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code's name; stable, for logs and JSON.
        public let name: String

        /// No display is named, and the environment names none.
        public static let noDisplay = Code(name: "noDisplay")
        /// The display's name is malformed, or names a screen that the display does not have.
        public static let invalidDisplay = Code(name: "invalidDisplay")
        /// The X server cannot be reached, or does not let this user in.
        public static let displayUnreachable = Code(name: "displayUnreachable")
        /// The display belongs to a Wayland session, whose screen no X11 program can see.
        public static let waylandSession = Code(name: "waylandSession")
        /// There is no such monitor.
        public static let noSuchMonitor = Code(name: "noSuchMonitor")
        /// There is no such window.
        public static let noSuchWindow = Code(name: "noSuchWindow")
        /// The given title fits several windows.
        public static let ambiguousWindow = Code(name: "ambiguousWindow")
        /// The window is minimized or on another workspace, so that it has no new picture, or none at all.
        public static let windowHidden = Code(name: "windowHidden")
        /// The captured window was closed.
        public static let windowClosed = Code(name: "windowClosed")
        /// The captured monitor was switched off or unplugged, or lies beyond the screen.
        public static let monitorLost = Code(name: "monitorLost")
        /// The X server ended, or closed the connection.
        public static let displayLost = Code(name: "displayLost")
        /// The X server has not answered for `ScreenSource.patience`.
        public static let noAnswer = Code(name: "noAnswer")
        /// The requested region is not within the screen, or is too small for a picture.
        public static let regionOutside = Code(name: "regionOutside")
        /// The display stores its pixels in a way that we cannot read.
        public static let unsupportedFormat = Code(name: "unsupportedFormat")
        /// The X server lacks an extension that capturing needs, or refuses a request.
        public static let serverFailed = Code(name: "serverFailed")
        /// The pictures are larger than 1920x1080 and are scaled down, because no size was requested; a warning.
        public static let formatLimited = Code(name: "formatLimited")
        /// The system has no thread left for the source.
        public static let outOfResources = Code(name: "outOfResources")

        /// The code's name.
        public var description: String { name }
    }

    /// The kind of error.
    public let code: Code
    /// What could not be captured, as in "the window 0x1400003 of display :0".
    public let target: String
    /// What is wrong and what to do about it.
    public let explanation: String

    init(_ code: Code, target: String, _ explanation: String) {
        self.code = code
        self.target = target
        self.explanation = explanation
    }
}

extension ScreenError {
    /// The error of a number that no window has.
    static func noSuchWindow(_ target: String) -> ScreenError {
        let advice = "there is no such window; room-client devices --screens lists them"
        return ScreenError(.noSuchWindow, target: target, advice)
    }

    /// The error of a hidden window; `hasPicture` if it was shown before, so that there is a last picture of it.
    static func hidden(_ target: String, hasPicture: Bool) -> ScreenError {
        let effect = hasPicture ? "nothing new of it can be seen" : "there is no picture of it yet"
        let advice = "it is minimized or on another workspace, so that \(effect); show it"
        return ScreenError(.windowHidden, target: target, advice)
    }
}

extension ScreenError: CodedError {
    /// The name of `code`.
    public var codeName: String { code.name }
}

extension ScreenError: CustomStringConvertible {
    /// The error as a sentence for the user.
    public var description: String {
        let attempt = code == .formatLimited ? "deliver all of" : "capture"
        return "Cannot \(attempt) \(target): \(explanation)"
    }
}

/// What can happen to a request to the X server, before it becomes an error for the user.
enum XFailure: Error, Equatable {
    /// The connection is gone.
    case lost
    /// There was no answer within `ScreenSource.patience`.
    case noAnswer
    /// The capturing is to stop.
    case stopped
    /// The server refused the request with this code of the X protocol.
    case refused(UInt8)
    /// An error whose cause is known.
    case explained(ScreenError)
}

extension ScreenError {
    /// Makes the user's error for a failed request about `target`.
    init(_ failure: XFailure, target: String) {
        switch failure {
        case .lost:
            let problem = "the X server ended or closed the connection; start the source again"
            self.init(.displayLost, target: target, problem)
        case .noAnswer:
            let time = ScreenSource.patience.seconds
            let advice = "it may be stopped, or another program may hold it; look at it, then start the source again"
            self.init(.noAnswer, target: target, "the X server has not answered for \(Int(time)) s; \(advice)")
        case .stopped:
            self.init(.displayLost, target: target, "the capturing was stopped")
        case .explained(let error): self = error
        case .refused(let code):
            self.init(.serverFailed, target: target, "the X server refused a request (error \(code))")
        }
    }
}
