import Foundation
import RoomKit
import Threading

/// The tracks that are received, and their recordings.
///
/// When a track has ended, only its numbers for the summary are kept.
final class Reception: Sendable {
    private struct Item: Sendable {
        var track: RemoteVideoTrack
        var participant: RemoteParticipant
        var recorder: TrackRecorder?
        /// Whether the last report of it is that it is received.
        var isReceived = true
        /// Whether the last report of it is that its publisher has paused it.
        var isPaused = false
        /// Whether its recording is being completed.
        var isEnding = false
        /// Whether a failure of the recording has been reported.
        var isFailureReported = false
    }

    private struct State: Sendable {
        var items: [Item] = []
        var ended: [SubscriberSummary.Track] = []
        var endedOmitted = 0
        /// Recordings that are being completed.
        var endings: [Int: Task<Void, Never>] = [:]
        var nextEnding = 0
        var failure: RecordingError?
        /// Whether a failure of the snapshot has been reported.
        var isSnapshotFailureReported = false
        /// The one track that is received for a pipe.
        var claimed: RemoteVideoTrack?
        /// Tracks that could not be received; they are not claimed again.
        var failed: [RemoteVideoTrack] = []
        /// The track that `presenter` shows.
        var shown: RemoteVideoTrack?
    }

    /// The largest number of ended tracks that the summary lists; each takes less than a kilobyte.
    private static let maximumListed = 1000

    private let recorderID: String
    private let directory: String?
    private let format: TrackRecorder.Format
    private let snapshot: PNGSnapshotRenderer?
    private let presenter: (any VideoRenderer)?
    private let reporter: Reporter
    private let state = Monitor(State())

    init(
        recorderID: String,
        directory: String?,
        format: TrackRecorder.Format,
        snapshot: PNGSnapshotRenderer?,
        presenter: (any VideoRenderer)?,
        reporter: Reporter
    ) {
        self.recorderID = recorderID
        self.directory = directory
        self.format = format
        self.snapshot = snapshot
        self.presenter = presenter
        self.reporter = reporter
    }

    /// Whether no track has been received so far.
    var isEmpty: Bool { state.withLock { $0.items.isEmpty && $0.ended.isEmpty } }

    /// The first error of a recording, or else of the snapshot.
    var error: (any Error)? {
        state.withLock { $0.failure } ?? snapshot?.error ?? (presenter as? VideoPipeRenderer)?.failure
    }

    /// The path of the snapshot, if no picture arrived for it.
    var snapshotWithoutPicture: String? {
        snapshot.flatMap { $0.isEmpty ? $0.path : nil }
    }

    /// The status for `--json`, which is written every `interval`.
    func status(every interval: Duration) -> SubscriberStatus {
        let tracks = state.withLock { $0.items.map(\.track) }
        return SubscriberStatus(interval: interval.seconds, tracks: tracks.map { SubscriberStatus.Track($0) })
    }

    /// Reports that a track is received, and whether it is paused, and begins to record it; does nothing if all was done.
    func begin(_ track: RemoteVideoTrack, of participant: RemoteParticipant) {
        let (isKnown, isReported) = state.withLock { state in
            guard let index = state.items.firstIndex(where: { $0.track === track }) else { return (false, false) }
            defer { state.items[index].isReceived = true }
            return (true, state.items[index].isReceived)
        }
        if !isReported {
            reporter.report(
                TrackEvent("trackSubscribed", track, of: participant),
                "Receiving \"\(track.name)\" of \(track.publisherIdentity) (\(track.publishedDimensions))."
            )
        }
        if isKnown { presentNext() } else { record(track, of: participant) }
        reportPause(of: track, isPaused: !track.isEnabled)
    }

    /// Reports that the publisher of a track has paused it, or goes on, if it is received and the last report differs.
    func reportPause(of track: RemoteVideoTrack, isPaused: Bool) {
        let participant = state.withLock { state -> RemoteParticipant? in
            guard let index = state.items.firstIndex(where: { $0.track === track && $0.isReceived }),
                state.items[index].isPaused != isPaused
            else { return nil }
            state.items[index].isPaused = isPaused
            return state.items[index].participant
        }
        guard let participant else { return }
        let words = isPaused ? "is paused by its publisher" : "goes on"
        reporter.report(
            TrackPauseEvent(isPaused ? "trackDisabled" : "trackEnabled", track, of: participant),
            "\"\(track.name)\" of \(track.publisherIdentity) \(words)."
        )
    }

    private func record(_ track: RemoteVideoTrack, of participant: RemoteParticipant) {
        if let snapshot { track.addRenderer(snapshot) }
        var recorder: TrackRecorder?
        if let directory {
            do throws(RecordingError) {
                recorder = try TrackRecorder(track: track, directory: directory, recorderID: recorderID, format: format)
            } catch {
                report(error)
            }
        }
        state.withLock { $0.items.append(Item(track: track, participant: participant, recorder: recorder)) }
        presentNext()
    }

    /// Reports that a track is not received any more; its recording goes on if it is received again.
    func interrupt(_ track: RemoteVideoTrack) {
        let participant = state.withLock { state -> RemoteParticipant? in
            guard let index = state.items.firstIndex(where: { $0.track === track && $0.isReceived }) else { return nil }
            state.items[index].isReceived = false
            return state.items[index].participant
        }
        guard let participant else { return }
        reporter.report(
            TrackEvent("trackUnsubscribed", track, of: participant),
            "\"\(track.name)\" of \(track.publisherIdentity) is over."
        )
    }

    /// Makes up for events that were missed.
    ///
    /// It ends the tracks that are not among `present`, the tracks that are published now, and begins those that are
    /// received now.
    func makeUp(with present: [(track: RemoteVideoTrack, participant: RemoteParticipant, isSubscribed: Bool)]) {
        let known = state.withLock { state in
            state.items.map(\.track) + (state.claimed.map { [$0] } ?? []) + state.failed
        }
        for track in known where !present.contains(where: { $0.track === track }) {
            interrupt(track)
            end(track)
            _ = abandon(track)
        }
        for item in present {
            if item.isSubscribed { begin(item.track, of: item.participant) } else { interrupt(item.track) }
        }
    }

    /// Claims `track` as the only one that is received; `false` if another one is.
    func claim(_ track: RemoteVideoTrack) -> Bool {
        state.withLock { state in
            guard !state.failed.contains(where: { $0 === track }) else { return false }
            state.claimed = state.claimed ?? track
            return state.claimed === track
        }
    }

    /// Gives up the claim on `track`; returns whether there was one.
    func abandon(_ track: RemoteVideoTrack) -> Bool {
        state.withLock { state in
            guard state.claimed === track else { return false }
            state.claimed = nil
            return true
        }
    }

    /// Shows another track instead of one that cannot be received, and claims that one no more unless it `mayCome`.
    func giveUp(_ track: RemoteVideoTrack, mayCome: Bool) {
        endPresenting(track)
        if !mayCome { state.withLock { $0.failed.append(track) } }
    }

    /// Shows the oldest track that is received, unless one is shown.
    private func presentNext() {
        guard let presenter else { return }
        let track = state.withLock { state -> RemoteVideoTrack? in
            guard state.shown == nil, let next = state.items.first(where: { $0.isReceived && !$0.isEnding }) else {
                return nil
            }
            state.shown = next.track
            return next.track
        }
        guard let track else { return }
        let pipe = presenter as? VideoPipeRenderer
        pipe?.prepare(dimensions: track.publishedDimensions, framesPerSecond: track.frameRate)
        track.addRenderer(presenter)
    }

    /// Ends showing a track, in favour of the next; without one, the picture goes.
    private func endPresenting(_ track: RemoteVideoTrack) {
        guard let presenter else { return }
        let isShown = state.withLock { state in
            defer { if state.shown === track { state.shown = nil } }
            return state.shown === track
        }
        guard isShown else { return }
        track.removeRenderer(presenter)
        (presenter as? PreviewScreen)?.clear()
        presentNext()
    }

    /// Completes the files of a track that has ended and removes the track, in the background.
    func end(_ track: RemoteVideoTrack) {
        state.withLock { state in
            state.failed.removeAll { $0 === track }
            guard let index = state.items.firstIndex(where: { $0.track === track && !$0.isEnding }) else { return }
            state.items[index].isEnding = true
            let number = state.nextEnding
            state.nextEnding += 1
            state.endings[number] = Task {
                await finish(track)
                self.state.withLock { $0.endings[number] = nil }
            }
        }
    }

    private func finish(_ track: RemoteVideoTrack) async {
        await track.ended()
        guard let item = state.withLock({ state in state.items.first { $0.track === track } }) else { return }
        await item.recorder?.ended()
        if let snapshot { track.removeRenderer(snapshot) }
        let recording = item.recorder?.statistics
        if let recording {
            let event = RecordingEvent(track, recording)
            reporter.report(event, event.words)
        }
        let isReported = state.withLock { state in
            let isReported = state.items.first { $0.track === track }?.isFailureReported ?? false
            state.items.removeAll { $0.track === track }
            state.ended.append(SubscriberSummary.Track(track, recording))
            if state.ended.count > Self.maximumListed {
                state.ended.removeFirst()
                state.endedOmitted += 1
            }
            return isReported
        }
        endPresenting(track)
        if let error = recording?.error, !isReported { report(error) }
    }

    /// Reports failed recordings and the snapshot's failure, each once, soon after the failure, so that users do not find
    /// out an hour later.
    ///
    /// - Returns: Whether nothing is left to do, because all recordings have failed and no snapshot is wanted.
    func reportFailures() -> Bool {
        let (failures, isAll) = state.withLock { state in
            var failures: [RecordingError] = []
            for index in state.items.indices where !state.items[index].isFailureReported {
                guard let error = state.items[index].recorder?.statistics.error else { continue }
                state.items[index].isFailureReported = true
                failures.append(error)
            }
            let isAll = state.items.allSatisfy { $0.isFailureReported || $0.recorder == nil }
            return (failures, !state.items.isEmpty && isAll)
        }
        for error in failures { report(error) }
        reportSnapshotFailure()
        return isAll && directory != nil && snapshot == nil && presenter == nil
    }

    private func reportSnapshotFailure() {
        guard let error = snapshot?.error else { return }
        let isNew = state.withLock { state in
            defer { state.isSnapshotFailureReported = true }
            return !state.isSnapshotFailureReported
        }
        if isNew { reporter.reportFailure(FailureEvent(error)) }
    }

    private func report(_ error: RecordingError) {
        reporter.reportFailure(FailureEvent(error))
        state.withLock { $0.failure = $0.failure ?? error }
    }

    /// The status as one line of text.
    func statusLine() -> String {
        let tracks = state.withLock { $0.items.map(\.track) }
        return tracks.isEmpty ? "waiting for tracks" : tracks.map(\.statusWords).joined(separator: "   ")
    }

    /// Completes the recordings and returns the summary, after the session's end.
    func finish() async -> SubscriberSummary {
        while let ending = state.withLock({ $0.endings.values.first }) { await ending.value }
        for item in state.withLock({ $0.items }) { item.recorder?.stop() }
        try? snapshot?.writeNewest()
        _ = reportFailures()
        if let snapshot, snapshot.error == nil, !snapshot.isEmpty {
            Terminal.note("The newest picture is in \(snapshot.path).")
        }
        await (presenter as? VideoPipeRenderer)?.finishPiping(reporter)
        return state.withLock { state in
            let last = state.items.map { SubscriberSummary.Track($0.track, $0.recorder?.statistics) }
            return SubscriberSummary(tracks: state.ended + last, tracksOmitted: state.endedOmitted)
        }
    }
}
