import MediaCore
import RoomKit
import RoomProtocol
import TestSupport
import TestTools
import Testing

/// RoomKit against a server whose messages and packets are real ones, changed by chance.
@Suite("Servers of RoomKit that change their messages by chance", .timeLimit(.minutes(5)))
struct HostileServerFuzzTests {
    private static let track = """
        {"alias":7,"codec":"vp8","enabled":true,"frameRate":30,"height":96,"id":"TR_theirs","kind":"video",\
        "name":"pattern","source":"pattern","width":128}
        """
    private static let layers = #"[{"bitrate":500000,"frameRate":15,"height":96,"simulcastLayer":0,"width":128}]"#

    /// What a server says once the room is joined.
    private static let texts = [
        #"{"participant":{"id":"PA_2","identity":"other","tracks":[]},"type":"participantConnected"}"#,
        #"{"participant":{"id":"PA_theirs","identity":"theirs","tracks":[\#(track)]},"type":"participantConnected"}"#,
        #"{"participantId":"PA_2","type":"participantDisconnected"}"#,
        #"{"participantId":"PA_theirs","track":\#(track),"type":"trackPublished"}"#,
        #"{"participantId":"PA_theirs","trackId":"TR_theirs","type":"trackUnpublished"}"#,
        #"{"participantId":"PA_theirs","trackId":"TR_theirs","type":"trackDisabled"}"#,
        #"{"participantId":"PA_theirs","trackId":"TR_theirs","type":"trackEnabled"}"#,
        #"{"alias":7,"catchUpThrough":9,"simulcastLayer":0,"trackId":"TR_theirs","type":"subscribed"}"#,
        #"{"alias":7,"trackId":"TR_theirs","type":"subscribed"}"#,
        #"{"alias":7,"paused":true,"trackId":"TR_theirs","type":"subscribed"}"#,
        #"{"trackId":"TR_theirs","type":"unsubscribed"}"#,
        #"{"layers":\#(layers),"trackId":"TR_own","type":"layersWanted"}"#,
        #"{"simulcastLayer":0,"trackId":"TR_own","type":"keyframeRequest"}"#,
        #"{"level":3,"participantId":"PA_own","type":"networkQuality"}"#,
        #"{"participantId":"PA_theirs","reason":"network","trackId":"TR_theirs","type":"trackSwitchedOff"}"#,
        #"{"participantId":"PA_theirs","trackId":"TR_theirs","type":"trackSwitchedOn"}"#,
        #"{"clientTime":5,"serverTime":9000000,"type":"timeSync"}"#,
        #"{"code":4404,"fatal":false,"message":"no such track","name":"notFound","requestId":1,"type":"error"}"#,
    ]
    private static let numbers = [
        "0", "1", "-1", "2", "255", "256", "65536", "4294967295", "4294967296", "9223372036854775807",
        "-9223372036854775808", "1e308", "0.0001", "null",
    ]
    private static let words = [
        "", "TR_own", "TR_theirs", "PA_own", "PA_theirs", "h264", "audio", "\\u001b[2J", "\\u0000", "../../x",
        String(repeating: "é", count: 300),
    ]

    /// A message with one or two of its numbers and texts replaced, which is still a message.
    private func changed(_ text: String, _ generator: inout SeededGenerator) -> String {
        var result = text
        for _ in 0..<Int.random(in: 0...2, using: &generator) {
            let parts = result.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
            let index = Int.random(in: 0..<parts.count, using: &generator)
            let value = parts[index].prefix { $0 != "," && $0 != "}" && $0 != "]" }
            guard index > 0, let first = value.first, first != "{", first != "[" else { continue }
            let replacement =
                first == "\""
                ? "\"\(Self.words.randomElement(using: &generator) ?? "")\""
                : Self.numbers.randomElement(using: &generator) ?? "0"
            var next = parts
            next[index] = replacement + parts[index].dropFirst(value.count)
            let candidate = next.joined(separator: ":")
            if (try? ServerMessage(reading: candidate)) != nil { result = candidate }
        }
        return result
    }

    private func changed(_ packet: [UInt8], _ generator: inout SeededGenerator) -> [UInt8] {
        var result = packet
        for _ in 0..<Int.random(in: 0...3, using: &generator) {
            // Mostly in the header, and in that of the frame.
            let limit = Bool.random(using: &generator) ? min(70, result.count) : result.count
            result[Int.random(in: 0..<limit, using: &generator)] = .random(in: 0...255, using: &generator)
        }
        if Int.random(in: 0..<20, using: &generator) == 0 {
            result.removeLast(Int.random(in: 0..<result.count, using: &generator))
        }
        return result
    }

    /// Joins, publishes, and is told that somebody receives it.
    @Sendable private static func answer(_ peer: SocketPeer, _ text: String) {
        switch try? ClientMessage(reading: text) {
        case .publish(let publish)?:
            var own = ScriptedServer.theirTrack
            (own.id, own.alias, own.name) = ("TR_own", 8, publish.name)
            own.simulcastLayers = publish.simulcastLayers
            peer.tell(.published(Published(requestId: publish.requestId, track: own)))
            peer.send(#"{"layers":[{"simulcastLayer":0}],"trackId":"TR_own","type":"layersWanted"}"#)
        default: ScriptedServer.welcome(peer, text)
        }
    }

    @Test("Whatever comes, the session goes on or ends with an error", arguments: UInt64(1)...25)
    func session(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let server = try ScriptedServer(answer: Self.answer)
        defer { server.stop() }
        let member = try await Member(at: server.url)
        let peer = try await server.peer()
        let received = try await member.subscribedTrack()
        let renderer = CountingRenderer()
        received.addRenderer(renderer)
        let directory = try TemporaryDirectory()
        let recorder = try TrackRecorder(track: received, directory: directory.path, recorderID: "x", format: .webm)
        let own = LocalVideoTrack(source: PatternSource(dimensions: testSize, frameRate: FrameRate(30)), name: "own")
        try await member.room.localParticipant.publish(own)
        var pattern = try EncodedPattern(alias: 7)
        for _ in 0..<100 {
            let text = Self.texts[Int.random(in: 0..<Self.texts.count, using: &generator)]
            peer.send(changed(text, &generator))
            for packet in try pattern.next(isKeyframe: Int.random(in: 0..<8, using: &generator) == 0) {
                peer.send(Bool.random(using: &generator) ? packet : changed(packet, &generator))
            }
        }
        peer.send("{")
        let error = try #require(try await member.ending())
        #expect("\(error)".count < 2000)
        #expect(member.events.count > 1)
        await member.room.disconnect()
        recorder.stop()
        _ = recorder.statistics
        #expect(own.statistics.framesCaptured >= own.statistics.framesEncoded)
    }
}
