import RoomProtocol
import Testing

/// What a session reports about the others in the room, their tracks and our own.
@Suite("Client session, room", .timeLimit(.minutes(1)))
struct ClientSessionRoomTests: ClientSessionFixture {
    @Test("The events of tracks carry the track and its publisher")
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

    @Test("The session reports participants who come and go, and their tracks end with them")
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

    @Test("A participant that is announced again brings its tracks anew")
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

    @Test("The session reports the events of our own tracks")
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

    @Test("A track that is switched off and on is reported, and so is a network's quality from 0 to 5")
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

    // Each took the place of what a subscription had begun on, which then never ended.
    @Test("A track that is said twice, or by two publishers, is the first one's")
    func sameTrackTwice() {
        let one = track("TR_1")
        var session = joinedSession([one])
        #expect(receive(.trackPublished(TrackPublished(participantId: "PA_1", track: one)), &session) == [])
        let thief = ParticipantInfo(id: "PA_2", identity: "thief", tracks: [one, track("TR_2"), track("TR_2")])
        let rest = ParticipantInfo(id: "PA_2", identity: "thief", tracks: [track("TR_2")])
        #expect(
            receive(.participantConnected(ParticipantConnected(participant: thief)), &session)
                == [.notify(.participantConnected(rest))]
        )
        _ = receive(.trackUnpublished(TrackUnpublished(participantId: "PA_2", trackId: "TR_1")), &session)
        #expect(session.remoteParticipants["PA_1"]?.tracks == [])
        #expect(session.remoteParticipants["PA_2"] == rest)
    }

    @Test("A participant that comes again leaves first, with its tracks")
    func sameParticipantTwice() {
        let one = track("TR_1")
        var session = joinedSession([one])
        #expect(
            receive(.participantConnected(ParticipantConnected(participant: robot([]))), &session)
                == [.notify(.participantDisconnected(robot([one]))), .notify(.participantConnected(robot([])))]
        )
    }

    @Test("A server that names more tracks or participants than there may be grows nothing")
    func bounds() {
        var session = joinedSession()
        for number in 0..<100 {
            _ = receive(.trackPublished(TrackPublished(participantId: "PA_1", track: track("TR_\(number)"))), &session)
        }
        #expect(session.remoteParticipants["PA_1"]?.tracks.count == WireFormat.maximumTracksPerParticipant)
        var actions: [Action] = []
        for number in 0..<20_000 where !actions.contains(where: isEnd) {
            let stranger = ParticipantInfo(id: "PA_x\(number)", identity: "\(number)", tracks: [])
            actions = receive(.participantConnected(ParticipantConnected(participant: stranger)), &session)
        }
        #expect(actions.contains(where: isEnd))
    }
}
