import MediaCore
import RoomProtocol
import Testing

@testable import RoomKit

@Suite("Reception meter", .timeLimit(.minutes(1)))
struct ReceptionMeterTests {
    private let start = MonotonicInstant(microseconds: 10_000_000)

    /// A frame whose decoding ended `milliseconds` after the start.
    private func decoded(
        at milliseconds: Int,
        age: Duration = .milliseconds(20),
        size: Dimensions? = Dimensions(width: 640, height: 360),
        isCatchUp: Bool = false,
        isShown: Bool = true,
        isKeyframe: Bool = false
    ) -> ReceptionMeter.Decoded {
        let now = start + .milliseconds(milliseconds)
        return ReceptionMeter.Decoded(
            info: EncodedFrameInfo(number: 0, simulcastLayer: 1, timestamp: now - age, isKeyframe: isKeyframe),
            dimensions: size,
            isCatchUp: isCatchUp,
            isShown: isShown,
            at: now,
            decodeTime: .milliseconds(4),
            clock: ClockEstimate(basis: .sameHost, offset: .zero, errorBound: .zero),
            subscribed: start
        )
    }

    // Nothing said that a picture out of the relay's cache, shown as the present one, was followed by none.
    @Test("A cached picture that is shown is expected to be repeated")
    func cachedStandstill() {
        var meter = ReceptionMeter()
        meter.decoded(decoded(at: 0, isCatchUp: true, isShown: false))
        #expect(meter.standstill == nil)
        meter.decoded(decoded(at: 10, isCatchUp: true))
        #expect(meter.standstill == start + .milliseconds(10 + 2500))
        meter.noteStandstill(at: start + .milliseconds(2510))
        #expect(meter.frozenSince == start + .milliseconds(10))
        meter.decoded(decoded(at: 3000))
        #expect(meter.frozenSince == nil && meter.statistics(at: start + .seconds(3)).freezeCount == 0)
    }

    // Keyframes for those who came later ended the freeze of a source that had stalled.
    @Test("The picture that is shown already ends no freeze")
    func sameStandstill() {
        var meter = ReceptionMeter()
        for index in 0..<10 { meter.decoded(decoded(at: 33 * index)) }
        meter.noteStandstill(at: start + .seconds(60))
        let since = start + .milliseconds(33 * 9)
        #expect(meter.frozenSince == since)
        meter.decoded(decoded(at: 60_000, age: .milliseconds(60_000 - 33 * 9 + 20), isKeyframe: true))
        #expect(meter.frozenSince == since)
        #expect(meter.statistics(at: start + .seconds(60)).freezeCount == 0)
        #expect(meter.statistics(at: start + .seconds(60)).frameAge?.maximum == .milliseconds(20))
        // The publisher's clock was set back.
        meter.decoded(decoded(at: 61_000, age: .seconds(90)))
        #expect(meter.frozenSince == nil && meter.statistics(at: start + .seconds(61)).freezeCount == 1)
    }

    // The oldest ones were left out: `verify` found other ages in the log of the same frames.
    @Test("Frames that an encoder wrote in one go all have their ages")
    func burst() {
        var meter = ReceptionMeter()
        for index in 0..<10 { meter.decoded(decoded(at: 33 * index)) }
        for index in 0..<10 {
            meter.decoded(decoded(at: 1000 + index, age: .milliseconds(50 + index) - .microseconds(100 * index)))
        }
        let ages = meter.statistics(at: start + .seconds(2)).frameAge
        #expect(ages?.maximum == .milliseconds(59) - .microseconds(900))
    }

    @Test("Nothing received, nothing measured")
    func empty() {
        let statistics = ReceptionMeter().statistics(at: start)
        #expect(statistics == RemoteVideoTrackStatistics())
    }

    @Test("Rates are those of the last second, and fall to zero when nothing comes")
    func rates() {
        var meter = ReceptionMeter()
        for index in 0..<90 {
            let now = start + .milliseconds(33 * index)
            meter.received(DataSize(bytes: 4125), isKeyframe: index == 0, at: now)
            meter.decoded(decoded(at: 33 * index))
        }
        let statistics = meter.statistics(at: start + .milliseconds(33 * 90))
        #expect(statistics.framesReceived == 90 && statistics.keyframes == 1 && statistics.bytes == 90 * 4125)
        // 4,125 bytes each 33 ms are a megabit a second; a step of 100 ms has three frames or four.
        #expect((900_000...1_100_000).contains(statistics.bitrate.bitsPerSecond), "\(statistics.bitrate)")
        #expect((30...31).contains(statistics.framesPerSecond))
        #expect(statistics.decodeTime == .milliseconds(4) && statistics.totalDecodeTime == .milliseconds(360))
        #expect(statistics.simulcastLayer == 1)
        let later = meter.statistics(at: start + .seconds(60))
        #expect(later.bitrate.bitsPerSecond == 0 && later.framesPerSecond == 0 && later.recentFrameAge == nil)
        #expect(later.decodeTime == nil && later.frameAge != nil)
        #expect(later.timeSinceLastFrame == .seconds(60) - .milliseconds(33 * 89))
    }

    @Test("Recent ages are those of the last five seconds, the others of the whole time")
    func ages() {
        var meter = ReceptionMeter()
        for index in 0..<100 { meter.decoded(decoded(at: 10 * index, age: .milliseconds(500))) }
        for index in 0..<100 {
            meter.decoded(decoded(at: 6000 + 10 * index, age: .milliseconds(index + 1)))
        }
        let statistics = meter.statistics(at: start + .seconds(7))
        #expect(
            statistics.recentFrameAge
                == RecentFrameAge(last: .milliseconds(100), p50: .milliseconds(50), p95: .milliseconds(95))
        )
        #expect(statistics.frameAge?.maximum == .milliseconds(500))
        #expect(statistics.framesRendered == 200)
    }

    @Test("Frames that are not shown count in no age and no freeze; frames from the cache in no rate either")
    func notShown() {
        var meter = ReceptionMeter()
        for index in 0..<20 { meter.decoded(decoded(at: index, age: .seconds(3), isCatchUp: true, isShown: false)) }
        #expect(meter.statistics(at: start + .milliseconds(50)).framesPerSecond == 0)
        for index in 0..<10 { meter.decoded(decoded(at: 100 + 33 * index)) }
        for index in 10..<30 { meter.decoded(decoded(at: 100 + 33 * index, age: .seconds(2), isShown: false)) }
        meter.decoded(decoded(at: 100 + 33 * 30))
        let statistics = meter.statistics(at: start + .milliseconds(1095))
        #expect(statistics.framesDecoded == 51 && statistics.framesRendered == 11)
        #expect(statistics.framesPerSecond == 31)
        #expect(statistics.frameAge?.maximum == .milliseconds(20))
        #expect(statistics.timeToFirstFrame == .milliseconds(100))
        // From the tenth frame to the last one.
        #expect(statistics.freezeCount == 1 && statistics.totalFreezesDuration == .milliseconds(33 * 21))
    }

    @Test("A present picture from the cache is the first frame, and counts in no age, rate or freeze")
    func present() {
        var meter = ReceptionMeter()
        meter.decoded(decoded(at: 40, age: .seconds(3), isCatchUp: true))
        var statistics = meter.statistics(at: start + .milliseconds(50))
        #expect(statistics.framesRendered == 1 && statistics.timeToFirstFrame == .milliseconds(40))
        #expect(statistics.frameAge == nil && statistics.framesPerSecond == 0)
        #expect(statistics.timeSinceLastFrame == .milliseconds(10))
        for index in 0..<10 { meter.decoded(decoded(at: 5000 + 33 * index)) }
        statistics = meter.statistics(at: start + .milliseconds(5500))
        #expect(statistics.timeToFirstFrame == .milliseconds(40) && statistics.freezeCount == 0)
        #expect(statistics.frameAge?.maximum == .milliseconds(20))
    }

    @Test("A pause is no freeze")
    func pause() {
        var meter = ReceptionMeter()
        for index in 0..<30 { meter.decoded(decoded(at: 33 * index)) }
        meter.interrupt()
        #expect(meter.statistics(at: start + .seconds(5)).timeSinceLastFrame == nil)
        for index in 0..<30 { meter.decoded(decoded(at: 10_000 + 33 * index)) }
        #expect(meter.statistics(at: start + .seconds(11)).freezeCount == 0)
        meter.decoded(decoded(at: 12_000))
        #expect(meter.statistics(at: start + .seconds(12)).freezeCount == 1)
    }

    // The standstill alone knew of the wish: each of the first pictures after it counted as a freeze.
    @Test("A viewer who asks for fewer frames gets no freezes by that")
    func wishedGap() {
        var meter = ReceptionMeter()
        for index in 0..<40 { meter.decoded(decoded(at: 33 * index)) }
        meter.wishedGap = .milliseconds(500)
        for index in 0..<20 { meter.decoded(decoded(at: 1320 + 500 * index)) }
        #expect(meter.statistics(at: start + .seconds(11)).freezeCount == 0)
    }

    @Test("Changes of the size are counted, and a frame without a picture changes none")
    func sizes() {
        var meter = ReceptionMeter()
        let (small, large) = (Dimensions(width: 320, height: 180), Dimensions(width: 640, height: 360))
        for size in [large, large, small, nil, small, large] { meter.decoded(decoded(at: 0, size: size)) }
        let statistics = meter.statistics(at: start)
        #expect(statistics.sizeChanges == 2 && statistics.dimensions == large)
    }

    @Test("More frames than the last seconds hold, and absurd times, are taken")
    func extremes() {
        var meter = ReceptionMeter()
        for index in 0..<2000 { meter.decoded(decoded(at: index)) }
        #expect(meter.statistics(at: start + .seconds(2)).framesPerSecond == 512)
        for nanoseconds in [Int64.min, .max, 0] {
            let now = MonotonicInstant(nanoseconds: nanoseconds)
            meter.received(DataSize(bytes: 1), isKeyframe: false, at: now)
            var frame = decoded(at: 0)
            frame.at = now
            meter.decoded(frame)
            _ = meter.statistics(at: now)
        }
        #expect(meter.statistics(at: start).framesDecoded == 2003)
    }
}
