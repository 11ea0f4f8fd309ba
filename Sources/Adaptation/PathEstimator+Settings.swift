extension PathEstimator {
    /// The settings; all lengths of time in microseconds.
    package struct Settings: Hashable, Sendable {
        /// How long the smallest one-way delay counts as that of the empty path.
        package var baseWindow: Int64 = 10_000_000
        /// How long it counts for telling that others fill the queue; longer still while they do.
        package var referenceWindow: Int64 = 30_000_000
        /// How long the shortest round trip counts: routes change, and a receiver may lie once.
        package var roundTripWindow: Int64 = 30_000_000
        /// The queue that stands is the smallest one of this time: shorter ones are bursts, which drain by themselves.
        ///
        /// Simulated on 40 links: from 80 to 180 ms the rate on bursty cellular links rises by 15 to 80 %, and the 95th
        /// percentile of the delay by 6 to 20 %.
        package var standingWindow: Int64 = 180_000
        /// The window of the delivery rates.
        package var rateWindow: Int64 = 400_000
        /// A silence of the link counts at most this long in the rate while it delivers.
        package var longestGap: Int64 = 80_000
        /// A silence in which the kernel's count of packets that arrived is of use, from this length on; 0 for never.
        ///
        /// The count comes with each picture that asks to be sent; twice before `longestGap` at 30 a second.
        package var heldSilence: Int64 = 20_000
        /// A silence of the receiver from this length on is a stall: what waited for its end says nothing of the queue.
        package var stall: Int64 = 250_000
        /// A gap from this length on, before three messages in a row, shows that the path is slow (`Slowness`).
        package var slowGap: Int64 = 150_000
        /// A gap from this length on may belong to the last, shorter message of a frame on such a path.
        package var shortestGap: Int64 = 20_000
        /// For receivers that count whole messages: a silence in which a message arrives is none if it is at most this
        /// many times as long as its bytes took before; 0 for never.
        ///
        /// A publisher's messages are small once its rate is known. With 1.5 it has a quarter less delay on thin links,
        /// but an eighth less rate on bursty cellular ones, whose bursts look like messages.
        package var slowMargin = 0.0
        /// A path that delivers less than this is thin, in bits per second; 0 for no path.
        ///
        /// A message of 1,200 bytes takes 40 ms at this rate, and longer than `longestGap` at half of it.
        package var thinRate = 250_000.0
        /// For how long it must have delivered less.
        ///
        /// Silences count `longestGap` at most, so that an outage says nothing. Cellular links are slow for a second or
        /// two in turns, and lose 1 to 2 % of their rate if they count as thin then.
        package var thinWindow: Int64 = 3_000_000
        /// On a thin path, a silence in which bytes were on their way counts in the rate while it delivers, up to this
        /// many times as long as the bytes that end it take at that rate.
        ///
        /// With `longestGap` alone, a link on which each message takes 150 ms seems to deliver nearly twice what it
        /// does.
        package var thinMargin = 1.25
        /// How long a receiver may thin its acknowledgements, with some allowance.
        package var longestThinning: Int64 = 550_000
        /// The queueing delay up to which a receiver may thin them.
        package var thinningQueue: Int64 = 15_000
        /// The queueing delay of a message's beginning up to which the path was empty before it: its jitter.
        package var headQueue: Int64 = 8_000
        /// Writes this far apart in one acknowledgement show that a receiver thins.
        package var shortestThinning: Int64 = 25_000
        /// An acknowledgement that is no later than this is on time: receivers wait up to 10 ms for more bytes.
        package var usualLateness: Int64 = 12_000
        /// The most by which acknowledgements may be late; on a path that is worse, frames are left out.
        package var longestLateness: Int64 = 500_000
        /// How long a late acknowledgement counts, at most.
        package var latenessWindow: Int64 = 2_000_000
        /// So many bytes, which came over an empty path and longer than `standingWindow` after the last ones, tell nothing
        /// of what the path carries: a packet.
        package var loneBytes: Int64 = 1_500
        /// The smallest number of bytes that make a train whose rate is meaningful (a keyframe has more).
        package var shortestTrain: Int64 = 4_200

        package init() {}
    }
}
