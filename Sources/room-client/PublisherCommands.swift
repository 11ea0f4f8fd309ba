import Foundation
import ArgumentParser
import RoomKit

/// A line that `connect --commands` reads from standard input.
enum PublisherCommand {
    /// Another camera, or, with an empty name, the same one, in this format if one is given.
    case camera(String, VideoFormatRequest)
    case rotation(VideoRotation)
    case control(ControlArgument)

    /// All commands.
    static let summary =
        "device NAME [size=WxH] [fps=RATE] [pixel-format=FOURCC]; format with the same fields; rotate DEGREES; "
        + "control NAME=VALUE"

    /// Reads a line.
    ///
    /// - Throws: `ValidationError`, which says what can be given.
    init(_ line: String) throws {
        // Quotes are a shell's: names with spaces need none here, and may have them.
        var words = line.filter { $0 != "\"" }.split(whereSeparator: \.isWhitespace).map(String.init)
        let verb = words.isEmpty ? "" : words.removeFirst()
        switch verb {
        case "device", "format":
            let request = try Self.takeFormat(from: &words)
            let name = words.joined(separator: " ")
            guard name.isEmpty == (verb == "format"), !name.isEmpty || request != VideoFormatRequest() else {
                let isDevice = verb == "device"
                throw ValidationError(isDevice ? "device needs a camera" : "format takes size=, fps= and pixel-format=")
            }
            self = .camera(name, request)
        case "rotate":
            guard words.count == 1, let degrees = Int(words[0]), let rotation = VideoRotation(rawValue: degrees) else {
                throw ValidationError("rotate takes 0, 90, 180 or 270")
            }
            self = .rotation(rotation)
        case "control":
            self = .control(try ControlArgument.read(words.joined(separator: " ")))
        default:
            throw ValidationError("there is no command \"\(verb)\"; there are: \(Self.summary)")
        }
    }

    /// Takes the fields of a format from the end of the words; what is left is a name, which may have spaces.
    private static func takeFormat(from words: inout [String]) throws -> VideoFormatRequest {
        var request = VideoFormatRequest()
        while let word = words.last, let sign = word.firstIndex(of: "=") {
            let value = String(word[word.index(after: sign)...])
            switch word[..<sign] {
            case "size": request.dimensions = try Dimensions.read(value)
            case "fps": request.frameRate = try FrameRate.read(value)
            case "pixel-format": request.pixelFormat = try PixelFormat.read(value)
            default: return request
            }
            words.removeLast()
        }
        return request
    }
}

/// The result of a command from standard input.
struct CommandEvent: Encodable {
    var event = "command"
    /// The line as it was read.
    var command: String
    /// What is wrong and what to do; `null` if the command was carried out.
    @Nullable var error: String? = nil
    @Nullable var code: String? = nil
    /// The camera that is captured from now on, and its format; `null` for other commands.
    @Nullable var device: String? = nil
    @Nullable var width: Int? = nil
    @Nullable var height: Int? = nil
    @Nullable var frameRate: Double? = nil
    @Nullable var pixelFormat: String? = nil
    /// Milliseconds from the last frame before a change of cameras to the first after it.
    @Nullable var gapMs: Double? = nil
}

/// Carries out what `connect --commands` reads from standard input, line by line.
struct PublisherCommands {
    let camera: CameraSource
    /// Turns the pictures; `nil` if a sensor does.
    let rotator: ManualOrientationTracker?
    let reporter: Reporter
    /// The format that was requested last.
    private(set) var request: VideoFormatRequest

    init(
        camera: CameraSource,
        rotator: ManualOrientationTracker?,
        request: VideoFormatRequest,
        reporter: Reporter
    ) {
        self.camera = camera
        self.rotator = rotator
        self.request = request
        self.reporter = reporter
    }

    /// Carries out commands until the end of the input, or until the task is cancelled.
    mutating func run(_ input: LineReader) async {
        for await line in input.lines {
            switch line {
            case .whole(let line): await apply(line)
            case .tooLong(let beginning):
                let problem = "this line has more than \(LineSplitter.longest) bytes, and no command has so many"
                let event = CommandEvent(command: "\(beginning)…", error: problem)
                reporter.reportWarning(event, "\(event.command): \(problem).")
            }
            input.lineTaken()
        }
    }

    private mutating func apply(_ line: String) async {
        guard !line.allSatisfy(\.isWhitespace) else { return }
        do {
            try await apply(PublisherCommand(line), line)
        } catch is CancellationError {
            let problem = "capturing ended before the camera gave a frame"
            reporter.reportWarning(CommandEvent(command: line, error: problem), "\(line): \(problem).")
        } catch {
            var event = CommandEvent(command: line, error: "\(error)")
            event.code = codeName(of: error)
            reporter.reportWarning(event, "\(line): \(error).")
        }
    }

    private mutating func apply(_ command: PublisherCommand, _ line: String) async throws {
        var event = CommandEvent(command: line)
        switch command {
        case .camera(let name, let changes):
            let device = name.isEmpty ? camera.device : try CameraSource.captureDevice(matching: name)
            var wanted = request
            wanted.dimensions = changes.dimensions ?? wanted.dimensions
            wanted.frameRate = changes.frameRate ?? wanted.frameRate
            wanted.pixelFormat = changes.pixelFormat ?? wanted.pixelFormat
            let gap = try await camera.selectCaptureDevice(device, format: wanted)
            request = wanted
            let format = camera.captureFormat
            event.device = camera.device.path
            event.width = format?.dimensions.width
            event.height = format?.dimensions.height
            event.frameRate = format?.frameRate.framesPerSecond
            event.pixelFormat = format?.pixelFormat.description
            let milliseconds = Double(gap.components.attoseconds) / 1e15 + Double(gap.components.seconds) * 1000
            event.gapMs = milliseconds
            let captured = format.map { ", \($0)" } ?? ""
            let words = "Captures from \(camera.device)\(captured); \(Int(milliseconds)) ms without a frame."
            reporter.report(event, words)
        case .rotation(let rotation):
            guard let rotator else {
                throw ValidationError("the sensor of --orientation-sensor turns the pictures; leave one of the two out")
            }
            rotator.rotation = rotation
            reporter.report(event, "Turned by \(rotation.rawValue) degrees.")
        case .control(let control):
            try camera.setControl(control.name, to: control.value)
            reporter.report(event, "Set \(control.name) to \(control.value).")
        }
    }
}
