import RoomProtocol
import TestTools
import Testing

private let track = TrackInfo(
    id: "TR_1",
    alias: 7,
    name: "front \"door\" / é",
    source: "camera",
    codec: VideoCodec.vp8,
    width: 1280,
    height: 720,
    frameRate: 29.5,
    enabled: false
)
private let trackJSON = """
    {"alias":7,"codec":"vp8","enabled":false,"frameRate":29.5,"height":720,"id":"TR_1","kind":"video",\
    "name":"front \\"door\\" / é","source":"camera","width":1280}
    """

/// Every message of a client with the text that it has on the wire.
let clientMessages: [(ClientMessage, String)] = [
    (
        .join(
            Join(
                room: "lab",
                identity: "robot",
                token: "t",
                bootId: "b",
                automaticSubscription: false,
                client: "room-client/1"
            )
        ),
        """
        {"automaticSubscription":false,"bootId":"b","client":"room-client/1","identity":"robot","room":"lab",\
        "token":"t","type":"join","version":1}
        """
    ),
    (.join(Join(room: "lab", identity: "robot")), #"{"identity":"robot","room":"lab","type":"join","version":1}"#),
    (.resume(Resume(resumeToken: "r")), #"{"resumeToken":"r","type":"resume","version":1}"#),
    (
        .publish(
            Publish(
                requestId: 3,
                name: "front",
                source: "camera",
                codec: VideoCodec.vp8,
                width: 640,
                height: 480,
                frameRate: 30
            )
        ),
        """
        {"codec":"vp8","frameRate":30,"height":480,"kind":"video","name":"front","requestId":3,"source":"camera",\
        "type":"publish","width":640}
        """
    ),
    (
        .publish(
            Publish(
                requestId: 3,
                name: "front",
                source: "camera",
                codec: VideoCodec.vp8,
                width: 640,
                height: 480,
                frameRate: 30,
                simulcastLayers: [
                    SimulcastLayer(simulcastLayer: 0, width: 320, height: 240, bitrate: 200_000),
                    SimulcastLayer(simulcastLayer: 1, width: 640, height: 480),
                ]
            )
        ),
        """
        {"codec":"vp8","frameRate":30,"height":480,"kind":"video","name":"front","requestId":3,"simulcastLayers":\
        [{"bitrate":200000,"height":240,"simulcastLayer":0,"width":320},\
        {"height":480,"simulcastLayer":1,"width":640}],"source":"camera","type":"publish","width":640}
        """
    ),
    (.unpublish(Unpublish(trackId: "TR_1")), #"{"trackId":"TR_1","type":"unpublish"}"#),
    (.enable(Enable(trackId: "TR_1")), #"{"trackId":"TR_1","type":"enable"}"#),
    (.disable(Disable(trackId: "TR_1")), #"{"trackId":"TR_1","type":"disable"}"#),
    (
        .updateTrack(UpdateTrack(trackId: "TR_1", bitrates: [75_000, 300_000])),
        #"{"bitrates":[75000,300000],"trackId":"TR_1","type":"updateTrack"}"#
    ),
    (
        .updateTrack(UpdateTrack(trackId: "TR_1", bitrates: [75_000], sizes: [PictureSize(width: 4, height: 2)])),
        #"{"bitrates":[75000],"sizes":[{"height":2,"width":4}],"trackId":"TR_1","type":"updateTrack"}"#
    ),
    (.subscribe(Subscribe(trackId: "TR_1")), #"{"trackId":"TR_1","type":"subscribe"}"#),
    (
        .subscribe(fullSubscribe),
        #"{"frameRate":15,"height":240,"priority":"low","trackId":"TR_1","type":"subscribe","width":320}"#
    ),
    (.unsubscribe(Unsubscribe(trackId: "TR_1")), #"{"trackId":"TR_1","type":"unsubscribe"}"#),
    (.keyframeRequest(KeyframeRequest(trackId: "TR_1")), #"{"trackId":"TR_1","type":"keyframeRequest"}"#),
    (
        .keyframeRequest(KeyframeRequest(trackId: "TR_1", simulcastLayer: 1)),
        #"{"simulcastLayer":1,"trackId":"TR_1","type":"keyframeRequest"}"#
    ),
    (
        .keyframeRequest(KeyframeRequest(trackId: "TR_1", skip: false)),
        #"{"skip":false,"trackId":"TR_1","type":"keyframeRequest"}"#
    ),
    (.timeSync(TimeSync(clientTime: -5)), #"{"clientTime":-5,"type":"timeSync"}"#),
    (.leave(Leave(reason: "left")), #"{"reason":"left","type":"leave"}"#),
]

private var fullSubscribe: Subscribe {
    var subscribe = Subscribe(trackId: "TR_1")
    subscribe.width = 320
    subscribe.height = 240
    subscribe.frameRate = 15
    subscribe.priority = "low"
    return subscribe
}

private var fullJoined: Joined {
    var joined = Joined(
        room: Joined.RoomInfo(id: "RM_1", name: "lab"),
        participant: ParticipantInfo(id: "PA_2", identity: "viewer", tracks: []),
        participants: [ParticipantInfo(id: "PA_1", identity: "robot", tracks: [track])],
        serverTime: 123,
        bootId: "b",
        server: "room-server/1"
    )
    joined.resumeToken = "r"
    return joined
}

/// Every message of a server with the text that it has on the wire.
let serverMessages: [(ServerMessage, String)] = [
    (
        .joined(fullJoined),
        """
        {"bootId":"b","participant":{"id":"PA_2","identity":"viewer","tracks":[]},\
        "participants":[{"id":"PA_1","identity":"robot","tracks":[\(trackJSON)]}],"resumeToken":"r",\
        "room":{"id":"RM_1","name":"lab"},"server":"room-server/1","serverTime":123,"type":"joined","version":1}
        """
    ),
    (
        .participantConnected(
            ParticipantConnected(participant: ParticipantInfo(id: "PA_1", identity: "robot", tracks: []))
        ),
        #"{"participant":{"id":"PA_1","identity":"robot","tracks":[]},"type":"participantConnected"}"#
    ),
    (.participantsComplete(ParticipantsComplete()), #"{"type":"participantsComplete"}"#),
    (
        .participantDisconnected(ParticipantDisconnected(participantId: "PA_1")),
        #"{"participantId":"PA_1","type":"participantDisconnected"}"#
    ),
    (
        .published(Published(requestId: 3, track: track)),
        #"{"requestId":3,"track":\#(trackJSON),"type":"published"}"#
    ),
    (
        .trackPublished(TrackPublished(participantId: "PA_1", track: track)),
        #"{"participantId":"PA_1","track":\#(trackJSON),"type":"trackPublished"}"#
    ),
    (
        .trackUnpublished(TrackUnpublished(participantId: "PA_1", trackId: "TR_1")),
        #"{"participantId":"PA_1","trackId":"TR_1","type":"trackUnpublished"}"#
    ),
    (
        .trackEnabled(TrackEnabled(participantId: "PA_1", trackId: "TR_1")),
        #"{"participantId":"PA_1","trackId":"TR_1","type":"trackEnabled"}"#
    ),
    (
        .trackDisabled(TrackDisabled(participantId: "PA_1", trackId: "TR_1")),
        #"{"participantId":"PA_1","trackId":"TR_1","type":"trackDisabled"}"#
    ),
    (
        .subscribed(Subscribed(trackId: "TR_1", alias: 7, catchUpThrough: 90)),
        #"{"alias":7,"catchUpThrough":90,"trackId":"TR_1","type":"subscribed"}"#
    ),
    (
        .subscribed(Subscribed(trackId: "TR_1", alias: .max, catchUpThrough: nil)),
        #"{"alias":4294967295,"trackId":"TR_1","type":"subscribed"}"#
    ),
    (
        .subscribed(
            Subscribed(trackId: "TR_1", alias: 7, simulcastLayer: 1, catchUpThrough: nil, paused: true, requestId: 5)
        ),
        #"{"alias":7,"paused":true,"requestId":5,"simulcastLayer":1,"trackId":"TR_1","type":"subscribed"}"#
    ),
    (
        .unsubscribed(Unsubscribed(trackId: "TR_1", requestId: 6)),
        #"{"requestId":6,"trackId":"TR_1","type":"unsubscribed"}"#
    ),
    (
        .layersWanted(
            LayersWanted(
                trackId: "TR_1",
                layers: [
                    WantedLayer(
                        simulcastLayer: 1,
                        bitrate: 500_000,
                        width: 640,
                        height: 360,
                        frameRate: 15,
                        temporalLayers: 2
                    )
                ]
            )
        ),
        """
        {"layers":[{"bitrate":500000,"frameRate":15,"height":360,"simulcastLayer":1,"temporalLayers":2,"width":640}],\
        "trackId":"TR_1","type":"layersWanted"}
        """
    ),
    (
        .published(
            Published(
                requestId: 1,
                track: TrackInfo(id: "TR_2", alias: 8, name: "a", kind: "audio", source: "mic", codec: nil)
            )
        ),
        """
        {"requestId":1,"track":{"alias":8,"enabled":true,"id":"TR_2","kind":"audio","name":"a","source":"mic"},\
        "type":"published"}
        """
    ),
    (
        .leave(Leave(reason: "moved", reconnect: true, url: "ws://b/rooms/lab")),
        #"{"reason":"moved","reconnect":true,"type":"leave","url":"ws://b/rooms/lab"}"#
    ),
    (.unsubscribed(Unsubscribed(trackId: "TR_1")), #"{"trackId":"TR_1","type":"unsubscribed"}"#),
    (
        .layersWanted(LayersWanted(trackId: "TR_1", simulcastLayers: [0, 2])),
        #"{"layers":[{"simulcastLayer":0},{"simulcastLayer":2}],"trackId":"TR_1","type":"layersWanted"}"#
    ),
    (
        .networkQuality(NetworkQuality(participantId: "PA_1", level: 3)),
        #"{"level":3,"participantId":"PA_1","type":"networkQuality"}"#
    ),
    (
        .trackSwitchedOff(
            TrackSwitchedOff(participantId: "PA_1", trackId: "TR_1", reason: SwitchOffReason.network)
        ),
        #"{"participantId":"PA_1","reason":"network","trackId":"TR_1","type":"trackSwitchedOff"}"#
    ),
    (
        .trackSwitchedOn(TrackSwitchedOn(participantId: "PA_1", trackId: "TR_1")),
        #"{"participantId":"PA_1","trackId":"TR_1","type":"trackSwitchedOn"}"#
    ),
    (.keyframeRequest(KeyframeRequest(trackId: "TR_1")), #"{"trackId":"TR_1","type":"keyframeRequest"}"#),
    (
        .timeSync(TimeSync(clientTime: 5, serverTime: .max)),
        #"{"clientTime":5,"serverTime":9223372036854775807,"type":"timeSync"}"#
    ),
    (
        .error(ErrorMessage(.notFound, "no such track", fatal: false, requestId: 3)),
        #"{"code":4404,"fatal":false,"message":"no such track","name":"notFound","requestId":3,"type":"error"}"#
    ),
    (
        .leave(Leave(reason: "going down", reconnect: true)),
        #"{"reason":"going down","reconnect":true,"type":"leave"}"#
    ),
]

@Suite("Signaling messages", .timeLimit(.minutes(1)))
struct SignalingTests {
    @Test("A client's message has exactly this text, and comes back from it")
    func clientGolden() throws {
        for (message, text) in clientMessages {
            #expect(message.text == text)
            #expect(try ClientMessage(reading: text) == message)
        }
    }

    @Test("A server's message has exactly this text, and comes back from it")
    func serverGolden() throws {
        for (message, text) in serverMessages {
            #expect(message.text == text)
            #expect(try ServerMessage(reading: text) == message)
        }
    }

    @Test("Unknown fields are ignored, whatever they hold")
    func unknownFields() throws {
        for (message, text) in clientMessages {
            let longer = #"{"aNewField":[{"deep":[null,true,1e3]}],"type2":"x","# + text.dropFirst()
            #expect(try ClientMessage(reading: longer) == message)
        }
        for (message, text) in serverMessages {
            let longer = #"{"aNewField":[{"deep":[null,true,1e3]}],"# + text.dropFirst()
            #expect(try ServerMessage(reading: longer) == message)
        }
    }

    // To compare such a text took 0.3 s, and the server stood still for 3 s.
    @Test("A text with more than 30 combining characters in a row is malformed, wherever it is, and cheap to refuse")
    func combining() throws {
        let few = String(repeating: "\u{301}\u{316}", count: 15)
        let many = String(repeating: few, count: 1000)
        let escaped = String(repeating: #"\u0316\u0301"#, count: 16)
        let paired = String(repeating: #"\uD834\uDD65"#, count: 31)
        for text in [many, escaped, paired, "\(few)\u{316}"] {
            for message in ["{\"type\":\"e\(text)\"}", "{\"e\(text)\":1,\"type\":\"x\"}", "{\"type\":\"join\(text)\"}"]
            {
                let error = #expect(throws: UnreadableMessage.self) { try ClientMessage(reading: message) }
                #expect("\(error, default: "")".contains("combining"))
                #expect(throws: UnreadableMessage.self) { try ServerMessage(reading: message) }
            }
        }
        let parts = String(repeating: "e\(few)", count: 100)
        let leave = Leave(reason: "\(parts) \u{301} \u{1D165} \n")
        #expect(try ClientMessage(reading: ClientMessage.leave(leave).text) == .leave(leave))
    }

    @Test("An unknown type is told apart from what cannot be read, and quoted in a bounded length")
    func unknownType() {
        func unknown(_ type: String) -> UnreadableMessage { .unknownType(MessageHead(type: type)) }
        #expect(throws: unknown("dance")) { try ClientMessage(reading: #"{"type":"dance"}"#) }
        #expect(throws: unknown("joined")) { try ClientMessage(reading: #"{"type":"joined"}"#) }
        #expect(throws: unknown("join")) { try ServerMessage(reading: #"{"type":"join"}"#) }
        let request = UnreadableMessage.unknownType(MessageHead(type: "dance", requestId: 7, trackId: "TR_x"))
        #expect(throws: request) {
            try ClientMessage(reading: #"{"requestId":7,"trackId":"TR_x","type":"dance"}"#)
        }
        let strange = #"{"requestId":"x","trackId":[],"type":"dance"}"#
        #expect(throws: unknown("dance")) { try ClientMessage(reading: strange) }
        // One character of 60 kB: a prefix of characters is no bound.
        let endless = "e" + String(repeating: "\u{301}", count: 30_000)
        #expect(UnreadableMessage.unknownType(MessageHead(type: endless)).description.utf8.count < 200)
    }

    @Test(
        "The error names the field that is missing or has the wrong type",
        arguments: [
            (#"{"type":"join","version":1,"identity":"a"}"#, "\"room\""),
            (#"{"type":"join","version":"1","room":"r","identity":"a"}"#, "\"version\" must be a whole number"),
            (#"{"type":"join","version":null,"room":"r","identity":"a"}"#, "\"version\" must be a whole number"),
            (#"{"type":"join","version":1,"room":7,"identity":"a"}"#, "\"room\" must be a text"),
            (
                #"{"type":"join","version":1,"room":"r","identity":"a","automaticSubscription":1}"#,
                "\"automaticSubscription\" must be true or false"
            ),
            (#"{"type":"timeSync","clientTime":{}}"#, "\"clientTime\" must be a whole number"),
            (
                #"{"type":"publish","requestId":1,"name":"n","kind":"video","source":"camera","codec":"vp8","#
                    + #""width":1,"height":1,"frameRate":"x"}"#, "\"frameRate\" must be a number"
            ),
            (
                #"{"type":"publish","requestId":1,"name":"n","kind":"video","source":"camera","codec":"vp8","#
                    + #""width":1,"height":1,"frameRate":1,"simulcastLayers":3}"#, "\"simulcastLayers\" must be a list"
            ),
            (#"{"type":7}"#, "\"type\" must be a text"),
            (#"{"typ":"join"}"#, "\"type\""),
            (#"{}"#, "\"type\""),
        ]
    )
    func namedField(_ text: String, field: String) {
        let error = #expect(throws: UnreadableMessage.self) { try ClientMessage(reading: text) }
        guard case .malformed(let problem) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(problem.contains(field))
    }

    @Test("A number that its field cannot hold is called that", arguments: ["1.5", "9223372036854775808", "1e400"])
    func numberBeyondField(_ number: String) {
        let error = #expect(throws: UnreadableMessage.self) {
            try ClientMessage(reading: #"{"type":"timeSync","clientTime":\#(number)}"#)
        }
        #expect(error?.description.contains("timeSync: not JSON, or a number that its field cannot hold") == true)
    }

    @Test("A field inside another is named with its way")
    func nestedField() {
        let text = #"{"type":"published","requestId":1,"track":{"id":"TR_1","alias":"7"}}"#
        let error = #expect(throws: UnreadableMessage.self) { try ServerMessage(reading: text) }
        #expect(error?.description.contains("\"track.alias\"") == true)
    }

    @Test("Every code has a name, and an error says it")
    func codes() throws {
        for number in [4400, 4401, 4403, 4404, 4405, 4408, 4409, 4410, 4413, 4414, 4426, 4429, 4500, 4503] {
            let code = RoomErrorCode(rawValue: number)
            #expect(code.name != "unknown")
            #expect("\(ErrorMessage(code, "Sorry.", fatal: true))".contains("\(number) \(code.name)"))
        }
        #expect(RoomErrorCode(rawValue: 1).name == "unknown")
    }

    @Test(
        "A string is cut at bytes, never within a character's encoding",
        arguments: [
            ("abc", 3, "abc"), ("abc", 2, "ab"), ("aé", 2, "a"), ("aé", 3, "aé"), ("😀", 3, ""), ("", 0, ""),
        ]
    )
    func cutting(_ text: String, count: Int, expected: String) {
        #expect(text.prefix(utf8Bytes: count) == expected)
    }
}
