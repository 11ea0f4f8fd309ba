import RoomProtocol
import Testing

@testable import RoomKit

@Suite("Errors of a room") struct RoomErrorTests {
    // Of a server's unknown codes only the number was known.
    @Test(
        "Whether connecting again may help is told, also for codes of later servers",
        arguments: [
            (4400, false), (4409, false), (4499, false), (4408, true), (4429, true), (4500, true), (4503, true),
            (4599, true), (4600, false),
        ]
    )
    func temporary(code: Int, isTemporary: Bool) throws {
        let error = ErrorMessage(RoomErrorCode(rawValue: code), "no", fatal: true)
        let told = try #require(RoomError(ClientSession.Ending.refused(error)))
        #expect(told.isTemporary == isTemporary && told.serverCode == code && told.code == .refused)
        #expect(told.description.contains("Try again") == isTemporary)
    }

    @Test("A session that the server ends is temporary if it says so", arguments: [true, false])
    func dismissed(reconnect: Bool) throws {
        let ending = ClientSession.Ending.dismissed(reason: "removed", reconnect: reconnect, url: nil)
        #expect(try #require(RoomError(ending)).isTemporary == reconnect)
    }

    @Test("A broken connection is temporary; a wrong URL or a server that breaks the protocol is not")
    func others() {
        let permanent: [RoomError.Code] = [.invalidURL, .notConnected, .protocolViolation, .unsupportedTrack]
        #expect(permanent.allSatisfy { !RoomError($0, "").isTemporary })
        let temporary: [RoomError.Code] = [.serverUnavailable, .connectionLost]
        #expect(temporary.allSatisfy { RoomError($0, "").isTemporary })
    }
}
