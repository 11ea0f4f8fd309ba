import Glibc
import MediaCore

/// The driver's buffers of one stream, which are mapped, lent and given back; confine to the node's thread.
@safe final class BufferRing {
    /// The requested number of buffers: one lent to the converter, one being filled, two for the driver's and our own
    /// jitter.
    static let wantedCount = 4
    /// The least number of buffers; with fewer, the driver would have none to fill while one is lent.
    static let fewest = 2

    private let device: V4L2Device
    private var memory: [UnsafeMutableRawBufferPointer]
    /// Whether the driver holds the buffer.
    private var isQueued: [Bool]
    private var order: FrameOrder
    private var isStreaming = false
    /// An error that occurred after a picture was taken; the next `takeNewest` throws it.
    private var pendingFailure: SystemCallFailure?

    /// Requests and maps buffers for the format that `device` is set to.
    init(_ device: V4L2Device) throws(SystemCallFailure) {
        self.device = device
        unsafe memory = []
        isQueued = []
        let count = try device.requestBuffers(Self.wantedCount)
        // Buffers beyond twice the wanted number are left to the driver.
        let used = min(count, Self.wantedCount * 2)
        order = FrameOrder(bufferCount: used)
        guard count >= Self.fewest else {
            throw SystemCallFailure(attempt: "get two buffers (max_buffers of v4l2loopback) of", status: ENOMEM)
        }
        for index in 0..<used {
            unsafe memory.append(try device.mapBuffer(at: index))
            isQueued.append(false)
        }
    }

    deinit {
        // These calls fail for a lost device, and nothing more can be done then.
        if isStreaming { try? device.stopStreaming() }
        for index in isQueued.indices { unsafe device.node.unmap(memory[index]) }
        _ = try? device.requestBuffers(0)
    }

    /// Gives all buffers to the driver and starts streaming.
    func start() throws(SystemCallFailure) {
        for index in isQueued.indices {
            try device.queueBuffer(at: index)
            isQueued[index] = true
        }
        try device.startStreaming()
        isStreaming = true
    }

    /// Takes all filled buffers, keeps the newest whole one, and gives the others back.
    ///
    /// A frame that is older than one taken before it is late. Counts captured, missed, late and corrupt frames. The
    /// returned buffer has a timestamp, and must be given back with `giveBack(_:)`. An error after a whole frame has
    /// been taken is thrown by the next call, so that the frame is not lost.
    ///
    /// v4l2loopback may hand over the buffer that is kept once more, with newer content, when its writer streams into
    /// one buffer. The frame that was kept is late then.
    func takeNewest(
        counting statistics: inout CaptureStatistics,
        stamps: inout TimestampCheck,
        clock: () -> MonotonicInstant
    ) throws(SystemCallFailure) -> FilledBuffer? {
        if let failure = takePendingFailure() { throw failure }
        try offerRefusedAgain()
        var newest: FilledBuffer?
        do {
            // The loop is bounded, so that a driver that is faster than this loop cannot hold it.
            for _ in isQueued.indices {
                let taken = try take(orAgain: newest?.index, counting: &statistics, stamps: &stamps, clock: clock)
                guard let filled = taken else {
                    stamps.emptied(at: clock())
                    break
                }
                if filled.index == newest?.index {
                    statistics.framesDropped[.late] += 1
                    newest = nil
                }
                let isNewest = isWhole(filled) && !filled.isOvertaken
                let discarded = isNewest ? newest : filled
                if let discarded { statistics.framesDropped[isWhole(discarded) ? .late : .corrupt] += 1 }
                if isNewest { newest = filled }
                if let discarded { try giveBack(discarded) }
            }
        } catch {
            guard newest != nil else { throw error }
            pendingFailure = error
        }
        return newest
    }

    private func takePendingFailure() -> SystemCallFailure? {
        defer { pendingFailure = nil }
        return pendingFailure
    }

    /// Takes the oldest filled buffer, and counts it; it is one that the driver holds, or `held`.
    private func take(
        orAgain held: Int?,
        counting statistics: inout CaptureStatistics,
        stamps: inout TimestampCheck,
        clock: () -> MonotonicInstant
    ) throws(SystemCallFailure) -> FilledBuffer? {
        guard var filled = try device.dequeueBuffer() else { return nil }
        guard isQueued.indices.contains(filled.index), isQueued[filled.index] || filled.index == held else {
            throw SystemCallFailure(attempt: "make sense of the buffers of", status: EPROTO)
        }
        isQueued[filled.index] = false
        let now = clock()
        switch order.place(filled.sequence, stamp: filled.timestamp) {
        case .next(let missed):
            statistics.framesMissed += missed
        case .overtaken(let wasMissed):
            filled.isOvertaken = true
            if wasMissed { statistics.framesMissed -= 1 }
            statistics.countCaptured(at: stamps.lastInstant ?? now)
            return filled
        }
        let (instant, isReplaced) = stamps.instant(for: filled.timestamp, takenAt: now)
        filled.timestamp = instant
        statistics.countCaptured(at: instant, takenAt: isReplaced ? nil : now)
        if isReplaced { statistics.timestampsReplaced += 1 }
        return filled
    }

    private func isWhole(_ filled: FilledBuffer) -> Bool {
        let capacity = unsafe memory[filled.index].count
        return !filled.isDamaged && filled.start < filled.end && filled.end <= capacity
    }

    /// Whether the next `takeNewest` throws an earlier error.
    var hasFailed: Bool { pendingFailure != nil }

    /// Lends the content of a taken buffer.
    func withBytes<Result, Failure: Error>(
        of filled: FilledBuffer,
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(unsafe RawSpan(_unsafeBytes: content(of: filled)))
    }

    /// Lends the content of a taken buffer to a C function that wants to write.
    func content(of filled: FilledBuffer) -> UnsafeMutableRawBufferPointer {
        unsafe UnsafeMutableRawBufferPointer(rebasing: memory[filled.index][filled.start..<filled.end])
    }

    /// Gives a taken buffer back to the driver.
    func giveBack(_ filled: FilledBuffer) throws(SystemCallFailure) {
        do {
            try device.queueBuffer(at: filled.index)
            isQueued[filled.index] = true
        } catch {
            // A buffer that was refused once is offered again; any other error ends the stream.
            guard isPassing(error) else { throw error }
        }
    }

    private func offerRefusedAgain() throws(SystemCallFailure) {
        var refusal: SystemCallFailure?
        for index in isQueued.indices where !isQueued[index] {
            do {
                try device.queueBuffer(at: index)
                isQueued[index] = true
            } catch {
                guard isPassing(error) else { throw error }
                refusal = error
            }
        }
        if let refusal, !isQueued.contains(true) { throw refusal }
    }

    private func isPassing(_ failure: SystemCallFailure) -> Bool {
        [EINVAL, EAGAIN, ENOMEM, EBUSY].contains(failure.status)
    }
}
