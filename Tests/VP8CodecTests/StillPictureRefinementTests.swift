import MediaCore
import TestTools
import Testing

@testable import VP8Codec

/// Which parts of a still picture are encoded; values.
@Suite("The refinement of a still picture")
struct StillPictureRefinementTests {
    /// A picture whose macroblocks come to anything, in bytes at the coarser quantizer.
    private func blocks(_ count: Int, seed: UInt64) -> [Double] {
        var generator = SeededGenerator(seed: seed)
        // Margins, text and photographs.
        return (0..<count).map { index in [0.1, 20, 90][Int(generator.next() % 3 + UInt64(index / 40)) % 3] }
    }

    @Test("Two passes cover every macroblock once each, in order, in frames that keep the limit", arguments: 0..<20)
    func passes(seed: UInt64) throws {
        let count = 300 + 37 * Int(seed)
        let blocks = blocks(count, seed: seed)
        let limit = DataSize(bytes: 1200 + 300 * Int(seed))
        var refinement = StillPictureRefinement()
        func part() -> StillPictureRefinement.Part? {
            // The guess may be anything, also wrong by much.
            refinement.part(of: count, isKept: true, limit: limit) { _ in seed % 3 == 0 ? nil : 100.0 * Double(seed) }
        }
        #expect(part() == nil && !refinement.isDone, "no frame shows the picture")
        refinement.sent(nil, of: count, quantizer: 120, size: DataSize(bytes: 5000))
        var covered: [Int: [Int]] = [:]
        for _ in 0..<5000 where !refinement.isDone {
            var part = try #require(part())
            var size = DataSize(bytes: 0)
            for tries in 0...2 {
                let bytes = blocks[part.blocks].reduce(20, +) * (part.quantizer < 15 ? 0.6 : 1)
                size = DataSize(bytes: Int(bytes))
                guard tries < 2, size.bytes > limit.bytes else { break }
                let smaller = refinement.part(insteadOf: part, of: size, limit: limit, isLastTry: tries == 1)
                guard let smaller else { break }
                #expect(smaller.blocks.count < part.blocks.count && smaller.blocks.lowerBound == part.blocks.lowerBound)
                #expect(smaller.quantizer == part.quantizer && !smaller.blocks.isEmpty)
                part = smaller
            }
            covered[part.quantizer, default: []] += part.blocks
            refinement.sent(part, of: count, quantizer: 30, size: size)
        }
        #expect(refinement.isDone)
        #expect(covered.count == 2 && covered.values.allSatisfy { $0 == Array(0..<count) })
    }

    @Test("Macroblocks that are fine already are left alone, and so are those that no later frame would refer to")
    func nothing() throws {
        var refinement = StillPictureRefinement()
        let limit = DataSize(bytes: 5000)
        refinement.sent(nil, of: 100, quantizer: 4, size: limit)
        #expect(refinement.isDone)
        #expect(try #require(refinement.part(of: 100, isKept: true, limit: limit) { _ in 1 }).blocks.isEmpty)
        refinement.sent(nil, of: 100, quantizer: 100, size: limit)
        #expect(!refinement.isDone)
        #expect(try #require(refinement.part(of: 100, isKept: false, limit: limit) { _ in 1 }).blocks.isEmpty)
        #expect(try !#require(refinement.part(of: 100, isKept: true, limit: limit) { _ in 1 }).blocks.isEmpty)
        refinement.beginNewPicture()
        #expect(refinement.part(of: 100, isKept: true, limit: limit) { _ in 1 } == nil)
    }
}
