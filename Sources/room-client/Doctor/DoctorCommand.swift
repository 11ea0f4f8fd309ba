import ArgumentParser
import ClientCommandLine
import Diagnosis
import Foundation
import RoomKit
import Threading

/// `room-client doctor`: finds what is wrong, and says what to do.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Find out why a camera, a screen or a connection does not work, and what to do.",
        discussion: """
            Examples:
              room-client doctor
              room-client doctor --source camera
              room-client doctor --device 2 --size 1280x720 --only cameras,encoder
              room-client doctor --url ws://lab.example:9000 --skip cameras,screen
              room-client doctor --only server,network --seconds 20 --json

            It looks at the parts \(CheckList.names), in this order, and takes some 10 seconds. Each line \
            is "ok", a "note" (the rest works without it) or a "problem", which is followed by what to do. Without \
            --source, no camera is opened for longer than a moment, and neither a missing nor a busy one is a problem.

            It measures the network with a track of noise, in a room with a random name that nobody else is in: first \
            to the server alone, then back as well. It measures the way back up to the rate of the way there. The \
            rate control of connect finds the rate, so it treats other users of the network as connect does.

            The exit code is 1 if there is a problem. \(ExitStatus.pointer)
            """
    )

    @Option(help: ArgumentHelp("The server; default $ROOM_URL, else ws://127.0.0.1:8480.", valueName: "ws://host:port"))
    var url: String?

    @Option(help: "The access token; default $ROOM_TOKEN.")
    var token: String?

    @Option(
        help: ArgumentHelp("Also capture from this source for a second: camera or screen.", valueName: "source"),
        transform: { try ExaminedSource.read($0) }
    )
    var source: ExaminedSource?

    @Option(
        help: "Capture from this camera: path, number (2 is /dev/video2), name or bus.",
        transform: { try GivenText.read($0).text }
    )
    var device: String?

    @Option(
        help: ArgumentHelp("Camera pixel format, such as YUYV or MJPG; default the best.", valueName: "fourcc"),
        transform: { try PixelFormat.read($0) }
    )
    var pixelFormat: PixelFormat?

    @Option(
        help: ArgumentHelp("The X display, such as :0; default $DISPLAY.", valueName: "display"),
        transform: { try GivenText.read($0).text }
    )
    var display: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The size to capture and to encode; default: captures 640x480 or the camera's nearest, encodes 640x480 and "
                + "1280x720.",
            valueName: "WxH"
        ),
        transform: { try Dimensions.read($0) }
    )
    var size: Dimensions?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Frames per second to capture and to encode; default 30.", valueName: "rate"),
        transform: { try FrameRate.read($0) }
    )
    var fps: FrameRate?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Test the network up to this rate: 200k to 6M, which is the default.", valueName: "rate"),
        transform: { try Bitrate.read($0) }
    )
    var maxBitrate: Bitrate?

    /// The rates up to which the network can be tested.
    private static let rates = Bitrate.kilobitsPerSecond(200)...Bitrate.kilobitsPerSecond(6000)

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Measure the network for this many seconds: 5 to 120; default 8.", valueName: "seconds"),
        transform: { try Seconds.read($0) }
    )
    var seconds: Seconds?

    @Option(
        help: ArgumentHelp("Check only these parts, such as server,network.", valueName: "parts"),
        transform: { try CheckList.read($0) }
    )
    var only: CheckList?

    @Option(
        help: ArgumentHelp("Leave these parts out, such as network.", valueName: "parts"),
        transform: { try CheckList.read($0) }
    )
    var skip: CheckList?

    @Flag(help: "Write one JSON object per line instead of text for people.")
    var json = false

    func validate() throws {
        if device != nil, source == .screen {
            throw ValidationError("--device is for cameras; leave it out with --source screen.")
        }
        if pixelFormat != nil, device == nil, source != .camera {
            throw ValidationError("--pixel-format is for cameras; add --source camera or --device.")
        }
        if let seconds, !(.seconds(5) ... .seconds(120)).contains(seconds.duration) {
            throw ValidationError("--seconds takes 5 to 120.")
        }
        let largest = VideoPublishOptions.maximumDimensions
        if let size, size.area > largest.area {
            throw ValidationError("--size \(size) has more pixels than can be published: \(largest) is the limit.")
        }
        guard maxBitrate.map({ Self.rates.contains($0) }) ?? true else {
            throw ValidationError(
                "--max-bitrate takes 200k to 6M: less says nothing of a network, and 6M suits every usual size."
            )
        }
        guard !checks.isEmpty else {
            throw ValidationError("--only and --skip leave nothing to look at; leave one of them out.")
        }
        try checkUse()
    }

    /// Checks that each option is for a part that is looked at.
    private func checkUse() throws {
        let sizes: Set<Check> = [.cameras, .screen, .encoder]
        let uses: [(option: String, isGiven: Bool, parts: Set<Check>)] = [
            ("--source camera", source == .camera, [.cameras]), ("--source screen", source == .screen, [.screen]),
            ("--device", device != nil, [.cameras]), ("--pixel-format", pixelFormat != nil, [.cameras]),
            ("--display", display != nil, [.screen]), ("--size", size != nil, sizes), ("--fps", fps != nil, sizes),
            ("--url", url != nil, [.server, .network]), ("--token", token != nil, [.server, .network]),
            ("--max-bitrate", maxBitrate != nil, [.network]), ("--seconds", seconds != nil, [.network]),
        ]
        for use in uses where use.isGiven && checks.isDisjoint(with: use.parts) {
            let names = Check.allCases.filter(use.parts.contains).map(\.rawValue).joined(separator: " or ")
            throw ValidationError("\(use.option) is for \(names), which --only and --skip leave out; drop one of them.")
        }
    }

    /// The parts to look at.
    private var checks: Set<Check> { (only?.checks ?? Set(Check.allCases)).subtracting(skip?.checks ?? []) }

    private var options: Doctor.Options {
        let connection = JoiningOptions.connectOptions(
            url: url,
            room: "doctor-\(UUID().uuidString.lowercased())",
            token: token,
            for: "room-client"
        )
        var options = Doctor.Options(connection: connection)
        options.checks = checks
        options.subject = source == .screen ? .screen : source == .camera || device != nil ? .camera(device) : nil
        options.display = display
        options.request = VideoFormatRequest(dimensions: size, frameRate: fps, pixelFormat: pixelFormat)
        if let maxBitrate { options.highestRate = maxBitrate }
        if let seconds { options.networkTime = seconds.duration }
        if checks.contains(.libraries) { options.window = WindowProgram.examine() }
        return options
    }

    func run() async throws {
        try await reportingErrors(isJSON: json) {
            let reporter = Reporter(isJSON: json)
            let stop = StopReasons()
            await stop.heedSignals(reportingTo: reporter)
            let began = ContinuousClock.now
            let findings = Monitor<[Finding]>([])
            let options = options
            let work = Task {
                var doctor = Doctor(options) { finding in
                    findings.withLock { $0.append(finding) }
                    reporter.report(FindingEvent(finding), FindingLines(finding).text)
                } progress: {
                    reporter.status("\($0) …")
                }
                return await doctor.run()
            }
            let signals = Task {
                _ = await stop.wait(for: nil)
                work.cancel()
            }
            let figures = await work.value
            // The end of the wait for signals cancels the work, too.
            let isComplete = !work.isCancelled
            signals.cancel()
            reporter.endStatus()
            let summary = DoctorSummary(
                findings.withLock { $0 },
                figures,
                isComplete: isComplete,
                elapsed: began.duration(to: .now)
            )
            if summary.problems > 0 { reporter.report(FailureEvent(summary.words), nil) }
            reporter.reportSummary(summary, summary.words)
            if summary.problems > 0 { throw ExitCode(ExitStatus.problems.rawValue) }
        }
    }
}

/// The sources that are examined.
enum ExaminedSource: String, AdvisedArgument {
    case camera, screen

    static func advice(for text: String) -> String {
        "give camera or screen; other sources need nothing of the machine"
    }
}

/// Parts to look at, or to leave out: `server,network`.
struct CheckList: AdvisedArgument {
    var checks: Set<Check>

    /// The names of all parts.
    static var names: String {
        let names = Check.allCases.map(\.rawValue)
        return names.dropLast().joined(separator: ", ") + " and " + (names.last ?? "")
    }

    init?(argument: String) {
        let names = argument.split(separator: ",", omittingEmptySubsequences: false)
        let checks = names.compactMap { Check(rawValue: String($0)) }
        guard checks.count == names.count else { return nil }
        self.checks = Set(checks)
    }

    static func advice(for text: String) -> String { "give some of \(names), separated by commas" }
}
