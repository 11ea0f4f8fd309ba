import MediaCore
import RelayCore
import RoomProtocol
import Testing

@Suite("Relay: wishes and shares", .timeLimit(.minutes(1)))
struct WishTests {
    @Test("The publisher is told the largest size and rate that anybody wishes, once everybody has a wish")
    func wishes() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewers = (0..<2).map { bench.join("viewer \($0)") }
        let camera = try #require(bench.publish(robot))
        bench.pull(viewers + [robot])
        let id = camera.track.id
        bench.send(.subscribe(Subscribe(trackId: id, width: 320, height: 180, frameRate: 15)), from: viewers[0])
        bench.advance(.seconds(1))
        bench.pull(robot)
        // Half of the frames, beside one that needs all.
        #expect(camera.wanted == WantedLayer(simulcastLayer: 0, temporalLayers: 2))
        bench.send(.subscribe(Subscribe(trackId: id, width: 640, height: 90, frameRate: 10)), from: viewers[1])
        bench.advance(.seconds(1))
        bench.pull(robot)
        let both = WantedLayer(simulcastLayer: 0, width: 640, height: 180, frameRate: 15, temporalLayers: 2)
        #expect(camera.wanted == both)
        bench.close(viewers[0])
        bench.advance(.seconds(1))
        bench.pull(robot)
        let one = WantedLayer(simulcastLayer: 0, width: 640, height: 90, frameRate: 10, temporalLayers: 1)
        #expect(camera.wanted == one)
        bench.send(.subscribe(Subscribe(trackId: id)), from: viewers[1])
        bench.advance(.seconds(1))
        bench.pull(robot)
        #expect(camera.wanted == WantedLayer(simulcastLayer: 0, temporalLayers: 1))
    }

    @Test(
        "A wish that makes no sense is refused and changes nothing",
        arguments: [(0, 10, 1.0), (10, -1, 1.0), (10, 10, 0.0)]
    )
    func badWish(width: Int, height: Int, frameRate: Double) throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.pull([robot, viewer])
        let wish = Subscribe(trackId: camera.track.id, width: width, height: height, frameRate: frameRate)
        bench.send(.subscribe(wish), from: viewer)
        bench.pull([robot, viewer])
        #expect(viewer.errors == [.invalidArgument] && viewer.close == nil)
        #expect(camera.wanted == WantedLayer(simulcastLayer: 0, temporalLayers: 1))
    }

    @Test("A rate is divided by weight; what a track leaves goes to the others, and none starves")
    func shares() {
        typealias Claim = Allocator.Claim
        #expect(Allocator.shares(of: 1000, among: [Claim(weight: 2, rate: 10)]) == [1000])
        let equal = Allocator.shares(of: 1000, among: [Claim(weight: 2, rate: 5000), Claim(weight: 2, rate: 5000)])
        #expect(equal == [500, 500])
        let weighted = Allocator.shares(of: 1000, among: [Claim(weight: 1, rate: 5000), Claim(weight: 4, rate: 5000)])
        #expect(weighted == [200, 800])
        let modest = Allocator.shares(of: 1000, among: [Claim(weight: 2, rate: 100), Claim(weight: 2, rate: 5000)])
        // It may begin at any time; meanwhile the other has what it leaves.
        #expect(modest == [500, 870])
        let silent = Allocator.shares(of: 1000, among: [Claim(weight: 2, rate: 0), Claim(weight: 2, rate: 5000)])
        #expect(silent == [500, 1000])
        #expect(Allocator.shares(of: 1000, among: []) == [])
        for rates in [[0.0, 0, 0], [1, 900, 20_000], [300, 300, 300]] {
            let shares = Allocator.shares(of: 1000, among: rates.map { Claim(weight: 2, rate: $0) })
            #expect(shares.allSatisfy { $0 > 0 && $0 <= 1000.001 })
        }
    }

    @Test(
        "A late joiner on a link of 1.2 times the track's rate is live soon, for few keyframes",
        arguments: [300, 1000, 2000, 2500, 2900, 3500, 10_000]
    )
    func lateJoiner(age: Int) throws {
        var room = try EmulatedRoom(cap: 1_000_000) {
            [EmulatedViewer($0, "fast", bitsPerSecond: 50_000_000, delay: .milliseconds(5))]
        }
        room.run(age)
        let late = EmulatedViewer(room.bench, "late", bitsPerSecond: 1_200_000)
        room.viewers.append(late)
        room.run(20_000)
        let requests = room.camera.publisher.keyframeRequests
        // A cache of more than two seconds is caught up with too slowly.
        #expect(requests <= (2000..<3000 ~= age ? 3 : 1), "\(requests) keyframes")
        let live = (late.ages.first { $0.age < 250 }?.time ?? .max) - age
        #expect(live < 8000, "live after \(live) ms")
        #expect(late.ages.filter { $0.time > age + 8000 }.allSatisfy { $0.age < 400 })
        #expect(room.viewers.allSatisfy { $0.peer.allProblems.isEmpty })
    }

    @Test("A hundred who join within a second cost one keyframe at most", arguments: [1000, 10_000])
    func crowd(age: Int) throws {
        var room = try EmulatedRoom(cap: 1_000_000) {
            [EmulatedViewer($0, "fast", bitsPerSecond: 50_000_000, delay: .milliseconds(5))]
        }
        room.run(age)
        for number in 0..<100 {
            let viewer = EmulatedViewer(room.bench, "\(number)", bitsPerSecond: 10_000_000, delay: .milliseconds(20))
            room.viewers.append(viewer)
            room.run(10)
        }
        room.run(2000)
        #expect(room.camera.publisher.keyframeRequests <= 1)
        #expect(room.viewers.allSatisfy { $0.peer.allProblems.isEmpty && $0.ages.last?.age ?? 1000 < 100 })
    }

    // The deadline that was over came back each time, for ever.
    @Test("The last viewer may leave while a change of its wish waits to be said")
    func leavesWhileAChangeWaits() throws {
        let bench = RelayBench()
        let robot = bench.join("robot")
        let viewer = bench.join("viewer")
        let camera = try #require(bench.publish(robot))
        bench.pull([robot, viewer])
        bench.send(.subscribe(Subscribe(trackId: camera.track.id, width: 320, height: 180)), from: viewer)
        bench.close(viewer)
        bench.advance(.seconds(2))
        bench.pull(robot)
        #expect(camera.wanted == nil)
    }
}
