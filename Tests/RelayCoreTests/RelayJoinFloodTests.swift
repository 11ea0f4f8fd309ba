import MediaCore
import RelayCore
import RoomProtocol
import Testing

/// What clients meet that join again and again.
@Suite("Relay: joins without end", .timeLimit(.minutes(1)))
struct RelayJoinFloodTests {
    // Two clients that came back at once on 4409 sent everybody in the room 3.4 Mbit/s.
    @Test("Clients that take each other's place without end are refused, and the one that is there stays")
    func replacements() {
        let bench = RelayBench()
        let viewer = bench.join("viewer")
        var here = bench.join("twin")
        bench.pull(viewer)
        let before = viewer.messages.count
        var refused = 0
        for _ in 0..<1000 {
            let next = bench.join("twin")
            bench.pull(here)
            if next.close == nil {
                #expect(here.errors == [.duplicateIdentity])
                here = next
            } else {
                #expect(next.errors == [.limitReached] && here.close == nil)
                refused += 1
            }
            bench.advance(.milliseconds(1))
        }
        bench.pull(viewer)
        #expect(refused == 990 && viewer.messages.count - before == 20)
        bench.advance(.seconds(2))
        #expect(bench.join("twin").close == nil)
    }

    @Test("Participants that join and leave without end, each with a new name, meet the room's budget")
    func joins() {
        let bench = RelayBench()
        let viewer = bench.join("viewer")
        var refused = 0
        for number in 0..<5000 {
            let guest = bench.join("guest \(number)")
            if guest.close != nil {
                #expect(guest.errors == [.limitReached])
                refused += 1
            }
            bench.close(guest)
            bench.advance(.milliseconds(1))
            bench.pull(viewer)
        }
        // 2,000 at once, and ten in each of five seconds.
        #expect((2940...2960).contains(refused) && viewer.close == nil, "\(refused)")
        #expect(bench.join("guest", room: "another").close == nil)
    }

    @Test("Joins are charged for the others in the room: 1,000 fill it at once, and a flood of them ends soon after")
    func audience() {
        let bench = RelayBench()
        let crowd = (0..<999).map { bench.join("robot \($0)", automatic: false) }
        #expect(crowd.allSatisfy { $0.close == nil })
        bench.discard(crowd)
        bench.advance(.seconds(60))
        var accepted = 0
        for number in 0..<600 {
            let guest = bench.join("guest \(number)", automatic: false)
            if guest.close == nil { accepted += 1 } else { #expect(guest.errors == [.limitReached]) }
            bench.close(guest)
            bench.discard(crowd)
        }
        // Each causes two messages to each of 999.
        #expect(accepted == RelaySettings().joinDeliveryBurst / (2 * 999), "\(accepted)")
        bench.advance(.seconds(1))
        #expect(bench.join("guest").close == nil)
    }

    /// Each new connection began with the whole budget of one participant: 640,000 messages a second in a room of
    /// 1,000.
    @Test("A flooder that joins again and again under new names is charged to its room's joins")
    func rejoiningFlooder() throws {
        var settings = RelaySettings()
        settings.deliveryBurst = 8000
        settings.joinBurst = 400
        let bench = RelayBench { [settings] in $0 = settings }
        let bystanders = (0..<600).map { bench.enter("bystander \($0)", automatic: false) }
        bench.discard(bystanders)
        let before = bench.relay.work
        let (rounds, pause) = (300, Duration.milliseconds(100))
        for number in 0..<rounds {
            let flooder = bench.join("flooder \(number)", automatic: false)
            if flooder.close == nil, let track = bench.publish(flooder)?.track {
                var isEnabled = true
                while flooder.close == nil {
                    isEnabled.toggle()
                    let signal =
                        isEnabled
                        ? ClientMessage.enable(Enable(trackId: track.id)) : .disable(Disable(trackId: track.id))
                    bench.send(signal, from: flooder)
                    bench.pull(flooder)
                }
            }
            bench.close(flooder)
            // One who did nothing and leaves owes nothing, and wipes out no debt.
            bench.close(bystanders[number])
            bench.discard(Array(bystanders[(number + 1)...]))
            bench.advance(pause)
        }
        let joins = settings.joinBurst + Int((pause * rounds).seconds / settings.joinInterval.seconds)
        // Each join and each leaving is a message; and the last flooder is charged when it leaves.
        let most =
            joins * (settings.maximumParticipantsPerRoom + 2 * (bystanders.count + 1)) + settings.deliveryBurst
        #expect((bench.relay.work - before).deliveries <= most)
        #expect(bench.join("guest", room: "another").close == nil)
    }

    @Test("A participant that left without a flood costs those who join nothing")
    func quietLeaving() throws {
        // How many of 20 robots join, each with three tracks in a room of six, of which each counts two deliveries.
        func joined(restingFor rest: Duration) throws -> Int {
            let bench = RelayBench {
                $0.maximumParticipantsPerRoom = 6
                $0.joinBurst = 40
                $0.joinInterval = .seconds(3600)
                $0.deliveriesPerSecond = 10
            }
            let viewers = (0..<5).map { bench.join("viewer \($0)") }
            for number in 0..<20 {
                let robot = bench.join("robot")
                guard robot.close == nil else { return number }
                for track in 0..<3 { _ = try #require(bench.publish(robot, name: "\(track)")) }
                bench.advance(rest)
                bench.close(robot)
                bench.discard(viewers)
            }
            return 20
        }
        #expect(try joined(restingFor: .seconds(4)) == 20)
        #expect(try joined(restingFor: .zero) < 15)
    }
}
