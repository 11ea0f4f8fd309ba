import MediaCore
import RelayCore
import RoomProtocol
import TestTools
import Testing

@Suite("Relay: network quality", .timeLimit(.minutes(1)))
struct NetworkQualityTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000)

    private func levels(of id: String?, at peer: Peer) -> [Int] {
        peer.messages.compactMap { message in
            guard case .networkQuality(let body) = message, body.participantId == id else { return nil }
            return body.level
        }
    }

    private func switches(_ peer: Peer) -> [String] {
        peer.messages.compactMap { message in
            switch message {
            case .trackSwitchedOff(let body): "off \(body.reason)"
            case .trackSwitchedOn: "on"
            default: nil
            }
        }
    }

    @Test("A worse level is told at once, a better one after five seconds, and none twice within two")
    func meter() {
        var meter = NetworkQualityMeter()
        #expect(meter.update(5, at: start) == nil)
        #expect(meter.update(3, at: start + .seconds(1)) == 3)
        #expect(meter.update(1, at: start + .seconds(2)) == nil)
        #expect(meter.update(1, at: start + .seconds(3)) == 1)
        for second in 4..<9 { #expect(meter.update(second == 6 ? 4 : 5, at: start + .seconds(second)) == nil) }
        #expect(meter.update(5, at: start + .seconds(9)) == 4)
        #expect(meter.told == 4)
    }

    @Test("The delay of an uplink is what exceeds the smallest one, whatever the clocks say")
    func uplink() {
        var delay = UplinkDelay()
        #expect(delay.takeExcess() == nil)
        for frame in 0..<30 { delay.note(sent: Int64(frame) * 33_000 - 7_000_000_000, at: Int64(frame) * 33_000) }
        #expect(delay.takeExcess() == .zero)
        delay.note(sent: 1_000_000 - 7_000_000_000, at: 1_250_000)
        #expect(delay.takeExcess() == .milliseconds(250))
        delay.note(sent: .min, at: .max)
        delay.note(sent: .max, at: .min)
        #expect(delay.takeExcess() != nil)
    }

    @Test("A room in which nothing is late is told nothing")
    func quiet() throws {
        var room = try EmulatedRoom(cap: 1_000_000) {
            [EmulatedViewer($0, "viewer", bitsPerSecond: 50_000_000, delay: .milliseconds(5))]
        }
        room.run(10_000)
        for peer in [room.viewers[0].peer, room.camera.publisher] {
            #expect(!peer.messages.contains { if case .networkQuality = $0 { true } else { false } })
        }
    }

    @Test("A viewer on a thin link is told 4 or less; when its link breaks it hears it afterwards, and 5 in the end")
    func viewer() throws {
        var room = try EmulatedRoom(cap: 1_500_000) { [EmulatedViewer($0, "viewer", bitsPerSecond: 800_000)] }
        let viewer = room.viewers[0]
        room.run(10_000)
        let id = viewer.peer.joined?.participant.id
        #expect(levels(of: id, at: viewer.peer).last ?? 5 <= 4)
        #expect(switches(viewer.peer) == [])
        viewer.isReading = false
        room.run(8000)
        viewer.isReading = true
        viewer.bitsPerSecond = 50_000_000
        room.run(2000)
        #expect(levels(of: id, at: viewer.peer).contains { $0 <= 1 })
        #expect(switches(viewer.peer) == ["off network", "on"])
        room.run(40_000)
        #expect(levels(of: id, at: viewer.peer).last == 5)
        #expect(levels(of: id, at: room.camera.publisher).isEmpty, "a viewer's network concerns nobody else")
        #expect(viewer.peer.allProblems.isEmpty)
    }

    @Test("The level of a publisher goes to all, at most once in two seconds")
    func publisher() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.pull([robot, viewer])
        func send(_ seconds: Int, lateness: Duration) {
            for _ in 0..<seconds * 30 {
                let packets = camera.nextFrame(captured: bench.now - lateness)
                bench.receive(packets, from: robot)
                bench.pull([robot, viewer])
                bench.advance(.milliseconds(33))
            }
        }
        send(4, lateness: .zero)
        let id = robot.joined?.participant.id
        #expect(levels(of: id, at: viewer).isEmpty)
        send(4, lateness: .milliseconds(900))
        send(20, lateness: .zero)
        #expect(levels(of: id, at: viewer) == [2, 5])
        #expect(levels(of: id, at: robot) == [2, 5])
    }
}
