import MediaCore
import TestTools
import Testing

@testable import Adaptation

@Suite("Rungs of the degradation ladder")
struct LadderRungsTests {
    private func describe(_ rungs: LadderRungs) -> [String] {
        (0..<rungs.count).map { "\(rungs[$0].dimensions) \(rungs[$0].frameRate)" }
    }

    private func rungs(_ largest: Dimensions, _ preference: DegradationPreference, _ rate: Int = 30) -> [String] {
        describe(LadderRungs(largest: largest, frameRate: FrameRate(rate), preference: preference))
    }

    @Test(
        "Each size has at most 3/5 of the pixels of the one before, by libwebrtc's fractions",
        arguments: [
            (Dimensions(width: 1280, height: 720), ["1280x720", "960x540", "640x360", "480x270", "320x180"]),
            (
                Dimensions(width: 1920, height: 1080),
                ["1920x1080", "1280x720", "960x540", "640x360", "480x270", "320x180"]
            ),
            (Dimensions(width: 1440, height: 1080), ["1440x1080", "960x720", "640x480", "480x360", "320x240"]),
            (Dimensions(width: 640, height: 480), ["640x480", "480x360", "320x240"]),
            (Dimensions(width: 854, height: 480), ["854x480", "640x360", "426x240", "320x180"]),
            (Dimensions(width: 320, height: 240), ["320x240"]),
            (Dimensions(width: 161, height: 121), ["160x120"]),
        ]
    )
    func sizes(largest: Dimensions, expected: [String]) {
        #expect(rungs(largest, .maintainFramerate) == expected.map { "\($0) 30" })
    }

    @Test("Keeping the size, the frame rate falls to 2/3 with each step, and not below 2")
    func frameRates() {
        let rungs = rungs(Dimensions(width: 1280, height: 720), .maintainResolution)
        #expect(rungs == ["30", "20", "13.33", "8.89", "5.93", "3.95", "2.63"].map { "1280x720 \($0)" })
        let faster = self.rungs(Dimensions(width: 320, height: 240), .maintainResolution, 100)
        #expect(faster.prefix(5) == ["100", "66.67", "44.44", "30", "20"].map { "320x240 \($0)" }[...])
    }

    @Test("Balanced: the frame rate follows libwebrtc's table for each size")
    func balanced() {
        let expected = [
            "1280x720 30", "960x540 30", "640x360 30", "640x360 15", "480x270 15", "480x270 10", "320x180 10",
            "320x180 7",
        ]
        #expect(rungs(Dimensions(width: 1280, height: 720), .balanced) == expected)
        #expect(rungs(Dimensions(width: 320, height: 240), .balanced, 5) == ["320x240 5"])
        let faster = ["320x240 60", "320x240 40", "320x240 30", "320x240 7"]
        #expect(rungs(Dimensions(width: 320, height: 240), .balanced, 60) == faster)
    }

    @Test("A receiver's bounds choose the smallest size that covers them")
    func bounds() {
        let largest = Dimensions(width: 1280, height: 720)
        func first(_ width: Int, _ height: Int) -> Dimensions {
            let bounds = (Dimensions(width: width, height: height), FrameRate?.none)
            return LadderRungs(largest: largest, frameRate: FrameRate(30), preference: .balanced, bounds: bounds)[0]
                .dimensions
        }
        #expect(first(4000, 4000) == largest)
        #expect(first(640, 360) == Dimensions(width: 640, height: 360))
        // Somewhat less is made smaller, and somewhat more is made larger, where it is shown.
        #expect(first(600, 338) == Dimensions(width: 640, height: 360))
        #expect(first(700, 394) == Dimensions(width: 640, height: 360))
        #expect(first(720, 405) == Dimensions(width: 960, height: 540))
        #expect(first(533, 300) == Dimensions(width: 480, height: 270))
        // In another shape, the side that is reached first counts.
        #expect(first(640, 16383) == Dimensions(width: 640, height: 360))
        #expect(first(1280, 100) == Dimensions(width: 160, height: 90))
        // Nothing is smaller than 16 pixels.
        #expect(first(1, 1) == Dimensions(width: 30, height: 16))
    }

    @Test(
        "Any size and rate: even sides, within the captured size, less than two pixels lost",
        arguments: 0..<10 as Range<UInt64>
    )
    func anySize(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<40 {
            let largest = Dimensions(
                width: Int.random(in: 2...5000, using: &random),
                height: Int.random(in: 2...5000, using: &random)
            )
            let sizes = LadderRungs.sizes(of: largest)
            for size in sizes {
                #expect(size.width % 2 == 0 && size.height % 2 == 0 && size.width >= 2 && size.height >= 2)
                #expect(size.width <= largest.width && size.height <= largest.height)
                // What the scaler keeps is the largest part with the shape of the size.
                let (x, y) = (
                    Double(largest.width) / Double(size.width), Double(largest.height) / Double(size.height)
                )
                let scale = min(x, y)
                #expect(Double(largest.width) - scale * Double(size.width) < 2 * x)
                #expect(Double(largest.height) - scale * Double(size.height) < 2 * y)
            }
            for (larger, smaller) in zip(sizes, sizes.dropFirst()) { #expect(smaller.area < larger.area) }
            for preference in DegradationPreference.allCases {
                let rungs = LadderRungs(
                    largest: largest,
                    frameRate: FrameRate(Int.random(in: 1...120, using: &random)),
                    preference: preference
                )
                for index in 1..<max(1, rungs.count) {
                    #expect(rungs[index].pixelRate < rungs[index - 1].pixelRate)
                    #expect(rungs[index].needed <= rungs[index - 1].needed)
                }
            }
        }
    }

    @Test(
        "Absurd sizes and rates make a ladder all the same",
        arguments: [
            Dimensions(width: 0, height: 0), Dimensions(width: 1, height: 99_999), Dimensions(width: -7, height: 3),
            Dimensions(width: .max, height: .max), Dimensions(width: .min, height: .min),
        ]
    )
    func absurd(size: Dimensions) {
        let rates = [
            FrameRate(numerator: .max, denominator: 1), FrameRate(numerator: 1, denominator: .max),
            FrameRate(numerator: .max, denominator: .max), FrameRate(1),
        ]
        for rate in rates {
            for preference in DegradationPreference.allCases {
                let rungs = LadderRungs(
                    largest: size,
                    frameRate: rate,
                    preference: preference,
                    bounds: (size, rate)
                )
                #expect(rungs.count >= 1 && rungs[0].dimensions.width >= 2 && rungs[0].dimensions.height >= 2)
            }
        }
    }

    @Test(
        "The bitrates of a size are those of libwebrtc's table, and between its rows in proportion",
        arguments: [
            (Dimensions(width: 320, height: 180), 0, 300), (Dimensions(width: 640, height: 360), 300, 800),
            (Dimensions(width: 1280, height: 720), 900, 2500), (Dimensions(width: 640, height: 480), 353, 986),
            (Dimensions(width: 16, height: 16), 0, 300), (Dimensions(width: 3840, height: 2160), 8000, 20000),
        ]
    )
    func bitrates(size: Dimensions, lowestToStart: Int, highest: Int) {
        let bitrates = SizeBitrates(for: size)
        #expect(bitrates.lowestToStart.kilobitsPerSecond == lowestToStart)
        #expect(bitrates.highest.kilobitsPerSecond == highest)
    }

    @Test("The step size of a quantizer grows with it, and has the table's values where its slope changes")
    func stepSizes() {
        let sizes = (0...127 as ClosedRange<UInt8>).map(QuantizerAverage.stepSize)
        for (smaller, larger) in zip(sizes, sizes.dropFirst()) { #expect(smaller < larger) }
        for (index, size) in [(0, 4), (54, 58), (55, 60), (83, 116), (84, 119), (102, 173), (103, 177), (127, 284)] {
            #expect(sizes[index] == Double(size))
        }
    }
}
