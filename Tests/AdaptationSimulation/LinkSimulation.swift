package import Adaptation

/// Plays flows over one link: a queue without loss, in which all flows' packets wait in one row, and a fixed delay each
/// way.
///
/// It goes in steps of 1 ms, and ranks laws; figures of the real programs come from `Benchmarks/network`.
package enum LinkSimulation {
    private struct Flying {
        var at: Int
        var packet: Packet
    }

    /// The time that a publisher takes to write a message, in microseconds.
    ///
    /// The publisher reads the clock for each message, so no two of them have the same time.
    static let writeTime: Int64 = 20

    /// Runs `seconds` of the flows over `trace`, beside `bulk`; with `log` they record their inputs.
    package static func run(
        _ trace: LinkTrace,
        seconds: Double,
        flows configurations: [SimulatedFlow.Configuration],
        bulk: SimulatedBulk? = nil,
        log: Bool = false
    ) -> [SimulatedFlow] {
        let flows = configurations.enumerated().map { SimulatedFlow($1, index: $0, log: log) }
        play(flows, over: trace, seconds: seconds, beside: bulk)
        return flows
    }

    /// Runs `seconds` of a publisher of several tracks over `trace`, with `delay` milliseconds each way beside the queue.
    package static func run(
        _ trace: LinkTrace,
        seconds: Double,
        delay: Int,
        tracks: [SimulatedTracks.Track],
        settings: UplinkController.Settings = UplinkController.Settings()
    ) -> SimulatedTracks {
        let publisher = SimulatedTracks(tracks, delay: delay, settings)
        play([publisher], over: trace, seconds: seconds, beside: nil)
        return publisher
    }

    private static func play<User: LinkUser>(
        _ flows: [User],
        over trace: LinkTrace,
        seconds: Double,
        beside bulk: SimulatedBulk?
    ) {
        var bulk = bulk
        var row = Fifo<Packet>()
        var pipes = flows.map { _ in Fifo<Flying>() }
        var index = 0
        var round = 0
        for now in 0..<Int(seconds * 1000) {
            for flow in flows { flow.send(at: now) { row.append($0) } }
            bulk?.send(at: now) { row.append($0) }
            while trace.opportunities[index] + round * trace.duration <= now {
                var budget = trace.opportunityBytes
                while budget > 0, let packet = row.first {
                    let part = min(packet.left, budget)
                    budget -= part
                    guard part == packet.left else {
                        row.changeFirst { $0.left -= part }
                        continue
                    }
                    row.removeFirst()
                    guard packet.flow != SimulatedBulk.flow else {
                        bulk?.left(packet, at: now)
                        continue
                    }
                    let flow = flows[packet.flow]
                    flow.left(packet)
                    pipes[packet.flow].append(Flying(at: now + flow.timeOnPath(at: now), packet: packet))
                }
                index += 1
                if index == trace.opportunities.count { (index, round) = (0, round + 1) }
            }
            for flow in flows.indices {
                while let flying = pipes[flow].first, flying.at <= now {
                    pipes[flow].removeFirst()
                    flows[flow].arrived(flying.packet, at: now)
                }
                flows[flow].acknowledge(at: now)
            }
        }
    }
}

/// A sender and its receiver, which share a link with others; times in milliseconds.
protocol LinkUser: AnyObject {
    /// Does what the sender does at `now`; `put` takes the packets that it sends.
    func send(at now: Int, put: (Packet) -> Void)
    /// Notes that the link has carried a packet.
    func left(_ packet: Packet)
    /// The time from the link to the receiver for the next packet, without the wait for those before.
    func timeOnPath(at now: Int) -> Int
    /// Notes that the receiver has a packet.
    func arrived(_ packet: Packet, at now: Int)
    /// Lets the receiver acknowledge what is due.
    func acknowledge(at now: Int)
}
