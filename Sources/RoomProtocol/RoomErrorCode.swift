/// The reason why a request was refused or a connection ended, as a number that never changes between versions.
///
/// The number is the `code` of an `error` message. After a fatal error it is also the WebSocket close code. It lies in
/// the range that RFC 6455, section 7.4.2, leaves to applications.
package struct RoomErrorCode: RawRepresentable, Hashable, Sendable {
    /// The code's number.
    package var rawValue: Int

    /// The code with the number `rawValue`, known or not.
    package init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// A message that cannot be read, or that breaks the protocol.
    package static let malformedMessage = RoomErrorCode(rawValue: 4400)
    /// A name, size or other value outside its limits.
    package static let invalidArgument = RoomErrorCode(rawValue: 4401)
    /// A token that is missing, wrong or expired, or does not grant the request.
    package static let notAuthorized = RoomErrorCode(rawValue: 4403)
    /// A track or participant that is not in the room.
    package static let notFound = RoomErrorCode(rawValue: 4404)
    /// A message of a type that the server does not know.
    package static let unknownType = RoomErrorCode(rawValue: 4405)
    /// A missing `join`, or a peer that shows no sign of life.
    package static let timedOut = RoomErrorCode(rawValue: 4408)
    /// Another participant joined with the same identity.
    package static let duplicateIdentity = RoomErrorCode(rawValue: 4409)
    /// A session that can no longer be resumed; join anew.
    package static let cannotResume = RoomErrorCode(rawValue: 4410)
    /// A message, frame or backlog beyond its limit.
    package static let tooLarge = RoomErrorCode(rawValue: 4413)
    /// A peer that does not take its signaling in time.
    package static let tooSlow = RoomErrorCode(rawValue: 4414)
    /// A protocol version or codec that the server does not speak.
    package static let notSupported = RoomErrorCode(rawValue: 4426)
    /// More rooms, participants, tracks or messages than the server allows.
    package static let limitReached = RoomErrorCode(rawValue: 4429)
    /// A fault of the server.
    package static let internalError = RoomErrorCode(rawValue: 4500)
    /// The server is going down.
    package static let shuttingDown = RoomErrorCode(rawValue: 4503)

    /// Whether a client whose session ended with this code may come back by itself, after a delay.
    ///
    /// For codes that this version does not know, the range decides. Codes from 4500 to 4599 allow it, because they
    /// report a state of the server. Codes from 4400 to 4499 do not, because they report a fault of the client.
    package var allowsReturn: Bool {
        switch self {
        case .timedOut, .tooSlow, .limitReached: true
        default: (4500...4599).contains(rawValue)
        }
    }

    /// The code's name in messages.
    package var name: String { Self.names[self] ?? "unknown" }

    private static let names: [RoomErrorCode: String] = [
        .malformedMessage: "malformedMessage", .invalidArgument: "invalidArgument", .notAuthorized: "notAuthorized",
        .notFound: "notFound", .unknownType: "unknownType", .timedOut: "timedOut",
        .duplicateIdentity: "duplicateIdentity", .cannotResume: "cannotResume", .tooLarge: "tooLarge",
        .tooSlow: "tooSlow", .notSupported: "notSupported", .limitReached: "limitReached",
        .internalError: "internalError", .shuttingDown: "shuttingDown",
    ]
}
