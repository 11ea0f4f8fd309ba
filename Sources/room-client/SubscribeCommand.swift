import ArgumentParser
import ClientCommandLine
import Foundation
import MediaFiles
import RoomKit
import Threading

/// `room-client subscribe`: receives what others publish.
struct SubscribeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscribe",
        abstract: "Receive tracks of a room, and dump them to files that ordinary players open.",
        usage: "room-client subscribe --room <room> [<options>]",
        discussion: """
            Examples:
              room-client subscribe --room my-room --dump out
              room-client subscribe --room my-room --snapshot now.png --duration 5
              room-client subscribe --room my-room --participant robot-7 --dump out --json
              room-client subscribe --room my-room --json --status-interval 5
              room-client subscribe --room my-room --format y4m --dump - | ffplay -
              room-client subscribe --room my-room --preview
              room-client subscribe --room my-room --size 360p --fps 10 --dump out
              room-client subscribe --room my-room --window

            A dump is named out/<publisher>-<track>-<our id>.webm: one file, whatever sizes the pictures take. Beside \
            it is a log, .frames.jsonl, with a line for each frame. Check dumps with: room-client verify out

            \(ExitStatus.pointer)
            """
    )

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var previewing: PreviewOptions
    @OptionGroup var window: WindowOptions
    @OptionGroup var preferring: PreferenceOptions

    @Option(help: "Only tracks of this participant (identity or id).")
    var participant: String?

    @Option(help: "Only tracks of this name or id.")
    var track: String?

    @Option(
        help: ArgumentHelp(
            "Directory for a dump of every track; created if missing. With --format y4m or raw, - pipes one track's "
                + "pictures to standard output, and all messages go to standard error.",
            valueName: "directory"
        )
    )
    var dump: String?

    @Option(
        help: ArgumentHelp(
            "With --dump: webm (the default), ivf, y4m (raw pictures), png (one file per picture); raw (I420) with "
                + "--dump -."
        )
    )
    var format: DumpFormat?

    @Option(help: ArgumentHelp("PNG for the first picture, replaced by the newest at the end.", valueName: "file.png"))
    var snapshot: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Stop after this many seconds.", valueName: "seconds"),
        transform: { try Seconds.read($0) }
    )
    var duration: Seconds?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("With --json: the time between two status lines; 1 with --verbose.", valueName: "seconds"),
        transform: { try ReportInterval.read($0) }
    )
    var statusInterval: ReportInterval?

    func validate() throws {
        guard statusInterval == nil || connection.json else {
            throw ValidationError("--status-interval is for --json; a terminal has a live status line anyway.")
        }
        guard dump?.isEmpty != true else { throw ValidationError("--dump needs a directory, such as --dump out.") }
        try validatePipe()
        try previewing.check(isJSON: connection.json)
        guard snapshot?.lowercased().hasSuffix(".png") != false else {
            throw ValidationError("--snapshot writes PNG: give a name that ends in .png, such as --snapshot now.png.")
        }
        for (name, option) in [(participant, "--participant"), (track, "--track")] where name?.isEmpty == true {
            throw ValidationError("\(option) needs a name; leave it out to receive everything.")
        }
        guard format == nil || dump != nil else {
            throw ValidationError("--format is the dump's; add --dump DIRECTORY, or leave --format out.")
        }
        try window.check(
            isDumped: dump != nil,
            hasSnapshot: snapshot != nil,
            previewing.preview,
            preferring,
            connection
        )
    }

    /// Whether the pictures of one track go to standard output.
    private var isPiped: Bool { dump == "-" }

    /// Whether the lines on standard output are all that comes of this command, so that it ends with their reader.
    private var hasOnlyLines: Bool { dump == nil && snapshot == nil && !previewing.preview }

    private func validatePipe() throws {
        guard isPiped else {
            guard format != .raw || dump == nil else {
                throw ValidationError("--format raw is for a pipe: --dump -; for files, choose --format y4m.")
            }
            return
        }
        guard format?.ofPipes != nil else {
            throw ValidationError(
                "Only raw pictures can be piped: add --format y4m or raw; or give a directory, such as --dump out."
            )
        }
        guard isatty(STDOUT_FILENO) == 0 else {
            throw ValidationError("Pictures cannot be piped to a terminal: add a reader, such as | ffplay -.")
        }
    }

    func run() async throws {
        try window.show(connection.joining, participant: participant, track: track, duration: duration)
        if isPiped { Terminal.leaveOutputToPictures() }
        try await reportingErrors(isJSON: connection.json) {
            // A directory or file that cannot be written is reported now rather than with the first picture.
            let directory = isPiped ? nil : dump
            if let directory { try TrackRecorder.prepareDirectory(directory) }
            let snapshot = try snapshot.map { path throws(RecordingError) in try PNGSnapshotRenderer(path: path) }
            let pipe = isPiped ? format?.ofPipes.map { VideoPipeRenderer(format: $0) } : nil
            let reporter = Reporter(isJSON: connection.json)
            var options = connection.connectOptions
            options.isAutomaticSubscriptionEnabled = participant == nil && track == nil && !isPiped
            let stop = StopReasons()
            guard let room = try await stop.join(options, reportingTo: reporter) else {
                let summary = SubscriberSummary(tracks: [], tracksOmitted: 0)
                return reporter.reportSummary(summary, Reporter.endedBeforeJoining)
            }
            let own = room.localParticipant
            reporter.report(
                ConnectedEvent(room),
                "Joined \(room.name) as \(own.identity). Ctrl-C ends it."
            )
            let screen = try await previewing.begin()
            defer { Terminal.endPreview() }
            let reception = Reception(
                recorderID: own.sid,
                directory: directory,
                format: format?.ofFiles ?? .webm,
                snapshot: snapshot,
                presenter: pipe ?? screen,
                reporter: reporter
            )
            try await receive(in: room, with: reception, piping: pipe, reporter, until: stop)
        }
    }

    private func receive(
        in room: Room,
        with reception: Reception,
        piping pipe: VideoPipeRenderer?,
        _ reporter: Reporter,
        until stop: StopReasons
    ) async throws {
        let events = Task { await follow(room, with: reception, reporter, endingWith: stop) }
        let hint = Task {
            try await Task.sleep(for: .seconds(1))
            if reception.isEmpty, let words = await waitingWords(about: room) { reporter.say(words) }
        }
        defer { hint.cancel() }
        let progress = Task {
            while true {
                try await Task.sleep(for: .seconds(1))
                if reporter.showsStatus { reporter.status(reception.statusLine()) }
                if reception.reportFailures() { stop.end(.recording) }
                if pipe?.isOver == true || (hasOnlyLines && Terminal.isReaderGone) { stop.end(.output) }
            }
        }
        let statusInterval = statusInterval?.duration ?? (connection.verbose ? .seconds(1) : nil)
        let statuses = Task {
            while let statusInterval {
                try await Task.sleep(for: statusInterval)
                reporter.report(reception.status(every: statusInterval), nil)
            }
        }
        await considerAll(of: room, for: reception)
        let ending = await stop.wait(for: duration?.duration)
        progress.cancel()
        statuses.cancel()
        await room.disconnect()
        await events.value
        Terminal.endPreview()
        reporter.endStatus()
        let summary = await reception.finish()
        var status: ExitStatus?
        if case .session(let error?) = ending {
            reporter.reportOnce(FailureEvent(error))
            status = ExitStatus(error)
        } else if let error = reception.error {
            status = ExitStatus(error)
        } else if let path = reception.snapshotWithoutPicture {
            let advice = "check that somebody publishes in \(room.name)"
            reporter.reportFailure(FailureEvent("No picture came for \(path); \(advice)."))
            status = .unavailable
        }
        reporter.reportSummary(summary, summary.words)
        if let status { throw ExitCode(status.rawValue) }
    }

    /// Why nothing is received yet, for somebody who waits; `nil` if tracks are on their way.
    private func waitingWords(about room: Room) async -> String? {
        var tracks: [String] = []
        for participant in await room.remoteParticipants {
            tracks += participant.videoTracks.map { "\(participant.identity)/\($0.name)" }
        }
        guard !tracks.isEmpty else { return "Nobody publishes in \(room.name) yet; waiting." }
        let filters = [participant.map { "--participant \($0)" }, track.map { "--track \($0)" }].compactMap(\.self)
        guard !filters.isEmpty else { return nil }
        let listed = tracks.prefix(5).joined(separator: ", ") + (tracks.count > 5 ? ", …" : "")
        return "No track matches \(filters.joined(separator: " ")) yet; waiting. There are: \(listed)."
    }

    /// Follows the room until its session is over.
    private func follow(
        _ room: Room,
        with reception: Reception,
        _ reporter: Reporter,
        endingWith stop: StopReasons
    ) async {
        for await event in room.events {
            switch event {
            case .trackPublished(let track, let participant):
                if let preferences = preferring.preferences { await room.setPreferences(preferences, of: track) }
                await consider(track, of: participant, in: room, for: reception)
            case .trackSubscribed(let track, let participant): reception.begin(track, of: participant)
            case .trackUnsubscribed(let track, _): reception.interrupt(track)
            case .trackUnpublished(let track, _):
                reception.end(track)
                if reception.abandon(track) { await considerAll(of: room, for: reception) }
            case .trackSubscriptionFailed(let track, let participant, let error):
                reporter.reportFailure(FailureEvent(error, track, of: participant))
                reception.giveUp(track, mayCome: error.code == .tooManyTracks)
                if reception.abandon(track) { await considerAll(of: room, for: reception) }
            case .requestRefused(let error): reporter.reportFailure(FailureEvent(error))
            case .eventsMissed(let count):
                reporter.reportMissed(count)
                await makeUp(for: reception, in: room)
            case .disconnected(let error):
                reporter.reportDisconnection(error)
                stop.end(.session(error))
            case .participantConnected(let participant):
                if connection.verbose { reporter.reportJoining(of: participant) }
            case .participantDisconnected(let participant):
                if connection.verbose { reporter.reportLeaving(of: participant) }
            case .trackSwitchedOff(let track, let participant, let reason):
                reporter.report(
                    TrackSwitchEvent("trackSwitchedOff", track, of: participant, reason),
                    "\"\(track.name)\" of \(track.publisherIdentity) is not sent for now: the network does not carry it."
                )
            case .trackSwitchedOn(let track, let participant):
                reporter.report(
                    TrackSwitchEvent("trackSwitchedOn", track, of: participant),
                    "\"\(track.name)\" of \(track.publisherIdentity) is sent again."
                )
            case .trackFrozen(let track, let participant):
                reporter.report(
                    TrackFreezeEvent("trackFrozen", track, of: participant),
                    "\"\(track.name)\" of \(track.publisherIdentity) is frozen."
                )
            case .trackUnfrozen(let track, let participant, let duration):
                reporter.report(
                    TrackFreezeEvent("trackUnfrozen", track, of: participant, duration),
                    unfrozenWords(track, after: duration)
                )
            case .trackDimensionsChanged(let track, let participant, let size):
                reporter.report(DimensionsEvent(track, of: participant, size), nil)
            case .networkQualityChanged(let participant, let level):
                reporter.report(NetworkQualityEvent(participant, level), nil)
            case .trackEnabled(let track, _): reception.reportPause(of: track, isPaused: false)
            case .trackDisabled(let track, _): reception.reportPause(of: track, isPaused: true)
            case .localTrackFailed, .localTrackInterrupted, .localTrackInterruptionEnded,
                .localTrackDimensionsChanged, .localTrackWarning, .localTrackFinished:
                break
            }
        }
    }

    /// Makes up for events that were missed, by the tracks that the room has now.
    ///
    /// Events that still wait may tell the same once more, and `reception` heeds only what is new to it.
    private func makeUp(for reception: Reception, in room: Room) async {
        let present = await room.remoteParticipants.flatMap { participant in
            participant.videoTracks.map { (track: $0, participant: participant, isSubscribed: $0.isSubscribed) }
        }
        // The end of the session ends all tracks, and is told by an event that is not missed.
        guard await room.state == .connected else { return }
        reception.makeUp(with: present)
        await considerAll(of: room, for: reception)
    }

    /// Considers all tracks of the room.
    private func considerAll(of room: Room, for reception: Reception) async {
        for participant in await room.remoteParticipants {
            for track in participant.videoTracks {
                if let preferences = preferring.preferences { await room.setPreferences(preferences, of: track) }
                await consider(track, of: participant, in: room, for: reception)
            }
        }
    }

    /// Subscribes to a track that matches `--participant` and `--track`, if either is given; only one, for a pipe.
    private func consider(
        _ track: RemoteVideoTrack,
        of participant: RemoteParticipant,
        in room: Room,
        for reception: Reception
    ) async {
        guard self.participant != nil || self.track != nil || isPiped else { return }
        if let name = self.participant, name != participant.identity, name != participant.sid { return }
        if let name = self.track, name != track.name, name != track.sid { return }
        if isPiped, !reception.claim(track) { return }
        await room.subscribe(to: track)
    }
}
