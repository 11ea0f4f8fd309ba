import RoomProtocol
import Testing

@Suite("Participants put into JSON once", .timeLimit(.minutes(1)))
struct ParticipantSnapshotTests {
    private func participant(_ index: Int, tracks: Int = 1) -> ParticipantInfo {
        let hostile = #"","participants":[],"participant":{"#
        return ParticipantInfo(
            id: "PA_\(index)",
            identity: "é\(hostile)\\ \(index)",
            tracks: (0..<tracks).map {
                TrackInfo(
                    id: "TR_\($0)",
                    alias: UInt32($0 + 1),
                    name: hostile,
                    source: "camera",
                    codec: VideoCodec.vp8,
                    width: 1,
                    height: 2,
                    frameRate: 29.97
                )
            }
        )
    }

    private func joined(_ participants: [ParticipantInfo], more: Bool? = nil) -> Joined {
        Joined(
            room: Joined.RoomInfo(id: "RM_1", name: #""participants":[]"#),
            participant: participant(0, tracks: 0),
            participants: participants,
            moreParticipants: more,
            serverTime: 5,
            bootId: "boot",
            server: "server"
        )
    }

    @Test("The messages are those of the encoder, to the byte", arguments: 0...3)
    func same(tracks: Int) {
        let info = participant(1, tracks: tracks)
        let message = ServerMessage.participantConnected(ParticipantConnected(participant: info))
        #expect(ParticipantSnapshot(info).connectedText == message.text)
        let infos = (0..<tracks).map { participant($0, tracks: $0) }
        let (text, count) = joined([]).text(with: infos.map(ParticipantSnapshot.init), limit: 65_536)
        #expect(text == ServerMessage.joined(joined(infos)).text && count == tracks)
    }

    @Test("Participants that do not fit are left out, and `joined` says so", arguments: [700, 1000, 5000, 20_000])
    func limit(bytes: Int) throws {
        let infos = (0..<100).map { participant($0) }
        let (text, count) = joined([]).text(with: infos.map(ParticipantSnapshot.init), limit: bytes)
        #expect(text.utf8.count <= bytes && count < 100)
        #expect(text == ServerMessage.joined(joined(Array(infos[..<count]), more: true)).text)
        #expect(text.utf8.count + ParticipantSnapshot(infos[count]).json.utf8.count + 1 > bytes)
    }
}
