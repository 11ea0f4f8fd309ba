extension SubscriberPath {
    /// The settings; lengths of time in microseconds.
    package struct Settings: Hashable, Sendable {
        /// A queue that stands for this long is the path's limit: from here on, the rate law gives the rate.
        package var limitingQueue: Int64 = 30_000
        /// Up to this queue a peer may regard nothing as delayed, and thin its acknowledgements.
        ///
        /// Peers take 5 ms (`AcknowledgementSchedule`). The rest is for the difference between their view and ours.
        package var quietQueue: Int64 = 15_000
        /// How long nothing must have been delayed before a peer may thin; peers take 1 s.
        package var patience: Int64 = 800_000
        /// The longest time between two acknowledgements that are thinned.
        package var quietInterval: Int64 = 500_000
        /// The time without a message after which an acknowledgement that comes with the next one shows no silence of
        /// the path: that of about eight frames, so that it is none of a stream that goes on.
        package var writingPause: Int64 = 250_000
        /// The age of the oldest byte on its way, beyond the round trip, from which no frame begins.
        package var longestSilence: Int64 = 150_000
        /// How long the peer may say nothing of texts, if nothing else is on its way, before another one is sent.
        package var longestTextSilence: Int64 = 2_000_000
        /// A silence of the peer, beyond the round trip and with bytes on their way, that shows an outage of the path.
        ///
        /// A peer thins its acknowledgements to 500 ms.
        package var outage: Int64 = 600_000
        /// The part of what was on its way in an outage down to which the first frame after it waits.
        ///
        /// TCP may have to send all of it again, and begins with one packet in a round trip and doubles that each time.
        /// A frame that is written when a quarter has arrived goes right behind the rest, and not a round trip later; a
        /// frame that is written before only grows old meanwhile.
        package var recoveryPart = 0.75
        /// How long after an acknowledgement the peer counts as heard.
        ///
        /// Peers acknowledge every 10 ms what arrives over a path that delays it, and the acknowledgement of a message
        /// of 1,200 bytes takes this long at 100 kbit/s.
        package var hearing: Int64 = 100_000
        /// The longest time that the last bytes of an unfinished frame are taken to need.
        ///
        /// Sockets take 64 kB beyond what the path has carried, which are this long at 0.5 Mbit/s.
        package var longestUnsaid: Int64 = 1_000_000
        /// The limit is forgotten when for this long no queue stood and the rate was not used up.
        package var limitMemory: Int64 = 10_000_000
        /// The first of the rare frames to a peer that has stopped to acknowledge; each further one waits twice as
        /// long.
        package var firstProbe: Int64 = 6_000_000
        /// How long no queue must have stood before a test whether the path carries more.
        package var roomPatience: Int64 = 2_000_000
        /// The part of the rate which a test has shown that becomes the path's limit.
        package var shownPart = 0.9
        /// For this long after TCP held back what is sent, nothing is learned of the path: the window over which the
        /// estimator has its rates, and the time until what was sent then has been acknowledged.
        package var holdTime: Int64 = 600_000
        /// For this long after it, at most, no more than `heldPart` of the rate is used, until the queue of that time
        /// is gone.
        package var holdQueueTime: Int64 = 2_000_000
        /// The part of the rate that is used until then.
        ///
        /// Publishers take a fall to less than 0.6 for a path that has become thinner, and send smaller pictures.
        package var heldPart = 0.75
        /// The most writes that are remembered; a peer that leaves more unacknowledged has no estimate any more.
        package var mostWrites: Int32 = 4096
        /// The most writes that are remembered of a peer that has never acknowledged any, after `firstPatience`.
        package var mostFirstWrites: Int32 = 128
        /// The time in which the first acknowledgement comes on any path worth an estimate.
        package var firstPatience: Int64 = 6_000_000
        /// The law's additive increase (`RateController.Settings`), half of that of a publisher's own path.
        ///
        /// The publisher hears of a rate 0.1 to 0.2 s later, and the queue of a rate that was too high is so much
        /// longer.
        package var additiveIncrease = 125_000.0
        /// How long the path must have had room before the law's increase becomes multiplicative, in seconds; 1 on a
        /// publisher's own path.
        ///
        /// In an emulated room with links of 0.15 to 2 Mbit/s, the 95th percentile of the age was 10 to 50 % longer
        /// with the values of a publisher's own path, and the use of the link the same.
        package var lawPatience = 2.0
        /// The bounds of the law's rate, in bits per second.
        package var lowestRate = 10_000.0
        package var highestRate = 200_000_000.0

        package init() {}
    }
}
