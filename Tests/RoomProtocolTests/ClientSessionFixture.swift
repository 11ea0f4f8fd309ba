import MediaCore
import RoomProtocol
import Testing

/// What tests of a client's session share: a room with a robot in it.
protocol ClientSessionFixture {}

extension ClientSessionFixture {
    typealias Action = ClientSession.Action

    var start: MonotonicInstant { MonotonicInstant(nanoseconds: 1_000_000_000) }
    var join: Join { Join(room: "lab", identity: "viewer", bootId: "boot") }

    func track(_ id: String, enabled: Bool = true) -> TrackInfo {
        TrackInfo(
            id: id,
            alias: 1,
            name: id,
            source: "camera",
            codec: VideoCodec.vp8,
            width: 640,
            height: 480,
            frameRate: 30,
            enabled: enabled
        )
    }

    func joined(
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

    func robot(_ tracks: [TrackInfo]) -> ParticipantInfo {
        ParticipantInfo(id: "PA_1", identity: "robot", tracks: tracks)
    }

    /// A session that has joined, with a robot in the room.
    func joinedSession(_ tracks: [TrackInfo] = [], bootID: String? = nil) -> ClientSession {
        var session = ClientSession(ClientSession.Settings(join: join, videoCodecs: [VideoCodec.vp8]))
        _ = session.connectionOpened(at: start)
        let answer = ServerMessage.joined(joined(participants: [robot(tracks)], bootID: bootID))
        _ = session.received(answer.text, at: start)
        return session
    }

    func receive(_ message: ServerMessage, _ session: inout ClientSession) -> [Action] {
        session.received(message.text, at: start)
    }

    func isEnd(_ action: Action) -> Bool {
        if case .notify(.ended) = action { true } else { false }
    }

    /// Nothing that can happen brings a word from a session that has ended.
    func expectSilence(_ ended: ClientSession) {
        var session = ended
        #expect(session.nextDeadline == nil)
        #expect(session.leave() == [])
        #expect(session.connectionClosed("again") == [])
        #expect(session.connectionOpened(at: start) == [])
        #expect(session.deadlineReached(at: start + .seconds(100)) == [])
        for (message, _) in serverMessages { #expect(receive(message, &session) == []) }
        #expect(session.received("nonsense", at: start) == [])
    }
}
