import CPrefetch
import RelayCore

/// The connections by the relay's names for them.
///
/// The relay uses the index in a name again. So the name of a connection that is gone finds nothing here, and not the
/// connection that came after it.
struct ConnectionTable<Connection: AnyObject>: ~Copyable {
    /// A connection and its name, side by side, so that the check of the name costs no further memory access.
    private struct Seat {
        // First, because `prefetch` reads it from there.
        var connection: Connection?
        var id: SlotID
    }

    private var seats: [Seat] = []

    /// Enters the connection that the relay calls `id`.
    mutating func seat(_ connection: Connection, as id: SlotID) {
        while seats.count <= id.index { seats.append(Seat(connection: nil, id: id)) }
        seats[id.index] = Seat(connection: connection, id: id)
    }

    /// Removes the connection that the relay calls `id`.
    mutating func remove(_ id: SlotID) {
        if self[id] != nil { seats[id.index].connection = nil }
    }

    /// The connection that the relay calls `id`; `nil` if it is gone.
    subscript(_ id: SlotID) -> Connection? {
        @inline(__always) get {
            let index = id.index
            // By their raw values: a comparison of the names would be a call into another module.
            guard index < seats.count, seats[index].id.rawValue == id.rawValue else { return nil }
            return seats[index].connection
        }
    }

    /// Asks the processor for the memory of a connection, which is in none of its caches when the relay wakes a crowd.
    @inline(__always)
    mutating func prefetch(_ id: SlotID) {
        // To load the reference itself would retain the object, and wait for its memory.
        let address = unsafe seats.withUnsafeMutableBytes { bytes in
            unsafe bytes.load(fromByteOffset: id.index * MemoryLayout<Seat>.stride, as: UnsafeRawPointer?.self)
        }
        for line in 0..<3 { unsafe cprefetch_line(address.map { unsafe $0 + line * 64 }) }
    }
}
