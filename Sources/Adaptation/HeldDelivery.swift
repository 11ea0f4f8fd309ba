/// Tells in how much of a receiver's silence the link delivers all the same.
///
/// While TCP sends a lost packet again, the receiver cannot have what came behind it: it acknowledges nothing, and then
/// everything at once. The kernel knows better, by selective acknowledgements (RFC 2018). If its count of packets that
/// arrived grows in a silence, the link is not silent.
struct HeldDelivery: Hashable, Sendable {
    /// A longer time between two counts that grow counts as this, in microseconds.
    private let longestGap: Int64
    /// The last count of the present silence; what grew before says nothing of it.
    private var packets: UInt32?
    /// When an acknowledgement came or the count grew last, in microseconds of the local clock.
    private var lastSign: Int64 = 0

    /// The part of the present silence in which packets arrived, in microseconds.
    private(set) var time: Int64 = 0

    init(longestGap: Int64) {
        self.longestGap = longestGap
    }

    /// Notes that an acknowledgement came at `now`, which ends the silence.
    mutating func acknowledged(at now: Int64) {
        time = 0
        lastSign = now
        packets = nil
    }

    /// Notes how many packets have arrived in all by `now`, in a silence; the count may wrap.
    ///
    /// `oldest` is when the oldest byte was written that is on its way: what was before is no silence.
    mutating func delivered(packets count: UInt32, since oldest: Int64, at now: Int64) {
        defer { packets = count }
        guard let packets, count != packets else { return }
        time += max(0, min(now - max(lastSign, oldest), longestGap))
        lastSign = now
    }
}
