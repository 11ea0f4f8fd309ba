public import ArgumentParser
public import MediaCore
public import RoomKit

extension Bitrate: ExpressibleByArgument {
    /// The rates for `--max-bitrate`, in bits per second: a server ends the session of a publisher that sends more than
    /// 50 Mbit/s (see `VideoPublishOptions.maxBitrate`).
    private static let admitted = 10e3...40e6

    /// Reads `800k`, `2M`, `1.5M` or plain bits per second, from 10 kbit/s to 40 Mbit/s.
    public init?(argument: String) {
        var number = Substring(argument)
        var factor = 1.0
        switch number.last {
        case "k", "K": factor = 1e3
        case "m", "M": factor = 1e6
        default: break
        }
        if factor > 1 { number.removeLast() }
        guard let value = Double(number), Self.admitted.contains(value * factor) else { return nil }
        self.init(bitsPerSecond: Int((value * factor).rounded()))
    }
}

extension Dimensions: ExpressibleByArgument {
    /// Reads `640x480`.
    public init?(argument: String) {
        let sides = argument.split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
        guard sides.count == 2, let width = sides[0], let height = sides[1] else { return nil }
        let largest = Dimensions.largestCodable
        guard (1...largest.width).contains(width), (1...largest.height).contains(height) else { return nil }
        self.init(width: width, height: height)
    }
}

extension FrameRate: ExpressibleByArgument {
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
}

extension PixelFormat: ExpressibleByArgument {
    /// Reads a four-character code such as `YUYV` or `MJPG`.
    public init?(argument: String) {
        self.init(fourCC: argument)
    }
}

extension TrackRecorder.Format: ExpressibleByArgument {}

/// How long a command runs, in seconds.
struct Seconds: ExpressibleByArgument {
    var duration: Duration

    init?(argument: String) {
        guard let seconds = Double(argument), seconds > 0, seconds <= 1e8 else { return nil }
        duration = .milliseconds(Int64((seconds * 1000).rounded()))
    }
}
