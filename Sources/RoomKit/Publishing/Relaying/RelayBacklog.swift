import MediaCore

/// The compressed frames of a source that wait to be sent, and the rules by which they are given up.
///
/// Each frame refers to the one before, so none is left out alone. A frame that has waited too long is given up with
/// all that came before the newest waiting keyframe. If no keyframe waits, all waiting frames are given up, and the
/// source's frames are dropped up to its next keyframe.
///
/// While nobody receives the track, the frames from the last keyframe on are kept as long as none of them is too old. A
/// subscriber who comes just then begins with that keyframe.
struct RelayBacklog: Sendable {
    /// A frame that waits.
    struct Entry: Sendable {
        var frame: EncodedFrame
        /// The frame's number in the track's `PictureTally`.
        var ticket: UInt64
        /// The frame's number on the wire; frames that are given up have one too.
        var number: UInt32
        var arrived: MonotonicInstant
    }

    /// Takes the ticket of a frame that is dropped.
    typealias Drop = (UInt64, FrameDropReason) -> Void

    /// How long a frame may wait: as long as in the queue to the socket, whose reasons hold here too.
    static let deadline = SendQueue.deadline
    /// The most frames and bytes that wait: a source that comes in faster than its frames are shown is no live source.
    private static let (mostFrames, mostBytes) = (120, 8 << 20)
    /// The shortest time between two requests to the source: that of the server's.
    static let requestInterval: Duration = .seconds(1)

    /// The frames that wait, the oldest first.
    private(set) var entries: [Entry] = []
    /// Whether somebody receives the track.
    private(set) var isActive = false
    /// The highest rate of the source lately.
    private(set) var sourceRate = SourceRate()
    private var bytes = 0
    private var nextNumber: UInt32 = 0
    /// Why frames are dropped up to the next keyframe; `nil` if the next frame may be one that refers to the last.
    private var gap: FrameDropReason? = .notWanted
    private var isRequested = false
    private var lastRequest: MonotonicInstant?

    /// An empty backlog of a track that nobody receives.
    init() {
        entries.reserveCapacity(Self.mostFrames)
    }

    // MARK: Frames

    /// Adds a frame of the source; frames come in their order.
    mutating func append(_ frame: EncodedFrame, ticket: UInt64, at now: MonotonicInstant, drop: Drop) {
        expire(at: now, drop: drop)
        sourceRate.count(frame.size.bytes, at: now)
        let entry = Entry(frame: frame, ticket: ticket, number: nextNumber, arrived: now)
        // Numbers last for two years at 60 frames a second.
        nextNumber &+= 1
        if frame.info.isKeyframe {
            if !isActive { giveUp(through: entries.count, .notWanted, drop: drop) }
            (gap, isRequested) = (nil, false)
        } else if let gap {
            return drop(ticket, gap)
        }
        entries.append(entry)
        bytes += frame.size.bytes
        if entries.count > Self.mostFrames || bytes > Self.mostBytes { giveUpOldest(drop: drop) }
    }

    /// Gives up the frames that have waited too long.
    mutating func expire(at now: MonotonicInstant, drop: Drop) {
        while let first = entries.first, now.duration(since: first.arrived) > Self.deadline {
            giveUpOldest(drop: drop)
        }
    }

    /// Gives up the oldest frame and those that refer to it: up to the newest keyframe that waits behind it.
    private mutating func giveUpOldest(drop: Drop) {
        let reason: FrameDropReason = isActive ? .network : .notWanted
        guard let keyframe = newestKeyframe, keyframe > 0 else { return giveUpAll(reason, drop: drop) }
        giveUp(through: keyframe, reason, drop: drop)
    }

    private var newestKeyframe: Int? { entries.lastIndex { $0.frame.info.isKeyframe } }

    /// Takes the oldest frame out, to be sent.
    mutating func removeFirst() -> Entry? {
        guard !entries.isEmpty else { return nil }
        let entry = entries.removeFirst()
        bytes -= entry.frame.size.bytes
        return entry
    }

    /// Goes on with the newest keyframe that waits, or else with the source's next one, because the frames that wait
    /// may refer to frames that were given up.
    mutating func breakOff(_ reason: FrameDropReason, drop: Drop) {
        guard let keyframe = newestKeyframe else { return giveUpAll(reason, drop: drop) }
        giveUp(through: keyframe, reason, drop: drop)
    }

    /// Gives up all frames that wait; the next one that is sent is a keyframe.
    mutating func giveUpAll(_ reason: FrameDropReason, drop: Drop) {
        giveUp(through: entries.count, reason, drop: drop)
        gap = reason
    }

    private mutating func giveUp(through end: Int, _ reason: FrameDropReason, drop: Drop) {
        for entry in entries[..<end] {
            bytes -= entry.frame.size.bytes
            drop(entry.ticket, reason)
        }
        entries.removeSubrange(..<end)
    }

    // MARK: Subscribers

    /// Sets whether somebody receives the track; from then on, the first frame that is sent is a keyframe.
    mutating func setActive(_ isActive: Bool, at now: MonotonicInstant, drop: Drop) {
        guard isActive != self.isActive else { return }
        expire(at: now, drop: drop)
        self.isActive = isActive
        if !isActive { giveUpAll(.notWanted, drop: drop) }
    }

    /// Notes that a subscriber needs a keyframe.
    mutating func requestKeyframe() {
        isRequested = newestKeyframe == nil
    }

    /// When the source is to be asked for a keyframe; `nil` if none is needed.
    private var requestTime: MonotonicInstant? {
        guard isActive, gap != nil || isRequested else { return nil }
        return lastRequest.map { $0 + Self.requestInterval } ?? MonotonicInstant(nanoseconds: 0)
    }

    /// Whether the source is to be asked for a keyframe now: once a second while one is needed.
    mutating func takeRequest(at now: MonotonicInstant) -> Bool {
        guard let time = requestTime, time <= now else { return false }
        lastRequest = now
        return true
    }

    /// When to act although nothing has happened; `nil` for never.
    var nextDeadline: MonotonicInstant? {
        let expiry = entries.first.flatMap { isActive ? $0.arrived + Self.deadline + .milliseconds(1) : nil }
        return [expiry, requestTime].lazy.compactMap(\.self).min()
    }
}

/// Measures the rate of a source over seconds of its frames.
struct SourceRate: Sendable {
    /// The highest rate of the seconds so far, of which older ones count less; `nil` before the first second is over.
    private(set) var highest: Bitrate?

    private var start: MonotonicInstant?
    private var bytes = 0

    /// The part that is left of the highest rate after each second.
    private static let decay = 0.95

    /// Counts a frame that came at `now`.
    mutating func count(_ bytes: Int, at now: MonotonicInstant) {
        guard let start else {
            (self.start, self.bytes) = (now, bytes)
            return
        }
        let elapsed = now.duration(since: start)
        if elapsed >= .seconds(1) {
            let rate = Double(self.bytes) * 8 / elapsed.seconds
            let former = Double(highest?.bitsPerSecond ?? 0) * Self.decay
            highest = Bitrate(bitsPerSecond: Int(max(rate, former)))
            (self.start, self.bytes) = (now, 0)
        }
        self.bytes += bytes
    }
}
