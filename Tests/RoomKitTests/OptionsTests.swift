import MediaCore
import Testing

@testable import RoomKit

@Suite("Options", .timeLimit(.minutes(1)))
struct OptionsTests {
    @Test("An identity is this machine's name with four random characters")
    func identity() {
        let identities = Set((0..<20).map { _ in ConnectOptions.makeIdentity() })
        #expect(identities.count > 15)
        for identity in identities {
            #expect(identity.wholeMatch(of: /.+-[a-z0-9]{4}/) != nil, "\(identity)")
            #expect(identity.utf8.count <= 128)
        }
        #expect(Set(identities.map { $0.dropLast(4) }).count == 1)
    }

    @Test("Options are built as in other SDKs")
    func building() {
        let track = LocalVideoTrack(source: HandSource())
        let options = ConnectOptions(token: "secret") { builder in
            builder.roomName = "lab"
            builder.videoTracks = [track]
        }
        #expect(options.accessToken == "secret" && options.roomName == "lab")
        #expect(options.videoTracks.count == 1 && options.isAutomaticSubscriptionEnabled)
        #expect(ConnectOptions(roomName: "lab").accessToken == nil)
    }

    @Test("A track is called by its source unless it has a name")
    func trackNames() {
        #expect(LocalVideoTrack(source: PatternSource()).name == "pattern")
        #expect(LocalVideoTrack(source: NoiseSource()).sourceKind == "noise")
        let track = LocalVideoTrack(source: HandSource(), name: "arm")
        #expect(track.name == "arm" && track.sourceKind == "other")
        #expect(track.statistics == LocalVideoTrackStatistics() && track.failure == nil)
    }
}
