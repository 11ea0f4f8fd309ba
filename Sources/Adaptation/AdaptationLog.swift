import MediaCore
import RoomProtocol

/// The recorded inputs of an `UplinkController`, with the decisions that it made: enough to make them again.
///
/// A log is text: a line that names the format and its version, a line with the settings, a line for each input, and a
/// last line with their number. Fields are separated by spaces; `-` stands for a value that is not there; times are in
/// microseconds.
package struct AdaptationLog: Hashable, Sendable {
    /// An input and, for a question, its answer.
    package struct Entry: Hashable, Sendable {
        /// When it was, in microseconds.
        package var time: Int64
        /// The input.
        package var input: UplinkInput
        /// The answer to `decide`; `nil` for all other inputs.
        package var decision: FrameDecision?

        /// An entry with the given values.
        package init(time: Int64, input: UplinkInput, decision: FrameDecision? = nil) {
            self.time = time
            self.input = input
            self.decision = decision
        }
    }

    /// The error for bytes that are no log of this version.
    package struct Malformed: Error, Hashable, Sendable, CustomStringConvertible {
        /// What is wrong and in which line.
        package var description: String

        init(_ description: String) {
            self.description = description
        }
    }

    /// The version of the format.
    package static let version = 1
    /// What a log begins with.
    static let signature = "room adaptation log"

    /// The settings of the controller.
    package var settings: UplinkController.Settings
    /// The inputs in their order.
    package var entries: [Entry]

    /// A log with the given content.
    package init(settings: UplinkController.Settings, entries: [Entry]) {
        self.settings = settings
        self.entries = entries
    }

    /// Reads a log, which may have any content.
    ///
    /// - Parameters:
    ///   - bytes: The whole file.
    ///   - acceptsCutOff: Whether a log without an end, such as a killed program leaves, is read up to its last
    ///   complete
    ///     line.
    /// - Throws: `Malformed` with the line and what is wrong there.
    package init(reading bytes: [UInt8], acceptsCutOff: Bool = false) throws(Malformed) {
        var reader = AdaptationLogReader(bytes)
        settings = try reader.header()
        entries = []
        while let entry = try reader.entry(acceptsCutOff: acceptsCutOff) { entries.append(entry) }
        guard let count = reader.statedCount else {
            if acceptsCutOff { return }
            let place = "after line \(reader.line)"
            throw Malformed("The log is cut off \(place): the line that ends it is missing.")
        }
        guard count == entries.count else {
            throw Malformed("The log says that it has \(count) inputs, but it has \(entries.count).")
        }
    }

    /// The whole log as text.
    package var text: String {
        var text = Self.header(settings)
        for entry in entries { entry.write(to: &text) }
        text += Self.end(count: entries.count)
        return text
    }

    /// The lines that begin a log.
    package static func header(_ settings: UplinkController.Settings) -> String {
        var line = "settings"
        for field in UplinkController.Settings.fields { line += " \(field.name)=\(field.text(settings))" }
        return "\(signature) \(version)\n\(line)\n"
    }

    /// The line that ends a log of `count` inputs.
    package static func end(count: Int) -> String { "end \(count)\n" }
}

extension AdaptationLog.Entry {
    /// Appends the entry's line to `text`.
    package func write(to text: inout String) {
        text += "\(time) "
        switch input {
        case .added(let lane):
            text += "add"
            write(lane, to: &text)
        case .replaced(let lane, let id):
            text += "replace \(id)"
            write(lane, to: &text)
        case .removed(let id): text += "remove \(id)"
        case .wanted(nil, let id): text += "unwanted \(id)"
        case .wanted(let bounds?, let id):
            text += "wanted \(id) \(field(bounds.bitrate?.bitsPerSecond))"
            text += " \(field(bounds.dimensions?.width)) \(field(bounds.dimensions?.height))"
            text += " \(field(bounds.frameRate?.numerator)) \(field(bounds.frameRate?.denominator))"
            text += " \(field(bounds.temporalLayers))"
        case .wrote(let bytes): text += "wrote \(bytes)"
        case .wroteText(let bytes): text += "wroteText \(bytes)"
        case .wroteAcknowledgement(let bytes): text += "wroteAck \(bytes)"
        case .acknowledged(let value):
            text += "ack \(value.cumulativeBytes) \(value.receiveTime.microseconds) \(value.trackAlias)"
            text += " \(value.frameNumber) \(field(value.firstByteTime?.microseconds))"
            text += " \(field(value.lastByteTime?.microseconds))"
        case .delivered(let packets): text += "delivered \(packets)"
        case .queueChanged(let bytes, let id): text += "queue \(id) \(bytes)"
        case .decide(let id, let isNewFrame, let keyframeDue):
            text += "ask \(id) \(isNewFrame ? 1 : 0) \(keyframeDue ? 1 : 0)"
            writeDecision(to: &text)
        case .queueFull(let id): text += "full \(id)"
        case .encoded(nil, let id): text += "left \(id)"
        case .encoded(let report?, let id):
            text += "encoded \(id) \(report.bytes) \(report.isKeyframe ? 1 : 0) \(report.quantizer)"
            text += " \(report.encodeDuration.wholeMicroseconds)"
            text += " \(report.dimensions.width) \(report.dimensions.height)"
        }
        text += "\n"
    }

    private func write(_ lane: UplinkController.Lane, to text: inout String) {
        let size = lane.largestDimensions
        text += " \(size.width) \(size.height) \(lane.frameRate.numerator) \(lane.frameRate.denominator)"
        text += " \(lane.highestBitrate.bitsPerSecond) \(lane.priority.rawValue) \(lane.preference.rawValue)"
        text += " \(lane.simulcastLayer) \(lane.track) \(field(lane.lowestBitrate?.bitsPerSecond))"
        // Logs without such lanes stay as earlier builds read them.
        if lane.isRelayed { text += " 1" }
    }

    private func writeDecision(to text: inout String) {
        switch decision {
        case nil: text += " unanswered"
        case .notWanted: text += " unwanted"
        case .wait(let time): text += " wait \(field(time?.microseconds))"
        case .encode(let target):
            text += " encode \(target.dimensions.width) \(target.dimensions.height) \(target.bitrate.bitsPerSecond)"
            text += " \(target.frameRate.numerator) \(target.frameRate.denominator) \(target.temporalLayerCount)"
            text += " \(field(target.largestFrame?.bytes))"
        }
    }

    private func field(_ value: (some BinaryInteger)?) -> String { value.map { "\($0)" } ?? "-" }
}
