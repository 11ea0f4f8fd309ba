public import ArgumentParser
public import MediaCore
public import RoomKit

/// The value of an option, with a sentence about what can be given.
protocol AdvisedArgument: ExpressibleByArgument {
    /// What to give instead of `text`, which is no such value.
    static func advice(for text: String) -> String
}

extension AdvisedArgument {
    /// Reads the value of an option; the error is the sentence that follows "The value … is invalid for …: ".
    static func read(_ text: String) throws -> Self {
        guard let value = Self(argument: text) else { throw ValidationError(advice(for: text)) }
        return value
    }
}

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
        guard let value = Double(number), let bits = Int(exactly: (value * factor).rounded()) else { return nil }
        self.init(bitsPerSecond: bits)
        guard VideoPublishOptions.supportedBitrates.contains(self) else { return nil }
    }

    static func advice(for text: String) -> String { "give a rate from 10k to 40M, such as 800k or 2M" }
}

extension Dimensions: ExpressibleByArgument, AdvisedArgument {
    /// Reads `640x480`.
    public init?(argument: String) {
        let sides = argument.split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
        guard sides.count == 2, let width = sides[0], let height = sides[1] else { return nil }
        let largest = Dimensions.largestCodable
        guard (1...largest.width).contains(width), (1...largest.height).contains(height) else { return nil }
        self.init(width: width, height: height)
    }

    static func advice(for text: String) -> String {
        let largest = VideoPublishOptions.maximumDimensions
        return "give width and height, such as 640x480, with at most as many pixels as \(largest)"
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
        } else if terms.count == 1, let rate = Double(argument), usual.contains(rate) {
            self.init(numerator: Int((rate * 1000).rounded()), denominator: 1000)
        } else {
            return nil
        }
        guard usual.contains(framesPerSecond) else { return nil }
    }

    static func advice(for text: String) -> String {
        "give frames per second from 0.01 to 1000, such as 30, 12.5 or 30000/1001"
    }
}

extension PixelFormat: ExpressibleByArgument, AdvisedArgument {
    /// Reads a four-character code such as `YUYV` or `MJPG`.
    public init?(argument: String) {
        self.init(fourCC: argument)
    }

    static func advice(for text: String) -> String {
        text.uppercased() == "MJPEG"
            ? "drivers call it MJPG"
            : "give the four characters that drivers use, such as YUYV or MJPG; devices --formats lists them"
    }
}

extension TrackRecorder.Format: ExpressibleByArgument {}

extension VideoPublishOptions.Priority: ExpressibleByArgument {}

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

/// How long a command runs, in seconds.
struct Seconds: AdvisedArgument {
    var duration: Duration

    init?(argument: String) {
        guard let seconds = Double(argument), seconds > 0, seconds <= 1e8 else { return nil }
        duration = .milliseconds(Int64((seconds * 1000).rounded()))
    }

    static func advice(for text: String) -> String {
        "give a number of seconds above 0 and without a unit, such as 10 or 0.5"
    }
}
