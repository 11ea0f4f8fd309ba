/// Names an element of a `SlotArray`; a name is not used again before two thousand million others of its index.
package struct SlotID: RawRepresentable, Hashable, Sendable {
    /// Index and generation in one number, for a driver that keeps a name in a socket's tag.
    package let rawValue: Int

    /// The name that had `rawValue`.
    package init(rawValue: Int) { self.rawValue = rawValue }

    fileprivate init(index: Int, generation: Int32) { rawValue = Int(generation) << 32 | index }

    /// The element's index.
    package var index: Int { rawValue & 0xFFFF_FFFF }
    fileprivate var generation: Int32 { Int32(truncatingIfNeeded: rawValue >> 32) }
}

/// Elements at fixed indexes that are used again, each with a name that tells it from its predecessors.
struct SlotArray<Element: Sendable>: Sendable {
    private var elements: [Element?] = []
    /// By index, and apart from the elements: whether a name still holds is asked for every packet and subscriber.
    private var generations: [Int32] = []
    private var free: [Int] = []

    private(set) var count = 0

    /// The names of all elements, in order of their indexes.
    var ids: [SlotID] {
        elements.indices.compactMap { index in
            elements[index] == nil ? nil : SlotID(index: index, generation: generations[index])
        }
    }

    mutating func insert(_ element: Element) -> SlotID {
        count += 1
        guard let index = free.popLast() else {
            elements.append(element)
            generations.append(0)
            return SlotID(index: elements.count - 1, generation: 0)
        }
        elements[index] = element
        return SlotID(index: index, generation: generations[index])
    }

    mutating func remove(_ id: SlotID) -> Element? {
        guard contains(id) else { return nil }
        count -= 1
        free.append(id.index)
        generations[id.index] &+= 1
        return elements[id.index].take()
    }

    func contains(_ id: SlotID) -> Bool {
        // A removal changes the generation, so the element of an equal one is there.
        generations[id.index] == id.generation
    }

    /// The element of that name; `nil` once it was removed, and then setting it does nothing.
    subscript(_ id: SlotID) -> Element? {
        get { contains(id) ? elements[id.index] : nil }
        _modify {
            if contains(id) {
                yield &elements[id.index]
            } else {
                var nothing: Element?
                yield &nothing
            }
        }
    }
}

/// A `SlotArray` in two columns: `Element` for what is seldom looked at, and `Hot` for what is read for every packet and
/// subscriber, so that the latter lie close together in memory.
struct SlotTable<Element: Sendable, Hot: Sendable>: Sendable {
    private var slots = SlotArray<Element>()
    private let vacant: Hot
    /// The second column, by an element's index; `vacant` where there is no element.
    ///
    /// Lent as it is, because a subscript would copy; nobody else changes its length.
    var hot: [Hot] = []

    /// An empty table, whose free places hold `vacant`.
    init(vacant: Hot) { self.vacant = vacant }

    var count: Int { slots.count }
    var ids: [SlotID] { slots.ids }

    mutating func insert(_ element: Element, _ hotPart: Hot) -> SlotID {
        let id = slots.insert(element)
        if id.index == hot.count { hot.append(hotPart) } else { hot[id.index] = hotPart }
        return id
    }

    mutating func remove(_ id: SlotID) -> Element? {
        guard let element = slots.remove(id) else { return nil }
        hot[id.index] = vacant
        return element
    }

    func contains(_ id: SlotID) -> Bool { slots.contains(id) }

    /// The first column's part of that name; `nil` once it was removed, and then setting it does nothing.
    subscript(_ id: SlotID) -> Element? {
        get { slots[id] }
        _modify { yield &slots[id] }
    }
}
