import Glibc
import MediaCore
import RoomKit
import TestSupport
import TestTools
import Testing

@testable import ScreenCapture

/// What a screen's failure does to the other tracks of its room: nothing.
@Suite("Tracks beside a screen that fails", .serialized, .timeLimit(.minutes(2)))
struct UndisturbedTracksTests {
    /// A robot that publishes a screen and the test pattern, and a viewer of both.
    private struct Scene {
        let display: VirtualDisplay
        let stage: Stage
        let robot: Member
        let viewer: Member
        let screen: LocalVideoTrack
        let remoteScreen: RemoteVideoTrack
        let pattern: LocalVideoTrack
        let remotePattern: RemoteVideoTrack

        init() async throws {
            display = try await VirtualDisplay(Dimensions(width: 320, height: 240))
            stage = try Stage()
            (robot, viewer) = (try await stage.join("robot"), try await stage.join("viewer"))
            screen = LocalVideoTrack(source: ScreenSource(target: .screen, display: display.name), name: "screen")
            pattern = makePattern(name: "pattern")
            try await robot.room.localParticipant.publish(screen)
            try await robot.room.localParticipant.publish(pattern)
            remoteScreen = try await viewer.subscribedTrack("screen")
            remotePattern = try await viewer.subscribedTrack("pattern")
            try await goesOn(remoteScreen)
            try await goesOn(remotePattern)
        }

        /// Waits until pictures of a track have come for some time.
        func goesOn(_ track: RemoteVideoTrack, frames: Int = 3) async throws {
            let before = track.statistics.framesDecoded
            try await eventually("\(track.name) goes on") { track.statistics.framesDecoded >= before + frames }
        }

        /// The failures that the robot heard of.
        var failures: [LocalVideoTrack] {
            robot.events.compactMap { if case .localTrackFailed(let track, _) = $0 { track } else { nil } }
        }

        /// The tracks whose frames the viewer was told do not come any more, by name.
        var ended: [String] {
            viewer.events.compactMap { event in
                switch event {
                case .trackUnsubscribed(let track, _), .trackDisabled(let track, _),
                    .trackSubscriptionFailed(let track, _, _):
                    track.name
                default: nil
                }
            }
        }

        func end() async {
            await robot.room.disconnect()
            await viewer.room.disconnect()
        }
    }

    @Test("A screen whose X server is killed fails its own track and no other")
    func killedServer() async throws {
        let scene = try await Scene()
        scene.display.server.send(SIGKILL)
        let error = try await scene.robot.event("the robot is told") { event -> (any Error)? in
            if case .localTrackFailed(_, let error) = event { error } else { nil }
        }
        #expect((error as? ScreenError)?.code == .displayLost, "\(error)")
        try await scene.goesOn(scene.remotePattern, frames: 60)
        #expect(scene.failures.count == 1 && scene.failures.first === scene.screen)
        // Nothing more comes of the screen, and of nothing else.
        try await eventually("the viewer is told of the end") { scene.ended == ["screen"] }
        // The failed track stays published until the program takes it back.
        let published = await scene.robot.room.localParticipant.videoTracks.map(\.name)
        #expect(published.sorted() == ["pattern", "screen"])
        await scene.robot.room.localParticipant.unpublish(scene.screen)
        try await eventually("the viewer is told") { scene.ended == ["screen", "screen"] }
        try await scene.goesOn(scene.remotePattern, frames: 30)
        #expect(scene.pattern.failure == nil && scene.pattern.statistics.interruptions == 0)
        await scene.end()
    }

    @Test("A window that does not exist cannot be published, and the tracks that are published go on")
    func noWindow() async throws {
        let scene = try await Scene()
        let source = ScreenSource(target: .window("0x123456"), display: scene.display.name)
        let track = LocalVideoTrack(source: source, name: "window")
        let error = await #expect(throws: ScreenError.self) {
            try await scene.robot.room.localParticipant.publish(track)
        }
        #expect(error?.code == .noSuchWindow)
        try await scene.goesOn(scene.remotePattern, frames: 30)
        try await scene.goesOn(scene.remoteScreen, frames: 3)
        let published = await scene.robot.room.localParticipant.videoTracks.map(\.name)
        #expect(published.sorted() == ["pattern", "screen"])
        #expect(scene.failures.isEmpty && scene.ended.isEmpty)
        await scene.end()
    }
}
