package import FoundationEssentials
import MediaCore
import RelayCore
import WebSockets
import Wording

/// One of a server's limits, under the name that the table in section 11 of docs/protocol.md gives it.
package struct ServerSetting: Sendable {
    /// The key path of a `Value` in `RelayServer.Options`.
    package typealias Field<Value> = WritableKeyPath<RelayServer.Options, Value> & Sendable

    /// The field that a setting sets, and its unit in files.
    private enum Place: Sendable {
        case count(any Field<Int>)
        case time(any Field<Duration>)
        case size(any Field<DataSize>)
        case rate(any Field<Bitrate>)
    }

    /// The setting's name, such as "stream.liveWindow".
    package let name: String
    private let place: Place

    /// All settings of a server.
    ///
    /// Add a line here, and a row to the table in docs/protocol.md, for each new field of `RelaySettings`; a test fails
    /// without the line.
    package static let all: [ServerSetting] = [
        ServerSetting("maximumConnections", .count(\.maximumConnections)),
        ServerSetting("handshakeTimeout", .time(\.handshakeTimeout)),
        ServerSetting("idle.pingAfter", .time(\.idle.pingAfter)),
        ServerSetting("idle.hangUpAfter", .time(\.idle.hangUpAfter)),
        ServerSetting("idle.hangUpStoppedAfter", .time(\.idle.hangUpStoppedAfter)),
        ServerSetting("maximumRooms", .count(\.relay.maximumRooms)),
        ServerSetting("maximumParticipantsPerRoom", .count(\.relay.maximumParticipantsPerRoom)),
        ServerSetting("maximumTracksPerRoom", .count(\.relay.maximumTracksPerRoom)),
        ServerSetting("joinTimeout", .time(\.relay.joinTimeout)),
        ServerSetting("maximumOutbox", .size(\.relay.maximumOutbox)),
        ServerSetting("maximumOutboxes", .size(\.relay.maximumOutboxes)),
        ServerSetting("maximumSubscriptions", .count(\.relay.maximumSubscriptions)),
        ServerSetting("messageInterval", .time(\.relay.messageInterval)),
        ServerSetting("messageBurst", .count(\.relay.messageBurst)),
        ServerSetting("deliveriesPerSecond", .count(\.relay.deliveriesPerSecond)),
        ServerSetting("deliveryBurst", .count(\.relay.deliveryBurst)),
        ServerSetting("joinInterval", .time(\.relay.joinInterval)),
        ServerSetting("joinBurst", .count(\.relay.joinBurst)),
        ServerSetting("joinDeliveriesPerSecond", .count(\.relay.joinDeliveriesPerSecond)),
        ServerSetting("joinDeliveryBurst", .count(\.relay.joinDeliveryBurst)),
        ServerSetting("replacementInterval", .time(\.relay.replacementInterval)),
        ServerSetting("replacementBurst", .count(\.relay.replacementBurst)),
        ServerSetting("media.trackRate", .rate(\.relay.media.trackRate)),
        ServerSetting("media.trackPackets", .count(\.relay.media.trackPackets)),
        ServerSetting("media.participantRate", .rate(\.relay.media.participantRate)),
        ServerSetting("media.participantPackets", .count(\.relay.media.participantPackets)),
        ServerSetting("media.participantAcknowledgements", .count(\.relay.media.participantAcknowledgements)),
        ServerSetting("media.burstTime", .time(\.relay.media.burstTime)),
        ServerSetting("media.burstBytes", .size(\.relay.media.burstBytes)),
        ServerSetting("maximumStoredBytes", .size(\.relay.maximumStoredBytes)),
        ServerSetting("closeTimeout", .time(\.relay.closeTimeout)),
        ServerSetting("stream.liveWindow", .time(\.relay.stream.liveWindow)),
        ServerSetting("stream.cacheAge", .time(\.relay.stream.cacheAge)),
        ServerSetting("stream.stillFrames", .count(\.relay.stream.stillFrames)),
        ServerSetting("stream.stillBytes", .size(\.relay.stream.stillBytes)),
        ServerSetting("stream.maximumBytes", .size(\.relay.stream.maximumBytes)),
        ServerSetting("forwarding.dropTopLayerAfter", .time(\.relay.forwarding.dropTopLayerAfter)),
        ServerSetting("forwarding.dropMiddleLayerAfter", .time(\.relay.forwarding.dropMiddleLayerAfter)),
        ServerSetting("forwarding.skipAfter", .time(\.relay.forwarding.skipAfter)),
        ServerSetting("forwarding.longestBacklog", .time(\.relay.forwarding.longestBacklog)),
        ServerSetting("keyframes.interval", .time(\.relay.keyframes.interval)),
        ServerSetting("keyframes.patience", .count(\.relay.keyframes.patience)),
    ]

    private init(_ name: String, _ place: Place) {
        self.name = name
        self.place = place
    }

    /// The meaning of a number in a file: a count, or its unit.
    private var meaning: String {
        switch place {
        case .count: "a whole number"
        case .time: "a number of seconds"
        case .size: "a whole number of bytes"
        case .rate: "a whole number of bits per second"
        }
    }

    /// The largest number that makes sense: a day, a tebibyte, or a billion of anything else.
    private var maximum: Double {
        switch place {
        case .time: 86_400
        case .size: 1_099_511_627_776
        case .count, .rate: 1_000_000_000
        }
    }

    /// The value in `options`, in the unit of files.
    package func value(in options: RelayServer.Options) -> Double {
        switch place {
        case .count(let field): Double(options[keyPath: field])
        case .time(let field): options[keyPath: field].seconds
        case .size(let field): Double(options[keyPath: field].bytes)
        case .rate(let field): Double(options[keyPath: field].bitsPerSecond)
        }
    }

    /// The value in `options`, with its unit.
    fileprivate func text(in options: RelayServer.Options) -> String {
        switch place {
        case .count(let field): "\(options[keyPath: field])"
        case .time(let field): "\(options[keyPath: field].seconds) s"
        case .size(let field): "\(options[keyPath: field].bytes) bytes"
        case .rate(let field): "\(options[keyPath: field].bitsPerSecond) bit/s"
        }
    }

    /// Sets the value to the one of a file.
    fileprivate func set(_ value: SettingsFile.Value, in options: inout RelayServer.Options) throws(SettingsError) {
        // Shorter times would become none.
        let least = isTime ? "at least 0.001" : "above 0"
        let rule = "“\(name)” must be \(meaning), \(least) and at most \(Int(maximum))"
        let number: Double
        switch value {
        case .number(let given): number = given
        case .other(let kind): throw SettingsError("\(rule), not \(kind)")
        }
        let isPossible = isTime ? number >= 0.001 : number > 0 && number == number.rounded()
        guard isPossible, number <= maximum else { throw SettingsError(rule) }
        switch place {
        case .count(let field): options[keyPath: field] = Int(number)
        case .time(let field): options[keyPath: field] = .seconds(number)
        case .size(let field): options[keyPath: field] = DataSize(bytes: Int(number))
        case .rate(let field): options[keyPath: field] = Bitrate(bitsPerSecond: Int(number))
        }
    }

    private var isTime: Bool { if case .time = place { true } else { false } }
}

/// The reason why a settings file cannot be used.
package struct SettingsError: Error, Equatable, CustomStringConvertible {
    /// What is wrong, without the file's name and without a full stop.
    package let description: String

    init(_ description: String) {
        self.description = description
    }
}

extension RelayServer.Options {
    /// Applies the settings in `file`; a setting that is not in it stays as it is.
    ///
    /// The file is a JSON object whose keys are the names of `ServerSetting.all`. Times are in seconds, sizes in bytes,
    /// and rates in bits per second. If the file cannot be used, nothing is changed.
    ///
    /// - Throws: `SettingsError` if the file is not such an object in strict JSON, has an unknown or a repeated name,
    ///   has a value out of range, or has values that contradict each other.
    package mutating func apply(settings file: Data) throws(SettingsError) {
        var options = self
        var reader = try SettingsFile(file)
        var read: [String: SettingsFile.Member] = [:]
        while let member = try reader.next() {
            let place = reader.place(of: member)
            if let earlier = read.updateValue(member, forKey: member.name) {
                let places = "\(reader.place(of: earlier)) and \(place)"
                throw SettingsError("\(SettingsError.quoted(member.name)) is set twice, at \(places); leave one out")
            }
            guard let setting = ServerSetting.all.first(where: { $0.name == member.name }) else {
                throw SettingsError("\(place): \(Self.advice(onUnknown: member.name))")
            }
            do throws(SettingsError) {
                try setting.set(member.value, in: &options)
            } catch {
                throw SettingsError("\(place): \(error)")
            }
        }
        // Who sets the patience with a silent machine alone means no less of it with one that still answers.
        if read["idle.hangUpStoppedAfter"] == nil {
            options.idle.hangUpStoppedAfter = max(options.idle.hangUpAfter, options.idle.hangUpStoppedAfter)
        }
        try options.checkOrder()
        self = options
    }

    private static func advice(onUnknown name: String) -> String {
        let quoted = SettingsError.quoted(name)
        if name.hasPrefix("WireFormat.") || name.hasPrefix("Dimensions.") {
            return "\(quoted) belongs to the protocol and cannot be set"
        }
        let names = ServerSetting.all.map(\.name)
        // "liveWindow" alone is as clear as a misspelled name.
        let meant = names.first { $0.hasSuffix(".\(name)") } ?? Spelling.nearest(to: name, among: names)
        let suggestion = meant.map { "did you mean “\($0)”? All are" } ?? "all are"
        return "there is no setting \(quoted); \(suggestion) in docs/protocol.md, section 11"
    }

    /// Checks the settings that depend on each other.
    private func checkOrder() throws(SettingsError) {
        let ordered = [
            ["idle.pingAfter", "idle.hangUpAfter", "idle.hangUpStoppedAfter"],
            ["forwarding.dropTopLayerAfter", "forwarding.dropMiddleLayerAfter", "forwarding.skipAfter"],
            ["forwarding.skipAfter", "stream.liveWindow"], ["keyframes.interval", "stream.cacheAge"],
            ["maximumOutbox", "maximumOutboxes"],
        ]
        let settings = Dictionary(uniqueKeysWithValues: ServerSetting.all.map { ($0.name, $0) })
        for names in ordered {
            for (lower, upper) in zip(names, names.dropFirst()) {
                guard let low = settings[lower], let high = settings[upper], low.value(in: self) > high.value(in: self)
                else { continue }
                let (least, most) = (low.text(in: self), high.text(in: self))
                throw SettingsError("“\(lower)” (\(least)) must not be beyond “\(upper)” (\(most))")
            }
        }
    }
}
