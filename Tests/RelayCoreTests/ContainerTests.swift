import TestTools
import Testing

@testable import RelayCore

@Suite("Ring buffer", .timeLimit(.minutes(1)))
struct RingBufferTests {
    @Test("Behaves as an array does, over many turns and growths")
    func model() {
        var generator = SeededGenerator(seed: 10)
        var ring = RingBuffer<Int>()
        var model: [Int] = []
        for step in 0..<20_000 {
            // First mostly filling, then mostly emptying, so that it turns around within itself as well as grows.
            let isAppending = Int.random(in: 0..<10, using: &generator) < (step % 4000 < 2000 ? 6 : 4)
            if isAppending || model.isEmpty {
                ring.append(step)
                model.append(step)
            } else {
                ring.removeFirst()
                model.removeFirst()
            }
            #expect(ring.count == model.count && ring.isEmpty == model.isEmpty && ring.first == model.first)
            if let index = model.indices.randomElement(using: &generator) {
                #expect(ring[index] == model[index])
                ring.modify(index) { $0 += 1 }
                model[index] += 1
            }
        }
        #expect((0..<ring.count).map { ring[$0] } == model)
        ring.removeAll()
        #expect(ring.isEmpty && ring.first == nil)
    }

    // What the history of an encoding had taken in a burst was kept as long as its track.
    @Test("Gives the memory back that it took when it was long")
    func shrinks() {
        var ring = RingBuffer<Int>()
        var (added, removed) = (0, 0)
        for most in [10, 100_000, 300, 20_000, 0] {
            while ring.count < most {
                ring.append(added)
                added += 1
            }
            while ring.count > most {
                ring.removeFirst()
                removed += 1
            }
            #expect((0..<ring.count).map { ring[$0] } == Array(removed..<added))
            #expect(ring.capacity <= max(256, 8 * most), "\(ring.capacity) slots for \(most)")
        }
    }

    @Test("Lets go of what was removed")
    func releases() {
        final class Token: Sendable {}
        var ring = RingBuffer<Token>()
        weak var token: Token?
        do {
            let strong = Token()
            token = strong
            ring.append(strong)
        }
        #expect(token != nil)
        ring.removeFirst()
        #expect(token == nil)
    }
}

@Suite("Slot array", .timeLimit(.minutes(1)))
struct SlotArrayTests {
    @Test("A name is of one element for ever, though indexes are used again")
    func names() throws {
        var array = SlotArray<String>()
        let first = array.insert("first")
        let second = array.insert("second")
        #expect(array.remove(first) == "first")
        let third = array.insert("third")
        #expect(third.index == first.index && third != first)
        #expect(array[first] == nil && !array.contains(first))
        #expect(array[third] == "third" && array[second] == "second")
        #expect(array.remove(first) == nil)
        array[first] = "ghost"
        #expect(array[first] == nil && array[third] == "third" && array.count == 2)
        array[third]?.append("!")
        #expect(array[third] == "third!")
        #expect(array.ids == [third, second])
    }

    @Test("Behaves as a dictionary does")
    func model() {
        var generator = SeededGenerator(seed: 11)
        var array = SlotArray<Int>()
        var model: [SlotID: Int] = [:]
        var all: [SlotID] = []
        for step in 0..<2000 {
            if Bool.random(using: &generator) {
                let id = array.insert(step)
                #expect(model[id] == nil)
                model[id] = step
                all.append(id)
            } else if let id = all.randomElement(using: &generator) {
                #expect(array.remove(id) == model.removeValue(forKey: id))
            }
            #expect(array.count == model.count)
        }
        for id in all { #expect(array[id] == model[id] && array.contains(id) == (model[id] != nil)) }
        #expect(Set(array.ids) == Set(model.keys))
    }
}
