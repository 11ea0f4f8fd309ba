extension UplinkController {
    /// Gives each encoding its share of the rate: lower simulcast layers first, by priority within a layer.
    ///
    /// Layers that nobody receives do not count: the lowest one that somebody receives comes first in every track.
    mutating func allocate() {
        rankLanes()
        findLenders()
        var demand = 0.0
        var interval = Int64.max
        for lane in lanes where lane.isWanted {
            demand += lane.demand + overhead(lane)
            if !lane.isLending { interval = min(interval, lane.allowedInterval) }
        }
        guard demand > 0 else {
            // The rate is kept for the time when somebody wants something again.
            for index in lanes.indices { lanes[index].share = 0 }
            return
        }
        controller.setHighestRate(demand)
        controller.setFrameInterval(interval)
        let rate = rate
        var left = rate
        for rank in 0...(lanes.reduce(0) { max($0, $1.rank) }) { left = share(left, of: rate, amongRank: rank) }
        // With the first picture in which something moves, those that lend have their own share. The others have less from
        // the next allocation on.
        for index in lanes.indices where lanes[index].isLending && lanes[index].hasPart {
            lanes[index].share = max(lanes[index].share, lanes[index].ownShare)
        }
        for index in lanes.indices { lanes[index].noteShare(of: rate) }
    }

    /// Finds the encodings whose pictures stand still, or of which few or none come, while those of another track do not.
    private mutating func findLenders() {
        for index in lanes.indices { lanes[index].findQuiet(at: lastTime) }
        for index in lanes.indices {
            let track = lanes[index].lane.track
            let isOfUse = lanes.contains { $0.isWanted && $0.quietNeed == nil && $0.lane.track != track }
            lanes[index].isLending = lanes[index].quietNeed != nil && isOfUse
        }
    }

    /// Numbers the encodings of each track that somebody receives, from the smallest on.
    private mutating func rankLanes() {
        for index in lanes.indices {
            let (lane, id) = (lanes[index].lane, lanes[index].id)
            lanes[index].rank = lanes.count {
                $0.isWanted && $0.lane.track == lane.track && $0.lane.simulcastLayer < lane.simulcastLayer
            }
            // The CPU pauses no encoding without a smaller one that takes its place.
            if lanes[index].isTooMuchForCPU, lanes[index].rank == 0 {
                lanes[index].setTooMuchForCPU(false)
                cpuSteps.removeAll { $0.lane == id && $0.isPause }
            }
        }
    }

    /// Shares `left` among the encodings of one rank; returns what is left then.
    ///
    /// `total` is the rate of the connection, of which the lower ranks use the rest.
    private mutating func share(_ left: Double, of total: Double, amongRank rank: Int) -> Double {
        var hasLenders = false
        for index in lanes.indices where lanes[index].rank == rank {
            let hasPart = lanes[index].isWanted && affords(left, total - left, index)
            lanes[index].share = 0
            lanes[index].hasPart = hasPart
            hasLenders = hasLenders || hasPart && lanes[index].isLending
        }
        guard hasLenders else { return fill(left, rank, lends: false) }
        _ = fill(left, rank, lends: false)
        for index in lanes.indices where lanes[index].rank == rank { lanes[index].ownShare = lanes[index].share }
        return fill(left, rank, lends: true)
    }

    /// Shares `left` among the encodings of a rank that have a part; returns what is left then.
    private mutating func fill(_ left: Double, _ rank: Int, lends: Bool) -> Double {
        var left = left
        var weights = 0.0
        for index in lanes.indices where lanes[index].rank == rank && lanes[index].hasPart {
            lanes[index].share = -1
            weights += lanes[index].weight
        }
        // Lanes that need less than their part get what they need; the others share the rest anew.
        var isDone = false
        while !isDone {
            isDone = true
            let rate = left
            let sum = weights
            for index in lanes.indices where lanes[index].rank == rank && lanes[index].share < 0 {
                let demand = useful(index, lends: lends)
                let part = demand + overhead(lanes[index])
                guard part <= rate * lanes[index].weight / sum else { continue }
                lanes[index].share = demand
                left -= part
                weights -= lanes[index].weight
                isDone = false
            }
        }
        let rate = max(0, left)
        for index in lanes.indices where lanes[index].rank == rank && lanes[index].share < 0 {
            let part = rate * lanes[index].weight / weights
            lanes[index].share = max(part / 2, part - overhead(lanes[index]))
            left -= part
        }
        return max(0, left)
    }

    /// The bits per second that an encoding can use while another track, or a larger encoding of the same one, may need the
    /// rest.
    ///
    /// Pictures that are fine do not use what they are given, and would keep it from the larger encoding for ever. Once
    /// they are not fine, for example because something moves, the encoding has its full demand again from the next
    /// picture on.
    private mutating func useful(_ index: Int, lends: Bool) -> Double {
        let demand = lanes[index].demand
        if lends, lanes[index].isLending, let need = lanes[index].quietNeed { return min(demand, need) }
        let isBelowAnother = lanes.contains {
            $0.isWanted && $0.lane.track == lanes[index].lane.track && $0.rank > lanes[index].rank
        }
        guard isBelowAnother, let used = lanes[index].fineUse.sufficient(at: lastTime) else { return demand }
        return min(demand, max(used, settings.lowestLayerPart * demand, lanes[index].lowestRate))
    }

    /// The bits per second below which an encoding is not worth its keyframes.
    private mutating func lowestUseful(_ index: Int) -> Double {
        let used = lanes[index].fineUse.sufficient(at: lastTime) ?? .infinity
        return max(min(settings.lowestLayerPart * lanes[index].demand, used), lanes[index].lowestRate)
    }

    /// Whether an encoding gets a part of `left`, of which the lower simulcast layers use `used`.
    private mutating func affords(_ left: Double, _ used: Double, _ index: Int) -> Bool {
        let lane = lanes[index]
        guard lane.rank > 0 else {
            // It is encoded in any case.
            lanes[index].admission.reset()
            return true
        }
        return lanes[index].admission.update(
            left: left,
            used: used,
            lowest: lowestUseful(index),
            margin: settings.layerMargin,
            settings.layers,
            at: lastTime
        )
    }

    /// The bits per second of a lane's headers.
    private func overhead(_ lane: LaneState) -> Double {
        settings.frameOverhead * 8e6 / Double(lane.frameInterval)
    }
}
