import MediaCore
import RelayCore
import RoomProtocol
import TestTools
import Testing

/// What `docs/protocol.md` says about who sends what when, section 5 above all, against the relay.
@Suite("The protocol's document: sequences", .timeLimit(.minutes(1)))
struct ProtocolDocumentSequenceTests {
    /// A relay and what it sent, by connection, each message as its type and what matters of it.
    private struct Bench: ~Copyable {
        private var relay = Relay(
            settings: RelaySettings(),
            videoCodecs: [VideoCodec.vp8],
            bootID: "boot",
            serverName: "test"
        )
        private var generator = SeededGenerator(seed: 1)
        var now = MonotonicInstant(microseconds: 1_000_000)

        mutating func open() -> SlotID { relay.connectionOpened(subprotocol: WireFormat.subprotocol, at: now) }

        mutating func send(_ message: ClientMessage, from id: SlotID) {
            relay.receive(message.text, from: id, at: now, using: &generator)
        }

        mutating func join(_ identity: String) -> SlotID {
            let id = open()
            send(.join(Join(room: "lab", identity: identity)), from: id)
            return id
        }

        mutating func sendFrame(_ info: EncodedFrameInfo, alias: UInt32, from id: SlotID) {
            var packets: [PacketBuffer] = []
            let payload: [UInt8] = [1, 2, 3]
            Packetizer(trackAlias: alias).packetize(
                info,
                bytes: payload.span.bytes,
                captureTime: RoomTime(microseconds: now.microseconds),
                encodeDelay: .zero,
                makeBuffer: { count in
                    let buffer = PacketBuffer(capacity: count)
                    buffer.count = count
                    return buffer
                },
                emit: { packets.append($0) }
            )
            for packet in packets { relay.receive(packet, from: id, at: now) }
        }

        mutating func take(_ id: SlotID) throws -> [String] {
            var taken: [String] = []
            while let outgoing = relay.nextMessage(for: id, at: now) {
                switch outgoing.message {
                case .text(let text): taken.append(Self.summary(try ServerMessage(reading: text)))
                case .shared(let packet):
                    let header = try packet.withBytes { try MediaPacketHeader(reading: $0) }
                    taken.append("frame \(header.frameNumber)")
                case .exclusive: taken.append("acknowledgement")
                case .close(let code, _): taken.append("close \(code)")
                }
            }
            return taken
        }

        private static func summary(_ message: ServerMessage) -> String {
            switch message {
            case .layersWanted(let body): "layersWanted \(body.simulcastLayers)"
            case .subscribed(let body): "subscribed \(body.catchUpThrough.map { "\($0)" } ?? "live")"
            case .error(let body): "error \(body.code) \(body.fatal ? "fatal" : "non-fatal")"
            case .joined(let body): "joined, others: \(body.participants.map(\.identity))"
            case .participantConnected(let body): "participantConnected \(body.participant.identity)"
            default: "\(message)".prefix { $0 != "(" }.description
            }
        }
    }

    private func publish(_ bench: inout Bench, from id: SlotID) {
        let request = Publish(
            requestId: 1,
            name: "camera",
            source: "camera",
            codec: VideoCodec.vp8,
            width: 64,
            height: 48,
            frameRate: 30
        )
        bench.send(.publish(request), from: id)
    }

    @Test("5.1 and 5.2: joining, publishing, subscribing")
    func joinAndPublish() throws {
        var bench = Bench()
        let publisher = bench.join("robot-1")
        let subscriber = bench.join("bench-3")
        #expect(try bench.take(publisher) == ["joined, others: []", "participantConnected bench-3"])
        #expect(try bench.take(subscriber) == [#"joined, others: ["robot-1"]"#])
        publish(&bench, from: publisher)
        #expect(try bench.take(publisher) == ["published", "layersWanted []", "layersWanted [0]"])
        #expect(try bench.take(subscriber) == ["trackPublished", "subscribed live"])
    }

    @Test("5.3: a late joiner gets the cached frames of temporal layer 0, then live frames")
    func lateJoin() throws {
        var bench = Bench()
        let publisher = bench.join("robot-1")
        let witness = bench.join("witness")
        publish(&bench, from: publisher)
        func info(_ number: UInt32) -> EncodedFrameInfo {
            let layer = [0, 2, 1, 2][Int(number % 4)]
            return EncodedFrameInfo(
                number: number,
                timestamp: bench.now,
                isKeyframe: number == 280,
                temporalLayer: UInt8(layer),
                isLayerSync: layer == 1,
                isDiscardable: layer == 2,
                baseLayerIndex: UInt16(number / 4)
            )
        }
        for number in 280...299 as ClosedRange<UInt32> {
            bench.sendFrame(info(number), alias: 1, from: publisher)
            bench.now += .milliseconds(33)
        }
        let newcomer = bench.join("newcomer")
        bench.sendFrame(info(300), alias: 1, from: publisher)
        let expected = ["joined, others: [\"robot-1\", \"witness\"]", "subscribed 296"]
        #expect(try bench.take(newcomer) == expected + [280, 284, 288, 292, 296, 300].map { "frame \($0)" })
        #expect(try !bench.take(publisher).contains("keyframeRequest"))
        _ = witness
    }

    @Test("5.3, end: without a cached keyframe the publisher is asked for one")
    func lateJoinWithoutCache() throws {
        var bench = Bench()
        let publisher = bench.join("robot-1")
        _ = bench.join("witness")
        publish(&bench, from: publisher)
        bench.now += .seconds(1)
        let newcomer = bench.join("newcomer")
        #expect(try bench.take(newcomer).last == "subscribed live")
        #expect(try bench.take(publisher).last == "keyframeRequest")
    }

    @Test("5.5: the server closes with 1000 after leave, and the others are told")
    func leave() throws {
        var bench = Bench()
        let leaver = bench.join("robot-1")
        let other = bench.join("bench-3")
        _ = try (bench.take(leaver), bench.take(other))
        bench.send(.leave(Leave(reason: "left")), from: leaver)
        #expect(try bench.take(leaver) == ["close 1000"])
        #expect(try bench.take(other) == ["participantDisconnected"])
    }

    @Test("5.6: a newcomer takes the place of its namesake")
    func duplicateIdentity() throws {
        var bench = Bench()
        let old = bench.join("bench-3")
        let other = bench.join("robot-1")
        _ = try (bench.take(old), bench.take(other))
        let new = bench.join("bench-3")
        #expect(try bench.take(old) == ["error 4409 fatal", "close 4409"])
        #expect(try bench.take(other) == ["participantDisconnected", "participantConnected bench-3"])
        #expect(try bench.take(new) == [#"joined, others: ["robot-1"]"#])
    }

    @Test("Resuming is answered by 4410, and join on the same connection goes through")
    func resume() throws {
        var bench = Bench()
        let id = bench.open()
        bench.send(.resume(Resume(resumeToken: "x")), from: id)
        #expect(try bench.take(id) == ["error 4410 non-fatal"])
        bench.send(.join(Join(room: "lab", identity: "a")), from: id)
        #expect(try bench.take(id) == ["joined, others: []"])
    }
}
