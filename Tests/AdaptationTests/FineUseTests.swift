import Testing

@testable import Adaptation

@Suite("The bitrate that fine pictures use")
struct FineUseTests {
    /// A use in which 31 frames have come, one each 40 ms, the last at `1200` ms.
    private func use(_ rate: (Int) -> Double = { _ in 100 }, isFine: (Int) -> Bool = { _ in true }) -> FineUse {
        var use = FineUse()
        for frame in 0...30 { use.observe(isFine: isFine(frame), rate(frame), at: Int64(frame) * 40_000) }
        return use
    }

    @Test("One and a half times the largest use of a second suffices")
    func largest() {
        var steady = use()
        #expect(steady.sufficient(at: 1_200_000) == 150)
        var uneven = use { $0 == 20 ? 300 : 100 }
        #expect(uneven.sufficient(at: 1_200_000) == 450)
        var former = use { $0 == 2 ? 300 : 100 }
        #expect(former.sufficient(at: 1_200_000) == 150)
    }

    @Test("Nothing is said before a second of fine pictures, nor within a second of one that is not fine")
    func notFine() {
        var young = FineUse()
        for frame in 0...24 { young.observe(isFine: true, 100, at: Int64(frame) * 40_000) }
        #expect(young.sufficient(at: 960_000) == nil)
        var moving = use(isFine: { $0 != 25 })
        #expect(moving.sufficient(at: 1_200_000) == nil)
        var rough = use(isFine: { _ in false })
        #expect(rough.sufficient(at: 1_200_000) == nil)
    }

    @Test("After a pause of a second, the scene counts as another one")
    func pause() {
        var use = use()
        use.observe(isFine: true, 100, at: 2_500_000)
        #expect(use.sufficient(at: 2_500_000) == nil)
        for frame in 1...25 { use.observe(isFine: true, 100, at: 2_500_000 + Int64(frame) * 40_000) }
        #expect(use.sufficient(at: 3_500_000) == 150)
    }
}
