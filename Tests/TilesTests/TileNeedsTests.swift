import MediaCore
import Testing
import Tiles

@Suite("What a window needs of its tracks")
struct TileNeedsTests {
    private typealias Need = TileNeeds.Need

    private func size(_ width: Int, _ height: Int) -> Need { .pictures(Dimensions(width: width, height: height)) }

    private func time(_ milliseconds: Int) -> MonotonicInstant {
        MonotonicInstant(microseconds: Int64(milliseconds) * 1000)
    }

    @Test("A new track is told its tile's size at once")
    func newTrack() {
        var needs = TileNeeds()
        #expect(needs.changes(to: ["a": size(633, 356)], at: time(0)) == ["a": size(633, 356)])
        #expect(needs.changes(to: ["a": size(633, 356)], at: time(1000)) == [:])
        let both = ["a": size(633, 356), "b": size(1, 1)]
        #expect(needs.changes(to: both, at: time(1001)) == ["b": size(1, 1)])
    }

    @Test("A window that is resized says nothing until it rests, and then the last size alone")
    func resized() {
        var needs = TileNeeds()
        _ = needs.changes(to: ["a": size(320, 192)], at: time(0))
        for step in 1...20 {
            let larger = ["a": size(320 + 32 * step, 192 + 16 * step)]
            #expect(needs.changes(to: larger, at: time(100 * step)) == [:])
        }
        let last = ["a": size(960, 512)]
        #expect(needs.changes(to: last, at: time(2299)) == [:])
        #expect(needs.changes(to: last, at: time(2300)) == last)
        #expect(needs.changes(to: last, at: time(5000)) == [:])
    }

    @Test("Pictures that are a little too large are left as they are; ones that are too small never")
    func hysteresis() {
        var needs = TileNeeds()
        _ = needs.changes(to: ["a": size(640, 352)], at: time(0))
        func settled(_ need: Need, at second: Int) -> [String: Need] {
            #expect(needs.changes(to: ["a": need], at: time(1000 * second)) == [:])
            return needs.changes(to: ["a": need], at: time(1000 * second + 300))
        }
        #expect(settled(size(480, 272), at: 1) == [:])
        #expect(settled(size(641, 352), at: 2) == ["a": size(641, 352)])
        #expect(settled(size(320, 176), at: 3) == ["a": size(320, 176)])
        // As many pixels, in another shape.
        #expect(settled(size(176, 320), at: 4) == ["a": size(176, 320)])
    }

    @Test("A hidden tile needs nothing once the layout rests; shown again, it needs pictures at once")
    func hidden() {
        var needs = TileNeeds()
        let (both, one) = (["a": size(640, 352), "b": size(640, 352)], ["a": Need.nothing, "b": size(640, 352)])
        #expect(needs.changes(to: both, at: time(0)) == both)
        #expect(needs.changes(to: one, at: time(10)) == [:])
        #expect(needs.changes(to: one, at: time(309)) == [:])
        #expect(needs.changes(to: one, at: time(310)) == ["a": .nothing])
        #expect(needs.changes(to: both, at: time(320)) == ["a": size(640, 352)])
        // Seen for a moment only: nothing was to be said.
        #expect(needs.changes(to: one, at: time(330)) == [:])
        #expect(needs.changes(to: both, at: time(340)) == [:])
        #expect(needs.changes(to: both, at: time(5000)) == [:])
    }

    @Test("A track that comes again is told anew")
    func cameAgain() {
        var needs = TileNeeds()
        _ = needs.changes(to: ["a": size(640, 352)], at: time(0))
        #expect(needs.changes(to: [:], at: time(10)) == [:])
        #expect(needs.changes(to: ["a": size(640, 352)], at: time(20)) == ["a": size(640, 352)])
    }
}
