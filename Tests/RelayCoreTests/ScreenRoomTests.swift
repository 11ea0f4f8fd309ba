import MediaCore
import RelayCore
import RoomProtocol
import Testing

/// Screens, whose pages come as large frames, and viewers who join them behind thin links.
@Suite("Relay: screens", .timeLimit(.minutes(2)))
struct ScreenRoomTests {
    private static let layers = [
        SimulcastLayer(simulcastLayer: 0, width: 320, height: 180, bitrate: 300_000),
        SimulcastLayer(simulcastLayer: 1, width: 640, height: 360, bitrate: 800_000),
        SimulcastLayer(simulcastLayer: 2, width: 1280, height: 720, bitrate: 2_500_000),
    ]

    /// What became of a viewer who joined at `joined`, beside a healthy one.
    private struct Outcome {
        var room: EmulatedRoom
        var late: EmulatedViewer
        var joined: Int
        /// Keyframes that the healthy viewer got after the join.
        var keyframesOfOthers: Int

        var shown: [EmulatedViewer.Frame] { late.shownFrames(of: room.camera) }
    }

    /// A viewer joins a screen with a new page each 6 s; at first its link loses packets, if there is a `repetition`.
    private func join(
        at joined: Int,
        link: Double,
        repetition: Int?,
        layers: [SimulcastLayer]? = layers,
        delay: Duration = .milliseconds(50)
    ) throws -> Outcome {
        var room = try EmulatedRoom(cap: 2_500_000, layers: layers) {
            [EmulatedViewer($0, "healthy", bitsPerSecond: 50_000_000, delay: .milliseconds(1))]
        }
        room.screen = EmulatedScreen(pageTime: 6000)
        room.run(joined)
        let late = EmulatedViewer(
            room.bench,
            "late",
            bitsPerSecond: link,
            delay: delay,
            socketBytes: 64_000,
            countsParts: true
        )
        room.viewers.append(late)
        late.repetition = repetition
        room.run(3000)
        late.repetition = nil
        room.run(22_000)
        let keyframes = room.viewers[0].frames.count { $0.isKeyframe && $0.time > joined }
        return Outcome(room: room, late: late, joined: joined, keyframesOfOthers: keyframes)
    }

    // It got the cache of 1 MB, then nothing for 6 s, and then a keyframe that took 2.6 s and was late by as much.
    @Test(
        "Who joins behind a thin link sees the screen soon, in a size that the link carries, and costs others little",
        arguments: [200_000.0, 400_000, 600_000, 1_000_000],
        [7000, 8000, 10_000, 12_500]
    )
    func thinLink(link: Double, joined: Int) throws {
        for repetition in [nil, 200, 450] {
            let outcome = try join(at: joined, link: link, repetition: repetition)
            let first = try #require(outcome.shown.first)
            // What the socket holds at first must pass, and the link's losses delay what comes.
            let socket = Int(64_000 * 8000 / link)
            let longest = 900 + 3 * (repetition ?? 0) + socket * 3 / 2
            #expect(first.time - joined <= longest, "\(first.time - joined) ms, repetition \(repetition ?? 0)")
            let later = outcome.shown.filter { $0.time > joined + 8000 }
            #expect(later.count > 60 && later.allSatisfy { $0.layer < 2 })
            #expect(later.map(\.age).max() ?? .infinity < 1500)
            // A link without losses is known before a keyframe of the largest encoding is requested for it.
            let isKnownSoon = repetition == nil && link < 1_000_000 && joined < 12_000
            let mostKeyframes = isKnownSoon ? 0 : link < 1_000_000 ? 1 : 2
            #expect(outcome.keyframesOfOthers <= mostKeyframes)
            #expect(outcome.late.peer.allProblems.isEmpty, "\(outcome.late.peer.allProblems.prefix(3))")
            let healthy = outcome.room.viewers[0]
            #expect(healthy.layers.allSatisfy { $0 == 2 } && healthy.ages.allSatisfy { $0.age < 100 })
        }
    }

    @Test("Without a smaller encoding, too, it sees the screen as soon as a keyframe can be there")
    func oneEncoding() throws {
        for repetition in [nil, 200, 450] {
            let outcome = try join(at: 8000, link: 400_000, repetition: repetition, layers: nil)
            let first = try #require(outcome.shown.first)
            // The socket's bytes, and a keyframe of 125 kB.
            let least = (64_000 + 125_000) * 8 / 400
            #expect(first.time - 8000 < least + 1000 + 3 * (repetition ?? 0), "\(first.time - 8000) ms")
            #expect(outcome.late.peer.allProblems.isEmpty)
        }
    }

    @Test(
        "Who joins behind a fast link gets the largest encoding, however long the round trip is",
        arguments: [5, 50, 150]
    )
    func fastLink(delay: Int) throws {
        let outcome = try join(at: 8000, link: 20_000_000, repetition: nil, delay: .milliseconds(delay))
        let first = try #require(outcome.shown.first)
        #expect(first.time - 8000 < 1000 + 4 * delay)
        #expect(outcome.shown.allSatisfy { $0.layer == 2 })
        #expect(outcome.late.peer.allProblems.isEmpty)
    }
}
