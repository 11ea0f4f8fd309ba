/// Names an element of a `SlotArray`; a name is never used again.
package struct SlotID: Hashable, Sendable {
    /// The element's index.
    package let index: Int
    fileprivate let generation: Int
}

/// Elements at fixed indexes that are used again, each with a name that tells it from its predecessors.
struct SlotArray<Element: Sendable>: Sendable {
    private struct Slot {
        var element: Element?
        var generation = 0
    }

    private var slots: [Slot] = []
    private var free: [Int] = []

    private(set) var count = 0

    /// The names of all elements, in order of their indexes.
    var ids: [SlotID] {
        slots.indices.compactMap { index in
            slots[index].element == nil ? nil : SlotID(index: index, generation: slots[index].generation)
        }
    }

    mutating func insert(_ element: Element) -> SlotID {
        count += 1
        guard let index = free.popLast() else {
            slots.append(Slot(element: element))
            return SlotID(index: slots.count - 1, generation: 0)
        }
        slots[index].element = element
        return SlotID(index: index, generation: slots[index].generation)
    }

    mutating func remove(_ id: SlotID) -> Element? {
        guard contains(id) else { return nil }
        count -= 1
        free.append(id.index)
        slots[id.index].generation += 1
        return slots[id.index].element.take()
    }

    func contains(_ id: SlotID) -> Bool {
        // A removal changes the generation, so the element of an equal one is there.
        slots[id.index].generation == id.generation
    }

    /// The element of that name; `nil` once it was removed, and then setting it does nothing.
    subscript(_ id: SlotID) -> Element? {
        get { contains(id) ? slots[id.index].element : nil }
        _modify {
            if contains(id) {
                yield &slots[id.index].element
            } else {
                var nothing: Element?
                yield &nothing
            }
        }
    }
}
