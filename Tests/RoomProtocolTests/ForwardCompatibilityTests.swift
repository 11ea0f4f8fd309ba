import MediaCore
import RoomProtocol
import Testing

/// What a server of a later release may send, which a client of this one must take without harm.
@Suite("Forward compatibility", .timeLimit(.minutes(1)))
struct ForwardCompatibilityTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000)

    private func joinedSession() -> ClientSession {
        var session = ClientSession(
            ClientSession.Settings(join: Join(room: "lab", identity: "viewer"), videoCodecs: [VideoCodec.vp8])
        )
        _ = session.connectionOpened(at: start)
        _ = session.received(joined(more: nil, participants: []), at: start)
        return session
    }

    private func joined(more: Bool?, participants: [ParticipantInfo]) -> String {
        let body = Joined(
            room: Joined.RoomInfo(id: "RM_1", name: "lab"),
            participant: ParticipantInfo(id: "PA_me", identity: "viewer", tracks: []),
            participants: participants,
            moreParticipants: more,
            serverTime: start.microseconds,
            bootId: nil,
            server: "room-server 9.0"
        )
        return ServerMessage.joined(body).text
    }

    private func participant(_ index: Int) -> ParticipantInfo {
        ParticipantInfo(id: "PA_\(index)", identity: "robot \(index)", tracks: [])
    }

    /// A robot with a microphone, a sensor, an AV1 camera, a video track without a size, and a VP8 camera.
    private let robot = """
        {"type": "participantConnected", "participant": {"id": "PA_1", "identity": "robot", "mood": 7, "tracks": [
          {"id": "TR_audio", "alias": 1, "name": "mic", "kind": "audio", "source": "microphone", "enabled": true},
          {"id": "TR_data", "alias": 2, "name": "lidar", "kind": "data", "source": "other", "enabled": true},
          {"id": "TR_av1", "alias": 3, "name": "hd", "kind": "video", "source": "camera", "codec": "av1", "width": 64,
           "height": 48, "frameRate": 30, "enabled": true},
          {"id": "TR_bare", "alias": 4, "name": "bare", "kind": "video", "source": "camera", "enabled": true},
          {"id": "TR_vp8", "alias": 5, "name": "sd", "kind": "video", "source": "camera", "codec": "vp8", "width": 64,
           "height": 48, "frameRate": 30, "enabled": true, "simulcastLayers": [
             {"simulcastLayer": 0, "width": 32, "height": 24}, {"simulcastLayer": 1, "width": 64, "height": 48, "bitrate": 9}]}]}}
        """

    private func subscribed(_ id: String, alias: Int) -> String {
        "{\"type\": \"subscribed\", \"trackId\": \"\(id)\", \"alias\": \(alias), \"simulcastLayer\": 1, \"catchUpThrough\": 9}"
    }

    @Test("Tracks of unknown kinds are not reported, and their subscriptions are ended")
    func otherKinds() throws {
        var session = joinedSession()
        guard case .notify(.participantConnected(let told)) = session.received(robot, at: start).first else {
            Issue.record("no participant")
            return
        }
        #expect(told.tracks.map(\.id) == ["TR_av1", "TR_bare", "TR_vp8"])
        #expect(session.remoteParticipants["PA_1"]?.tracks.count == 3)
        for (id, alias) in [("TR_audio", 1), ("TR_data", 2)] {
            #expect(
                session.received(subscribed(id, alias: alias), at: start)
                    == [.send(.unsubscribe(Unsubscribe(trackId: id)))]
            )
            for type in ["trackEnabled", "trackDisabled", "trackUnpublished"] {
                let text = "{\"type\": \"\(type)\", \"participantId\": \"PA_1\", \"trackId\": \"\(id)\"}"
                #expect(session.received(text, at: start) == [])
            }
            #expect(session.received("{\"type\": \"unsubscribed\", \"trackId\": \"\(id)\"}", at: start) == [])
        }
        let published = """
            {"type": "trackPublished", "participantId": "PA_1",
             "track": {"id": "TR_a", "alias": 9, "name": "mic", "kind": "audio", "source": "x", "enabled": true}}
            """
        #expect(session.received(published, at: start) == [])
    }

    @Test("A track of an unknown codec, or without a size, is reported, and its subscription fails")
    func otherCodecs() throws {
        var session = joinedSession()
        _ = session.received(robot, at: start)
        let av1 = session.received(subscribed("TR_av1", alias: 3), at: start)
        #expect(av1.first == .send(.unsubscribe(Unsubscribe(trackId: "TR_av1"))))
        guard case .notify(.subscriptionFailed(let track, _, .unknownCodec("av1"))) = av1.last else {
            Issue.record("\(av1)")
            return
        }
        #expect(track.id == "TR_av1")
        let bare = session.received(subscribed("TR_bare", alias: 4), at: start)
        guard case .notify(.subscriptionFailed(_, _, .incompleteDescription)) = bare.last else {
            Issue.record("\(bare)")
            return
        }
        let vp8 = session.received(subscribed("TR_vp8", alias: 50), at: start)
        guard case .notify(.subscribed(let known, _, let subscription)) = vp8.first else {
            Issue.record("\(vp8)")
            return
        }
        #expect(known.alias == 50, "the alias of `subscribed` is the one that counts")
        #expect(subscription == .init(simulcastLayer: 1, catchUpThrough: 9))
    }

    @Test("Catch-up ends with its number in the simulcast layer that it names, and in no other")
    func catchUpOfALayer() {
        let subscription = ClientSession.Subscription(simulcastLayer: 1, catchUpThrough: 9)
        func frame(_ number: UInt32, _ layer: UInt8) -> EncodedFrameInfo {
            EncodedFrameInfo(number: number, simulcastLayer: layer, timestamp: start, isKeyframe: true)
        }
        #expect(subscription.isCatchUp(frame(9, 1)))
        #expect(!subscription.isCatchUp(frame(10, 1)))
        #expect(!subscription.isCatchUp(frame(3, 0)))
        #expect(!ClientSession.Subscription().isCatchUp(frame(0, 0)))
    }

    @Test("One of two simulcast layers is assembled at a time, and another begins with a keyframe")
    func simulcastLayers() throws {
        var assembler = FrameAssembler()
        var foreignFrames = 0
        func receive(_ number: UInt32, layer: UInt8, keyframe: Bool = false) throws -> UInt32? {
            let info = EncodedFrameInfo(
                number: number,
                simulcastLayer: layer,
                timestamp: start,
                isKeyframe: keyframe
            )
            var result: UInt32?
            for packet in packets(info, length: 20_000) {
                let header = try packet.withBytes { try MediaPacketHeader(reading: $0) }
                let outcome = try assembler.receive(packet, header: header) { makeBuffer($0) }
                if case .foreign = outcome { foreignFrames += 1 }
                result = outcome.frame?.header.frameNumber ?? result
            }
            return result
        }
        #expect(try receive(100, layer: 0, keyframe: true) == 100)
        #expect(try receive(7, layer: 1) == nil)
        #expect(try receive(101, layer: 0) == 101)
        #expect(try receive(8, layer: 1, keyframe: true) == 8)
        #expect(try receive(102, layer: 0) == nil)
        #expect(try receive(9, layer: 1) == 9)
        #expect(foreignFrames == 2)
        #expect(assembler.abandonedFrames == 0)
    }

    // Its first packet alone changed the layer: what followed of the new layer would have been decoded with pictures of
    // the old one, and what followed of the old layer was thrown away.
    @Test("A keyframe of another simulcast layer that is abandoned changes nothing")
    func abandonedSwitch() throws {
        var assembler = FrameAssembler()
        var foreignFrames = 0
        func receive(_ number: UInt32, layer: UInt8, keyframe: Bool = false, packetCount: Int = .max) throws -> UInt32?
        {
            let info = EncodedFrameInfo(number: number, simulcastLayer: layer, timestamp: start, isKeyframe: keyframe)
            var result: UInt32?
            for packet in packets(info, length: 20_000).prefix(packetCount) {
                let header = try packet.withBytes { try MediaPacketHeader(reading: $0) }
                let outcome = try assembler.receive(packet, header: header) { makeBuffer($0) }
                if case .foreign = outcome { foreignFrames += 1 }
                result = outcome.frame?.header.frameNumber ?? result
            }
            return result
        }
        #expect(try receive(100, layer: 0, keyframe: true) == 100)
        #expect(try receive(7, layer: 1, keyframe: true, packetCount: 1) == nil)
        #expect(try receive(8, layer: 1) == nil)
        #expect(try receive(101, layer: 0) == 101)
        #expect(assembler.abandonedFrames == 1 && foreignFrames == 1)
    }

    @Test("An encrypted frame is left out, unknown extensions are not in the way, broken ones end")
    func extensions() throws {
        func frames(withExtensions extensions: [UInt8]) throws -> (frames: Int, encrypted: Int) {
            let info = EncodedFrameInfo(number: 1, timestamp: start, isKeyframe: true)
            let plain = packets(info, length: 10)[0].bytes
            let header = plain[..<MediaPacketHeader.fixedLength]
            let message = makeBuffer(Array(header) + extensions + Array(plain[MediaPacketHeader.fixedLength...]))
            message.withMutableBytes {
                let length = UInt16(MediaPacketHeader.fixedLength + extensions.count)
                $0.storeBytes(of: length.bigEndian, toByteOffset: 2, as: UInt16.self)
            }
            var assembler = FrameAssembler()
            let read = try message.withBytes { try MediaPacketHeader(reading: $0) }
            switch try assembler.receive(message, header: read, makeBuffer: { makeBuffer($0) }) {
            case .frame: return (1, 0)
            case .encrypted: return (0, 1)
            case .foreign, .incomplete: return (0, 0)
            }
        }
        #expect(try frames(withExtensions: []) == (1, 0))
        #expect(try frames(withExtensions: [99, 3, 1, 2, 3, 0, 0, 200, 0]) == (1, 0))
        #expect(try frames(withExtensions: [4, 12, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9]) == (1, 0))
        #expect(try frames(withExtensions: [99, 1, 3, 3, 1, 0]) == (0, 1))
        #expect(try frames(withExtensions: [3, 9, 0]) == (1, 0), "a length beyond the header ends the extensions")
        #expect(try frames(withExtensions: [3]) == (1, 0))
        for length in 0..<64 {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ length) }
            _ = try frames(withExtensions: bytes)
        }
    }

    // Both ended the session, although docs/protocol.md, section 4.4, lets them come.
    @Test("An answer about neither participant nor track may come before a large room is complete")
    func interrupted() {
        var session = ClientSession(
            ClientSession.Settings(join: Join(room: "lab", identity: "viewer"), videoCodecs: [VideoCodec.vp8])
        )
        _ = session.connectionOpened(at: start)
        #expect(session.received(joined(more: true, participants: [participant(1)]), at: start) == [])
        let error = ErrorMessage(.limitReached, "too many messages", fatal: false)
        #expect(session.received(ServerMessage.error(error).text, at: start) == [.notify(.refused(error))])
        let answer = ServerMessage.timeSync(TimeSync(clientTime: 1, serverTime: 2))
        #expect(session.received(answer.text, at: start) == [])
        let actions = session.received(ServerMessage.participantsComplete(ParticipantsComplete()).text, at: start)
        guard case .notify(.joined(let body)) = actions.first else {
            Issue.record("\(actions)")
            return
        }
        #expect(body.participants == [participant(1)])
    }

    @Test("A joined room that does not fit into one message is reported once it is complete")
    func largeRoom() {
        var session = ClientSession(
            ClientSession.Settings(join: Join(room: "lab", identity: "viewer"), videoCodecs: [VideoCodec.vp8])
        )
        _ = session.connectionOpened(at: start)
        #expect(session.received(joined(more: true, participants: [participant(1)]), at: start) == [])
        for index in 2...4 {
            let message = ServerMessage.participantConnected(ParticipantConnected(participant: participant(index)))
            #expect(session.received(message.text, at: start) == [])
        }
        #expect(session.nextDeadline == start + .seconds(10))
        let actions = session.received(ServerMessage.participantsComplete(ParticipantsComplete()).text, at: start)
        guard case .notify(.joined(let body)) = actions.first else {
            Issue.record("\(actions)")
            return
        }
        #expect(body.participants == (1...4).map(participant))
        #expect(session.remoteParticipants.count == 4)
        #expect(session.received(ServerMessage.participantsComplete(ParticipantsComplete()).text, at: start) == [])
    }

    @Test("A room that is never complete, or is broken off, ends the session")
    func brokenOff() {
        var session = ClientSession(
            ClientSession.Settings(join: Join(room: "lab", identity: "viewer"), videoCodecs: [VideoCodec.vp8])
        )
        _ = session.connectionOpened(at: start)
        _ = session.received(joined(more: true, participants: []), at: start)
        var late = session
        #expect(late.deadlineReached(at: start + .seconds(10)).first == .notify(.ended(.joinTimedOut)))
        let other = ServerMessage.layersWanted(LayersWanted(trackId: "TR_1", simulcastLayers: []))
        guard case .notify(.ended(.protocolViolation)) = session.received(other.text, at: start).first else {
            Issue.record("not ended")
            return
        }
    }

    @Test(
        "Whether to come back after a fatal error is known also for unknown codes",
        arguments: [
            (4400, false), (4403, false), (4409, false), (4499, false), (4408, true), (4414, true), (4429, true),
            (4500, true), (4503, true), (4599, true), (4600, false), (1000, false),
        ]
    )
    func comingBack(code: Int, mayReturn: Bool) {
        #expect(RoomErrorCode(rawValue: code).allowsReturn == mayReturn)
    }
}
