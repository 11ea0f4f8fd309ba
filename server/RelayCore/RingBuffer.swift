/// A queue that reuses its memory; it grows by doubling, and a large one shrinks by half when most of it is unused.
///
/// A queue that was never used takes no memory.
struct RingBuffer<Element: Sendable>: Sendable {
    /// The most slots that are kept although none is used.
    private static var keptSlots: Int { 256 }

    /// The slots; their number is a power of two.
    private var slots: [Element?] = []
    private var head = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }
    /// The elements for which there is memory.
    var capacity: Int { slots.count }
    var first: Element? { isEmpty ? nil : self[0] }

    subscript(_ index: Int) -> Element {
        precondition((0..<count).contains(index), "element \(index) of \(count)")
        guard let element = slots[slot(index)] else { preconditionFailure("an empty slot at \(index) of \(count)") }
        return element
    }

    mutating func append(_ element: Element) {
        if count == slots.count { resize(to: max(slots.count * 2, 16)) }
        slots[slot(count)] = element
        count += 1
    }

    mutating func removeFirst() {
        precondition(!isEmpty, "nothing to remove")
        slots[head] = nil
        head = slot(1)
        count -= 1
        // It grows again only when it holds four times as much, so that a queue of varying length keeps its memory.
        if slots.count > Self.keptSlots, count < slots.count / 8 { resize(to: slots.count / 2) }
    }

    mutating func removeAll() {
        if slots.count > Self.keptSlots {
            slots = []
            head = 0
            count = 0
        }
        while !isEmpty { removeFirst() }
    }

    mutating func modify(_ index: Int, _ body: (inout Element) -> Void) {
        precondition((0..<count).contains(index), "element \(index) of \(count)")
        let slot = slot(index)
        guard var element = slots[slot] else { return }
        body(&element)
        slots[slot] = element
    }

    private func slot(_ index: Int) -> Int { (head + index) & (slots.count - 1) }

    private mutating func resize(to capacity: Int) {
        var resized: [Element?] = []
        resized.reserveCapacity(capacity)
        for index in 0..<count { resized.append(self[index]) }
        resized.append(contentsOf: repeatElement(nil, count: capacity - count))
        slots = resized
        head = 0
    }
}
