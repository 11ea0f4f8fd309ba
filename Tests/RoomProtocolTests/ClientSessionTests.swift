import MediaCore
import RoomProtocol
import Testing

@Suite("Client session", .timeLimit(.minutes(1)))
struct ClientSessionTests: ClientSessionFixture {
    @Test("Joining: `join` goes out, `joined` comes in, and the clock is asked for at once")
    func joining() {
        var session = ClientSession(ClientSession.Settings(join: join, videoCodecs: [VideoCodec.vp8]))
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
        var session = ClientSession(ClientSession.Settings(join: join, videoCodecs: [VideoCodec.vp8]))
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
        var contradicted = ClientSession(ClientSession.Settings(join: join, videoCodecs: [VideoCodec.vp8]))
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
        var session = ClientSession(ClientSession.Settings(join: join, videoCodecs: [VideoCodec.vp8]))
        #expect(session.clockEstimate == nil)
        _ = session.connectionOpened(at: start)
        let answer = joined(serverTime: start.microseconds + 5_010)
        _ = session.received(ServerMessage.joined(answer).text, at: start + .milliseconds(20))
        let expected = ClockEstimate(basis: .estimated, offset: .microseconds(-4_990), errorBound: .milliseconds(10))
        #expect(session.clockEstimate == expected)
    }

    @Test("Without boot ids at either end nobody claims the same host")
    func noBootIDs() {
        var session = ClientSession(
            ClientSession.Settings(join: Join(room: "lab", identity: "viewer"), videoCodecs: [VideoCodec.vp8])
        )
        _ = session.connectionOpened(at: start)
        _ = receive(.joined(joined()), &session)
        #expect(session.clockEstimate?.basis == .estimated)
    }

    @Test("A refusal before `joined` that is not fatal is told, and the wait goes on")
    func refusedResume() {
        var session = ClientSession(ClientSession.Settings(join: join, videoCodecs: [VideoCodec.vp8]))
        _ = session.connectionOpened(at: start)
        let error = ErrorMessage(.cannotResume, "join anew", fatal: false)
        #expect(receive(.error(error), &session) == [.notify(.refused(error))])
        #expect(session.nextDeadline == start + .seconds(10))
    }

    @Test("Messages of an unknown type are passed over, before and after joining")
    func unknownType() {
        var session = ClientSession(ClientSession.Settings(join: join, videoCodecs: [VideoCodec.vp8]))
        _ = session.connectionOpened(at: start)
        #expect(session.received(#"{"type":"fanfare"}"#, at: start) == [])
        var joined = joinedSession()
        #expect(joined.received(#"{"type":"fanfare"}"#, at: start) == [])
    }
}
