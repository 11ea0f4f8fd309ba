import MediaCore

/// The rules by which the rung changes: the first one that applies wins.
extension DegradationLadder {
    mutating func start(_ rate: Double, at time: Int64) {
        rungs = makeRungs()
        preferenceIsNew = false
        let most = min(startMargin * rate, max(rate, highestRate))
        bandwidthRung = rungs.best { $0.needed <= most }
        history.begin(rungs.count, rate, at: time)
        startedAt = time
        lastForgiven = time
    }

    mutating func change(_ rate: Double, before: Double, at time: Int64) {
        forgive(at: time)
        if let awaitedRung, rate < awaitedRung.needed * settings.marginDown { self.awaitedRung = nil }
        if boundsAreNew || preferenceIsNew, takeBounds(rate, at: time) { return }
        if answerCut(rate, before: before, at: time) { return }
        if answerCPU(rate, at: time) { return }
        if stepDown(rate, at: time) { return }
        stepUp(rate, at: time)
    }

    private func makeRungs() -> LadderRungs {
        LadderRungs(
            largest: largest,
            frameRate: frameRate,
            preference: preference,
            bounds: (bounds.dimensions, bounds.frameRate)
        )
    }

    /// Makes the rungs for new bounds or another preference, unless the size may not change now.
    private mutating func takeBounds(_ rate: Double, at time: Int64) -> Bool {
        let new = makeRungs()
        // A wish for a little more or less may come to the same.
        guard new != rungs else {
            (boundsAreNew, preferenceIsNew) = (false, false)
            return false
        }
        // A lane that the bitrate limited keeps its rung; one that it did not takes what the bitrate allows now.
        let most = bandwidthRung > 0 ? min(rate, rungs[bandwidthRung].needed) : rate
        // Another preference says nothing of a size that was kept whatever the bitrate.
        let keepsAll = !boundsAreNew && bandwidthRung == 0
        let bandwidth = keepsAll ? 0 : new.best { $0.needed <= most }
        let target = max(bandwidth, Self.cpuRung(new, pixelRateLimit))
        guard mayChange(from: rungs[rung], to: new[target], isUrgent: false, at: time) else { return false }
        let old = rungs[rung]
        rungs = new
        bandwidthRung = bandwidth
        let reason: Reason = preferenceIsNew ? .preference : .bounds
        (boundsAreNew, preferenceIsNew) = (false, false)
        awaitedRung = nil
        history.begin(new.count, rate, at: time)
        justifiedSince = nil
        note(old, reason, rate, at: time)
        return true
    }

    /// Skips rungs at once when the bitrate fell by much.
    private mutating func answerCut(_ rate: Double, before: Double, at time: Int64) -> Bool {
        guard rate <= settings.cut * before, !quantizer.willBeFine(rate, rungs[bandwidthRung].weight) else {
            return false
        }
        guard rungs.best(where: { $0.needed <= rate }) > bandwidthRung else { return false }
        // A bitrate that fell so far falls on, and the queue must drain: a smaller size than the present bitrate needs
        // makes one keyframe serve the whole fall. Frame rates change without one.
        let part = preference != .maintainResolution ? max(settings.deepestCut, rate / before) : 1
        let reached = rate * part
        let target = rungs.best {
            $0.needed <= reached || $0.needed <= rate && quantizer.willBeFine(reached, $0.weight)
        }
        guard move(to: target, .bitrateCut, rate, isUrgent: true, at: time) else { return false }
        fallsTo = part
        return true
    }

    /// Takes steps down because of the CPU, or takes them back, unless the size may not change now.
    private mutating func answerCPU(_ rate: Double, at time: Int64) -> Bool {
        let steps = wantedCPUSteps - cpuLimits.count
        guard steps != 0 else { return false }
        let old = rungs[rung]
        let limit = steps > 0 ? rung(after: steps).pixelRate : cpuLimits.dropLast(-steps).last
        let target = max(bandwidthRung, Self.cpuRung(rungs, limit))
        // A change to a size between leaves one more for the last one.
        let reserve = ChangeBudget.usualReserve - (target > bandwidthRung ? 0 : 1)
        guard mayChange(from: old, to: rungs[target], isUrgent: false, leaving: reserve, at: time) else { return false }
        // Each step keeps the limit that holds when it is taken back, whatever the path and the receivers allow by
        // then.
        if steps > 0 {
            cpuLimits += (1...steps).map { rung(after: $0).pixelRate }
        } else {
            cpuLimits.removeLast(-steps)
        }
        note(old, steps > 0 ? .cpuOverused : .cpuUnderused, rate, at: time)
        return true
    }

    private mutating func stepDown(_ rate: Double, at time: Int64) -> Bool {
        if history.timeTooLow(at: time) >= settings.timeDown, !quantizer.isFine {
            let target = max(bandwidthRung + 1, rungs.best { $0.needed <= rate })
            if target < rungs.count { return move(to: target, .bitrateLow, rate, at: time) }
        }
        // The quantizer of a rung needs a while to show.
        if rung + 1 < rungs.count, quantizer.isCoarse(rate, encoded.weight),
            time - (lastChange ?? startedAt) >= settings.changeInterval
        {
            return move(to: rung + 1, .quantizerHigh, rate, at: time)
        }
        return false
    }

    private mutating func stepUp(_ rate: Double, at time: Int64) {
        guard bandwidthRung > 0, time - (lastDown ?? startedAt) >= timeUp,
            var target = justifiedRung(rate, for: timeUp, at: time)
        else {
            justifiedSince = nil
            return
        }
        // Wait for a still larger size that is about to be justified, so that one keyframe serves both steps; and take
        // it then if it has been so for half of the time.
        let since = justifiedSince ?? time
        justifiedSince = since
        if let later = justifiedRung(rate, for: settings.risingTime, at: time), later < target {
            guard time - since >= timeUp / 2 else { return }
            target = justifiedRung(rate, for: timeUp / 2, at: time) ?? target
        }
        let isFast = rate >= rungs[target].needed * settings.marginUp
        let reserve = reserve(for: target, at: time)
        if move(to: target, isFast ? .bitrateHigh : .quantizerLow, rate, leaving: reserve, at: time) {
            justifiedSince = nil
        } else if rungs[target].dimensions != rungs[rung].dimensions {
            awaitedRung = rungs[target]
        }
    }

    /// How many size changes a step up leaves: for steps down the fewer, the longer it has been justified, and one more
    /// for the last step up where it leads to a size between.
    private func reserve(for target: Int, at time: Int64) -> Int {
        if history.justifies(target, for: 4 * settings.timeUp, at: time) { return 0 }
        let others = target > cpuRung ? 1 : 0
        return others + (history.justifies(target, for: 2 * settings.timeUp, at: time) ? 1 : ChangeBudget.usualReserve)
    }

    private func justifiedRung(_ rate: Double, for needed: Int64, at time: Int64) -> Int? {
        (0..<bandwidthRung).first {
            history.justifies($0, for: needed, at: time) && quantizer.allows(rate, rungs[$0].weight)
        }
    }

    /// Makes the bandwidth's rung `target`, unless the size may not change now.
    private mutating func move(
        to target: Int,
        _ reason: Reason,
        _ rate: Double,
        isUrgent: Bool = false,
        leaving reserve: Int = ChangeBudget.usualReserve,
        at time: Int64
    ) -> Bool {
        let old = rungs[rung]
        let new = rungs[max(target, cpuRung)]
        guard mayChange(from: old, to: new, isUrgent: isUrgent, leaving: reserve, at: time) else { return false }
        if target > bandwidthRung {
            lengthenTimeUp(at: time)
            lastDown = time
        } else {
            // Nothing is known at the start, so a step up is no failure there.
            if timeUp >= settings.timeUp {
                lastUp = time
                upEvidence = history.evidence(for: target)
            }
        }
        bandwidthRung = target
        history.rungChanged(rate, at: time)
        note(old, reason, rate, at: time)
        return true
    }

    private func mayChange(
        from old: LadderRungs.Rung,
        to new: LadderRungs.Rung,
        isUrgent: Bool,
        leaving reserve: Int = ChangeBudget.usualReserve,
        at time: Int64
    ) -> Bool {
        guard old.dimensions != new.dimensions || old.frameRate != new.frameRate else { return true }
        guard isUrgent || time - (lastChange ?? .min / 2) >= settings.changeInterval else { return false }
        guard old.dimensions != new.dimensions else { return true }
        return sizeChanges.allowsChange(leaving: new.dimensions.area > old.dimensions.area ? reserve : 0, at: time)
    }

    /// Notes what was encoded before a change of the rungs.
    private mutating func note(_ old: LadderRungs.Rung, _ reason: Reason, _ rate: Double, at time: Int64) {
        let new = rungs[rung]
        guard old != new else { return }
        self.reason = reason
        awaitedRung = nil
        lastChange = time
        quantizer.rungChanged(rate, new.weight)
        if old.dimensions != new.dimensions { sizeChanges.changed(at: time) }
    }

    /// Waits longer before the next step up if the last one had to be taken back soon.
    ///
    /// The wait doubles, but becomes no longer than one that would have prevented this step.
    private mutating func lengthenTimeUp(at time: Int64) {
        timeUp = max(timeUp, settings.timeUp)
        if let lastUp, lastDown ?? .min < lastUp, time - lastUp < settings.trialTime {
            let lasted = Int64(settings.failureMargin * Double(upEvidence.duration(at: time)))
            timeUp = min(settings.longestTimeUp, max(timeUp, min(2 * timeUp, lasted)))
        }
    }

    /// Ends the start after its time, and forgets a failed step up after a long time without a step down.
    private mutating func forgive(at time: Int64) {
        if timeUp < settings.timeUp {
            if time - startedAt > settings.startTime { timeUp = settings.timeUp }
        } else if timeUp > settings.timeUp, time - max(lastDown ?? startedAt, lastForgiven) > settings.forgivingTime {
            timeUp = max(settings.timeUp, timeUp / 2)
            lastForgiven = time
        }
    }
}
