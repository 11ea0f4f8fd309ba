import CPrefetch

/// Asks the processor to fetch the cache lines of 64 bytes from `address` on; it does nothing else, whatever the
/// address.
@inline(__always)
func prefetchLines(_ count: Int, at address: UnsafeRawPointer?) {
    for line in 0..<count { unsafe cprefetch_line(address.map { unsafe $0 + line * 64 }) }
}

/// The name of an element of a `SlotArray`.
///
/// A name is used again only after two thousand million other names with its index.
package struct SlotID: RawRepresentable, Hashable, Sendable {
    /// Index and generation in one number, so that a driver can keep a name in a socket's tag.
    @usableFromInline package let rawValue: Int

    /// Creates the name with the given `rawValue`.
    package init(rawValue: Int) { self.rawValue = rawValue }

    fileprivate init(index: Int, generation: Int32) { rawValue = Int(generation) << 32 | index }

    /// The element's index.
    @inlinable package var index: Int { rawValue & 0xFFFF_FFFF }
    fileprivate var generation: Int32 { Int32(truncatingIfNeeded: rawValue >> 32) }
}

/// Elements at fixed indexes that are reused; each element has a name that differs from those of its predecessors.
struct SlotArray<Element: Sendable>: Sendable {
    private var elements: [Element?] = []
    /// The generations by index.
    ///
    /// They are kept apart from the elements because every packet and subscriber requires a
    /// check whether a name is still valid.
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
        // A removal changes the generation, so an equal generation means that the element is there.
        generations[id.index] == id.generation
    }

    /// The element with a name; `nil` once it has been removed, and setting it then does nothing.
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

/// The parts of a table's elements that lie side by side, by the elements' indexes.
///
/// The table alone adds parts, so that each of its elements has one; others read and change the parts that are there.
struct Column<Part: Sendable>: Sendable {
    private var parts: [Part] = []

    fileprivate init() {}

    fileprivate mutating func set(_ index: Int, to part: Part) {
        if index == parts.count { parts.append(part) } else { parts[index] = part }
    }

    /// The part of the element at `index`; that of a removed element is vacant.
    subscript(_ index: Int) -> Part {
        @inline(__always) _read { yield parts[index] }
        @inline(__always) _modify { yield &parts[index] }
    }

    /// Asks the processor for the first cache lines of a part, without touching it.
    @inline(__always)
    fileprivate mutating func prefetch(_ index: Int, lines: Int) {
        unsafe parts.withUnsafeMutableBytes { bytes in
            let offset = index * MemoryLayout<Part>.stride
            unsafe prefetchLines(lines, at: bytes.baseAddress.map { unsafe UnsafeRawPointer($0) + offset })
        }
    }

    /// The reference with which a part begins, without touching what it refers to.
    @inline(__always)
    fileprivate mutating func firstReference(_ index: Int) -> UnsafeRawPointer? {
        unsafe parts.withUnsafeMutableBytes { bytes in
            unsafe bytes.load(fromByteOffset: index * MemoryLayout<Part>.stride, as: UnsafeRawPointer?.self)
        }
    }
}

/// A `SlotArray` in three columns, so that what is read often lies close together in memory.
///
/// `Element` holds what is seldom read, `Hot` what is read for every packet and subscriber, and `Bulk` what is also
/// changed for every packet, but is too large to lie between.
struct SlotTable<Element: Sendable, Hot: Sendable, Bulk: Sendable>: Sendable {
    private var slots = SlotArray<Element>()
    /// One pair; in an array, because a table that held it would be large to move.
    private let vacant: [(hot: Hot, bulk: Bulk)]
    /// The second column; `vacant` where there is no element.
    var hot = Column<Hot>()
    /// The third column, like `hot`.
    var bulk = Column<Bulk>()

    /// Creates an empty table, whose free slots hold `vacant`.
    init(vacant: (hot: Hot, bulk: Bulk)) { self.vacant = [vacant] }

    var count: Int { slots.count }
    var ids: [SlotID] { slots.ids }

    mutating func insert(_ element: Element, _ hotPart: Hot, _ bulkPart: Bulk) -> SlotID {
        let id = slots.insert(element)
        hot.set(id.index, to: hotPart)
        bulk.set(id.index, to: bulkPart)
        return id
    }

    mutating func remove(_ id: SlotID) -> Element? {
        guard let element = slots.remove(id) else { return nil }
        hot.set(id.index, to: vacant[0].hot)
        bulk.set(id.index, to: vacant[0].bulk)
        return element
    }

    func contains(_ id: SlotID) -> Bool { slots.contains(id) }

    /// Asks the processor for the first cache lines of an element's `hot` part.
    @inline(__always)
    mutating func prefetchHot(_ id: SlotID, lines: Int) { hot.prefetch(id.index, lines: lines) }

    /// The reference with which an element's `hot` part begins, without touching what it refers to.
    @inline(__always)
    mutating func firstReferenceOfHot(_ id: SlotID) -> UnsafeRawPointer? { unsafe hot.firstReference(id.index) }

    /// Asks the processor for the first cache lines of an element's `bulk` part.
    @inline(__always)
    mutating func prefetchBulk(_ id: SlotID, lines: Int) { bulk.prefetch(id.index, lines: lines) }

    /// The first column's part of an element; `nil` once it has been removed, and setting it then does nothing.
    subscript(_ id: SlotID) -> Element? {
        get { slots[id] }
        _modify { yield &slots[id] }
    }
}

/// A table that needs no third column.
extension SlotTable where Bulk == Void {
    init(vacant: Hot) { self.init(vacant: (vacant, ())) }

    mutating func insert(_ element: Element, _ hotPart: Hot) -> SlotID { insert(element, hotPart, ()) }
}
