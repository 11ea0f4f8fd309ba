public import MediaCore
package import MediaFiles
import RoomProtocol

/// What went wrong between this program and a room.
public struct RoomError: Error, Hashable, Sendable {
    /// The kind of failure, for programs.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// A stable name.
        public let description: String

        /// The server's URL cannot be used, or its path names another room.
        public static let invalidURL = Code(description: "invalidURL")
        /// No room server answered at the URL in time, or this program cannot connect, for example because too many
        /// files are open.
        public static let serverUnavailable = Code(description: "serverUnavailable")
        /// The server refused, or ended the session; `serverCode` says why.
        public static let refused = Code(description: "refused")
        /// The connection broke, or the server ended it without an error, for example because it shut down.
        public static let connectionLost = Code(description: "connectionLost")
        /// The server broke the protocol.
        public static let protocolViolation = Code(description: "protocolViolation")
        /// The room was left already.
        public static let notConnected = Code(description: "notConnected")
        /// The source was started and delivered no picture within 10 s, or within three frame intervals of a slow
        /// source.
        public static let noFramesCaptured = Code(description: "noFramesCaptured")
        /// The track is published already.
        public static let alreadyPublished = Code(description: "alreadyPublished")
        /// The track is not published.
        public static let notPublished = Code(description: "notPublished")
        /// The track was unpublished before its publication was complete.
        public static let unpublished = Code(description: "unpublished")
        /// A picture cannot be encoded: it has too many pixels, or its encoded frame is too large to send.
        public static let encodingFailed = Code(description: "encodingFailed")
        /// The pictures of a track cannot be decoded: they are too large, or damaged again and again.
        public static let decodingFailed = Code(description: "decodingFailed")
        /// This library has no decoder for the codec of a track, or the track's description is incomplete.
        public static let unsupportedTrack = Code(description: "unsupportedTrack")
        /// The limit `ConnectOptions.maximumReceivedTracks` is reached.
        public static let tooManyTracks = Code(description: "tooManyTracks")
        /// The system has no thread or memory left to encode or decode a track.
        public static let outOfResources = Code(description: "outOfResources")
        /// The file of `ConnectOptions.adaptationLog` cannot be written, or was written too slowly.
        public static let logFailed = Code(description: "logFailed")
    }

    /// The kind of failure.
    public let code: Code
    /// The number that the server gave as its reason (`docs/protocol.md`, section 12), or with which it closed the
    /// connection; `nil` unless it refused.
    public let serverCode: Int?
    /// Why the file of `ConnectOptions.adaptationLog` failed, if the system said so.
    package let fileError: MediaFileError?
    private let sentence: String

    /// Whether the same request may succeed later, because the reason is a state of the server or of the network.
    ///
    /// A server of a later version may refuse with a code that this version does not know; its range decides then.
    /// Codes from 4500 to 4599 are states of the server.
    public let isTemporary: Bool

    /// Creates an error; it is temporary if its code, or the server's, says so, unless `isTemporary` is given.
    init(_ code: Code, _ sentence: String, serverCode: Int? = nil, isTemporary: Bool? = nil) {
        let allowsReturn = serverCode.map { RoomErrorCode(rawValue: $0).allowsReturn } ?? false
        self.isTemporary = isTemporary ?? (code == .serverUnavailable || code == .connectionLost || allowsReturn)
        self.code = code
        self.serverCode = serverCode
        self.sentence = sentence
        fileError = nil
    }

    /// Creates the error for a log of the rate control that cannot be written.
    init(logFailed cause: MediaFileError) {
        code = .logFailed
        serverCode = nil
        isTemporary = false
        sentence = "\(cause)"
        fileError = cause
    }
}

extension RoomError: CodedError {
    /// The name of `code`.
    public var codeName: String { code.description }
}

extension RoomError: CustomStringConvertible {
    /// What happened and what to do about it.
    public var description: String { sentence }
}

extension RoomError {
    /// Creates the error for a track that this version cannot receive.
    init(_ failure: ClientSession.SubscriptionFailure) {
        switch failure {
        case .unknownCodec(let codec):
            let problem = "The track cannot be received: its codec \"\(codec)\" is not supported"
            self.init(.unsupportedTrack, "\(problem); publish it as VP8.")
        case .incompleteDescription:
            self.init(
                .unsupportedTrack,
                "The track cannot be received: it has no codec, size or frame rate; its publisher must state them."
            )
        }
    }

    /// Creates the error for a request, or a session, that the server refused.
    init(refusal error: ErrorMessage) {
        let advice = RoomErrorCode(rawValue: error.code).allowsReturn ? " Try again in a moment." : ""
        self.init(.refused, "The server refused: \(error.message).\(advice)", serverCode: error.code)
    }

    /// Creates the error for a session that ended; `nil` if we left it ourselves.
    init?(_ ending: ClientSession.Ending) {
        switch ending {
        case .left: return nil
        case .dismissed(let reason, let reconnect, _):
            let advice = reconnect ? " Connect again in a moment." : ""
            self.init(.connectionLost, "The server ended the session: \(reason).\(advice)", isTemporary: reconnect)
        case .refused(let error) where error.code == RoomErrorCode.duplicateIdentity.rawValue:
            self.init(
                .refused,
                "This program was replaced: \(error.message). Give each its own (ConnectOptions.identity, --identity).",
                serverCode: error.code
            )
        case .refused(let error):
            self.init(refusal: error)
        case .faulted(let code, let reason):
            let problem = "The server does not understand this program (\(code)\(reason.isEmpty ? "" : ": \(reason)"))"
            self.init(.refused, "\(problem). Check that both are of the same version.", serverCode: code)
        case .connectionLost(let reason): self.init(.connectionLost, reason)
        case .protocolViolation(let problem):
            let advice = "Check that it is a room server of this program's version."
            self.init(.protocolViolation, "The server breaks the protocol: \(problem). \(advice)")
        case .joinTimedOut:
            let problem = "The server did not answer the request to join in time"
            self.init(.serverUnavailable, "\(problem); check that it is a room server, and try again.")
        }
    }
}
