import MediaCore

/// The steps down when the CPU is too slow, and the steps back up later; the largest encoding steps down first.
extension UplinkController {
    mutating func encoded(_ report: EncodingReport?, of id: LaneID, at now: Int64) {
        guard let report, let index = lanes.firstIndex(where: { $0.id == id }) else { return }
        let interval = Duration.microseconds(lanes[index].pictureInterval)
        lanes[index].encoded(report, at: now)
        // Frames that nobody encodes here say nothing of the CPU.
        guard !lanes[index].lane.isRelayed else { return }
        let instant = MonotonicInstant(microseconds: now)
        switch cpu.encoded(report.encodeDuration, interval: interval, by: id, at: instant) {
        case .overused(let steps): takeCPUSteps(steps)
        case .normal: break
        case .underused(let steps): takeBackCPUSteps(steps)
        }
    }

    /// Makes the largest encoding smaller by `count` steps, or pauses it if it would be no larger than one of its
    /// track's lower layers.
    private mutating func takeCPUSteps(_ count: Int) {
        // By the full size: an encoding that the path makes small for now is still the one to give up.
        let encoded = lanes.indices.filter {
            lanes[$0].isEncoded && !lanes[$0].lane.isRelayed && cpu.measures(lanes[$0].id)
        }
        let largestFirst = encoded.sorted { first, second in
            let (area, other) = (lanes[first].lane.largestDimensions.area, lanes[second].lane.largestDimensions.area)
            return area == other ? first < second : area > other
        }
        for index in largestFirst {
            let lane = lanes[index]
            let steps = min(count, lane.cpuStepsLeft)
            if let lower = largestLowerArea(than: lane), steps == 0 || lane.dimensions(after: steps).area <= lower {
                lanes[index].setTooMuchForCPU(true)
                cpuSteps.append(CPUStep(lane: lane.id, isPause: true))
                cpu.took(1, of: count)
                return allocate()
            }
            if steps > 0 {
                lanes[index].takeCPUSteps(steps)
                cpuSteps += repeatElement(CPUStep(lane: lane.id, isPause: false), count: steps)
                return cpu.took(steps, of: count)
            }
        }
        cpu.took(0, of: count)
    }

    /// Takes back the `count` steps that were taken last.
    private mutating func takeBackCPUSteps(_ count: Int) {
        for left in (1...max(1, count)).reversed() {
            guard let step = cpuSteps.last, let index = lanes.firstIndex(where: { $0.id == step.lane }) else { return }
            // While the path makes the pictures smaller than the CPU does, the load says nothing of larger ones.
            guard step.isPause || !lanes[index].isLimitedByPath else { return cpu.keepSteps(left) }
            cpuSteps.removeLast()
            if step.isPause {
                lanes[index].setTooMuchForCPU(false)
                allocate()
            } else {
                lanes[index].takeBackCPUStep()
            }
        }
    }

    /// The area of the largest of the track's lower simulcast layers that are encoded; `nil` if there is none.
    private func largestLowerArea(than lane: LaneState) -> Int? {
        var largest: Int?
        for other in lanes where other.isEncoded && other.lane.track == lane.lane.track {
            guard other.lane.simulcastLayer < lane.lane.simulcastLayer, let size = other.dimensions else { continue }
            largest = max(largest ?? 0, size.area)
        }
        return largest
    }
}
