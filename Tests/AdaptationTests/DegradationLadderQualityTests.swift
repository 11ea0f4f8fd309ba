import MediaCore
import Testing

@testable import Adaptation

/// How the coarseness of the pictures, which the encoder tells, changes what the bitrate alone would choose.
@Suite("Degradation ladder, picture quality", .timeLimit(.minutes(1)))
struct DegradationLadderQualityTests {
    // A small picture that is as fine as it can be uses so little that the rate of the path never shows.
    @Test(
        "A picture that is fine becomes as large as it can be fine, whatever the table says",
        arguments: [500, 700.0, 950]
    )
    func fineAgain(kilobits: Double) {
        var run = LadderRun(complexity: 120)
        run.run(10) { _ in 2500 }
        run.run(20) { _ in 450 }
        #expect(run.size == "640x360" || run.size == "480x270")
        let before = run.changes.count
        run.complexity = 8
        run.run(60) { _ in kilobits }
        #expect(run.size == "1280x720" && run.changes.count == before + 1, "\(run.changes)")
    }

    @Test("A still scene keeps its size at a low bitrate, and loses it when it moves")
    func stillScene() {
        var run = LadderRun(complexity: 2)
        run.run(10) { _ in 2500 }
        run.run(20) { _ in 450 }
        #expect(run.size == "1280x720" && run.changes.count == 1)
        run.complexity = 120
        run.run(6) { _ in 450 }
        #expect(run.size == "640x360" || run.size == "480x270")
        #expect(run.step?.limitation == .bandwidth)
    }

    @Test("A picture that stays too coarse shrinks, although the bitrate allows its size, and does not grow again")
    func coarse() {
        var run = LadderRun(complexity: 450)
        run.run(30) { _ in 2000 }
        #expect(run.step?.reason == .quantizerHigh && run.size == "960x540")
        run.run(300, framesPerSecond: 10) { _ in 2000 }
        #expect(run.changes.count == 2)
        // Noise, which no size makes fine.
        run.complexity = 100_000
        run.run(30) { _ in 2000 }
        #expect(run.size == "320x180")
    }

    // On a free path, a film of 1280x720 was sent at 960x540 from the second second to the seventh.
    @Test(
        "Pictures that were coarse at the low bitrate of the start keep their size when the bitrate has risen",
        arguments: [(110.0, 1.0), (120, 1.3), (140, 1.5), (200, 1.3)]
    )
    func risingStart(complexity: Double, risesFor: Double) {
        var run = LadderRun(complexity: complexity, highestBitrate: .kilobitsPerSecond(2000))
        run.run(20) { 600 + 1400 * min(1, $0 / risesFor) }
        #expect(run.size == "1280x720" && run.changes.count == 1, "\(run.changes)")
    }

    @Test("A cap that is low for the size keeps the size, unless the pictures are too coarse")
    func lowCap() {
        var run = LadderRun(complexity: 60, highestBitrate: .kilobitsPerSecond(500))
        run.run(30) { _ in 500 }
        #expect(run.size == "1280x720" && run.changes.count == 1)
        run.run(30) { _ in 200 }
        #expect(run.size == "640x360")
        var coarse = LadderRun(complexity: 200, highestBitrate: .kilobitsPerSecond(500))
        coarse.run(30) { _ in 500 }
        #expect(coarse.step?.reason == .quantizerHigh)
    }

    @Test("An encoder that tells no quantizer follows the bitrate alone")
    func noQuantizer() {
        var run = LadderRun()
        run.run(10) { _ in 2500 }
        run.run(10) { _ in 700 }
        #expect(run.size == "960x540")
    }
}
