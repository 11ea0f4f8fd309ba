import MediaCore
import RelayServer
import TestTools
import Testing

@testable import RoomKit

extension Room {
    /// What each encoding of a published track gives up last.
    fileprivate func preferences(of track: LocalVideoTrack) -> [DegradationPreference] {
        plans(of: track).map(\.preference)
    }
}

@Suite("Content hints of published tracks", .timeLimit(.minutes(1)))
struct PublishedContentHintTests {
    @Test(
        "A track is published as its pictures need it, unless the application chooses",
        arguments: [
            (VideoContentHint.detail, DegradationPreference?.none, DegradationPreference.maintainResolution),
            (.motion, nil, .maintainFramerate), (.none, nil, .balanced),
            (.detail, .maintainFramerate, .maintainFramerate),
        ]
    )
    func published(
        hint: VideoContentHint,
        chosen: DegradationPreference?,
        expected: DegradationPreference
    ) async throws {
        let server = try RelayServer.start()
        defer { server.stop() }
        var options = ConnectOptions(roomName: "lab")
        options.url = server.url
        let room = try await RoomClient.connect(options: options)
        let source = PushedSource(contentHint: hint)
        let track = LocalVideoTrack(source: source)
        var publishOptions = VideoPublishOptions()
        publishOptions.degradationPreference = chosen
        let publishing = Task { [publishOptions] in
            try await room.localParticipant.publish(track, options: publishOptions)
        }
        try await eventually("a picture is taken") { source.write(picture(64, 48)) }
        try await publishing.value
        #expect(await room.preferences(of: track) == [expected])
        await room.disconnect()
    }
}
