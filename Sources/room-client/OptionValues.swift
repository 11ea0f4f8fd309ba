public import ArgumentParser
package import ClientCommandLine
public import MediaCore
public import RoomKit

extension Bitrate: ExpressibleByArgument, AdvisedArgument {
    /// Reads `800k`, `2M`, `1.5M` or plain bits per second, within the limits for a track.
    public init?(argument: String) {
        var number = Substring(argument)
        var factor = 1.0
        switch number.last {
        case "k", "K": factor = 1e3
        case "m", "M": factor = 1e6
        default: break
        }
        if factor > 1 { number.removeLast() }
        guard let value = decimalNumber(number), let bits = Int(exactly: (value * factor).rounded()) else { return nil }
        self.init(bitsPerSecond: bits)
        guard VideoPublishOptions.supportedBitrates.contains(self) else { return nil }
    }

    /// What can be given.
    package static func advice(for text: String) -> String { "give a rate from 10k to 40M, such as 800k or 2M" }
}

extension Dimensions: ExpressibleByArgument, AdvisedArgument {
    /// The sizes that are called by their rows; 480p is 4:3, as cameras have it.
    private static let byRows: [(name: String, size: Dimensions)] = [
        ("360p", Dimensions(width: 640, height: 360)), ("480p", .vga), ("720p", .hd720), ("1080p", .hd1080),
    ]

    /// Reads `640x480`, the name of a preset such as `hd720`, or rows such as `720p`, in capital or small letters.
    public init?(argument: String) {
        let name = argument.lowercased()
        if let size = VideoPreset(rawValue: name)?.dimensions ?? Self.byRows.first(where: { $0.name == name })?.size {
            self = size
            return
        }
        let sides = name.split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
        guard sides.count == 2, let width = sides[0], let height = sides[1] else { return nil }
        let largest = Dimensions.largestCodable
        guard (2...largest.width).contains(width), (2...largest.height).contains(height) else { return nil }
        self.init(width: width, height: height)
    }

    /// What can be given.
    package static func advice(for text: String) -> String {
        let largest = VideoPublishOptions.maximumDimensions
        let presets = (VideoPreset.allCases.map(\.rawValue) + byRows.map(\.name)).joined(separator: ", ")
        return """
            give width and height, such as 640x480, with 2 to \(Dimensions.largestCodable.width) pixels a side and at most \
            as many in all as \(largest), or one of \(presets)
            """
    }
}

extension ScreenRegion: ExpressibleByArgument, AdvisedArgument {
    /// Reads `640x480+100+50`, or a size alone, which lies in the upper left corner.
    public init?(argument: String) {
        let parts = argument.split(separator: "+", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 1 || parts.count == 3, let dimensions = Dimensions(argument: parts[0]) else { return nil }
        // X11 has no larger place.
        let places = parts.dropFirst().compactMap { text in Int(text).flatMap { (0...32_767).contains($0) ? $0 : nil } }
        guard places.count == parts.count - 1 else { return nil }
        self.init(column: places.first ?? 0, row: places.last ?? 0, dimensions: dimensions)
    }

    /// What can be given.
    package static func advice(for text: String) -> String {
        "give width, height and the upper left corner, such as 640x480+100+50; devices --screens lists the monitors"
    }
}

extension FrameRate: ExpressibleByArgument, AdvisedArgument {
    /// Reads `30`, `12.5` or `30000/1001`, within the range of any camera.
    public init?(argument: String) {
        let usual = 0.01...1000.0
        let terms = argument.split(separator: "/", omittingEmptySubsequences: false)
        if terms.count == 2, let numerator = Int(terms[0]), let denominator = Int(terms[1]) {
            guard (1...1_000_000_000).contains(numerator), (1...1_000_000_000).contains(denominator) else { return nil }
            self.init(numerator: numerator, denominator: denominator)
        } else if terms.count == 1, let rate = decimalNumber(argument), usual.contains(rate) {
            self.init(numerator: Int((rate * 1000).rounded()), denominator: 1000)
        } else {
            return nil
        }
        guard usual.contains(framesPerSecond) else { return nil }
    }

    /// What can be given.
    package static func advice(for text: String) -> String {
        "give frames per second from 0.01 to 1000, such as 30, 12.5 or 30000/1001"
    }
}

extension PixelFormat: ExpressibleByArgument, AdvisedArgument {
    /// The names that other programs have for pixel formats.
    private static let otherNames: [String: PixelFormat] = [
        "mjpeg": .mjpeg, "yuyv422": .yuyv, "uyvy422": .uyvy, "i420": .i420, "yuv420p": .i420, "gray": .grey,
        "rgb24": .rgb24, "bgr24": .bgr24,
    ]

    /// Reads a four-character code such as `YUYV`, or a name that ffmpeg has for the format, such as `yuyv422`.
    ///
    /// Small letters are read as capital ones, unless the code has both, as those of some raw formats do.
    public init?(argument: String) {
        if let format = Self.otherNames[argument.lowercased()] {
            self = format
            return
        }
        let isSmall = argument == argument.lowercased()
        self.init(fourCC: isSmall ? argument.uppercased() : argument)
    }

    /// What can be given.
    package static func advice(for text: String) -> String {
        "give the four characters that drivers use, such as YUYV or MJPG; devices --formats lists them"
    }
}

/// The formats of `--dump`.
enum DumpFormat: String, CaseIterable, ExpressibleByArgument {
    case webm, ivf, y4m, png, raw

    /// The format of files; `nil` for one that only a pipe has.
    var ofFiles: TrackRecorder.Format? { TrackRecorder.Format(rawValue: rawValue) }

    /// The format of a pipe; `nil` for one that only files have.
    var ofPipes: VideoPipeRenderer.Format? { VideoPipeRenderer.Format(rawValue: rawValue) }
}

extension VideoPublishOptions.Orientation: ExpressibleByArgument {}

/// A feature that is on or off: the values of `--simulcast`.
enum Switch: String, CaseIterable, ExpressibleByArgument {
    case on, off
}

/// What is given up first: the names of `--degradation`.
enum Degradation: String, CaseIterable, ExpressibleByArgument {
    case balanced, framerate, resolution

    var preference: DegradationPreference {
        switch self {
        case .balanced: .balanced
        case .framerate: .maintainFramerate
        case .resolution: .maintainResolution
        }
    }
}

/// Controls of a camera and what they are set to: `auto_exposure=1,exposure_time_absolute=300`.
struct ControlArguments: AdvisedArgument {
    /// The controls, by the names of `v4l2-ctl`, in the order of the argument.
    let settings: [(name: String, value: String)]

    init?(argument: String) {
        var settings: [(name: String, value: String)] = []
        for part in argument.split(separator: ",", omittingEmptySubsequences: false) {
            if let setting = Self.setting(part) {
                settings.append(setting)
            } else if let last = settings.last {
                // The entry of a menu may have a comma in its name.
                settings[settings.count - 1].value = "\(last.value),\(part)"
            } else {
                return nil
            }
        }
        self.settings = settings
    }

    private static func setting(_ text: Substring) -> (name: String, value: String)? {
        guard let sign = text.firstIndex(of: "=") else { return nil }
        let name = text[..<sign].filter { $0 != " " }
        guard !name.isEmpty, name.utf8.count == name.count else { return nil }
        return (name, String(text[text.index(after: sign)...]))
    }

    static func advice(for text: String) -> String {
        "give a name and a value, such as brightness=128 or power_line_frequency=\"50 Hz\""
    }

    /// The controls with their values, for people.
    var words: String { settings.map { "\($0.name) to \($0.value)" }.joined(separator: ", ") }
}
