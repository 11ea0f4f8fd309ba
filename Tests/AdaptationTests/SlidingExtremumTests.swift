import Testing

@testable import Adaptation

@Suite struct SlidingExtremumTests {
    @Test func theSmallestOfTheWindow() {
        var minimum = SlidingExtremum.minimum(over: 100)
        #expect(minimum.add(5, at: 0) == 5)
        #expect(minimum.add(7, at: 50) == 5)
        #expect(minimum.add(6, at: 100) == 5)
        #expect(minimum.add(8, at: 101) == 6)
        #expect(minimum.add(9, at: 201) == 8)
    }

    @Test func theLargestOfTheWindow() {
        var maximum = SlidingExtremum.maximum(over: 100)
        #expect(maximum.add(5, at: 0) == 5)
        #expect(maximum.add(3, at: 60) == 5)
        #expect(maximum.add(4, at: 101) == 4)
        #expect(maximum.value == 4)
    }

    @Test func changedValues() {
        var maximum = SlidingExtremum.maximum(over: 100)
        maximum.add(5, at: 0)
        maximum.add(3, at: 60)
        maximum.changeValues { min($0 / 2, 2) }
        #expect(maximum.value == 2 && maximum.add(1, at: 101) == 1.5 && maximum.add(1, at: 200) == 1)
    }
}
