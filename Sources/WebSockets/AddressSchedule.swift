import MediaCore

/// Decides which of a server's addresses is tried next, and for how long.
///
/// An address that does not answer gives way to the next one, and gets a second, longer try after the last. Otherwise
/// an address whose packets are swallowed, as IPv6 often is by a firewall, would take all the time from one that works.
struct AddressSchedule<Address: Sendable>: Sendable {
    /// An address, and how long it may take to answer.
    struct Try {
        let address: Address
        let limit: Duration
    }

    /// The longest first try of an address while there are others.
    ///
    /// TCP repeats its request for a connection after the same time (RFC 6298, section 2.1), so what has not answered
    /// by then is unlikely to.
    private static var longestFirstTry: Duration { .seconds(1) }
    /// The shortest try, however many addresses there are: RFC 8305, section 8, recommends it between two addresses.
    private static var shortestTry: Duration { .milliseconds(250) }

    /// When the time for all addresses is over.
    let deadline: MonotonicInstant
    /// The addresses that have not been tried; the next one is the last in the array.
    private var untried: [Address]
    /// The addresses that gave way, in the order of their second tries.
    private var silent: [Address] = []
    /// The address of the present try if it is its first one.
    private var firstTried: Address?

    /// Creates a schedule for `addresses`, best first, that ends at `deadline`.
    init(_ addresses: [Address] = [], until deadline: MonotonicInstant) {
        untried = addresses.reversed()
        self.deadline = deadline
    }

    /// Whether there is an address to go on to.
    var hasNext: Bool { !untried.isEmpty || !silent.isEmpty }

    /// The next address; `nil` if there is none.
    ///
    /// A try that reaches its limit gives way, if there is another address then. Otherwise the time is over.
    mutating func next(at now: MonotonicInstant) -> Try? {
        let rest = deadline.duration(since: now)
        firstTried = untried.popLast()
        guard let address = firstTried ?? (silent.isEmpty ? nil : silent.removeFirst()) else { return nil }
        guard hasNext else { return Try(address: address, limit: rest) }
        let share = rest / (untried.count + silent.count + 1)
        let limit = firstTried == nil ? share : min(share, Self.longestFirstTry)
        return Try(address: address, limit: min(rest, max(limit, Self.shortestTry)))
    }

    /// Notes that the present try reached its limit and is given up.
    mutating func gaveWay() {
        if let firstTried { silent.append(firstTried) }
        firstTried = nil
    }

    /// Leaves out all addresses that have not been tried to the end.
    mutating func end() {
        untried = []
        silent = []
        firstTried = nil
    }
}
