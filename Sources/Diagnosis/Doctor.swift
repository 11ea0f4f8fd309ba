import FoundationEssentials
package import MediaCore
package import RoomKit
import RoomProtocol
import ScreenCapture
import V4L2Capture

/// Examines this machine and its connection to a server, part by part.
package struct Doctor: Sendable {
    /// What is captured for a second.
    package enum Subject: Hashable, Sendable {
        /// A camera, by path, number, name or bus; `nil` for the first one.
        case camera(String?)
        case screen
    }

    /// What is examined, and how.
    package struct Options: Sendable {
        /// The parts to examine.
        package var checks = Set(Check.allCases)
        /// The server, with the room that is made for the measurement.
        package var connection: ConnectOptions
        /// What is captured; `nil` for nothing.
        package var subject: Subject?
        /// The X display; `nil` for that of the environment.
        package var display: String?
        /// The requested size, rate and pixel format.
        package var request = VideoFormatRequest()
        /// The rate that is tried at most.
        package var highestRate = Bitrate.kilobitsPerSecond(6000)
        /// The time for the measurement of the network in all.
        package var networkTime = Duration.seconds(8)
        /// What starting `room-view` brought.
        package var window = LibraryCheck.Window.absent

        /// Options for a server.
        package init(connection: ConnectOptions) {
            self.connection = connection
        }
    }

    /// What was measured; `nil` and empty for what was not.
    package struct Figures: Sendable {
        /// What the source delivered.
        package var capture: CaptureMeasurement?
        /// How long the encoder took, for each size.
        package var encodings: [EncodingMeasurement] = []
        /// Program and version of the server.
        package var serverVersion: String?
        /// The round trips over the open connection, oldest first.
        package var roundTrips: [Duration] = []
        /// How well the server's clock is known.
        package var clockError: Duration?
        /// What the network carries.
        package var network: NetworkMeasurement?

        /// Nothing.
        package init() {}
    }

    /// How long capturing goes on after the first frame.
    private static let captureTime = Duration.seconds(1)
    /// How long a source may take in all to start, give pictures and stop, for a driver that hangs.
    private static let captureLimit = Duration.seconds(20)
    /// How long all cameras together may take to say what they are.
    private static let cameraTime = Duration.seconds(10)
    /// The sizes for which the encoder is measured unless one is requested.
    private static let usualSizes = [Dimensions(width: 640, height: 480), Dimensions(width: 1280, height: 720)]

    private let options: Options
    private let report: @Sendable (Finding) -> Void
    private let progress: @Sendable (String) -> Void
    private var figures = Figures()

    /// Creates a doctor.
    ///
    /// - Parameters:
    ///   - options: What is examined.
    ///   - report: Called with each finding as soon as it is there, on the task that runs the doctor.
    ///   - progress: Called with a few words before a part that takes time.
    package init(
        _ options: Options,
        report: @escaping @Sendable (Finding) -> Void,
        progress: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.options = options
        self.report = report
        self.progress = progress
    }

    /// Examines everything that was asked for; a cancelled task leaves out what has not begun.
    ///
    /// It never fails: what fails is a finding.
    package mutating func run() async -> Figures {
        await examineCameras()
        await examineScreen()
        await examineProgram()
        await examineConnection()
        return figures
    }

    private func isDue(_ check: Check) -> Bool { options.checks.contains(check) && !Task.isCancelled }

    private func report(_ findings: [Finding]) {
        for finding in findings { report(finding) }
    }

    // MARK: Sources

    private mutating func examineCameras() async {
        guard isDue(.cameras) else { return }
        progress("looking at the cameras")
        let wanted: WantedCamera? =
            if case .camera(let name) = options.subject { name.map { .named($0) } ?? .first } else { nil }
        let check = await BlockingCall.run(within: Self.cameraTime) { CameraCheck.ofThisMachine(wanted: wanted) }
        guard let check else {
            guard !Task.isCancelled else { return }
            let words = "the cameras' drivers have not answered for \(Int(Self.cameraTime.seconds)) s"
            return report(.problem(.cameras, "noAnswer", words, "unplug the cameras one by one; see: sudo dmesg"))
        }
        let findings = check.findings()
        report(findings)
        switch check.selection {
        case .success(let device)?:
            // It was reported already, and trying would only disturb the program that has it.
            guard !check.isBusy(device.path) else { return }
            await capture(CameraSource(device: device, request: options.request), .cameras, device.path)
        case .failure(let error)?:
            guard !findings.contains(where: { $0.level == .problem && $0.code == error.code.name }) else { return }
            report(.problem(.cameras, error.code.name, error.description, "room-client devices lists the cameras"))
        case nil: break
        }
    }

    private mutating func examineScreen() async {
        guard isDue(.screen) else { return }
        let isWanted = options.subject == .screen || options.display != nil
        let check = await ScreenCheck.of(display: options.display, isWanted: isWanted)
        guard !Task.isCancelled else { return }
        report(check.findings())
        guard options.subject == .screen, case .success(let screen) = check.inspection else { return }
        let source = ScreenSource(display: screen.display, request: options.request)
        await capture(source, .screen, "the screen")
    }

    private mutating func capture(_ source: any VideoCapturer, _ check: Check, _ name: String) async {
        guard !Task.isCancelled else { return }
        progress("capturing from \(name)")
        let result = await BlockingCall.runTask(within: Self.captureLimit) {
            await Self.measurement(of: source)
        }
        do {
            guard let result else {
                guard !Task.isCancelled else { return }
                let words = "\(name) has not started and stopped within \(Int(Self.captureLimit.seconds)) s"
                return report(.problem(check, "noAnswer", words, "see what the driver says: sudo dmesg"))
            }
            guard let measurement = try result.get() else {
                let advice = "look at its cable, its cover and its power; try another --pixel-format or --size"
                return report(.problem(check, "noFrames", "\(name) starts and gives no picture", advice))
            }
            figures.capture = measurement
            report(measurement.findings(check, name))
        } catch let error as CameraError {
            let advice = "room-client devices --formats lists what there is"
            report(.problem(check, error.code.name, "\(name) does not start: \(error.explanation)", advice))
        } catch let error as ScreenError {
            let advice = "room-client devices --screens lists what there is"
            report(.problem(check, error.code.name, "\(name) does not start: \(error.explanation)", advice))
        } catch {
            return
        }
    }

    private static func measurement(of source: any VideoCapturer) async -> Result<CaptureMeasurement?, any Error> {
        do {
            return .success(try await CaptureMeasurement(of: source, for: captureTime))
        } catch {
            return .failure(error)
        }
    }

    // MARK: This program

    private mutating func examineProgram() async {
        if isDue(.libraries) { report(LibraryCheck.ofThisProgram(window: options.window).findings()) }
        if isDue(.encoder) {
            progress("measuring the encoder")
            let rate = options.request.frameRate ?? FrameRate(30)
            for size in options.request.dimensions.map({ [$0] }) ?? Self.usualSizes where !Task.isCancelled {
                if let encoding = await EncodingMeasurement.measure(size, rate) {
                    figures.encodings.append(encoding)
                } else if !Task.isCancelled {
                    report(EncodingMeasurement.failure(size))
                }
            }
            let isWanted = options.request.dimensions != nil || options.request.frameRate != nil
            let processors = ProcessInfo.processInfo.activeProcessorCount
            report(EncodingMeasurement.findings(figures.encodings, processors: processors, isWanted: isWanted))
        }
        if isDue(.limits) { report(LimitCheck.ofThisProcess.findings()) }
    }

    // MARK: The connection

    private mutating func examineConnection() async {
        let isConnected = isDue(.server) || isDue(.network)
        var room: Room?
        if isConnected {
            progress("joining \(options.connection.url)")
            var joining = options.connection
            joining.isAutomaticSubscriptionEnabled = false
            let outcome = await ServerCheck(joining).run()
            room = outcome.room
            (figures.serverVersion, figures.roundTrips) = (outcome.version, outcome.roundTrips)
            report(outcome.findings.filter { isDue(.server) || $0.level != .ok })
        }
        if isDue(.clock) {
            let estimate = room?.clockEstimate
            figures.clockError = estimate?.errorBound
            let isSynchronized = ClockCheck.isWallClockSynchronized
            report(ClockCheck(estimate: estimate, isSynchronized: isSynchronized).findings())
        }
        if isDue(.network), let room { await measureNetwork(from: room) }
        await room?.disconnect()
    }

    private mutating func measureNetwork(from room: Room) async {
        progress("measuring the network")
        var viewing = options.connection
        viewing.identity = ConnectOptions.makeIdentity()
        let probe = NetworkProbe(options: viewing, highestRate: options.highestRate, duration: options.networkTime)
        do {
            let measurement = try await probe.run(from: room)
            figures.network = measurement
            report(NetworkCheck(measurement).findings())
        } catch {
            guard !Task.isCancelled else { return }
            let advice = "try again; with a thin or busy network, give it longer by --seconds"
            report(.problem(.network, "measurementFailed", "the network cannot be measured: \(error)", advice))
        }
    }
}
