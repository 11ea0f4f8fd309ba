import Adaptation
import MediaCore
import RoomProtocol
import Threading

/// Shares what one connection can carry among everything that is published on it.
///
/// It is one short lock around the `UplinkController`, which decides. The loop's thread reports what the socket takes
/// and what the server acknowledges. Each encoding's thread asks what to do with its newest picture. Encodings that
/// have to wait are nudged when the next report comes.
///
/// The clock is read under the lock, so that the controller sees times that never go back.
final class Uplink: Sendable {
    /// Names an encoding on this connection; never used again.
    typealias Seat = Int

    /// An encoding, as the connection knows it.
    fileprivate struct Entry: Sendable {
        let seat: Seat
        let lane: UplinkController.LaneID
        let nudge: @Sendable () -> Void
        let queue: SendQueue
        var bounds: LayerBounds?
        var isWaiting = false
    }

    fileprivate struct State: Sendable {
        var controller = UplinkController(Uplink.settings)
        var entries: [Entry] = []
        var nextSeat = 0
        /// The kernel's count of packets that the server has had, while there is a connection.
        var deliveredPackets: (@Sendable () -> UInt32?)?
    }

    /// What an encoding does with its newest picture.
    enum Decision: Sendable {
        /// Encode it.
        case encode(EncodingTarget)
        /// Keep it until a nudge comes, or this time.
        case wait(until: MonotonicInstant?, WaitReason)
        /// Nobody receives the encoding.
        case notWanted
    }

    fileprivate static let settings = UplinkController.Settings()

    private let state = Monitor(State())

    /// The uplink of a connection that is about to open.
    init() {}

    // MARK: Recording

    /// Begins to record the controller's inputs, for `takeRecords`.
    ///
    /// - Returns: The controller's settings, which belong to the record.
    func beginRecording() -> UplinkController.Settings {
        state.withLock { $0.controller.isRecording = true }
        return Self.settings
    }

    /// Records nothing more, and forgets what was not taken.
    func endRecording() {
        var rest: [AdaptationLog.Entry] = []
        state.withLock { state in
            state.controller.isRecording = false
            state.controller.takeRecords(into: &rest)
        }
    }

    /// Swaps `entries` for the inputs that were recorded since the last call.
    ///
    /// - Returns: Whether recording goes on; it ends when too many entries were left here.
    func takeRecords(into entries: inout [AdaptationLog.Entry]) -> Bool {
        var taken: [AdaptationLog.Entry] = []
        swap(&taken, &entries)
        let isRecording = state.withLock { state in
            state.controller.takeRecords(into: &taken)
            return state.controller.isRecording
        }
        swap(&taken, &entries)
        return isRecording
    }

    // MARK: Encodings, from any thread

    /// Adds an encoding, which nobody wants yet.
    ///
    /// `nudge` makes its thread ask again. It is called under the uplink's lock, and must return at once.
    func add(
        _ lane: UplinkController.Lane,
        queue: SendQueue,
        nudge: @escaping @Sendable () -> Void
    ) -> Seat {
        state.withLock { state in
            let id = state.controller.add(lane, at: MonotonicClock.now)
            state.nextSeat += 1
            state.entries.append(Entry(seat: state.nextSeat, lane: id, nudge: nudge, queue: queue))
            return state.nextSeat
        }
    }

    /// Removes an encoding; the others may have more from now on.
    func remove(_ seat: Seat) {
        state.withLock { state in
            guard let index = state.index(of: seat) else { return }
            state.controller.remove(state.entries.remove(at: index).lane, at: MonotonicClock.now)
            state.nudge()
        }
    }

    /// Replaces an encoding's limits, because its pictures have another size now, or the application chose other limits.
    func replace(_ seat: Seat, with lane: UplinkController.Lane) {
        state.withLock { state in
            guard let index = state.index(of: seat) else { return }
            state.controller.replace(state.entries[index].lane, with: lane, at: MonotonicClock.now)
            state.nudge()
        }
    }

    /// Sets the highest rate and size that anybody can use of an encoding; `nil` if nobody receives it.
    func setWanted(_ bounds: LayerBounds?, of seat: Seat) {
        state.withLock { state in
            guard let index = state.index(of: seat), state.entries[index].bounds != bounds else { return }
            state.entries[index].bounds = bounds
            state.controller.setWanted(bounds, of: state.entries[index].lane, at: MonotonicClock.now)
            state.nudge()
        }
    }

    /// The state of the connection, and an encoding's share of it; `nil` if the encoding was removed.
    func status(of seat: Seat) -> (path: UplinkStatus, lane: UplinkStatus.Lane)? {
        state.withLock { state in
            guard let index = state.index(of: seat) else { return nil }
            let status = state.controller.status
            let id = state.entries[index].lane
            return status.lanes.first { $0.id == id }.map { (status, $0) }
        }
    }

    // MARK: Reports of the loop's thread

    /// Notes that the socket took a text message of `bytes`.
    func wroteText(_ bytes: Int) {
        state.withLock { $0.controller.wroteText(bytes, at: MonotonicClock.now) }
    }

    /// Notes that the socket took an acknowledgement of ours, of `bytes`.
    func wroteAcknowledgement(_ bytes: Int) {
        state.withLock { $0.controller.wroteAcknowledgement(bytes, at: MonotonicClock.now) }
    }

    /// Notes that the socket took `bytes` of an encoding.
    func wrote(_ bytes: Int, of seat: Seat) {
        state.withLock { state in
            state.noteQueue(of: seat)
            state.controller.wrote(bytes, at: MonotonicClock.now)
            state.nudge()
        }
    }

    /// Notes that queued frames of an encoding were given up.
    func gaveUp(of seat: Seat) {
        state.withLock { state in
            state.noteQueue(of: seat)
            state.nudge()
        }
    }

    /// Makes `count` the kernel's count of packets that the server has had; `nil` once the connection is closed.
    ///
    /// It is called under the uplink's lock, in silences of the server. Just after the socket was closed, it may tell
    /// nothing, or something of another socket; then nothing is sent any more.
    func setDeliveredPackets(_ count: (@Sendable () -> UInt32?)?) {
        state.withLock { $0.deliveredPackets = count }
    }

    /// Takes an acknowledgement of the server, which may have any content.
    func acknowledged(_ acknowledgement: MediaAcknowledgement) {
        state.withLock { state in
            state.controller.acknowledged(acknowledgement, at: MonotonicClock.now)
            state.nudge()
        }
    }

    // MARK: Questions and reports of an encoding's thread

    /// Whether the last keyframe of an encoding is long enough ago for one that was only asked for.
    func mayEncodeKeyframe(_ seat: Seat) -> Bool {
        state.withLock { state in
            guard let index = state.index(of: seat) else { return true }
            return state.controller.mayEncodeKeyframe(state.entries[index].lane, at: MonotonicClock.now)
        }
    }

    /// Decides what an encoding does with its newest picture; if it waits, the next report nudges its slot.
    func decide(_ seat: Seat, isNewFrame: Bool, keyframeDue: Bool) -> Decision {
        state.withLock { state in
            guard let index = state.index(of: seat) else { return .notWanted }
            let (id, queue) = (state.entries[index].lane, state.entries[index].queue)
            defer { if let share = state.controller.share(of: id) { queue.expectRate(share) } }
            // The queue is asked under the lock. Otherwise its last frame could leave between question and answer, and
            // nobody would nudge.
            state.entries[index].isWaiting = true
            let now = MonotonicClock.now
            guard queue.hasRoom else {
                if isNewFrame { state.controller.queueWasFull(id, at: now) }
                return .wait(until: nil, .network)
            }
            if state.controller.isSilent(at: now), let packets = state.deliveredPackets?() {
                state.controller.delivered(packets: packets, at: now)
            }
            switch state.controller.decide(id, isNewFrame: isNewFrame, keyframeDue: keyframeDue, at: now) {
            case .wait(let time): return .wait(until: time, state.controller.waitReason(of: id) ?? .network)
            case .encode(let target):
                state.entries[index].isWaiting = false
                return .encode(target)
            case .notWanted:
                state.entries[index].isWaiting = false
                return .notWanted
            }
        }
    }

    /// Notes the result of encoding a picture; `nil` if the encoder left the picture out.
    func encoded(_ report: EncodingReport?, of seat: Seat) {
        state.withLock { state in
            guard let index = state.index(of: seat) else { return }
            let entry = state.entries[index]
            state.controller.encoded(report, of: entry.lane, at: MonotonicClock.now)
            if report != nil { state.noteQueue(of: seat) }
        }
    }
}

extension Uplink.State {
    fileprivate func index(of seat: Uplink.Seat) -> Int? { entries.firstIndex { $0.seat == seat } }

    /// Tells the controller how much of an encoding is queued.
    ///
    /// The queue is asked under the uplink's lock: reports of two threads could otherwise arrive in the wrong order.
    fileprivate mutating func noteQueue(of seat: Uplink.Seat) {
        guard let index = index(of: seat) else { return }
        controller.queueChanged(entries[index].queue.waitingBytes, of: entries[index].lane)
    }

    /// Makes the encodings that wait ask again.
    fileprivate mutating func nudge() {
        for index in entries.indices where entries[index].isWaiting {
            entries[index].isWaiting = false
            entries[index].nudge()
        }
    }
}
