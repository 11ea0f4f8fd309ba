/// A queue that reuses its memory; it grows by doubling, and frees a large memory when it is emptied at once.
///
/// A queue that was never used takes no memory.
struct RingBuffer<Element: Sendable>: Sendable {
    /// The most slots that are kept when all elements are removed at once.
    private static var keptSlots: Int { 256 }

    /// The slots; their number is a power of two.
    private var slots: [Element?] = []
    private var head = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }
    var first: Element? { isEmpty ? nil : self[0] }

    subscript(_ index: Int) -> Element {
        precondition((0..<count).contains(index), "element \(index) of \(count)")
        guard let element = slots[slot(index)] else { preconditionFailure("an empty slot at \(index) of \(count)") }
        return element
    }

    mutating func append(_ element: Element) {
        if count == slots.count { grow() }
        slots[slot(count)] = element
        count += 1
    }

    mutating func removeFirst() {
        precondition(!isEmpty, "nothing to remove")
        slots[head] = nil
        head = slot(1)
        count -= 1
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

    private mutating func grow() {
        var larger: [Element?] = []
        let capacity = max(slots.count * 2, 16)
        larger.reserveCapacity(capacity)
        for index in 0..<count { larger.append(self[index]) }
        larger.append(contentsOf: repeatElement(nil, count: capacity - count))
        slots = larger
        head = 0
    }
}
