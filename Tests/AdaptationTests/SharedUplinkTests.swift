import AdaptationSimulation
import MediaCore
import Testing

@testable import Adaptation

/// Tracks on one connection that need it in different ways.
@Suite("Different tracks on one uplink", .timeLimit(.minutes(3)))
struct SharedUplinkTests {
    private func track(
        _ width: Int = 1280,
        _ height: Int = 720,
        fps: Int = 30,
        _ preference: DegradationPreference = .balanced
    ) -> SimulatedTracks.Track {
        SimulatedTracks.Track(
            UplinkController.Lane(
                largestDimensions: Dimensions(width: width, height: height),
                frameRate: FrameRate(fps),
                highestBitrate: .kilobitsPerSecond(2500),
                preference: preference
            )
        )
    }

    /// A screen, whose pictures have fewer bits than those of a camera.
    private var screen: SimulatedTracks.Track {
        var screen = track(1920, 1080, fps: 15, .maintainResolution)
        screen.ceiling = 0.3
        return screen
    }

    /// The figures of each track after the first ten seconds.
    private func play(_ tracks: SimulatedTracks.Track..., megabits: Double, delay: Int) -> [SimulationFigures] {
        let trace = LinkTrace.constant(megabits, seconds: 60)
        let result = LinkSimulation.run(trace, seconds: 60, delay: delay, tracks: tracks)
        return result.arrivals.map { SimulationFigures(of: $0, from: 10, to: 60) }
    }

    // A frame of the screen counted as large as the whole window, most of which the camera always has on its way. The
    // frame waited for up to 1.2 s until half of the window was empty, and some were replaced unseen.
    @Test(
        "A screen that mostly stands still is up to date beside a camera that fills the path",
        arguments: [0.6, 1, 1.5, 3],
        [60, 100]
    )
    func stillScreen(megabits: Double, delay: Int) {
        var screen = screen
        screen.motion = (4000, of: 20_000)
        let figures = play(track(), screen, megabits: megabits, delay: delay)
        #expect(figures[1].p95 < 2 * delay + 280 && figures[1].longestGap < 2100, "\(figures[1])")
        #expect(figures[0].rate > 0.65 * min(megabits, 2.5) * 1e6, "\(figures[0])")
        #expect(figures[0].p95 < 2 * delay + 130, "\(figures[0])")
    }

    // The use of such a track was taken as if its frames came five times as often, and it lent nothing unless it was fine.
    // The rate grows with what is sent, so the camera stayed at half of the link, or a third.
    @Test(
        "A camera gets what a track of one picture a second leaves, and that track goes on as before",
        arguments: [1.0, 1.5, 3],
        [60, 100]
    )
    func onePictureASecond(megabits: Double, delay: Int) {
        let most = min(megabits, 2.5) * 1e6
        var slides = screen
        slides.cameraFrameRate = FrameRate(1)
        for (slow, part) in [(track(fps: 1), 0.62), (slides, 0.56)] {
            let figures = play(track(), slow, megabits: megabits, delay: delay)
            #expect(figures[0].rate > part * most && figures[0].p95 < 2 * delay + 100, "\(figures[0])")
            #expect(figures[1].frameRate > 0.95 && figures[1].p95 < 2 * delay + 180, "\(figures[1])")
        }
    }

    // Nothing held the track to its share. The other one had a tenth of the link, with gaps of up to ten seconds.
    @Test(
        "A lowest bitrate that is above the track's share starves no other track",
        arguments: [0.3, 0.6, 1],
        [20, 60, 100]
    )
    func lowestBitrate(megabits: Double, delay: Int) {
        var floored = track()
        floored.lane.lowestBitrate = .kilobitsPerSecond(800)
        for count in 2...3 {
            let figures =
                count == 2
                ? play(floored, track(), megabits: megabits, delay: delay)
                : play(floored, track(), track(), megabits: megabits, delay: delay)
            let part = megabits * 1e6 / Double(count)
            for figures in figures {
                #expect(figures.rate > 0.7 * part && figures.longestGap < 1000, "\(count): \(figures)")
                #expect(figures.p95 < delay + 300, "\(count): \(figures)")
            }
        }
    }

    @Test("A track with a lowest bitrate has all its frames if it is alone or has a larger share", arguments: [1.5, 3])
    func lowestBitrateInShare(megabits: Double) {
        var floored = track()
        floored.lane.lowestBitrate = .kilobitsPerSecond(500)
        let alone = play(floored, megabits: 0.45, delay: 20)
        #expect(alone[0].rate > 0.85 * 450_000, "\(alone)")
        let figures = play(floored, track(), megabits: megabits, delay: 20)
        #expect(figures.allSatisfy { $0.frameRate > 29 }, "\(figures)")
    }
}
