import Capture
import MediaCore
import Testing
import Threading

@testable import SyntheticSources

@Suite("Pattern and noise pictures", .serialized, .timeLimit(.minutes(2)))
struct PictureTests {
    private func frames(of source: some VideoCapturer, count: Int = 3) async throws -> [VideoFrame] {
        let sink = CollectingSink()
        source.sink = sink
        try await source.startCapture()
        _ = sink.frames(atLeast: count)
        await source.stopCapture()
        return sink.frames
    }

    @Test("The colour bars have the exact colours", arguments: [(160, 120), (640, 480), (641, 363), (96, 64)])
    func bars(width: Int, height: Int) async throws {
        let dimensions = Dimensions(width: width, height: height)
        let frames = try await frames(of: PatternSource(dimensions: dimensions, frameRate: FrameRate(100)))
        let frame = try #require(frames.first)
        let layout = PatternLayout(dimensions: dimensions)
        #expect(layout.barRows.count > height / 8)
        // The first frame's square is at the left and at the top; the lowest rows of the bars are free of it.
        let row = layout.barRows.upperBound - 1
        for (index, colour) in PatternPalette.bars.enumerated() {
            let columns = layout.barColumns(index)
            #expect(columns.allSatisfy { frame.buffer.luma($0, row) == colour.luma })
            let chroma = frame.buffer.chroma(columns.lowerBound / 2, row / 2)
            #expect(chroma.u == colour.chromaU && chroma.v == colour.chromaV)
        }
    }

    @Test("The pattern moves, from frame to frame, in the gradient and in front of the bars")
    func motion() async throws {
        let dimensions = Dimensions(width: 320, height: 240)
        let frames = try await frames(of: PatternSource(dimensions: dimensions, frameRate: FrameRate(100)))
        let layout = PatternLayout(dimensions: dimensions)
        let (first, second) = (frames[0].buffer.lumaRows, frames[1].buffer.lumaRows)
        for rows in [layout.barRows, layout.gradientRows] {
            let pixels = rows.lowerBound * 320..<rows.upperBound * 320
            let isSame = first[pixels] == second[pixels]
            #expect(!isSame)
        }
    }

    @Test("Each digit has a shape of its own, and the last six digits of the number are shown")
    func digits() {
        let picture = { (number: UInt32) in
            let buffer = VideoBuffer(160, 32)
            buffer.withMutablePlanes { luma, _, _ in
                FrameCounter.paint(number, into: &luma, stride: buffer.lumaStride, width: 160, rows: 0..<32)
            }
            return buffer.lumaRows
        }
        #expect(Set((0..<10).map { picture($0) }).count == 10)
        #expect(Set([1, 11, 111, 1111, 11_111, 111_111].map { picture($0) }).count == 6)
        #expect(picture(1_234_567) == picture(234_567))
        #expect(picture(8).contains(235))
    }

    @Test(
        "Pictures of any size can be painted",
        arguments: [(0, 0), (1, 1), (2, 2), (3, 1), (1, 400), (161, 33), (2000, 2), (16, 16), (37, 1001)]
    )
    func anySize(width: Int, height: Int) async throws {
        let dimensions = Dimensions(width: width, height: height)
        let expected = Dimensions(width: max(width, 1), height: max(height, 1))
        let pattern = try await frames(of: PatternSource(dimensions: dimensions, frameRate: FrameRate(240)))
        #expect(pattern.allSatisfy { $0.dimensions == expected })
        let noise = try await frames(of: NoiseSource(dimensions: dimensions, frameRate: FrameRate(240)))
        #expect(noise.allSatisfy { $0.dimensions == expected })
    }

    @Test("Noise fills the range, is another in each frame, and follows from its seed")
    func noise() async throws {
        let dimensions = Dimensions(width: 320, height: 240)
        let source = { NoiseSource(dimensions: dimensions, frameRate: FrameRate(100), seed: 5) }
        let frames = try await frames(of: source())
        let again = try await self.frames(of: source())
        let first = frames[0].buffer.lumaRows
        let isSame = first == again[0].buffer.lumaRows
        let isSameAsNext = first == frames[1].buffer.lumaRows
        #expect(isSame && !isSameAsNext)
        #expect(first.min() == 16 && first.max() == 235)
        let mean = first.reduce(0) { $0 + Int($1) } / first.count
        #expect((120...131).contains(mean))
    }
}
