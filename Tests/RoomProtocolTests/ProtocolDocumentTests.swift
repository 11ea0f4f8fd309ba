import Foundation
import MediaCore
import RelayCore
import RoomProtocol
import Testing

/// The page and the code cannot drift apart: what `docs/protocol.md` shows and tables is read by the code here.
@Suite("The protocol's document: signaling and numbers", .timeLimit(.minutes(1)))
struct ProtocolDocumentTests {
    private let document: ProtocolDocument

    init() throws {
        document = try ProtocolDocument()
    }

    @Test("Every client example is read and holds no field that the code does not know")
    func clientExamples() throws {
        let examples = document.blocks("json client")
        var types: Set<String> = []
        for example in examples {
            let message = try ClientMessage(reading: example)
            #expect(try object(message.text) == object(example))
            types.insert(typeName(of: message))
        }
        let expected: Set = [
            Join.type, Resume.type, Publish.type, Unpublish.type, Enable.type, Disable.type, UpdateTrack.type,
            Subscribe.type, Unsubscribe.type, KeyframeRequest.type, TimeSync.type, Leave.type,
        ]
        #expect(types == expected)
    }

    @Test("Every server example is read and holds no field that the code does not know")
    func serverExamples() throws {
        var types: Set<String> = []
        for example in document.blocks("json server") {
            let message = try ServerMessage(reading: example)
            #expect(try object(message.text) == object(example))
            types.insert(typeName(of: message))
        }
        let expected: Set = [
            Joined.type, ParticipantConnected.type, ParticipantsComplete.type, ParticipantDisconnected.type,
            Published.type, TrackPublished.type,
            TrackUnpublished.type, TrackEnabled.type, TrackDisabled.type, Subscribed.type, Unsubscribed.type,
            LayersWanted.type, NetworkQuality.type, TrackSwitchedOff.type, TrackSwitchedOn.type, KeyframeRequest.type,
            TimeSync.type, ErrorMessage.type, Leave.type,
        ]
        #expect(types == expected)
    }

    @Test("Each example stands in the section of its type")
    func exampleSections() throws {
        for section in document.sections {
            for block in section.blocks where ["json client", "json server"].contains(block.info) {
                #expect(try object(block.text)["type"] as? String == section.title.withoutBackticks)
            }
        }
    }

    @Test("Reserved messages are unknown types to the code")
    func reservedExamples() throws {
        let examples = document.blocks("json reserved")
        #expect(examples.count == 2)
        for example in examples {
            let type = try #require(try object(example)["type"] as? String)
            let errors = [
                #expect(throws: UnreadableMessage.self) { try ServerMessage(reading: example) },
                #expect(throws: UnreadableMessage.self) { try ClientMessage(reading: example) },
            ]
            for error in errors {
                let head: MessageHead? = if case .unknownType(let head)? = error { head } else { nil }
                #expect(head?.type == type)
            }
        }
    }

    @Test("The table of what version 0.1 does names each section that reserves something")
    func reservedParts() throws {
        let table = try #require(document.section("3.1 What version 0.1 does")?.tables.first)
        let named = Set(table.rows.flatMap { $0[1].split(separator: ",") }.map { $0.trimmingCharacters(in: [" "]) })
        #expect(document.reservedSections.isSuperset(of: ["2", "4.2", "13.1"]))
        #expect(document.reservedSections.subtracting(named).isEmpty)
    }

    @Test("There is no fenced JSON without a direction")
    func directions() {
        let infos = Set(document.sections.flatMap(\.blocks).map(\.info).filter { $0.hasPrefix("json") })
        #expect(infos == ["json client", "json server", "json reserved"])
    }

    @Test("The tables of fields have the names, the types and the optionality of the code")
    func fieldTables() throws {
        var bodies = try document.blocks("json client").map { try body(of: ClientMessage(reading: $0)) }
        bodies += try document.blocks("json server").map { try body(of: ServerMessage(reading: $0)) }
        for body in bodies where !(body is ParticipantsComplete) {
            try checkFields(of: body, in: "`\(type(of: body).type)`")
        }
        let joined = try #require(bodies.compactMap { $0 as? Joined }.first)
        let participant = try #require(joined.participants.first)
        try checkFields(of: participant, in: "Object `participant`")
        try checkFields(of: #require(participant.tracks.first), in: "Object `track`")
        let wanted = try #require(bodies.compactMap { $0 as? LayersWanted }.first)
        try checkFields(of: #require(wanted.layers.first), in: "Object `wantedLayer`")
        let publish = try #require(bodies.compactMap { $0 as? Publish }.first)
        try checkFields(of: #require(publish.simulcastLayers?.first), in: "Object `simulcastLayer`")
        let updateTrack = try #require(bodies.compactMap { $0 as? UpdateTrack }.first)
        try checkFields(of: #require(updateTrack.sizes?.first), in: "Object `size`")
    }

    @Test("An optional field that is null counts as left out, and an unknown field is ignored")
    func nullAndUnknownFields() throws {
        let bare = try ServerMessage(reading: #"{"type":"subscribed","trackId":"TR_a","alias":1}"#)
        let null = try ServerMessage(
            reading: #"{"type":"subscribed","trackId":"TR_a","alias":1,"catchUpThrough":null,"later":[1]}"#
        )
        #expect(bare == null)
    }

    @Test("The table of error codes is the code's, no more and no less")
    func errorCodes() throws {
        let table = try #require(document.section("12. Errors and close codes")?.tables.first)
        var documented: [Int: String] = [:]
        for row in table.rows { documented[try #require(Int(row[0]))] = row[1] }
        var known: [Int: String] = [:]
        for number in 4000...4999 where RoomErrorCode(rawValue: number).name != "unknown" {
            known[number] = RoomErrorCode(rawValue: number).name
        }
        #expect(documented == known)
    }

    @Test("The table of limits has the code's values")
    func limits() throws {
        let table = try #require(document.section("11. Limits")?.tables.first)
        var documented: [String: String] = [:]
        for row in table.rows { documented[row[1].withoutBackticks] = row[2] }
        let settings = RelaySettings()
        let expected: [String: String] = [
            "WireFormat.maximumBinaryMessage": text(WireFormat.maximumBinaryMessage),
            "WireFormat.maximumTextMessage": text(WireFormat.maximumTextMessage),
            "WireFormat.minimumChunk": "at least \(text(WireFormat.minimumChunk))",
            "deliveriesPerSecond": text(settings.deliveriesPerSecond),
            "deliveryBurst": text(settings.deliveryBurst),
            "joinInterval": text(settings.joinInterval),
            "joinBurst": text(settings.joinBurst),
            "joinDeliveriesPerSecond": text(settings.joinDeliveriesPerSecond),
            "joinDeliveryBurst": text(settings.joinDeliveryBurst),
            "replacementInterval": text(settings.replacementInterval),
            "replacementBurst": text(settings.replacementBurst),
            "media.trackRate": text(settings.media.trackRate),
            "media.trackPackets": text(settings.media.trackPackets),
            "media.participantRate": text(settings.media.participantRate),
            "media.participantPackets": text(settings.media.participantPackets),
            "media.participantAcknowledgements": text(settings.media.participantAcknowledgements),
            "media.burstTime": text(settings.media.burstTime),
            "media.burstBytes": text(settings.media.burstBytes),
            "maximumStoredBytes": text(settings.maximumStoredBytes),
            "WireFormat.maximumFrame": text(WireFormat.maximumFrame),
            "WireFormat.maximumNameBytes": "\(text(WireFormat.maximumNameBytes)) bytes",
            "WireFormat.maximumTracksPerParticipant": text(WireFormat.maximumTracksPerParticipant),
            "Dimensions.largestCodable": text(Dimensions.largestCodable.width),
            // The defaults of `RelayServer.Options`, which this target does not import.
            "maximumConnections": "2,000",
            "handshakeTimeout": "10 s",
            "idle.pingAfter": "10 s",
            "idle.hangUpAfter": "30 s",
            "idle.hangUpStoppedAfter": "45 s",
            "maximumRooms": text(settings.maximumRooms),
            "maximumParticipantsPerRoom": text(settings.maximumParticipantsPerRoom),
            "maximumTracksPerRoom": text(settings.maximumTracksPerRoom),
            "messageInterval": text(settings.messageInterval),
            "messageBurst": text(settings.messageBurst),
            "joinTimeout": text(settings.joinTimeout),
            "maximumOutbox": text(settings.maximumOutbox),
            "maximumOutboxes": text(settings.maximumOutboxes),
            "maximumSubscriptions": text(settings.maximumSubscriptions),
            "closeTimeout": text(settings.closeTimeout),
            "stream.liveWindow": text(settings.stream.liveWindow),
            "stream.cacheAge": text(settings.stream.cacheAge),
            "stream.stillFrames": text(settings.stream.stillFrames),
            "stream.stillBytes": text(settings.stream.stillBytes),
            "stream.maximumBytes": text(settings.stream.maximumBytes),
            "forwarding.dropTopLayerAfter": text(settings.forwarding.dropTopLayerAfter),
            "forwarding.dropMiddleLayerAfter": text(settings.forwarding.dropMiddleLayerAfter),
            "forwarding.skipAfter": text(settings.forwarding.skipAfter),
            "forwarding.longestBacklog": text(settings.forwarding.longestBacklog),
            "keyframes.interval": text(settings.keyframes.interval),
            "keyframes.patience": text(settings.keyframes.patience),
        ]
        #expect(documented == expected)
    }

    @Test("The table of forwarding has the policy's thresholds")
    func forwarding() throws {
        let table = try #require(document.section("10. Forwarding")?.tables.first)
        let policy = ForwardingPolicy()
        let lags =
            ["up to \(text(policy.dropTopLayerAfter))"]
            + [policy.dropTopLayerAfter, policy.dropMiddleLayerAfter, policy.skipAfter].map { "more than \(text($0))" }
        #expect(table.rows.map { $0[0] } == lags)
    }

    @Test(
        "A subscriber's keyframes are apart as written: 1, 2, 4, 8, 16, then 32 s, or 1, 2, then 4 s after outages",
        arguments: zip(
            [KeyframeBackoff.Need.other, .refresh, .outage],
            [[1, 2, 4, 8, 16, 32, 32], [1, 2, 4, 8, 16, 32, 32], [1, 2, 4, 4, 4]]
        )
    )
    func keyframeBackoff(need: KeyframeBackoff.Need, gaps: [Int]) {
        var backoff = KeyframeBackoff()
        let start = MonotonicInstant(nanoseconds: 1)
        var last = backoff.needed(because: need, othersPay: true, at: start)
        #expect(last == start)
        for gap in gaps {
            let repeated = backoff.needed(because: need, othersPay: true, at: last)
            #expect(repeated == last, "a need is repeated")
            let now = last + .nanoseconds(1)
            let alone = backoff.needed(because: need, othersPay: false, at: now)
            #expect(alone == now)
            let next = backoff.needed(because: need, othersPay: true, at: now)
            #expect(next.duration(since: last) == .seconds(gap))
            last = next
        }
    }

    // MARK: Helpers

    private func object(_ json: String) throws -> NSDictionary {
        try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? NSDictionary)
    }

    private func checkFields(of value: Any, in title: String) throws {
        let table = try #require(document.section(title)?.tables.first, "no table of fields in \(title)")
        var documented: [String: [String]] = [:]
        for row in table.rows { documented[row[0].withoutBackticks] = [row[1], row[2]] }
        var known: [String: [String]] = [:]
        for field in Mirror(reflecting: value).children {
            let name = "\(type(of: field.value))"
            let isOptional = name.hasPrefix("Optional<")
            let plain = isOptional ? String(name.dropFirst("Optional<".count).dropLast()) : name
            known[try #require(field.label)] = [jsonType(plain), isOptional ? "no" : "yes"]
        }
        #expect(documented == known, "\(title)")
    }

    private func jsonType(_ name: String) -> String {
        switch name {
        case "String": "string"
        case "Bool": "boolean"
        case "Int", "Int64", "UInt32": "integer"
        case "Double": "number"
        default: name.hasPrefix("Array<") ? "array" : "object"
        }
    }

    private func body(of message: Any) throws -> any SignalingBody {
        try #require(Mirror(reflecting: message).children.first?.value as? any SignalingBody)
    }

    private func typeName(of message: Any) -> String {
        (try? body(of: message)).map { type(of: $0).type } ?? ""
    }

    private func text(_ number: Int) -> String {
        number.formatted(.number.locale(Locale(identifier: "en_US")))
    }

    private func text(_ rate: Bitrate) -> String { "\(text(rate.bitsPerSecond / 1_000_000)) Mbit/s" }

    private func text(_ size: DataSize) -> String { "\(text(size.bytes)) bytes" }

    private func text(_ duration: Duration) -> String {
        let milliseconds = duration.wholeMicroseconds / 1000
        return milliseconds % 1000 == 0 ? "\(milliseconds / 1000) s" : "\(milliseconds) ms"
    }
}
