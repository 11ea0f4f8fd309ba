import MediaCore
import SyntheticSources
import TestTools
import Testing

@Suite("Barcode", .timeLimit(.minutes(2)))
struct BarcodeTests {
    static let sizes = [
        (160, 120), (161, 121), (176, 144), (199, 151), (272, 153), (320, 180), (320, 240), (352, 288), (399, 301),
        (400, 300), (426, 240), (480, 480), (640, 360), (640, 480), (641, 483), (848, 480), (1280, 720), (1920, 1080),
    ]

    private func barcode(_ seed: Int) -> Barcode {
        var generator = SeededGenerator(seed: UInt64(seed))
        let microseconds = Int64.random(in: 0..<1 << 48, using: &generator)
        return Barcode(
            number: UInt32.random(in: 0...UInt32.max, using: &generator),
            timestamp: MonotonicInstant(microseconds: microseconds)
        )
    }

    @Test("A painted barcode is read, at every size", arguments: sizes)
    func roundTrip(width: Int, height: Int) {
        let buffer = VideoBuffer(width, height)
        let barcode = barcode(width * height)
        #expect(barcode.paint(into: buffer))
        #expect(Barcode.read(from: buffer) == .value(barcode))
    }

    @Test("The largest sizes work, too", arguments: [(2560, 1440), (3840, 2160)])
    func large(width: Int, height: Int) {
        let buffer = VideoBuffer(width, height)
        #expect(barcode(1).paint(into: buffer))
        #expect(Barcode.read(from: buffer) == .value(barcode(1)))
    }

    @Test("Distortion as by a codec at a low rate does no harm", arguments: sizes)
    func distortion(width: Int, height: Int) throws {
        let layout = try #require(BarcodeLayout(dimensions: Dimensions(width: width, height: height)))
        for seed in 0..<(width > 400 ? 1 : 3) {
            let buffer = VideoBuffer(width, height)
            let barcode = barcode(seed)
            barcode.paint(into: buffer)
            buffer.distort(seed: UInt64(seed), edge: layout.bandHeight)
            #expect(Barcode.read(from: buffer) == .value(barcode))
        }
    }

    @Test(
        "A picture scaled on the way is read",
        arguments: [
            (640, 480, 480, 360), (640, 480, 426, 320), (640, 480, 320, 240), (640, 480, 160, 120),
            (1280, 720, 960, 540), (1280, 720, 854, 480), (1280, 720, 640, 360), (1280, 720, 426, 240),
            (1280, 720, 320, 180), (1920, 1080, 480, 270), (320, 240, 160, 120),
        ]
    )
    func scaling(width: Int, height: Int, toWidth: Int, toHeight: Int) {
        let buffer = VideoBuffer(width, height)
        let barcode = barcode(width)
        barcode.paint(into: buffer)
        let scaled = buffer.scaled(to: Dimensions(width: toWidth, height: toHeight))
        #expect(Barcode.read(from: scaled) == .value(barcode))
    }

    @Test("Cells are at least 8 pixels wide, and the bands take less than three quarters", arguments: sizes)
    func cells(width: Int, height: Int) throws {
        let layout = try #require(BarcodeLayout(dimensions: Dimensions(width: width, height: height)))
        #expect(width / layout.grid.columns >= BarcodeLayout.smallestPaintedCell)
        #expect(layout.grid.cellCount >= Barcode.bitCount)
        #expect(4 * 2 * layout.bandHeight < 3 * height)
    }

    @Test("Too small a picture stays as it is", arguments: [(1, 1), (2, 2), (159, 120), (160, 79), (640, 50)])
    func tooSmall(width: Int, height: Int) {
        let buffer = VideoBuffer(width, height)
        #expect(!barcode(1).paint(into: buffer))
        #expect(buffer.lumaRows.allSatisfy { $0 == 128 })
        #expect(Barcode.read(from: buffer) == .none)
    }

    @Test("Parts of different frames are seen as torn", arguments: [(160, 120), (640, 480)])
    func torn(width: Int, height: Int) {
        let (first, second) = (barcode(1), barcode(2))
        let buffer = VideoBuffer(width, height)
        let other = VideoBuffer(width, height)
        first.paint(into: buffer)
        second.paint(into: other)
        let half = width * (height / 2)
        buffer.setLuma(Array(buffer.lumaRows[..<half] + other.lumaRows[half...]))
        #expect(Barcode.read(from: buffer) == .torn(top: first, bottom: second))
    }

    @Test("One readable copy is enough", arguments: [true, false])
    func oneCopy(isTopLost: Bool) {
        let buffer = VideoBuffer(640, 480)
        barcode(3).paint(into: buffer)
        var pixels = buffer.lumaRows
        let half = pixels.count / 2
        for index in isTopLost ? 0..<half : half..<pixels.count { pixels[index] = 128 }
        buffer.setLuma(pixels)
        #expect(Barcode.read(from: buffer) == .value(barcode(3)))
    }

    @Test("A single wrong cell in both copies is noticed")
    func wrongCell() throws {
        let buffer = VideoBuffer(400, 300)
        Barcode(number: 0, timestamp: MonotonicInstant(nanoseconds: 0)).paint(into: buffer)
        let layout = try #require(BarcodeLayout(dimensions: buffer.dimensions))
        var pixels = buffer.lumaRows
        // At this width a cell is 8 x 8 pixels; the third cell of the number is black here.
        for row in [0, 300 - layout.bandHeight] {
            for y in row..<row + 8 { for x in 16..<24 { pixels[y * 400 + x] = 235 } }
        }
        buffer.setLuma(pixels)
        #expect(Barcode.read(from: buffer) == .none)
    }

    @Test("Noise never reads as a barcode", arguments: [1, 8])
    func noise(run: Int) {
        var generator = SeededGenerator(seed: 7)
        // Bytes of their own, or runs of a cell's width: the noise most like a barcode.
        let noise = (0..<200_000 / run).flatMap { _ in
            Array(repeating: UInt8(truncatingIfNeeded: generator.next() >> 32), count: run)
        }
        let buffer = VideoBuffer(160, 120)
        var found = 0
        for _ in 0..<5000 {
            let start = Int(generator.next() >> 32) % (noise.count - 160 * 120)
            buffer.withMutablePlanes { luma, _, _ in
                luma.withUnsafeMutableBufferPointer { _ = $0.update(fromContentsOf: noise[start..<start + 160 * 120]) }
            }
            if Barcode.read(from: buffer) != .none { found += 1 }
        }
        #expect(found == 0)
    }

    @Test("Random black and white cells never read as a barcode: the checksum and the mark are checked")
    func randomCells() {
        var generator = SeededGenerator(seed: 8)
        let buffer = VideoBuffer(160, 120)
        var found = 0
        for _ in 0..<1000 {
            let bits = (0..<5).map { _ in generator.next() }
            let rows = bits.map { word in (0..<160).map { word >> UInt64($0 / 8) & 1 == 1 ? 235 : 16 as UInt8 } }
            buffer.setLuma((0..<120).reduce(into: []) { pixels, row in pixels += rows[row % 40 / 8] })
            if Barcode.read(from: buffer) != .none { found += 1 }
        }
        #expect(found == 0)
    }

    @Test("The time of a barcode is cut to 48 bits of microseconds")
    func timeWraps() {
        let late = MonotonicInstant(microseconds: 1 << 48 + 5)
        #expect(Barcode(number: 0, timestamp: late).timestamp == MonotonicInstant(microseconds: 5))
    }
}
