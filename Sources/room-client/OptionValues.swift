public import ArgumentParser
package import ClientCommandLine
public import MediaCore
import RoomKit

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
    /// Reads `640x480`, or the name of a preset such as `hd720`.
    public init?(argument: String) {
        if let preset = VideoPreset(rawValue: argument) {
            self = preset.dimensions
            return
        }
        let sides = argument.split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
        guard sides.count == 2, let width = sides[0], let height = sides[1] else { return nil }
        let largest = Dimensions.largestCodable
        guard (2...largest.width).contains(width), (2...largest.height).contains(height) else { return nil }
        self.init(width: width, height: height)
    }

    /// What can be given.
    package static func advice(for text: String) -> String {
        let largest = VideoPublishOptions.maximumDimensions
        let presets = VideoPreset.allCases.map(\.rawValue).joined(separator: ", ")
        return """
            give width and height, such as 640x480, with 2 to \(Dimensions.largestCodable.width) pixels a side and at most \
            as many in all as \(largest), or one of \(presets)
            """
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
    /// Reads a four-character code such as `YUYV` or `MJPG`.
    public init?(argument: String) {
        self.init(fourCC: argument)
    }

    /// What can be given.
    package static func advice(for text: String) -> String {
        text.uppercased() == "MJPEG"
            ? "drivers call it MJPG"
            : "give the four characters that drivers use, such as YUYV or MJPG; devices --formats lists them"
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

/// A control of a camera and what it is set to: `auto_exposure=1`.
struct ControlArgument: AdvisedArgument {
    var name: String
    var value: String

    init?(argument: String) {
        guard let sign = argument.firstIndex(of: "="), sign != argument.startIndex else { return nil }
        name = String(argument[..<sign])
        value = String(argument[argument.index(after: sign)...])
    }

    static func advice(for text: String) -> String {
        "give a name and a value, such as brightness=128 or power_line_frequency=\"50 Hz\""
    }
}
