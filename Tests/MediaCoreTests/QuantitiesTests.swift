import MediaCore
import Testing

@Suite("Quantities")
struct QuantitiesTests {
    @Test("Instants differ by exact nanoseconds")
    func instantArithmetic() {
        let start = MonotonicInstant(nanoseconds: 5_000_000_001)
        #expect((start + .milliseconds(20)).duration(since: start) == .milliseconds(20))
        #expect((start + .nanoseconds(3)).duration(since: start) == .nanoseconds(3))
        #expect((start - .seconds(5)).nanoseconds == 1)
        #expect(MonotonicInstant(microseconds: 7).nanoseconds == 7000)
        #expect(Duration.microseconds(1500).milliseconds == 1.5)
    }

    @Test(
        "Frame rates read as people write them",
        arguments: [(30, 1, "30"), (30000, 1001, "29.97"), (25, 2, "12.5"), (1001, 1000, "1"), (15, 1, "15")]
    )
    func frameRateText(numerator: Int, denominator: Int, text: String) {
        #expect(FrameRate(numerator: numerator, denominator: denominator).description == text)
    }

    @Test("Frame rates compare by value, whatever their terms")
    func frameRateComparison() {
        #expect(FrameRate(numerator: 60, denominator: 2) == FrameRate(30))
        #expect(FrameRate(numerator: 60, denominator: 2).hashValue == FrameRate(30).hashValue)
        #expect(FrameRate(numerator: 30000, denominator: 1001) < FrameRate(30))
        // Terms from a file or an option may be as large as they like.
        #expect(FrameRate(numerator: .max, denominator: .max) == FrameRate(1))
        #expect(FrameRate(numerator: .max, denominator: 2) < FrameRate(numerator: .max, denominator: 1))
    }

    @Test("Absurd frame rates compare and have an interval")
    func absurdFrameRates() {
        let (fastest, slowest) = (FrameRate(.max), FrameRate(numerator: 1, denominator: .max))
        #expect(slowest < fastest && fastest != slowest)
        #expect(FrameRate(numerator: .max, denominator: .max) == FrameRate(1))
        #expect(slowest.interval > .zero && fastest.interval == .zero)
        #expect(slowest.description == "0" && !fastest.description.isEmpty)
    }

    @Test(
        "Four-character codes pack as V4L2 packs them",
        arguments: [("YUYV", 0x5659_5559), ("MJPG", 0x4750_4A4D), ("Y16", 0x2036_3159), ("Y16-BE", 0xA036_3159)]
            as [(String, UInt32)]
    )
    func fourCC(code: String, packed: UInt32) {
        #expect(PixelFormat(fourCC: code)?.rawValue == packed)
        #expect(PixelFormat(rawValue: packed).description == code)
    }

    @Test(
        "A text that is no four-character code is refused",
        arguments: ["", "YUYV2", "ÄÖ", "A\n", "-BE", "Y16-BE-BE"]
    )
    func badFourCC(code: String) {
        #expect(PixelFormat(fourCC: code) == nil)
    }

    /// They were a vector of eight words, aligned to 64 bytes: Swift 6.3.1 gives async functions that keep such a value
    /// across an `await` too small a frame when it optimizes, and `connect` corrupted its heap.
    @Test("Statistics need no alignment that async functions do not give")
    func alignment() {
        #expect(MemoryLayout<FrameDropCounts>.alignment <= 16 && MemoryLayout<CaptureStatistics>.alignment <= 16)
    }

    @Test("Drop counts add up reason by reason")
    func dropCounts() {
        var first = FrameDropCounts()
        first[.late] = 2
        first[.network] += 1
        var second = FrameDropCounts()
        second[.network] = 4
        let sum = first + second
        #expect(sum[.late] == 2 && sum[.network] == 5 && sum[.corrupt] == 0 && sum.total == 7)
    }

    @Test("Bit rates and sizes read as people write them")
    func descriptions() {
        #expect(Bitrate.kilobitsPerSecond(800).description == "800 kbit/s")
        #expect(Bitrate(bitsPerSecond: 1_705_000).description == "1.70 Mbit/s")
        #expect(DataSize(bytes: 12_345).description == "12 kB")
        #expect(Dimensions(width: 640, height: 480).description == "640x480")
    }

    @Test("A rate is made of any number of frames per second for which there is one")
    func frameRateOfNumber() {
        #expect(FrameRate(29.97)?.framesPerSecond == 29.97 && FrameRate(0.1)?.interval == .seconds(10))
        for number in [0, -1, .nan, .infinity, 1e-9, 1e12] as [Double] { #expect(FrameRate(number) == nil) }
    }

    @Test("A captured rate does not outlast its frames")
    func agingRate() {
        var statistics = CaptureStatistics()
        let start = MonotonicInstant(nanoseconds: 0)
        for frame in 0...100 { statistics.countCaptured(at: start + .milliseconds(20) * frame) }
        let last = start + .seconds(2)
        statistics.age(to: last + .seconds(2))
        #expect(abs((statistics.framesPerSecond ?? 0) - 50) < 1)
        statistics.age(to: last + .seconds(3))
        #expect(statistics.framesPerSecond == 0)
    }

    // A source behind a buffer of three seconds reported 0 frames a second while all of them came.
    @Test("Nor does it fall to 0 because each frame comes late")
    func delayedRate() {
        var statistics = CaptureStatistics()
        let delay = Duration.seconds(5)
        var last = MonotonicInstant(nanoseconds: 0)
        for _ in 0...100 {
            last = last + .milliseconds(20)
            statistics.countCaptured(at: last, takenAt: last + delay)
            statistics.age(to: last + delay)
        }
        #expect(abs((statistics.framesPerSecond ?? 0) - 50) < 1)
        statistics.age(to: last + delay + .seconds(3))
        #expect(statistics.framesPerSecond == 0)
    }

    @Test(
        "A picture covers a box if one of its sides has nine tenths of the pixels",
        arguments: [
            (640, 360, true), (628, 353, true), (711, 400, true), (712, 401, false), (640, 4000, true),
            (4000, 360, true), (1280, 720, false), (Int.max, Int.max, false),
        ]
    )
    func covering(width: Int, height: Int, isCovered: Bool) {
        let picture = Dimensions(width: 640, height: 360)
        #expect(picture.covers(Dimensions(width: width, height: height)) == isCovered)
    }
}
