import Foundation
import ArgumentParser
import RoomKit

/// `room-client connect`: publishes this machine's video.
struct ConnectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "connect",
        abstract: "Publish this machine's camera, or another source, to a room until Ctrl-C.",
        usage: "room-client connect --room <room> [<options>]",
        discussion: """
            Examples:
              room-client connect --room my-room
              room-client connect --room my-room --source pattern --size 1280x720
              room-client connect --room my-room --device 2 --pixel-format MJPG --fps 30
              room-client connect --room my-room --source screen --window Slides
              echo "bitrate 800k" | room-client connect --room my-room --commands
              room-client connect --room my-room --source file:clip.y4m --loop --json
              ffmpeg -i clip.mp4 -pix_fmt yuv420p -f yuv4mpegpipe - | \\
                room-client connect --room my-room --source file:-
              ffmpeg -i rtsp://10.0.0.7/stream -an -pix_fmt yuv420p -f yuv4mpegpipe - | \\
                room-client connect --room my-room --source live:-
              room-client connect --room my-room --source vp8:clip.webm --loop

            \(ExitStatus.pointer)
            """
    )

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var source: SourceOptions
    @OptionGroup var previewing: PreviewOptions

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Highest bitrate, such as 800k or 2M (10k to 40M); default by size: 1.7M at 640x480, 2.5M at 1280x720.",
            valueName: "rate"
        ),
        transform: { try Bitrate.read($0) }
    )
    var maxBitrate: Bitrate?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Lowest bitrate for encoding, at most the highest one; if the network carries less, pictures are left out "
                + "instead, down to a few a second.",
            valueName: "rate"
        ),
        transform: { try Bitrate.read($0) }
    )
    var minBitrate: Bitrate?

    @Option(
        help: ArgumentHelp(
            "Whether to send smaller sizes as well, for viewers whose network does not carry the full size; default: "
                + "on from 640x480, with two CPUs or more.",
            valueName: "on|off"
        )
    )
    var simulcast: Switch?

    @Option(
        help: ArgumentHelp(
            "What to keep when the network or the CPU is too slow: framerate (smaller pictures), resolution (fewer "
                + "pictures) or balanced (some of both); default balanced, for a screen resolution.",
            valueName: "preference"
        )
    )
    var degradation: Degradation?

    @Option(
        help: ArgumentHelp(
            "TCP congestion control, such as cubic, bbr or system (the system's own); default cubic where the system "
                + "allows it. bbr carries more where packets are lost.",
            valueName: "name"
        )
    )
    var congestionControl: String?

    @Option(
        help: ArgumentHelp("Record the rate control's inputs in a new file, for `adapt replay`.", valueName: "file")
    )
    var adaptLog: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Stop after this many seconds of publishing.", valueName: "seconds"),
        transform: { try Seconds.read($0) }
    )
    var duration: Seconds?

    @Flag(
        help: ArgumentHelp(
            "Read commands from standard input, one a line.",
            discussion: "\(PublisherCommand.summary)."
        )
    )
    var commands = false

    @Option(help: ArgumentHelp("The track's name; default the kind of source.", valueName: "name"))
    var trackName: String?

    func validate() throws {
        try checkName(trackName, of: "--track-name")
        try checkEncodedSource()
        try previewing.check(isJSON: connection.json)
        if commands {
            guard !source.source.isStandardInput else {
                throw ValidationError(
                    "--commands and this --source both need standard input: name a file, or leave --commands out."
                )
            }
            guard !previewing.preview else {
                throw ValidationError("--commands and --preview both need standard input: leave one out.")
            }
        }
        if let minBitrate, let most = maxBitrate ?? source.noiseBitrate, minBitrate > most {
            throw ValidationError(
                "--min-bitrate \(minBitrate) is more than the highest rate of \(most); give a lower one."
            )
        }
        if let congestionControl, congestionControl != "system",
            !ConnectOptions.isUsable(congestionControl: congestionControl)
        {
            throw ValidationError(
                "The system does not allow --congestion-control \(congestionControl); "
                    + "/proc/sys/net/ipv4/tcp_allowed_congestion_control names what it allows."
            )
        }
        guard adaptLog != "-", adaptLog?.isEmpty != true else {
            throw ValidationError("--adapt-log needs the name of a new file, such as --adapt-log run.log.")
        }
    }

    /// Checks that nothing is to be changed about frames that are compressed already.
    private func checkEncodedSource() throws {
        guard source.source.isEncoded else { return }
        let forPictures = [
            ("--max-bitrate", maxBitrate != nil), ("--min-bitrate", minBitrate != nil),
            ("--simulcast", simulcast != nil), ("--degradation", degradation != nil),
            ("--preview", previewing.preview),
        ]
        if let option = forPictures.first(where: { $0.1 })?.0 {
            throw ValidationError("\(option) needs pictures; frames of vp8: are sent as they are, so leave it out.")
        }
    }

    func run() async throws {
        try await reportingErrors(isJSON: connection.json) {
            let stop = StopReasons()
            let made = try source.makeSource(isTransformed: !commands) { stop.end(.source($0)) }
            let track = LocalVideoTrack(source: made, name: trackName)
            // Commands change the track's transform, so that is the only one then.
            track.transform = source.trackTransform(isCameraTransformed: !commands)
            try await publish(track, until: stop)
        }
    }

    private func publish(
        _ track: LocalVideoTrack,
        until stop: StopReasons
    ) async throws {
        // A status line would erase what the user types.
        let isTyped = commands && isatty(STDIN_FILENO) == 1
        let reporter = Reporter(isJSON: connection.json, hasStatusLine: !isTyped)
        let started = ContinuousClock.now
        var options = connection.connectOptions
        // This program shows no video. A subscription would make others encode frames that nobody watches.
        options.isAutomaticSubscriptionEnabled = false
        options.adaptationLog = adaptLog
        if let congestionControl {
            options.congestionControl = congestionControl == "system" ? nil : congestionControl
        }
        guard let room = try await stop.join(options, reportingTo: reporter) else {
            let summary = PublisherSummary(track.statistics, elapsed: started.duration(to: .now))
            return reporter.reportSummary(summary, Reporter.endedBeforeJoining)
        }
        let screen = try await previewing.begin()
        defer { Terminal.endPreview() }
        if let screen { track.addRenderer(screen) }
        let participant = room.localParticipant
        reporter.report(ConnectedEvent(room), "Joined \(room.name) as \(participant.identity).")
        let events = Task { await report(room.events, to: reporter, endingWith: stop) }
        Task {
            do {
                try await participant.publish(track, options: publishOptions)
                stop.end(.published(nil))
            } catch {
                stop.end(.published(error))
            }
        }
        let patience = Task {
            try await Task.sleep(for: .seconds(2))
            reporter.say("Waiting for the first picture. Ctrl-C ends it.")
        }
        // The source can fail, or the user can stop the program, before the first picture.
        var ending = await stop.wait(for: nil)
        patience.cancel()
        var reading: Task<Void, Never>?
        if case .published(nil) = ending {
            reporter.report(PublishedEvent(track), "Publishing \(description(of: track)). Ctrl-C ends it.")
            let isWatched = reporter.showsStatus || connection.verbose
            let status = isWatched ? Task { try await showStatus(of: track, with: reporter) } : nil
            let input = commands ? try LineReader(STDIN_FILENO) : nil
            if let input { reading = Task { await apply(input, to: track, reporter) } }
            ending = await stop.wait(for: duration?.duration)
            reading?.cancel()
            status?.cancel()
            input?.stop()
        }
        // The room's event for it may come later, behind the end.
        if case .source(let error?) = ending { reporter.reportOnce(FailureEvent(error, track)) }
        await room.disconnect()
        // Leaving stops the camera, which ends a change that is under way.
        await reading?.value
        await events.value
        Terminal.endPreview()
        reporter.endStatus()
        let failure = failure(of: ending, track) ?? room.adaptationLogFailure
        if let failure { reporter.reportOnce(FailureEvent(failure)) }
        let summary = PublisherSummary(track.statistics, elapsed: started.duration(to: .now))
        reporter.reportSummary(summary, summary.words(isEncoded: source.source.isEncoded))
        if let failure { throw failure }
    }

    /// Carries out the commands that are read from standard input.
    private func apply(
        _ input: LineReader,
        to track: LocalVideoTrack,
        _ reporter: Reporter
    ) async {
        var commands = PublisherCommands(
            track: track,
            request: source.request,
            usualBitrate: source.noiseBitrate,
            reporter: reporter
        )
        await commands.run(input)
    }

    private var publishOptions: VideoPublishOptions {
        var options = VideoPublishOptions()
        options.maxBitrate = maxBitrate ?? source.noiseBitrate
        options.minBitrate = minBitrate
        options.simulcast = simulcast.map { $0 == .on }
        options.degradationPreference = degradation?.preference
        options.orientation = source.orientation
        return options
    }

    /// Reports the events of a room until they end; the session's end becomes a reason to stop.
    func report(
        _ events: some AsyncSequence<RoomEvent, Never>,
        to reporter: Reporter,
        endingWith stop: StopReasons
    ) async {
        for await event in events {
            switch event {
            case .disconnected(let error):
                reporter.reportDisconnection(error)
                stop.end(.session(error))
            case .localTrackInterrupted(let track, let error):
                let shown = source.shownMeanwhile(hasPictures: track.statistics.framesCaptured > 0)
                reporter.reportWarning(SourceEvent("interrupted", of: track, error), "\(error). \(shown)")
            case .localTrackInterruptionEnded(let track):
                let words = "The source of \"\(track.name)\" delivers pictures again."
                reporter.reportWarning(SourceEvent("interruptionEnded", of: track), words)
            case .localTrackDimensionsChanged(let track, let size):
                reporter.report(DimensionsEvent(track, size), "\"\(track.name)\" is \(size) from now on.")
            case .localTrackWarning(let track, let error):
                reporter.reportWarning(SourceEvent("warning", of: track, error), "\(error).")
            case .localTrackFailed(let track, let error): reporter.reportOnce(FailureEvent(error, track))
            case .requestRefused(let error): reporter.reportFailure(FailureEvent(error))
            case .eventsMissed(let count): reporter.reportMissed(count)
            case .networkQualityChanged(let participant, let level):
                reporter.report(NetworkQualityEvent(participant, level), nil)
            case .participantConnected(let participant) where connection.verbose:
                reporter.reportJoining(of: participant)
            case .participantDisconnected(let participant) where connection.verbose:
                reporter.reportLeaving(of: participant)
            default: break
            }
        }
    }

    private func showStatus(of track: LocalVideoTrack, with reporter: Reporter) async throws {
        var before = track.statistics
        while true {
            try await Task.sleep(for: .seconds(1))
            let now = track.statistics
            let rate = Bitrate(bitsPerSecond: (now.bytesSent - before.bytesSent) * 8)
            // A picture that goes out in three sizes is one picture.
            let former = Dictionary(uniqueKeysWithValues: before.layers.map { ($0.simulcastLayer, $0.framesSent) })
            let sent = now.layers.map { $0.framesSent - (former[$0.simulcastLayer] ?? 0) }.max() ?? 0
            // Pictures above the rate that is wanted are not wanted, either.
            let isIdle = sent == 0 && now.framesDropped[.notWanted] > before.framesDropped[.notWanted]
            let idle = isIdle ? "  nobody watches" : ""
            let dropped = now.framesDropped.total - now.framesDropped[.notWanted]
            let path = PublisherStatus(now).words.map { "  " + $0 } ?? ""
            reporter.status("\(track.name)  \(sent) fps  \(rate)\(path)  dropped \(dropped)\(idle)")
            if connection.verbose { reporter.report(PublisherStatus(now), nil) }
            before = now
        }
    }

    private func description(of track: LocalVideoTrack) -> String {
        guard let format = (track.source as? any VideoCapturer)?.captureFormat else { return "\"\(track.name)\"" }
        let size = track.dimensions.flatMap { $0 == format.dimensions ? nil : "\($0)" }
        let rate = track.frameRate.flatMap { $0 == format.frameRate ? nil : "\($0) fps" }
        let published = [size, rate].compactMap(\.self).joined(separator: " ")
        return "\"\(track.name)\" (\(published)\(published.isEmpty ? "" : " from ")\(format))"
    }

    /// The error with which the command fails; `nil` if it succeeded.
    private func failure(of ending: Stop, _ track: LocalVideoTrack) -> (any Error)? {
        let reason: (any Error)? =
            switch ending {
            case .signal, .duration, .recording, .output: nil
            case .published(let error): error
            case .session(let error): error
            case .source(let error): error
            }
        return reason ?? track.failure
    }
}
