import MediaCore
import RoomProtocol
import TestTools
import Testing

@Suite("Client session", .timeLimit(.minutes(1)))
struct ClientSessionTests {
    private typealias Action = ClientSession.Action

    private let start = MonotonicInstant(nanoseconds: 1_000_000_000)
    private let join = Join(room: "lab", identity: "viewer", bootId: "boot")

    private func track(_ id: String, enabled: Bool = true) -> TrackInfo {
        TrackInfo(
            id: id,
            alias: 1,
            name: id,
            source: "camera",
            width: 640,
            height: 480,
            frameRate: 30,
            enabled: enabled
        )
    }

    private func joined(
        participants: [ParticipantInfo] = [],
        bootID: String? = nil,
        version: Int = 1,
        serverTime: Int64? = nil
    ) -> Joined {
        Joined(
            version: version,
            room: Joined.RoomInfo(id: "RM_1", name: "lab"),
            participant: ParticipantInfo(id: "PA_me", identity: "viewer", tracks: []),
            participants: participants,
            serverTime: serverTime ?? start.microseconds,
            bootId: bootID,
            server: "test"
        )
    }

    private func robot(_ tracks: [TrackInfo]) -> ParticipantInfo {
        ParticipantInfo(id: "PA_1", identity: "robot", tracks: tracks)
    }

    /// A session that has joined, with a robot in the room.
    private func joinedSession(_ tracks: [TrackInfo] = [], bootID: String? = nil) -> ClientSession {
        var session = ClientSession(ClientSession.Settings(join: join))
        _ = session.connectionOpened(at: start)
        let answer = ServerMessage.joined(joined(participants: [robot(tracks)], bootID: bootID))
        _ = session.received(answer.text, at: start)
        return session
    }

    private func receive(_ message: ServerMessage, _ session: inout ClientSession) -> [Action] {
        session.received(message.text, at: start)
    }

    private func isEnd(_ action: Action) -> Bool {
        if case .notify(.ended) = action { true } else { false }
    }

    /// Nothing that can happen brings a word from a session that has ended.
    private func expectSilence(_ ended: ClientSession) {
        var session = ended
        #expect(session.nextDeadline == nil)
        #expect(session.leave() == [])
        #expect(session.connectionClosed("again") == [])
        #expect(session.connectionOpened(at: start) == [])
        #expect(session.deadlineReached(at: start + .seconds(100)) == [])
        for (message, _) in serverMessages { #expect(receive(message, &session) == []) }
        #expect(session.received("nonsense", at: start) == [])
    }

    @Test("Joining: `join` goes out, `joined` comes in, and the clock is asked for at once")
    func joining() {
        var session = ClientSession(ClientSession.Settings(join: join))
        #expect(session.nextDeadline == nil)
        #expect(session.connectionOpened(at: start) == [.send(.join(join))])
        #expect(session.nextDeadline == start + .seconds(10))
        #expect(session.deadlineReached(at: start + .seconds(9)) == [])
        let body = joined(participants: [robot([track("TR_1")])])
        let actions = session.received(ServerMessage.joined(body).text, at: start)
        #expect(
            actions == [.notify(.joined(body)), .send(.timeSync(TimeSync(clientTime: start.microseconds)))]
        )
        #expect(session.remoteParticipants == ["PA_1": robot([track("TR_1")])])
        #expect(session.connectionOpened(at: start) == [])
    }

    @Test("No answer to `join` ends the session at its deadline")
    func joinTimeout() {
        var session = ClientSession(ClientSession.Settings(join: join))
        _ = session.connectionOpened(at: start)
        let actions = session.deadlineReached(at: start + .seconds(10))
        #expect(actions == [.notify(.ended(.joinTimedOut)), .close(code: 1000, reason: "no answer to join")])
        expectSilence(session)
    }

    @Test("The clock is asked five times in quick succession, then every five seconds")
    func timeSyncCadence() throws {
        var session = joinedSession()
        var gaps: [Duration] = []
        var last = start
        for _ in 0..<7 {
            let deadline = try #require(session.nextDeadline)
            #expect(session.deadlineReached(at: deadline - .nanoseconds(1)) == [])
            let actions = session.deadlineReached(at: deadline)
            #expect(actions == [.send(.timeSync(TimeSync(clientTime: deadline.microseconds)))])
            gaps.append(deadline.duration(since: last))
            last = deadline
        }
        let quick = Array(repeating: Duration.milliseconds(50), count: 4)
        #expect(gaps == quick + Array(repeating: .seconds(5), count: 3))
    }

    @Test("A late wake-up asks once, not once for each time missed")
    func lateWakeUp() {
        var session = joinedSession()
        #expect(session.deadlineReached(at: start + .seconds(60)).count == 1)
        #expect(session.deadlineReached(at: start + .seconds(60)) == [])
    }

    @Test("Equal boot ids make the clock the same, other ones an estimate, contradiction an estimate too")
    func clock() {
        #expect(joinedSession().clockEstimate?.basis == .estimated)
        #expect(joinedSession(bootID: "other").clockEstimate?.basis == .estimated)
        var same = joinedSession(bootID: "boot")
        #expect(same.clockEstimate?.basis == .sameHost)
        let answer = TimeSync(clientTime: start.microseconds - 200, serverTime: start.microseconds - 100)
        #expect(receive(.timeSync(answer), &same) == [])
        #expect(same.clockEstimate?.basis == .sameHost)
        var contradicted = ClientSession(ClientSession.Settings(join: join))
        _ = contradicted.connectionOpened(at: start)
        let far = joined(bootID: "boot", serverTime: start.microseconds + 9_000_000)
        _ = contradicted.received(ServerMessage.joined(far).text, at: start)
        #expect(contradicted.clockEstimate?.basis == .estimated)
        var other = joinedSession()
        let before = other.clockEstimate
        #expect(receive(.timeSync(TimeSync(clientTime: 0)), &other) == [])
        #expect(other.clockEstimate == before)
    }

    @Test("Joining is a round trip by which the clock is known at once")
    func clockFromJoining() {
        var session = ClientSession(ClientSession.Settings(join: join))
        #expect(session.clockEstimate == nil)
        _ = session.connectionOpened(at: start)
        let answer = joined(serverTime: start.microseconds + 5_010)
        _ = session.received(ServerMessage.joined(answer).text, at: start + .milliseconds(20))
        let expected = ClockEstimate(basis: .estimated, offset: .microseconds(-4_990), errorBound: .milliseconds(10))
        #expect(session.clockEstimate == expected)
    }

    @Test("Without boot ids at either end nobody claims the same host")
    func noBootIDs() {
        var session = ClientSession(ClientSession.Settings(join: Join(room: "lab", identity: "viewer")))
        _ = session.connectionOpened(at: start)
        _ = receive(.joined(joined()), &session)
        #expect(session.clockEstimate?.basis == .estimated)
    }

    @Test("What happens to tracks is told with the track and its publisher")
    func tracks() {
        let one = track("TR_1")
        var session = joinedSession()
        #expect(
            receive(.trackPublished(TrackPublished(participantId: "PA_1", track: one)), &session)
                == [.notify(.trackPublished(one, by: robot([one])))]
        )
        #expect(
            receive(.subscribed(Subscribed(trackId: "TR_1", alias: 1, catchUpThrough: 8)), &session)
                == [.notify(.subscribed(one, by: robot([one]), .init(catchUpThrough: 8)))]
        )
        let off = track("TR_1", enabled: false)
        #expect(
            receive(.trackDisabled(TrackDisabled(participantId: "PA_1", trackId: "TR_1")), &session)
                == [.notify(.trackDisabled(off, by: robot([off])))]
        )
        #expect(session.remoteParticipants["PA_1"]?.tracks == [off])
        #expect(
            receive(.trackEnabled(TrackEnabled(participantId: "PA_1", trackId: "TR_1")), &session)
                == [.notify(.trackEnabled(one, by: robot([one])))]
        )
        #expect(
            receive(.unsubscribed(Unsubscribed(trackId: "TR_1")), &session)
                == [.notify(.unsubscribed(one, by: robot([one])))]
        )
        #expect(
            receive(.trackUnpublished(TrackUnpublished(participantId: "PA_1", trackId: "TR_1")), &session)
                == [.notify(.trackUnpublished(one, by: robot([one])))]
        )
        #expect(session.remoteParticipants["PA_1"]?.tracks == [])
        #expect(receive(.trackUnpublished(TrackUnpublished(participantId: "PA_1", trackId: "TR_1")), &session) == [])
    }

    @Test("What happens to participants is told, with all their tracks gone when they go")
    func participants() {
        var session = joinedSession([track("TR_1")])
        let second = ParticipantInfo(id: "PA_2", identity: "second", tracks: [track("TR_2")])
        var told = track("TR_2")
        told.alias = 2
        #expect(
            receive(.participantConnected(ParticipantConnected(participant: second)), &session)
                == [.notify(.participantConnected(second))]
        )
        #expect(session.remoteParticipants.count == 2)
        #expect(
            receive(.subscribed(Subscribed(trackId: "TR_2", alias: 2, catchUpThrough: nil)), &session)
                == [.notify(.subscribed(told, by: second, .init()))]
        )
        let gone = ServerMessage.participantDisconnected(ParticipantDisconnected(participantId: "PA_2"))
        let atTheEnd = ParticipantInfo(id: "PA_2", identity: "second", tracks: [told])
        #expect(receive(gone, &session) == [.notify(.participantDisconnected(atTheEnd))])
        #expect(receive(gone, &session) == [])
        #expect(receive(.subscribed(Subscribed(trackId: "TR_2", alias: 2, catchUpThrough: nil)), &session) == [])
    }

    @Test("A participant that is told of anew brings its tracks anew")
    func participantAgain() {
        var session = joinedSession([track("TR_1")])
        _ = receive(.participantConnected(ParticipantConnected(participant: robot([track("TR_2")]))), &session)
        #expect(receive(.unsubscribed(Unsubscribed(trackId: "TR_1")), &session) == [])
        #expect(session.remoteParticipants["PA_1"]?.tracks == [track("TR_2")])
    }

    @Test("Words about tracks and participants that are not there are passed over")
    func unknownTracks() {
        var session = joinedSession()
        let messages: [ServerMessage] = [
            .trackPublished(TrackPublished(participantId: "PA_9", track: track("TR_9"))),
            .trackUnpublished(TrackUnpublished(participantId: "PA_9", trackId: "TR_9")),
            .trackEnabled(TrackEnabled(participantId: "PA_9", trackId: "TR_9")),
            .trackDisabled(TrackDisabled(participantId: "PA_9", trackId: "TR_9")),
            .subscribed(Subscribed(trackId: "TR_9", alias: 1, catchUpThrough: nil)),
            .unsubscribed(Unsubscribed(trackId: "TR_9")),
            .participantDisconnected(ParticipantDisconnected(participantId: "PA_9")),
        ]
        for message in messages { #expect(receive(message, &session) == []) }
    }

    @Test("What concerns our own tracks is told")
    func ownTracks() {
        var session = joinedSession()
        let own = track("TR_own")
        #expect(
            receive(.published(Published(requestId: 4, track: own)), &session)
                == [.notify(.published(requestID: 4, own))]
        )
        #expect(
            receive(.layersWanted(LayersWanted(trackId: "TR_own", simulcastLayers: [0])), &session)
                == [.notify(.layersWanted(trackID: "TR_own", layers: [WantedLayer(simulcastLayer: 0)]))]
        )
        #expect(
            receive(.keyframeRequest(KeyframeRequest(trackId: "TR_own")), &session)
                == [.notify(.keyframeRequested(trackID: "TR_own", simulcastLayer: nil))]
        )
        let refusal = ErrorMessage(.limitReached, "enough", fatal: false, requestId: 4)
        #expect(receive(.error(refusal), &session) == [.notify(.refused(refusal))])
    }

    @Test("A track that is switched off and on is told of, and so is a network's quality from 0 to 5")
    func networkConditions() {
        var session = joinedSession([track("TR_1")])
        let off = TrackSwitchedOff(participantId: "PA_1", trackId: "TR_1", reason: SwitchOffReason.network)
        let publisher = robot([track("TR_1")])
        #expect(
            receive(.trackSwitchedOff(off), &session)
                == [.notify(.trackSwitchedOff(track("TR_1"), by: publisher, reason: "network"))]
        )
        #expect(
            receive(.trackSwitchedOn(TrackSwitchedOn(participantId: "PA_1", trackId: "TR_1")), &session)
                == [.notify(.trackSwitchedOn(track("TR_1"), by: publisher))]
        )
        #expect(
            receive(.trackSwitchedOn(TrackSwitchedOn(participantId: "PA_1", trackId: "TR_9")), &session) == []
        )
        for level in [-1, 0, 5, 6, .max] {
            let actions = receive(.networkQuality(NetworkQuality(participantId: "PA_1", level: level)), &session)
            let isLevel = level == 0 || level == 5
            #expect(actions == (isLevel ? [.notify(.networkQuality(participantID: "PA_1", level: level))] : []))
        }
    }

    @Test("Leaving says so, ends the session and closes, once")
    func leaving() {
        var session = joinedSession()
        #expect(
            session.leave() == [
                .send(.leave(Leave(reason: "left"))), .notify(.ended(.left)), .close(code: 1000, reason: "left"),
            ]
        )
        expectSilence(session)
        var early = ClientSession(ClientSession.Settings(join: join))
        _ = early.connectionOpened(at: start)
        #expect(early.leave() == [.notify(.ended(.left)), .close(code: 1000, reason: "left")])
        expectSilence(early)
    }

    @Test("A connection that breaks ends the session, at whatever point")
    func connectionLost() {
        for var session in [ClientSession(ClientSession.Settings(join: join)), joinedSession()] {
            #expect(session.connectionClosed("reset") == [.notify(.ended(.connectionLost("reset")))])
            expectSilence(session)
        }
    }

    @Test("A dismissal or fatal error ends the session and closes, so that no server can hold the connection")
    func dismissed() {
        for hasJoined in [false, true] {
            var session = hasJoined ? joinedSession() : ClientSession(ClientSession.Settings(join: join))
            if !hasJoined { _ = session.connectionOpened(at: start) }
            var other = session
            #expect(
                receive(.leave(Leave(reason: "going down", reconnect: true)), &session) == [
                    .notify(.ended(.dismissed(reason: "going down", reconnect: true, url: nil))),
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

    @Test("A refusal before `joined` that is not fatal is told, and the wait goes on")
    func refusedResume() {
        var session = ClientSession(ClientSession.Settings(join: join))
        _ = session.connectionOpened(at: start)
        let error = ErrorMessage(.cannotResume, "join anew", fatal: false)
        #expect(receive(.error(error), &session) == [.notify(.refused(error))])
        #expect(session.nextDeadline == start + .seconds(10))
    }

    @Test("A server that breaks the protocol is left with code 1002 and a reason that fits a close frame")
    func violations() throws {
        var opened = ClientSession(ClientSession.Settings(join: join))
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
        var session = ClientSession(ClientSession.Settings(join: join))
        _ = session.connectionOpened(at: start)
        let actions = receive(.joined(joined(version: 2)), &session)
        let sentence = "the server speaks version 2, this client 1"
        #expect(actions.first == .notify(.ended(.protocolViolation(sentence))))
    }

    @Test("Messages of an unknown type are passed over, before and after joining")
    func unknownType() {
        var session = ClientSession(ClientSession.Settings(join: join))
        _ = session.connectionOpened(at: start)
        #expect(session.received(#"{"type":"fanfare"}"#, at: start) == [])
        var joined = joinedSession()
        #expect(joined.received(#"{"type":"fanfare"}"#, at: start) == [])
    }

    @Test("Any order of messages, closes and deadlines ends the session at most once")
    func anyOrder() {
        var generator = SeededGenerator(seed: 6)
        for _ in 0..<300 {
            var session = ClientSession(ClientSession.Settings(join: join))
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
