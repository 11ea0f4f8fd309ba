import MediaCore
import Threading

/// Counts each picture of a track as encoded or dropped; a picture may go to several encodings.
///
/// A picture counts as encoded if any encoding encoded it. Otherwise it counts once as dropped, for the reason of the
/// encoding that dropped it last. So captured = encoded + dropped once no picture is left.
final class PictureTally: Sendable {
    /// The counts of a track.
    struct Counts: Sendable {
        var framesCaptured = 0
        /// Pictures that were captured before and are shown again; part of `framesCaptured`.
        var framesRepeated = 0
        var framesEncoded = 0
        var framesDropped = FrameDropCounts()
    }

    /// A picture that encodings still have.
    private struct Open: Sendable {
        var ticket: UInt64
        var encodings: Int
        var isEncoded = false
    }

    private struct State: Sendable {
        var counts = Counts()
        var nextTicket: UInt64 = 0
        /// At most two for each encoding: one waits, one is being encoded.
        var open: [Open] = []
    }

    private let state = Monitor(State())

    /// Creates counts of zero.
    init() {
        state.withLock { $0.open.reserveCapacity(16) }
    }

    var counts: Counts { state.withLock { $0.counts } }

    /// Counts a captured picture that goes to a number of encodings.
    ///
    /// - Returns: The picture's number, for one call of `encoded` or `dropped` by each encoding.
    func captured(for encodings: Int) -> UInt64 {
        state.withLock { state in
            state.counts.framesCaptured += 1
            defer { state.nextTicket += 1 }
            state.open.append(Open(ticket: state.nextTicket, encodings: encodings))
            return state.nextTicket
        }
    }

    /// Counts a picture that one encoding shows again, as `captured(for:)` counts a new one.
    func repeated() -> UInt64 {
        state.withLock { $0.counts.framesRepeated += 1 }
        return captured(for: 1)
    }

    /// Counts a captured picture that goes to no encoding.
    func capturedAndDropped(_ reason: FrameDropReason) {
        state.withLock { state in
            state.counts.framesCaptured += 1
            state.counts.framesDropped[reason] += 1
        }
    }

    /// Notes that an encoding has encoded a picture.
    func encoded(_ ticket: UInt64) {
        conclude(ticket, nil)
    }

    /// Notes that an encoding does not encode a picture.
    func dropped(_ loss: FrameSlot.Loss) {
        conclude(loss.ticket, loss.reason)
    }

    private func conclude(_ ticket: UInt64, _ reason: FrameDropReason?) {
        state.withLock { state in
            guard let index = state.open.firstIndex(where: { $0.ticket == ticket }) else { return }
            if reason == nil, !state.open[index].isEncoded {
                state.open[index].isEncoded = true
                state.counts.framesEncoded += 1
            }
            state.open[index].encodings -= 1
            guard state.open[index].encodings == 0 else { return }
            if let reason, !state.open[index].isEncoded { state.counts.framesDropped[reason] += 1 }
            state.open.remove(at: index)
        }
    }
}
