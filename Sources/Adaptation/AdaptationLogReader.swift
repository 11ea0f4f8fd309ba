import MediaCore
import RoomProtocol

/// Reads the lines of a log, which may have any content.
struct AdaptationLogReader {
    typealias Malformed = AdaptationLog.Malformed

    /// The number of the line that was read last, from 1.
    private(set) var line = 0
    /// The number of inputs that the last line states; `nil` before it.
    private(set) var statedCount: Int?

    private let bytes: [UInt8]
    /// Where the next line begins.
    private var position = 0
    /// The part of the current line that was not read yet.
    private var rest = 0..<0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    // MARK: Lines

    mutating func header() throws(Malformed) -> UplinkController.Settings {
        let signature = Array(AdaptationLog.signature.utf8)
        guard bytes.starts(with: signature), try nextLine(acceptsCutOff: false) else {
            throw Malformed("The file is no adaptation log: it does not begin with “\(AdaptationLog.signature)”.")
        }
        rest = (rest.lowerBound + signature.count)..<rest.upperBound
        let version: Int = try number("version")
        guard version == AdaptationLog.version else {
            throw Malformed("The log has version \(version); this program reads version \(AdaptationLog.version).")
        }
        try endLine()
        guard try nextLine(acceptsCutOff: false), try word() == "settings" else {
            throw malformed("there are no settings")
        }
        var settings = UplinkController.Settings()
        while !rest.isEmpty {
            let field = try word().split(separator: "=", omittingEmptySubsequences: false)
            guard field.count == 2,
                let known = UplinkController.Settings.fields.first(where: { $0.name == field[0] }),
                known.read(field[1], into: &settings)
            else { throw malformed("“\(field.joined(separator: "="))” is no setting") }
        }
        return settings
    }

    /// The next entry; `nil` after the last.
    mutating func entry(acceptsCutOff: Bool) throws(Malformed) -> AdaptationLog.Entry? {
        guard try nextLine(acceptsCutOff: acceptsCutOff) else { return nil }
        let first = try word()
        if first == "end" {
            statedCount = try number("count")
            try endLine()
            guard position == bytes.count else { throw malformed("something follows the end") }
            return nil
        }
        guard let time = Int64(first), time >= 0 else { throw malformed("“\(first)” is no time") }
        var entry = AdaptationLog.Entry(time: time, input: .wrote(0))
        entry.input = try input(word())
        if case .decide = entry.input { entry.decision = try decision() }
        try endLine()
        return entry
    }

    private mutating func nextLine(acceptsCutOff: Bool) throws(Malformed) -> Bool {
        guard position < bytes.count else { return false }
        guard let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) else {
            if acceptsCutOff { return false }
            throw Malformed("The log is cut off in line \(line + 1).")
        }
        rest = position..<end
        position = end + 1
        line += 1
        return true
    }

    private func endLine() throws(Malformed) {
        guard rest.isEmpty else { throw malformed("the line is too long") }
    }

    private func malformed(_ problem: String) -> Malformed { Malformed("Line \(line) of the log: \(problem).") }

    // MARK: Fields

    private mutating func word() throws(Malformed) -> String {
        var start = rest.lowerBound
        while start < rest.upperBound, bytes[start] == UInt8(ascii: " ") { start += 1 }
        guard start < rest.upperBound else { throw malformed("a field is missing") }
        var end = start
        while end < rest.upperBound, bytes[end] != UInt8(ascii: " ") { end += 1 }
        rest = end..<rest.upperBound
        return String(decoding: bytes[start..<end], as: UTF8.self)
    }

    private mutating func number<Number: FixedWidthInteger>(_ name: String) throws(Malformed) -> Number {
        let word = try word()
        guard let number = Number(word) else { throw malformed("the \(name) is “\(word)”") }
        return number
    }

    private mutating func optional<Number: FixedWidthInteger>(_ name: String) throws(Malformed) -> Number? {
        let word = try word()
        if word == "-" { return nil }
        guard let number = Number(word) else { throw malformed("the \(name) is “\(word)”") }
        return number
    }

    private mutating func flag(_ name: String) throws(Malformed) -> Bool {
        let number: UInt8 = try number(name)
        guard number < 2 else { throw malformed("the \(name) is \(number)") }
        return number == 1
    }

    private mutating func dimensions() throws(Malformed) -> Dimensions {
        let size = Dimensions(width: try number("width"), height: try number("height"))
        let largest = Dimensions.largestCodable
        guard 1...largest.width ~= size.width, 1...largest.height ~= size.height else {
            throw malformed("the size is \(size)")
        }
        return size
    }

    private mutating func frameRate() throws(Malformed) -> FrameRate {
        let numerator: Int = try number("frame rate")
        let denominator: Int = try number("frame rate")
        guard numerator > 0, denominator > 0 else { throw malformed("the frame rate is \(numerator)/\(denominator)") }
        return FrameRate(numerator: numerator, denominator: denominator)
    }

    // MARK: Inputs

    private mutating func input(_ kind: String) throws(Malformed) -> UplinkInput {
        switch kind {
        case "add": return .added(try lane())
        case "replace":
            let id: Int = try number("lane")
            return .replaced(try lane(), id)
        case "remove": return .removed(try number("lane"))
        case "unwanted": return .wanted(nil, try number("lane"))
        case "wanted":
            let id: Int = try number("lane")
            return .wanted(try bounds(), id)
        case "wrote": return .wrote(try number("number of bytes"))
        case "wroteText": return .wroteText(try number("number of bytes"))
        case "wroteAck": return .wroteAcknowledgement(try number("number of bytes"))
        case "ack": return .acknowledged(try acknowledgement())
        case "delivered": return .delivered(try number("number of packets"))
        case "queue":
            let id: Int = try number("lane")
            return .queueChanged(try number("number of bytes"), id)
        case "ask":
            let id: Int = try number("lane")
            let isNewFrame = try flag("mark of a new frame")
            return .decide(id, isNewFrame: isNewFrame, keyframeDue: try flag("mark of a keyframe"))
        case "full": return .queueFull(try number("lane"))
        case "left": return .encoded(nil, try number("lane"))
        case "encoded":
            let id: Int = try number("lane")
            return .encoded(try report(), id)
        default: throw malformed("“\(kind)” is no input")
        }
    }

    private mutating func lane() throws(Malformed) -> UplinkController.Lane {
        let size = try dimensions()
        let frameRate = try frameRate()
        let bitrate: Int = try number("bitrate")
        let priority: UInt8 = try number("priority")
        let preference = try word()
        guard let priority = UplinkController.Lane.Priority(rawValue: priority) else {
            throw malformed("the priority is \(priority)")
        }
        guard let preference = DegradationPreference(rawValue: preference) else {
            throw malformed("the preference is “\(preference)”")
        }
        var lane = UplinkController.Lane(
            largestDimensions: size,
            frameRate: frameRate,
            highestBitrate: Bitrate(bitsPerSecond: bitrate),
            priority: priority,
            preference: preference,
            simulcastLayer: try number("simulcast layer")
        )
        // Logs of earlier builds end here.
        guard !rest.isEmpty else { return lane }
        lane.track = try number("track")
        let lowest: Int? = try optional("bitrate")
        lane.lowestBitrate = lowest.map(Bitrate.init(bitsPerSecond:))
        if !rest.isEmpty { lane.isRelayed = try flag("mark of relayed frames") }
        return lane
    }

    private mutating func bounds() throws(Malformed) -> LayerBounds {
        var bounds = LayerBounds()
        let bitrate: Int? = try optional("bitrate")
        bounds.bitrate = bitrate.map(Bitrate.init(bitsPerSecond:))
        let width: Int? = try optional("width")
        let height: Int? = try optional("height")
        if let width, let height { bounds.dimensions = Dimensions(width: width, height: height) }
        let numerator: Int? = try optional("frame rate")
        let denominator: Int? = try optional("frame rate")
        if let numerator, let denominator {
            guard numerator > 0, denominator > 0 else {
                throw malformed("the frame rate is \(numerator)/\(denominator)")
            }
            bounds.frameRate = FrameRate(numerator: numerator, denominator: denominator)
        }
        bounds.temporalLayers = try optional("number of temporal layers")
        return bounds
    }

    private mutating func acknowledgement() throws(Malformed) -> MediaAcknowledgement {
        let bytes: UInt64 = try number("number of bytes")
        let received: UInt64 = try number("time")
        let alias: UInt32 = try number("alias")
        let frame: UInt32 = try number("frame number")
        let first: UInt64? = try optional("time")
        let last: UInt64? = try optional("time")
        return MediaAcknowledgement(
            cumulativeBytes: bytes,
            receiveTime: MediaAcknowledgement.ReceiverTime(microseconds: received),
            trackAlias: alias,
            frameNumber: frame,
            firstByteTime: first.map(MediaAcknowledgement.ReceiverTime.init(microseconds:)),
            lastByteTime: last.map(MediaAcknowledgement.ReceiverTime.init(microseconds:))
        )
    }

    private mutating func report() throws(Malformed) -> EncodingReport {
        let bytes: Int = try number("number of bytes")
        let isKeyframe = try flag("mark of a keyframe")
        let quantizer: UInt8 = try number("quantizer")
        let duration: Int64 = try number("time")
        return EncodingReport(
            bytes: bytes,
            isKeyframe: isKeyframe,
            quantizer: quantizer,
            encodeDuration: .microseconds(duration),
            dimensions: try dimensions()
        )
    }

    private mutating func decision() throws(Malformed) -> FrameDecision? {
        let kind = try word()
        switch kind {
        case "unanswered": return nil
        case "unwanted": return .notWanted
        case "wait":
            let time: Int64? = try optional("time")
            return .wait(until: time.map(MonotonicInstant.init(microseconds:)))
        case "encode":
            let size = try dimensions()
            let bitrate: Int = try number("bitrate")
            let frameRate = try frameRate()
            let layers: Int = try number("number of temporal layers")
            let largest: Int? = try optional("largest frame")
            return .encode(
                EncodingTarget(
                    dimensions: size,
                    bitrate: Bitrate(bitsPerSecond: bitrate),
                    frameRate: frameRate,
                    temporalLayerCount: layers,
                    largestFrame: largest.map(DataSize.init(bytes:))
                )
            )
        default: throw malformed("“\(kind)” is no decision")
        }
    }
}
