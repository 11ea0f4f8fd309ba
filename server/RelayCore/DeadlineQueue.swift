package import MediaCore

/// The next deadline of each element of a `SlotTable`, earliest first.
///
/// A binary heap that knows the place of each element. The steps to set, move or withdraw a deadline are therefore at
/// most the logarithm of the number of deadlines.
package struct DeadlineQueue: Sendable {
    private struct Item: Sendable {
        var deadline: MonotonicInstant
        var id: SlotID
    }

    private var heap: [Item] = []
    /// The place of each element in the heap, by its index; -1 for an element without a deadline.
    private var places: [Int] = []

    /// Whether a deadline was set, moved or withdrawn since `noteTaken`.
    private(set) var isChanged = false
    /// How often an item has been moved or compared, for tests of the cost.
    package private(set) var steps = 0

    /// Creates an empty queue.
    package init() {}

    /// The earliest deadline.
    package var next: MonotonicInstant? { heap.first?.deadline }

    /// Sets, moves or (with `nil`) withdraws the deadline of an element.
    package mutating func set(_ deadline: MonotonicInstant?, for id: SlotID) {
        while places.count <= id.index { places.append(-1) }
        let place = places[id.index]
        guard let deadline else {
            guard place >= 0 else { return }
            isChanged = true
            return remove(at: place)
        }
        if place >= 0, heap[place].deadline == deadline && heap[place].id == id { return }
        isChanged = true
        if place >= 0 {
            heap[place] = Item(deadline: deadline, id: id)
            settle(place)
        } else {
            heap.append(Item(deadline: deadline, id: id))
            places[id.index] = heap.count - 1
            settle(heap.count - 1)
        }
    }

    /// Removes and returns the element with the earliest deadline if that deadline has been reached at `now`.
    package mutating func popDue(at now: MonotonicInstant) -> SlotID? {
        guard let first = heap.first, first.deadline <= now else { return nil }
        isChanged = true
        remove(at: 0)
        return first.id
    }

    /// Notes that the driver knows the earliest deadline.
    mutating func noteTaken() {
        isChanged = false
    }

    private mutating func remove(at place: Int) {
        places[heap[place].id.index] = -1
        let last = heap.removeLast()
        guard place < heap.count else { return }
        heap[place] = last
        places[last.id.index] = place
        settle(place)
    }

    /// Moves the item at `place` to where it belongs.
    private mutating func settle(_ place: Int) {
        var place = place
        while place > 0, heap[place].deadline < heap[(place - 1) / 2].deadline {
            exchange(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
        while true {
            steps += 1
            var least = place
            for child in 2 * place + 1...2 * place + 2 where child < heap.count {
                if heap[child].deadline < heap[least].deadline { least = child }
            }
            guard least != place else { return }
            exchange(place, least)
            place = least
        }
    }

    private mutating func exchange(_ first: Int, _ second: Int) {
        steps += 1
        heap.swapAt(first, second)
        places[heap[first].id.index] = first
        places[heap[second].id.index] = second
    }
}
