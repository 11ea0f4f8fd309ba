import MediaCore
import RoomKit
import SyntheticSources
import TestSupport
import TestTools
import Testing

/// What a subscriber gets of a track of which it needs less than others.
@Suite("Preferences of a subscription", .timeLimit(.minutes(2)))
struct SubscriptionPreferencesTests {
    /// A published pattern of 30 frames a second, and two viewers.
    private func show(
        _ size: Dimensions = Dimensions(width: 320, height: 180),
        on stage: Stage
    ) async throws -> (members: [Member], first: RemoteVideoTrack, second: RemoteVideoTrack) {
        let robot = try await stage.join("robot")
        let (first, second) = (try await stage.join("first"), try await stage.join("second"))
        let track = LocalVideoTrack(source: PatternSource(dimensions: size, frameRate: FrameRate(30)), name: "pattern")
        try await robot.room.localParticipant.publish(track)
        return ([robot, first, second], try await first.subscribedTrack(), try await second.subscribedTrack())
    }

    /// How many frames two viewers get, until the first has got `count`.
    private func received(
        _ count: Int,
        _ first: RemoteVideoTrack,
        _ second: RemoteVideoTrack
    ) async throws -> (first: Int, second: Int) {
        let (one, two) = (first.statistics.framesDecoded, second.statistics.framesDecoded)
        try await eventually("\(count) frames") { first.statistics.framesDecoded >= one + count }
        return (first.statistics.framesDecoded - one, second.statistics.framesDecoded - two)
    }

    @Test("A lower frame rate holds beside a viewer that gets every frame, and ends with the preference")
    func frameRate() async throws {
        let stage = try Stage()
        let (members, first, second) = try await show(on: stage)
        await members[2].room.setPreferences(VideoSubscriptionPreferences(frameRate: FrameRate(10)), of: second)
        #expect(second.preferences.frameRate == FrameRate(10))
        try await eventually("fewer frames") {
            let (all, some) = try await received(20, first, second)
            return some <= all * 2 / 5
        }
        let (all, some) = try await received(60, first, second)
        #expect(some <= all * 2 / 5 && some >= all / 6, "\(some) of \(all)")
        await members[2].room.setPreferences(VideoSubscriptionPreferences(), of: second)
        try await eventually("every frame") {
            let (all, some) = try await received(20, first, second)
            return some >= all - 2
        }
        for track in [first, second] { #expect(track.statistics.framesDroppedByReason[.corrupt] == 0) }
        for member in members { await member.room.disconnect() }
    }

    @Test("A paused track stays subscribed to, costs nothing and is not frozen; it goes on with a picture")
    func paused() async throws {
        let stage = try Stage()
        let (members, first, second) = try await show(on: stage)
        _ = try await received(5, first, second)
        await members[2].room.setPreferences(VideoSubscriptionPreferences(isPaused: true), of: second)
        try await eventually("nothing comes") { try await received(10, first, second).second == 0 }
        let (_, whilePaused) = try await received(20, first, second)
        #expect(whilePaused == 0 && second.isSubscribed && second.statistics.timeSinceLastFrame == nil)
        await members[2].room.setPreferences(VideoSubscriptionPreferences(), of: second)
        try await eventually("pictures come again") { try await received(10, first, second).second > 0 }
        #expect(second.statistics.framesDroppedByReason[.corrupt] == 0)
        // A busy machine may freeze both, for a moment; the pause took a second.
        let frozen = second.statistics.totalFreezesDuration - first.statistics.totalFreezesDuration
        #expect(frozen < .milliseconds(800))
        let changes = members[2].events.count { event in
            switch event {
            case .trackSubscribed, .trackUnsubscribed: true
            default: false
            }
        }
        #expect(changes == 1)
        for member in members { await member.room.disconnect() }
    }

    @Test("Preferences hold from the first frame on, and are kept when a subscription ends")
    func before() async throws {
        let stage = try Stage()
        let robot = try await stage.join("robot")
        let viewer = try await stage.join("viewer") { $0.isAutomaticSubscriptionEnabled = false }
        let source = PatternSource(dimensions: Dimensions(width: 320, height: 180), frameRate: FrameRate(30))
        try await robot.room.localParticipant.publish(LocalVideoTrack(source: source, name: "pattern"))
        let track = try await viewer.event("the track") { event in
            if case .trackPublished(let track, _) = event { track } else { nil }
        }
        let room = viewer.room
        await room.setPreferences(VideoSubscriptionPreferences(isPaused: true), of: track)
        try await Task.sleep(for: .milliseconds(50))
        #expect(!track.isSubscribed)
        for subscription in 1...2 {
            await room.subscribe(to: track)
            try await eventually("it is subscribed to") { track.isSubscribed }
            try await Task.sleep(for: .milliseconds(200))
            #expect(track.statistics.framesReceived == 0, "in subscription \(subscription)")
            await room.unsubscribe(from: track)
            try await eventually("it is not subscribed to") { !track.isSubscribed }
        }
        await room.subscribe(to: track)
        await room.setPreferences(VideoSubscriptionPreferences(frameRate: FrameRate(15)), of: track)
        try await eventually("pictures come") { track.statistics.framesDecoded > 20 }
        // It is the only viewer, so that nothing is left out, and the source captures less.
        try await eventually("15 frames a second") { (10...20).contains(track.statistics.framesPerSecond) }
        for member in [robot, viewer] { await member.room.disconnect() }
    }

    // The server was told them, and took that for a new subscription.
    @Test("Preferences that are set before the server has answered an unsubscription do not undo that")
    func whileLeaving() async throws {
        let stage = try Stage()
        let (viewer, author, _, remote) = try await stage.show(frames: 3)
        await viewer.room.unsubscribe(from: remote)
        await viewer.room.setPreferences(VideoSubscriptionPreferences(frameRate: FrameRate(15)), of: remote)
        try await eventually("it is not subscribed to") { !remote.isSubscribed }
        try await Task.sleep(for: .milliseconds(300))
        #expect(!remote.isSubscribed)
        await viewer.room.subscribe(to: remote)
        await viewer.room.unsubscribe(from: remote)
        try await Task.sleep(for: .milliseconds(500))
        #expect(!remote.isSubscribed, "with preferences that the server does not know any more")
        await viewer.room.subscribe(to: remote)
        try await eventually("it is subscribed to again") { remote.isSubscribed }
        for member in [author, viewer] { await member.room.disconnect() }
    }

    @Test("Of a track with several encodings, the smallest that is large enough is sent")
    func dimensions() async throws {
        let stage = try Stage()
        let (members, first, second) = try await show(Dimensions(width: 640, height: 480), on: stage)
        let small = Dimensions(width: 160, height: 90)
        await members[2].room.setPreferences(VideoSubscriptionPreferences(dimensions: small), of: second)
        try await eventually("a small picture beside a large one") {
            _ = try await received(5, first, second)
            return first.statistics.simulcastLayer == 1 && second.statistics.simulcastLayer == 0
        }
        for member in members { await member.room.disconnect() }
    }
}
