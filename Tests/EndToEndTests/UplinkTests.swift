import Adaptation
import Foundation
import MediaCore
import RoomKit
import RoomProtocol
import TestSupport
import TestTools
import Testing
import Threading

@Suite("Uplink", .timeLimit(.minutes(2)))
struct UplinkTests {
    /// A server that accepts every track, wants it, and acknowledges what it gets.
    private func makeServer() throws -> ScriptedServer {
        let aliases = Monitor<UInt32>(8)
        return try ScriptedServer { peer, text in
            switch try? ClientMessage(reading: text) {
            case .join:
                peer.beginAcknowledging()
                ScriptedServer.welcome(peer, text)
            case .publish(let request):
                var info = ScriptedServer.theirTrack
                info.alias = aliases.withLock { alias in
                    alias += 1
                    return alias
                }
                (info.id, info.name) = ("TR_\(request.name)", request.name)
                peer.tell(.published(Published(requestId: request.requestId, track: info)))
                peer.tell(.layersWanted(LayersWanted(trackId: info.id, simulcastLayers: [0])))
            default: break
            }
        }
    }

    private func join(
        _ server: ScriptedServer,
        change: (inout ConnectOptions) -> Void = { _ in }
    ) async throws -> Member {
        var options = ConnectOptions(roomName: "stage")
        options.url = server.url
        change(&options)
        return try await Member(options)
    }

    @Test("A publisher learns from acknowledgements, and both its tracks report the same connection")
    func acknowledged() async throws {
        let server = try makeServer()
        defer { server.stop() }
        let member = try await join(server)
        let tracks = [makePattern(name: "left"), makePattern(name: "right")]
        for track in tracks { try await member.room.localParticipant.publish(track) }
        try await eventually("both are acknowledged") {
            tracks.allSatisfy { track in
                let statistics = track.statistics
                return statistics.framesSent > 30 && statistics.connection?.isAcknowledged == true
                    && statistics.connection?.roundTripTime != nil
            }
        }
        let layers = tracks.map { $0.statistics.layers }
        #expect(layers.allSatisfy { $0.count == 1 && $0[0].dimensions == testSize && $0[0].targetBitrate != nil })
        await member.room.disconnect()
        for track in tracks {
            let statistics = track.statistics
            #expect(statistics.unaccounted == 0)
            #expect(statistics.framesSent + statistics.framesExpired == statistics.framesEncoded)
            #expect(statistics.connection?.isAcknowledged == true, "the last state stays readable")
        }
    }

    @Test("Acknowledgements that cannot be true change nothing, and the session goes on")
    func lies() async throws {
        let server = try makeServer()
        defer { server.stop() }
        let member = try await join(server)
        let track = makePattern()
        try await member.room.localParticipant.publish(track)
        try await eventually("frames are acknowledged") { track.statistics.framesSent > 10 }
        let peer = try await server.peer()
        let values: [UInt64] = [0, 1, 1 << 32, .max, 7, .max - 1, 0]
        for (index, value) in values.enumerated() {
            let time = MediaAcknowledgement.ReceiverTime(microseconds: values[values.count - 1 - index])
            let lie = MediaAcknowledgement(cumulativeBytes: value, receiveTime: time, trackAlias: 9, frameNumber: 1)
            peer.send(lie.bytes)
            peer.send(Array(lie.bytes.dropLast(index + 1)))
        }
        let sent = track.statistics.framesSent
        try await eventually("frames are sent") { track.statistics.framesSent > sent + 30 }
        #expect(await member.room.state == .connected)
        await member.room.disconnect()
        #expect(track.statistics.unaccounted == 0)
    }

    @Test("The uplink's inputs are recorded, and a replay makes the same decisions again")
    func recorded() async throws {
        let directory = try TemporaryDirectory()
        let path = directory("uplink.log")
        let server = try makeServer()
        defer { server.stop() }
        let member = try await join(server) { $0.adaptationLog = path }
        let track = makePattern()
        try await member.room.localParticipant.publish(track)
        try await eventually("frames are sent") { track.statistics.framesSent > 30 }
        var parameters = try #require(track.encodingParameters)
        (parameters.maxBitrate, parameters.priority) = (.kilobitsPerSecond(100), .high)
        try track.setEncodingParameters(parameters)
        let sent = track.statistics.framesSent
        try await eventually("more frames are sent") { track.statistics.framesSent > sent + 30 }
        await member.room.disconnect()
        #expect(member.room.adaptationLogFailure == nil)
        let log = try AdaptationLog(reading: Array(Data(contentsOf: URL(filePath: path))))
        var replay = UplinkReplay(log)
        var (questions, encoded, acknowledgements) = (0, 0, 0)
        var chosen: [UplinkController.Lane] = []
        while let step = replay.next() {
            #expect(step.isSame)
            switch step.entry.input {
            case .decide: questions += 1
            case .encoded(let report?, _): encoded += report.bytes > 0 ? 1 : 0
            case .acknowledged: acknowledgements += 1
            case .replaced(let lane, _): chosen.append(lane)
            default: break
            }
        }
        #expect(chosen.map(\.highestBitrate) == [.kilobitsPerSecond(100)] && chosen.last?.priority == .high)
        #expect(encoded == track.statistics.framesEncoded && questions >= encoded && acknowledgements > 0)
    }

    @Test("While the server is silent, the kernel is asked how much it has had")
    func kernelAsked() async throws {
        let directory = try TemporaryDirectory()
        let path = directory("uplink.log")
        let server = try makeServer()
        defer { server.stop() }
        let member = try await join(server) { $0.adaptationLog = path }
        let track = makePattern()
        try await member.room.localParticipant.publish(track)
        try await eventually("frames are acknowledged") {
            track.statistics.framesSent > 10 && track.statistics.connection?.isAcknowledged == true
        }
        try await server.peer().stopAcknowledging()
        let captured = track.statistics.framesCaptured
        try await eventually("more pictures come") { track.statistics.framesCaptured > captured + 30 }
        await member.room.disconnect()
        let log = try AdaptationLog(reading: Array(Data(contentsOf: URL(filePath: path))))
        let counts = log.entries.compactMap { if case .delivered(let packets) = $0.input { packets } else { nil } }
        #expect(!counts.isEmpty && counts == counts.sorted() && counts.last ?? 0 > 0, "\(counts)")
    }

    @Test("After the bitrate of a published track was lowered, fewer bytes are sent, and after it was raised, more")
    func chosenBitrate() async throws {
        let stage = try Stage()
        let (publisher, viewer) = (try await stage.join("publisher"), try await stage.join("viewer"))
        let size = Dimensions(width: 160, height: 120)
        let track = LocalVideoTrack(source: NoiseSource(dimensions: size, frameRate: FrameRate(30)))
        try await publisher.room.localParticipant.publish(track)
        let remote = try await viewer.subscribedTrack()
        /// Waits until the bytes of 30 captured pictures are in the range.
        func sends(_ bytes: Range<Int>, _ what: String) async throws {
            var before = track.statistics
            try await eventually(what) {
                let now = track.statistics
                guard now.framesCaptured >= before.framesCaptured + 30 else { return false }
                defer { before = now }
                return bytes.contains(now.bytesSent - before.bytesSent)
            }
        }
        var parameters = try #require(track.encodingParameters)
        for _ in 0..<2 {
            parameters.maxBitrate = .kilobitsPerSecond(3000)
            try track.setEncodingParameters(parameters)
            try await sends(60_000..<Int.max, "much is sent")
            parameters.maxBitrate = .kilobitsPerSecond(100)
            try track.setEncodingParameters(parameters)
            try await sends(1..<30_000, "little is sent")
        }
        #expect(remote.isSubscribed && track.encodingParameters == parameters)
        await publisher.room.disconnect()
        await viewer.room.disconnect()
        #expect(track.statistics.unaccounted == 0)
    }

    // The error advised to try again, and the second attempt failed because of the first one's log.
    @Test("A session that the server refuses leaves no log behind")
    func refusedSession() async throws {
        let directory = try TemporaryDirectory()
        let path = directory("uplink.log")
        let server = try ScriptedServer { peer, text in
            if case .join? = try? ClientMessage(reading: text) {
                peer.tell(.error(ErrorMessage(.limitReached, "full", fatal: true)))
            }
        }
        defer { server.stop() }
        for _ in 0..<2 {
            let error = await #expect(throws: RoomError.self) {
                _ = try await join(server) { $0.adaptationLog = path }
            }
            #expect(error?.code != .logFailed)
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }

    @Test("A log that exists already is not written over")
    func existingLog() async throws {
        let directory = try TemporaryDirectory()
        let path = directory("uplink.log")
        try Data("mine".utf8).write(to: URL(filePath: path))
        let server = try makeServer()
        defer { server.stop() }
        await #expect(throws: RoomError.self) { _ = try await join(server) { $0.adaptationLog = path } }
        #expect(try Data(contentsOf: URL(filePath: path)) == Data("mine".utf8))
    }
}
