import MediaCore
import RoomProtocol
import TestTools
import Testing

/// How a session ends: once, with a reason, and silent from then on.
@Suite("Client session, end", .timeLimit(.minutes(1)))
struct ClientSessionEndTests: ClientSessionFixture {
    @Test("Leaving says so, ends the session and closes, once")
    func leaving() {
        var session = joinedSession()
        #expect(
            session.leave() == [
                .send(.leave(Leave(reason: "left"))), .notify(.ended(.left)), .close(code: 1000, reason: "left"),
            ]
        )
        expectSilence(session)
        var early = ClientSession(ClientSession.Settings(join: join, videoCodecs: [VideoCodec.vp8]))
        _ = early.connectionOpened(at: start)
        #expect(early.leave() == [.notify(.ended(.left)), .close(code: 1000, reason: "left")])
        expectSilence(early)
    }

    @Test("A connection that breaks ends the session, at whatever point")
    func connectionLost() {
        for var session in [
            ClientSession(ClientSession.Settings(join: join, videoCodecs: [VideoCodec.vp8])), joinedSession(),
        ] {
            #expect(session.connectionClosed("reset") == [.notify(.ended(.connectionLost("reset")))])
            expectSilence(session)
        }
    }

    // All of them counted as a broken connection, so that a program that had been replaced came back for ever.
    @Test(
        "A close code without an error says whether to come back",
        arguments: [
            (4409, false), (4400, false), (4401, false), (4429, true), (4503, true), (4999, false), (1002, true),
            (1007, false), (1009, false), (1000, true), (1001, true), (1005, true), (1011, true), (3000, true),
        ]
    )
    func closeCodes(code: Int, mayReturn: Bool) {
        for var session in [
            ClientSession(ClientSession.Settings(join: join, videoCodecs: [VideoCodec.vp8])), joinedSession(),
        ] {
            let actions = session.connectionClosed(byServerWith: code, "why")
            guard case .notify(.ended(let ending))? = actions.first, actions.count == 1 else {
                Issue.record("\(actions)")
                continue
            }
            switch ending {
            case .refused(let error):
                #expect(error.code == code && error.message == "why" && code >= 4000)
                #expect(RoomErrorCode(rawValue: code).allowsReturn == mayReturn)
            case .faulted(code, "why"): #expect(!mayReturn)
            case .connectionLost(let reason): #expect(mayReturn && reason.contains("\(code)"))
            default: Issue.record("\(ending)")
            }
            expectSilence(session)
        }
    }

    @Test("A dismissal or fatal error ends the session and closes, so that no server can hold the connection")
    func dismissed() {
        // A client of this version only reports the URL of a room that has moved, and does not connect there.
        for (hasJoined, url) in [(false, nil), (true, nil), (true, "ws://b/rooms/lab")] {
            var session =
                hasJoined
                ? joinedSession() : ClientSession(ClientSession.Settings(join: join, videoCodecs: [VideoCodec.vp8]))
            if !hasJoined { _ = session.connectionOpened(at: start) }
            var other = session
            #expect(
                receive(.leave(Leave(reason: "going down", reconnect: true, url: url)), &session) == [
                    .notify(.ended(.dismissed(reason: "going down", reconnect: true, url: url))),
                    .close(code: 1000, reason: "dismissed"),
                ]
            )
            expectSilence(session)
            let error = ErrorMessage(.notAuthorized, "no", fatal: true)
            #expect(
                receive(.error(error), &other)
                    == [.notify(.ended(.refused(error))), .close(code: 1000, reason: "refused")]
            )
            expectSilence(other)
        }
    }

    @Test("A server that breaks the protocol is left with code 1002 and a reason that fits a close frame")
    func violations() throws {
        var opened = ClientSession(ClientSession.Settings(join: join, videoCodecs: [VideoCodec.vp8]))
        _ = opened.connectionOpened(at: start)
        let endless = "{\"type\":\"join\", \"" + String(repeating: "e\u{301}", count: 500)
        let cases: [(ClientSession, String)] = [
            (opened, ServerMessage.unsubscribed(Unsubscribed(trackId: "TR_1")).text),
            (opened, ServerMessage.joined(joined(version: 2)).text),
            (opened, "nonsense"),
            (joinedSession(), ServerMessage.joined(joined()).text),
            (joinedSession(), endless),
            (joinedSession(), #"{"type":"subscribed","trackId":"a","alias":-1}"#),
        ]
        for (session, text) in cases {
            var session = session
            let actions = session.received(text, at: start)
            #expect(actions.filter(isEnd).count == 1)
            guard case .close(1002, let reason) = try #require(actions.last) else {
                Issue.record("\(actions)")
                continue
            }
            #expect(reason.utf8.count <= 123)
            expectSilence(session)
        }
    }

    @Test("A version that cannot be spoken is refused with a sentence that names both")
    func version() {
        var session = ClientSession(ClientSession.Settings(join: join, videoCodecs: [VideoCodec.vp8]))
        _ = session.connectionOpened(at: start)
        let actions = receive(.joined(joined(version: 2)), &session)
        let sentence = "the server speaks version 2, this client 1"
        #expect(actions.first == .notify(.ended(.protocolViolation(sentence))))
    }

    @Test("Any order of messages, closes and deadlines ends the session at most once")
    func anyOrder() {
        var generator = SeededGenerator(seed: 6)
        for _ in 0..<300 {
            var session = ClientSession(ClientSession.Settings(join: join, videoCodecs: [VideoCodec.vp8]))
            var ends = 0
            for step in 0..<30 {
                let now = start + .milliseconds(step * 400)
                let actions =
                    switch Int.random(in: 0..<12, using: &generator) {
                    case 0: session.leave()
                    case 1: session.connectionClosed("lost")
                    case 2, 3: session.connectionOpened(at: now)
                    case 4, 5: session.deadlineReached(at: now)
                    default:
                        session.received(serverMessages.randomElement(using: &generator)?.1 ?? "", at: now)
                    }
                if ends > 0 { #expect(actions == []) }
                ends += actions.filter(isEnd).count
            }
            #expect(ends <= 1)
        }
    }
}
