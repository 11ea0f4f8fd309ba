import ArgumentParser
import Foundation
import MediaFiles
import RoomKit
import Threading

/// `room-client subscribe`: receives what others publish.
struct SubscribeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscribe",
        abstract: "Receive tracks of a room, and dump them to files that ordinary players open.",
        discussion: """
            Examples:
              room-client subscribe --room my-room --dump out
              room-client subscribe --room my-room --participant robot-7 --snapshot now.png --duration 5
              room-client subscribe --room my-room --dump out --format ivf --json

            A dump is out/<publisher>-<track>-<our id>.webm, and beside it .frames.jsonl with a line for each frame.
            Check it with: room-client verify out

            \(ExitStatus.table)
            """
    )

    @OptionGroup var connection: ConnectionOptions

    @Option(help: "Only tracks of this participant (identity or id).")
    var participant: String?

    @Option(help: "Only tracks of this name or id.")
    var track: String?

    @Option(help: ArgumentHelp("Write every track to a file in this directory; it is made.", valueName: "directory"))
    var dump: String?

    @Option(help: "With --dump: webm (the default), ivf, y4m (raw pictures) or png (one file a picture).")
    var format: TrackRecorder.Format?

    @Option(help: ArgumentHelp("Write the first picture to this file, at the end the newest.", valueName: "file.png"))
    var snapshot: String?

    @Option(help: ArgumentHelp("Stop after so many seconds.", valueName: "seconds"))
    var duration: Seconds?

    func validate() throws {
        guard dump?.isEmpty != true else { throw ValidationError("--dump needs a directory, such as --dump out.") }
        guard snapshot?.isEmpty != true else { throw ValidationError("--snapshot needs a file, such as now.png.") }
        guard format == nil || dump != nil else {
            throw ValidationError("--format is the dump's; add --dump DIRECTORY, or leave --format out.")
        }
    }

    func run() async throws {
        try await reportingErrors {
            // Whatever cannot be written is better known now than when the first picture comes.
            if let dump { try TrackRecorder.prepareDirectory(dump) }
            let snapshot = try snapshot.map { path throws(MediaFileError) in try SnapshotRenderer(path: path) }
            let reporter = Reporter(isJSON: connection.json)
            var options = connection.connectOptions
            options.isAutomaticSubscriptionEnabled = participant == nil && track == nil
            let stop = RunLength()
            let room = try await RoomClient.connect(options: options)
            await stop.heedSignals()
            let own = room.localParticipant
            reporter.report(
                ConnectedEvent(room),
                "Joined \(room.name) as \(own.identity). Ctrl-C ends it."
            )
            let reception = Reception(
                recorderID: own.sid,
                directory: dump,
                format: format ?? .webm,
                snapshot: snapshot
            )
            try await receive(in: room, with: reception, reporter, until: stop)
        }
    }

    private func receive(
        in room: Room,
        with reception: Reception,
        _ reporter: Reporter,
        until stop: RunLength
    ) async throws {
        let events = Task { await follow(room, with: reception, reporter, endingWith: stop) }
        let status = Task {
            while true {
                try await Task.sleep(for: .seconds(1))
                reporter.status(reception.statusLine())
                if connection.verbose { reporter.report(reception.status, nil) }
                if reception.complainOfFailures() { stop.end(.recording) }
            }
        }
        for participant in await room.remoteParticipants {
            for track in participant.videoTracks { await consider(track, of: participant, in: room) }
        }
        let ending = await stop.wait(for: duration?.duration)
        status.cancel()
        await room.disconnect()
        await events.value
        reporter.endStatus()
        let summary = reception.finish()
        reporter.report(summary, summary.words)
        _ = reception.complainOfFailures()
        if case .session(let error?) = ending { throw error }
        if let error = reception.error { throw ExitCode(ExitStatus(error).rawValue) }
        if let path = reception.snapshotWithoutPicture {
            Terminal.complain("No picture came for \(path); does anybody publish in \(room.name)?")
            throw ExitCode(ExitStatus.unavailable.rawValue)
        }
    }

    /// Follows the room until its session is over.
    private func follow(
        _ room: Room,
        with reception: Reception,
        _ reporter: Reporter,
        endingWith stop: RunLength
    ) async {
        for await event in room.events {
            switch event {
            case .trackPublished(let track, let participant):
                await consider(track, of: participant, in: room)
            case .trackSubscribed(let track, let participant):
                reporter.report(
                    TrackEvent("trackSubscribed", track, of: participant),
                    "Receiving \"\(track.name)\" of \(track.publisherIdentity) (\(track.dimensions))."
                )
                reception.begin(track)
            case .trackUnsubscribed(let track, let participant):
                reporter.report(
                    TrackEvent("trackUnsubscribed", track, of: participant),
                    "\"\(track.name)\" of \(track.publisherIdentity) is over."
                )
            case .trackSubscriptionFailed(let track, _, let error):
                Terminal.complain("\"\(track.name)\" of \(track.publisherIdentity) is not received. \(error)")
            case .requestRefused(let error): Terminal.complain("\(error)")
            case .disconnected(let error): stop.end(.session(error))
            case .participantConnected(let participant):
                if connection.verbose { reporter.reportJoining(of: participant) }
            case .participantDisconnected(let participant):
                if connection.verbose { reporter.reportLeaving(of: participant) }
            case .trackUnpublished, .trackEnabled, .trackDisabled, .localTrackFailed: break
            }
        }
    }

    /// Asks for a track, where tracks are chosen by name.
    private func consider(_ track: RemoteVideoTrack, of participant: RemoteParticipant, in room: Room) async {
        guard self.participant != nil || self.track != nil else { return }
        if let name = self.participant, name != participant.identity, name != participant.sid { return }
        if let name = self.track, name != track.name, name != track.sid { return }
        await room.subscribe(to: track)
    }
}

/// The tracks that are received, and what becomes of them.
final class Reception: Sendable {
    private struct Item: Sendable {
        var track: RemoteVideoTrack
        var recorder: TrackRecorder?
        /// Whether a failure of the recording has been complained of.
        var isFailureSaid = false
        var shownBefore = 0
    }

    private let recorderID: String
    private let directory: String?
    private let format: TrackRecorder.Format
    private let snapshot: SnapshotRenderer?
    private let items = Monitor<[Item]>([])
    private let failure = Monitor<RecordingError?>(nil)

    init(recorderID: String, directory: String?, format: TrackRecorder.Format, snapshot: SnapshotRenderer?) {
        self.recorderID = recorderID
        self.directory = directory
        self.format = format
        self.snapshot = snapshot
    }

    /// Says which recordings have failed, each once, as it happens: nobody should find out an hour later.
    ///
    /// - Returns: Whether nothing is left to do: all recordings have failed, and nothing else is wanted.
    func complainOfFailures() -> Bool {
        let (failures, isAll) = items.withLock { items in
            var failures: [RecordingError] = []
            for index in items.indices where !items[index].isFailureSaid {
                guard let error = items[index].recorder?.statistics.error else { continue }
                items[index].isFailureSaid = true
                failures.append(error)
            }
            return (failures, !items.isEmpty && items.allSatisfy { $0.isFailureSaid || $0.recorder == nil })
        }
        for error in failures {
            Terminal.complain("\(error)")
            failure.withLock { $0 = $0 ?? error }
        }
        return isAll && directory != nil && snapshot == nil
    }

    /// What a recording or the snapshot failed with.
    var error: (any Error)? {
        failure.withLock { $0 } ?? snapshot?.failure
    }

    /// Where the snapshot was to go, if no picture came for it.
    var snapshotWithoutPicture: String? {
        snapshot.flatMap { $0.isEmpty ? $0.path : nil }
    }

    /// How it goes, for programs.
    var status: SubscriberStatus {
        SubscriberStatus(tracks: items.withLock { $0.map(\.track) }.map { SubscriberStatus.Track($0) })
    }

    /// Begins to record a track.
    func begin(_ track: RemoteVideoTrack) {
        guard !items.withLock({ items in items.contains { $0.track === track } }) else { return }
        if let snapshot { track.addRenderer(snapshot) }
        var recorder: TrackRecorder?
        if let directory {
            do throws(RecordingError) {
                recorder = try TrackRecorder(
                    track: track,
                    directory: directory,
                    recorderID: recorderID,
                    format: format
                )
            } catch {
                Terminal.complain("\(error)")
                failure.withLock { $0 = error }
            }
        }
        items.withLock { items in items.append(Item(track: track, recorder: recorder)) }
    }

    /// How it goes, in a line.
    func statusLine() -> String {
        let now = items.withLock { items in
            items.indices.map { index -> String in
                let statistics = items[index].track.statistics
                let fps = statistics.framesDecoded - items[index].shownBefore
                items[index].shownBefore = statistics.framesDecoded
                let clock = clockWords(statistics.clock.rawValue, errorMs: statistics.ageErrorBound.milliseconds)
                let age = statistics.frameAge.map { String(format: "  age p95 %.0f ms, ", $0.p95.milliseconds) + clock }
                return "\(items[index].track.publisherIdentity)/\(items[index].track.name)  \(fps) fps\(age ?? "")"
            }
        }
        return now.isEmpty ? "waiting for tracks" : now.joined(separator: "   ")
    }

    /// Completes the recordings and sums up.
    func finish() -> SubscriberSummary {
        let items = items.withLock { $0 }
        for item in items {
            item.recorder?.stop()
            guard let error = item.recorder?.statistics.error else { continue }
            failure.withLock { $0 = $0 ?? error }
        }
        snapshot?.finish()
        if let failure = snapshot?.failure { Terminal.complain("\(failure)") }
        return SubscriberSummary(tracks: items.map { SubscriberSummary.Track($0.track, $0.recorder?.statistics) })
    }
}
