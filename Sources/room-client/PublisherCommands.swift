import Foundation
import ArgumentParser
import RoomKit

/// A line that `connect --commands` reads from standard input.
enum PublisherCommand {
    /// A change of how the track is encoded.
    enum Encoding {
        /// The highest bitrate; `nil` for the usual one.
        case maxBitrate(Bitrate?)
        /// The lowest bitrate; `nil` for none.
        case minBitrate(Bitrate?)
        case priority(VideoPublishOptions.Priority)
        case degradation(Degradation)
    }

    /// A change of how the pictures differ from the captured ones.
    enum Transform {
        case rotation(VideoRotation)
        case mirroring(Bool)
        /// The size to crop to; `nil` for the whole picture.
        case crop(Dimensions?)
    }

    /// Whether pictures are sent.
    case enabled(Bool)
    case encoding(Encoding)
    case transform(Transform)
    /// Another camera, or, with an empty name, the same one, in this format if one is given.
    case camera(String, VideoFormatRequest)
    case controls(ControlArguments)

    /// All commands.
    static let summary =
        "mute; unmute; bitrate RATE|default; min-bitrate RATE|off; priority low|standard|high; "
        + "degradation framerate|resolution|balanced; rotate DEGREES; mirror on|off; crop WxH|off; for a camera also "
        + "device NAME [size=WxH] [fps=RATE] [pixel-format=FOURCC]; format with the same fields; control NAME=VALUE[,…]"

    /// Reads a line.
    ///
    /// - Throws: `ValidationError`, which says what can be given.
    init(_ line: String) throws {
        // Quotes are a shell's: names with spaces need none here, and may have them.
        var words = line.filter { $0 != "\"" }.split(whereSeparator: \.isWhitespace).map(String.init)
        let verb = words.isEmpty ? "" : words.removeFirst()
        switch verb {
        case "mute", "unmute":
            guard words.isEmpty else { throw ValidationError("\(verb) takes nothing else") }
            self = .enabled(verb == "unmute")
        case "bitrate": self = .encoding(.maxBitrate(try Self.value(of: verb, words, or: "default", Bitrate.read)))
        case "min-bitrate": self = .encoding(.minBitrate(try Self.value(of: verb, words, or: "off", Bitrate.read)))
        case "priority": self = .encoding(.priority(try Self.choice(of: verb, words)))
        case "degradation": self = .encoding(.degradation(try Self.choice(of: verb, words)))
        case "rotate":
            guard words.count == 1, let degrees = Int(words[0]), let rotation = VideoRotation(rawValue: degrees) else {
                throw ValidationError("rotate takes 0, 90, 180 or 270")
            }
            self = .transform(.rotation(rotation))
        case "mirror":
            let choice: Switch = try Self.choice(of: verb, words)
            self = .transform(.mirroring(choice == .on))
        case "crop": self = .transform(.crop(try Self.value(of: verb, words, or: "off", Dimensions.read)))
        case "device", "format": self = try Self.camera(verb, words)
        case "control":
            self = .controls(try ControlArguments.read(words.joined(separator: " ")))
        default:
            throw ValidationError("there is no command \"\(verb)\"; there are: \(Self.summary)")
        }
    }

    /// The only word behind a command, as `read` takes it; `nil` for `none`.
    private static func value<Value>(
        of verb: String,
        _ words: [String],
        or none: String,
        _ read: (String) throws -> Value
    ) throws -> Value? {
        guard words.count == 1 else { throw ValidationError("\(verb) takes one value, or \(none)") }
        if words[0] == none { return nil }
        do {
            return try read(words[0])
        } catch let error as ValidationError {
            throw ValidationError("\(error.message), or \(none)")
        }
    }

    /// The only word behind a command, which is one of the names of `Choice`.
    private static func choice<Choice: RawRepresentable<String> & CaseIterable>(
        of verb: String,
        _ words: [String]
    ) throws -> Choice {
        guard words.count == 1, let choice = Choice(rawValue: words[0]) else {
            let names = Choice.allCases.map(\.rawValue)
            let last = names.last.map { " or \($0)" } ?? ""
            throw ValidationError("\(verb) takes \(names.dropLast().joined(separator: ", "))\(last)")
        }
        return choice
    }

    private static func camera(_ verb: String, _ words: [String]) throws -> PublisherCommand {
        var words = words
        let request = try takeFormat(from: &words)
        let name = words.joined(separator: " ")
        guard name.isEmpty == (verb == "format"), !name.isEmpty || request != VideoFormatRequest() else {
            let isDevice = verb == "device"
            throw ValidationError(isDevice ? "device needs a camera" : "format takes size=, fps= and pixel-format=")
        }
        return .camera(name, request)
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

    /// The name of a command that only pictures can obey; `nil` for one that compressed frames obey too.
    fileprivate var needingPictures: String? {
        switch self {
        case .encoding(.maxBitrate): "bitrate"
        case .encoding(.minBitrate): "min-bitrate"
        case .encoding(.degradation): "degradation"
        case .transform(.crop): "crop"
        case .enabled, .encoding, .transform, .camera, .controls: nil
        }
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
    /// The track that is published.
    let track: LocalVideoTrack
    let reporter: Reporter
    /// The highest bitrate where none is chosen; `nil` for that of the picture's size.
    private let usualBitrate: Bitrate?
    /// The format that was requested of the camera last.
    private(set) var request: VideoFormatRequest

    init(
        track: LocalVideoTrack,
        request: VideoFormatRequest,
        usualBitrate: Bitrate? = nil,
        reporter: Reporter
    ) {
        self.track = track
        self.request = request
        self.usualBitrate = usualBitrate
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
        if track.source is any EncodedVideoSource, let name = command.needingPictures {
            throw ValidationError("\(name) needs pictures; frames of vp8: are sent as they are")
        }
        switch command {
        case .camera(let name, let changes): try await select(name, changes, line)
        case .controls(let controls):
            try camera(for: "control").setControls(controls.settings)
            answer(line, "Set \(controls.words).")
        case .enabled(let isEnabled):
            await track.setEnabled(isEnabled)
            answer(line, isEnabled ? "Pictures are sent again." : "Muted: no picture is sent.")
        case .encoding(let change): answer(line, try apply(change))
        case .transform(let change): answer(line, apply(change))
        }
    }

    private func answer(_ line: String, _ words: String) {
        reporter.report(CommandEvent(command: line), words)
    }

    private func camera(for name: String) throws -> CameraSource {
        guard let camera = track.source as? CameraSource else {
            throw ValidationError("\(name) is for cameras, and this source is none")
        }
        return camera
    }

    private mutating func select(_ name: String, _ changes: VideoFormatRequest, _ line: String) async throws {
        let camera = try camera(for: name.isEmpty ? "format" : "device")
        let device = name.isEmpty ? camera.device : try CameraSource.captureDevice(matching: name)
        var wanted = request
        wanted.dimensions = changes.dimensions ?? wanted.dimensions
        wanted.frameRate = changes.frameRate ?? wanted.frameRate
        wanted.pixelFormat = changes.pixelFormat ?? wanted.pixelFormat
        let gap = try await camera.selectCaptureDevice(device, format: wanted)
        request = wanted
        let format = camera.captureFormat
        var event = CommandEvent(command: line)
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
    }

    /// Changes how the track is encoded.
    ///
    /// - Returns: What holds now, as a sentence.
    private func apply(_ change: PublisherCommand.Encoding) throws -> String {
        var parameters = track.encodingParameters ?? VideoEncodingParameters()
        let words: String
        switch change {
        case .maxBitrate(let bitrate):
            parameters.maxBitrate = bitrate ?? usualBitrate
            let rate = parameters.maxBitrate.map { "\($0)" } ?? "that of the picture's size"
            words = "The highest bitrate is \(rate)."
        case .minBitrate(let bitrate):
            parameters.minBitrate = bitrate
            let end = parameters.maxBitrate == nil ? ", or the highest one of the size if that is lower." : "."
            words = bitrate.map { "The lowest bitrate is \($0)\(end)" } ?? "There is no lowest bitrate."
        case .priority(let priority):
            parameters.priority = priority
            words = "The priority is \(priority.rawValue)."
        case .degradation(let degradation):
            parameters.degradationPreference = degradation.preference
            words = "Degradation: \(degradation.rawValue)."
        }
        if let least = parameters.minBitrate, let most = parameters.maxBitrate, least > most {
            throw ValidationError("the lowest bitrate of \(least) would be more than the highest of \(most)")
        }
        try track.setEncodingParameters(parameters)
        return words
    }

    /// Changes how the pictures are cropped, turned or mirrored.
    ///
    /// - Returns: What holds now, as a sentence.
    private func apply(_ change: PublisherCommand.Transform) -> String {
        switch change {
        case .rotation(let rotation):
            track.transform.rotation = rotation
            return "Turned by \(rotation.rawValue) degrees."
        case .mirroring(let isMirrored):
            track.transform.isMirrored = isMirrored
            return isMirrored ? "Mirrored." : "Not mirrored."
        case .crop(let size):
            track.transform.crop = size
            return size.map { "Cropped to \($0)." } ?? "Not cropped."
        }
    }
}
