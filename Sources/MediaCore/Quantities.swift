/// A rate of data, in bits per second.
public struct Bitrate: Hashable, Sendable {
    /// Bits per second.
    public var bitsPerSecond: Int

    /// A rate of `bitsPerSecond`.
    public init(bitsPerSecond: Int) {
        self.bitsPerSecond = bitsPerSecond
    }

    /// A rate of `value` × 1,000 bits per second.
    public static func kilobitsPerSecond(_ value: Int) -> Bitrate {
        Bitrate(bitsPerSecond: value * 1000)
    }

    /// Kilobits (1,000 bits) per second, rounded down.
    public var kilobitsPerSecond: Int { bitsPerSecond / 1000 }
}

extension Bitrate: Comparable {
    /// Whether `lhs` is the smaller rate.
    public static func < (lhs: Bitrate, rhs: Bitrate) -> Bool {
        lhs.bitsPerSecond < rhs.bitsPerSecond
    }
}

extension Bitrate: CustomStringConvertible {
    /// The rate in kbit/s, or in Mbit/s from one megabit on.
    public var description: String {
        if bitsPerSecond < 1_000_000 { return "\(kilobitsPerSecond) kbit/s" }
        let hundredths = bitsPerSecond / 10_000
        return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100) Mbit/s"
    }
}

/// An amount of data, in bytes.
public struct DataSize: Hashable, Sendable {
    /// Bytes.
    public var bytes: Int

    /// An amount of `bytes`.
    public init(bytes: Int) {
        self.bytes = bytes
    }

    /// `value` × 1,024 bytes.
    public static func kibibytes(_ value: Int) -> DataSize { DataSize(bytes: value << 10) }

    /// `value` × 1,048,576 bytes.
    public static func mebibytes(_ value: Int) -> DataSize { DataSize(bytes: value << 20) }

    /// No data.
    public static let zero = DataSize(bytes: 0)

    /// The sum of two amounts.
    public static func + (lhs: DataSize, rhs: DataSize) -> DataSize { DataSize(bytes: lhs.bytes + rhs.bytes) }

    /// The difference of two amounts.
    public static func - (lhs: DataSize, rhs: DataSize) -> DataSize { DataSize(bytes: lhs.bytes - rhs.bytes) }

    /// Adds `rhs` to `lhs`.
    public static func += (lhs: inout DataSize, rhs: DataSize) { lhs.bytes += rhs.bytes }

    /// Subtracts `rhs` from `lhs`.
    public static func -= (lhs: inout DataSize, rhs: DataSize) { lhs.bytes -= rhs.bytes }
}

extension DataSize: Comparable {
    /// Whether `lhs` is the smaller amount.
    public static func < (lhs: DataSize, rhs: DataSize) -> Bool { lhs.bytes < rhs.bytes }
}

extension DataSize: CustomStringConvertible {
    /// The amount in B, kB or MB (powers of 1,000).
    public var description: String {
        switch bytes {
        case ..<10_000: "\(bytes) B"
        case ..<10_000_000: "\(bytes / 1000) kB"
        default: "\(bytes / 1_000_000) MB"
        }
    }
}

/// The size of a picture, in pixels.
public struct Dimensions: Hashable, Sendable {
    /// Pixels in a row: the picture's width.
    public var width: Int
    /// Rows: the picture's height.
    public var height: Int

    /// A size of `width` × `height` pixels.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// Pixels in a picture of this size.
    public var area: Int { width * height }

    /// This size with width and height swapped, as after a quarter turn.
    public var transposed: Dimensions { Dimensions(width: height, height: width) }

    /// The largest size of the same shape that `room` holds, with sides of at least 1; this size must have pixels.
    package func fitted(into room: Dimensions) -> Dimensions {
        if width * room.height > room.width * height {
            return Dimensions(width: room.width, height: max(1, room.width * height / width))
        }
        return Dimensions(width: max(1, room.height * width / height), height: room.height)
    }

    /// Whether a picture of this size is good enough where it is shown as large as `box` allows, in its own shape.
    ///
    /// It is if nine tenths of the pixels of a row or column are there: the eye does not see so little scaling, and the
    /// next larger size of a track has twice the pixels. `docs/protocol.md`, `subscribe`, has the rule.
    package func covers(_ box: Dimensions) -> Bool {
        // The picture touches the box's sides or its upper and lower edge. A product may overflow for what a peer states.
        Double(width) >= 0.9 * Double(box.width) || Double(height) >= 0.9 * Double(box.height)
    }

    /// The largest size that VP8 can code: 14 bits for each side (RFC 6386, section 9.1).
    public static let largestCodable = Dimensions(width: 16383, height: 16383)

    /// Whether each side has at least one pixel and at most as many as `largestCodable`.
    package var isCodable: Bool {
        (1...Self.largestCodable.width).contains(width) && (1...Self.largestCodable.height).contains(height)
    }
}

extension Dimensions: CustomStringConvertible {
    /// The size as `640x480`.
    public var description: String { "\(width)x\(height)" }
}

/// A frame rate as a fraction, as V4L2 and Y4M state it.
public struct FrameRate: Sendable {
    /// Frames in `denominator` seconds.
    public var numerator: Int
    /// Seconds in which `numerator` frames come.
    public var denominator: Int

    /// A rate of `numerator` frames in `denominator` seconds; both must be positive.
    public init(numerator: Int, denominator: Int) {
        precondition(numerator > 0 && denominator > 0, "a frame rate of \(numerator)/\(denominator)")
        self.numerator = numerator
        self.denominator = denominator
    }

    /// A whole number of frames per second.
    public init(_ framesPerSecond: Int) {
        self.init(numerator: framesPerSecond, denominator: 1)
    }

    /// The rate of so many frames per second, to the thousandth; `nil` unless it is from 0.001 to 1,000,000.
    public init?(_ framesPerSecond: Double) {
        guard framesPerSecond.isFinite, (0.001...1_000_000).contains(framesPerSecond) else { return nil }
        self.init(numerator: Int((framesPerSecond * 1000).rounded()), denominator: 1000)
    }

    /// Frames per second.
    public var framesPerSecond: Double { Double(numerator) / Double(denominator) }

    /// The time from one frame to the next; at most 292 years.
    public var interval: Duration {
        .nanoseconds(Int64(exactly: (Double(denominator) * 1e9 / Double(numerator)).rounded()) ?? .max)
    }
}

extension FrameRate: Hashable, Comparable {
    /// Whether both fractions have the same value.
    public static func == (lhs: FrameRate, rhs: FrameRate) -> Bool {
        // Multiply in full width: drivers and files state fractions with terms of 32 bits and more.
        lhs.numerator.multipliedFullWidth(by: rhs.denominator) == rhs.numerator.multipliedFullWidth(by: lhs.denominator)
    }

    /// Whether `lhs` is the lower rate.
    public static func < (lhs: FrameRate, rhs: FrameRate) -> Bool {
        lhs.numerator.multipliedFullWidth(by: rhs.denominator) < rhs.numerator.multipliedFullWidth(by: lhs.denominator)
    }

    /// Hashes the value of the fraction, so that equal rates with different terms have equal hashes.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(framesPerSecond)
    }
}

extension FrameRate: CustomStringConvertible {
    /// The rate in frames per second, with at most two decimals: `30`, `29.97`, `12.5`.
    public var description: String {
        let hundredths = Int(exactly: (framesPerSecond * 100).rounded()) ?? .max
        let (whole, rest) = hundredths.quotientAndRemainder(dividingBy: 100)
        if rest == 0 { return "\(whole)" }
        return rest % 10 == 0 ? "\(whole).\(rest / 10)" : "\(whole).\(rest < 10 ? "0" : "")\(rest)"
    }
}

extension Dimensions {
    /// Whether neither side is longer than the same side of `limit`.
    package func fits(in limit: Dimensions) -> Bool { width <= limit.width && height <= limit.height }

    /// The largest size with this aspect ratio that fits in `limit`, but no larger one than this.
    package func scaledDown(toFit limit: Dimensions) -> Dimensions {
        if fits(in: limit) { return self }
        let isTooWide = width * limit.height > limit.width * height
        return isTooWide
            ? Dimensions(width: limit.width, height: max(1, height * limit.width / width))
            : Dimensions(width: max(1, width * limit.height / height), height: limit.height)
    }
}
