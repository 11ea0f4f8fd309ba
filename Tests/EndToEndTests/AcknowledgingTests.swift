import MediaCore
import RoomKit
import RoomProtocol
import TestSupport
import TestTools
import Testing

@Suite("What a client acknowledges", .timeLimit(.minutes(3)))
struct AcknowledgingTests {
    @Test("A packet that takes a second is acknowledged in parts while it comes")
    func parts() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let link = try ThinLink(to: server.port, rate: .kilobitsPerSecond(100))
        defer { link.stop() }
        var options = ConnectOptions(roomName: "stage")
        options.url = "ws://127.0.0.1:\(link.port)"
        let member = try await Member(options)
        let peer = try await server.peer()

        // Nothing is acknowledged before the first media.
        peer.send(try #require(makeVideoPackets(alias: 7, number: 0, payload: [0]).first))
        let first = try await eventual("the first packet is acknowledged") { peer.acknowledgements.first }
        let payload = [UInt8](repeating: 0, count: 12_000)
        let packet = try #require(makeVideoPackets(alias: 7, number: 1, payload: payload).first)
        peer.send(packet)
        let whole = first.cumulativeBytes + UInt64(packet.count)
        let all = try await eventual("the second packet is acknowledged") {
            let all = peer.acknowledgements
            return all.last?.cumulativeBytes == whole ? all : nil
        }
        await member.room.disconnect()

        let parts = all.dropFirst().filter { $0.cumulativeBytes < whole }
        #expect(parts.count >= 5)
        #expect(parts.allSatisfy { $0.frameNumber == 0 }, "the frame was not whole")
        #expect(all.last?.frameNumber == 1)
        for (earlier, later) in zip(all, all.dropFirst()) {
            #expect(later.cumulativeBytes > earlier.cumulativeBytes)
            #expect(later.receiveTime.microseconds > earlier.receiveTime.microseconds)
        }
        // The first byte is known from the parts.
        let times = try #require(all.last.map { ($0.firstByteTime, $0.lastByteTime) })
        let (began, ended) = try (#require(times.0).microseconds, #require(times.1).microseconds)
        #expect(ended - began > 200_000)
    }

    @Test("The bytes of a text between two packets are acknowledged too")
    func text() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let member = try await Member(at: server.url)
        let peer = try await server.peer()
        let packets = (0..<2).flatMap { makeVideoPackets(alias: 7, number: $0, payload: [0]) }
        peer.send(packets[0])
        let first = try await eventual("the first packet is acknowledged") { peer.acknowledgements.first }
        let text = ServerMessage.trackEnabled(TrackEnabled(participantId: "PA_theirs", trackId: "TR_theirs")).text
        peer.send(text)
        peer.send(packets[1])
        let last = try await eventual("the second packet is acknowledged") {
            peer.acknowledgements.first { $0.frameNumber == 1 }
        }
        #expect(last.cumulativeBytes == first.cumulativeBytes + UInt64(text.utf8.count + packets[1].count))
        await member.room.disconnect()
    }
}
