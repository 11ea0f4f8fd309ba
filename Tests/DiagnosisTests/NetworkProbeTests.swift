import MediaCore
import RelayServer
import RoomKit
import TestSupport
import Testing

@testable import Diagnosis

@Suite("Measuring a network", .timeLimit(.minutes(2)))
struct NetworkProbeTests {
    let stage: Stage

    init() throws {
        stage = try Stage(isLenient: false)
    }

    /// Measures from a member that connects to `port` to one that connects to `viewerPort`.
    private func measure(port: UInt16, viewerPort: UInt16) async throws -> NetworkMeasurement {
        var joining = stage.options("up", room: "doctor-test")
        joining.url = "ws://127.0.0.1:\(port)"
        joining.isAutomaticSubscriptionEnabled = false
        let room = try await RoomClient.connect(options: joining)
        var viewing = stage.options("down", room: "doctor-test")
        viewing.url = "ws://127.0.0.1:\(viewerPort)"
        let probe = NetworkProbe(
            options: viewing,
            highestRate: Bitrate.kilobitsPerSecond(2000),
            duration: .seconds(5)
        )
        let measurement = try await probe.run(from: room)
        #expect(await room.localParticipant.videoTracks.isEmpty)
        await room.disconnect()
        return measurement
    }

    /// Measures up to three times, until a measurement is as expected: while this machine is busy or stopped, the ways
    /// carry less than otherwise.
    private func expect(
        _ isExpected: (NetworkMeasurement) -> Bool,
        sourceLocation: SourceLocation = #_sourceLocation,
        of measure: () async throws -> NetworkMeasurement
    ) async throws {
        var measurements: [NetworkMeasurement] = []
        for _ in 0..<3 {
            let measurement = try await measure()
            if isExpected(measurement) { return }
            measurements.append(measurement)
        }
        Issue.record("\(measurements)", sourceLocation: sourceLocation)
    }

    @Test("On this machine both ways carry something, and nobody of the measurement stays in the room")
    func free() async throws {
        func isFree(_ measurement: NetworkMeasurement) -> Bool {
            !measurement.isUpLimited && measurement.up.bitsPerSecond > 0 && measurement.down.bitsPerSecond > 0
                && measurement.roundTrip != nil && measurement.loadedRoundTrip != nil && measurement.frameAge != nil
        }
        try await expect(isFree) { try await measure(port: stage.server.port, viewerPort: stage.server.port) }
        let witness = try await stage.join("witness", room: "doctor-test")
        #expect(await witness.room.remoteParticipants.isEmpty)
        await witness.room.disconnect()
    }

    @Test("A thin way to the server is the rate that is found")
    func thinUplink() async throws {
        // It was the rate of what was sent, at a time when the rate was still far from that of the way.
        func isFound(_ measurement: NetworkMeasurement) -> Bool {
            measurement.isUpLimited && measurement.up > .kilobitsPerSecond(250)
                && measurement.up < .kilobitsPerSecond(600)
        }
        try await expect(isFound) {
            let link = try ThinLink(to: stage.server.port, rate: .kilobitsPerSecond(400), direction: .fromClient)
            defer { link.stop() }
            return try await measure(port: link.port, viewerPort: stage.server.port)
        }
    }

    @Test("A thin way back limits what comes back, and not what goes there")
    func thinDownlink() async throws {
        // It was that of the track after it had begun anew.
        func isFound(_ measurement: NetworkMeasurement) -> Bool {
            !measurement.isUpLimited && measurement.isDownLimited && measurement.down < measurement.up
                && measurement.down > .kilobitsPerSecond(150)
        }
        try await expect(isFound) {
            let link = try ThinLink(to: stage.server.port, rate: .kilobitsPerSecond(300))
            defer { link.stop() }
            return try await measure(port: stage.server.port, viewerPort: link.port)
        }
    }
}

@Suite("The highest rate")
struct BestRateTests {
    /// The highest rate over a second; `counts` are milliseconds and bytes.
    private func best(_ counts: [(Int, Int)]) -> Int {
        var best = BestRate(over: .seconds(1))
        for (time, bytes) in counts {
            best.add(ByteCount(bytes: bytes, time: MonotonicInstant(nanoseconds: Int64(time) * 1_000_000)))
        }
        return best.rate.kilobitsPerSecond
    }

    @Test("It is that of the best second, whatever came before and after")
    func bestSecond() {
        // 400 kbit/s for two seconds, then 80.
        let fast = (0...20).map { ($0 * 100, 1000 + $0 * 5000) }
        let slow = (1...20).map { (2000 + $0 * 100, 101_000 + $0 * 1000) }
        #expect(best(fast + slow) == 400)
        #expect(best(fast.prefix(9) + []) == 0, "that is less than a second")
        #expect(best([]) == 0)
    }

    @Test("A large frame counts for the time in which it came, not for the one that begins with its end")
    func largeFrame() {
        // 50,000 bytes in each second, all at once.
        #expect(best((0...200).map { ($0 * 25, 50_000 * ($0 / 40)) }) == 400)
        // The first of two frames came before the second began.
        #expect(best([(0, 0), (25, 90_000), (50, 90_000), (1025, 100_000)]) == 80)
    }
}

@Suite("The picture size that suits a network")
struct NetworkCheckTests {
    private func check(
        _ up: Int,
        _ down: Int,
        loaded: Duration = .milliseconds(50),
        isLimited: Bool = true
    ) -> NetworkCheck {
        NetworkCheck(
            NetworkMeasurement(
                up: .kilobitsPerSecond(up),
                isUpLimited: isLimited,
                down: .kilobitsPerSecond(down),
                isDownLimited: false,
                roundTrip: .milliseconds(40),
                loadedRoundTrip: loaded
            )
        )
    }

    @Test(
        "The size is the largest whose usual rate both ways carry",
        arguments: [
            (6000, 6000, "1280x720"), (6000, 1800, "640x480"), (1699, 6000, "320x240"), (599, 6000, nil),
        ]
    )
    func sizes(up: Int, down: Int, size: String?) {
        #expect(check(up, down).suitableSize?.description == size)
    }

    @Test("A thin network gets options that it carries, and one that carries nothing is a problem")
    func thin() {
        let thin = check(790, 800).findings()
        #expect(thin.contains { $0.advice?.contains("--size 320x240 --max-bitrate 750k") == true }, "\(thin)")
        let none = check(20, 20).findings()
        #expect(none.contains { $0.code == "noBandwidth" && $0.level == .problem })
        #expect(!none.contains { $0.code == "thin" }, "it says what to publish there")
    }

    @Test("Frames that are late are told, though the round trip is short", arguments: [600, 900])
    func lateFrames(milliseconds: Int) {
        var check = check(300, 300)
        check.measurement.frameAge = .milliseconds(milliseconds)
        #expect(check.findings().contains { $0.code == "lateFrames" } == (milliseconds > 740))
    }

    @Test("A rate that the network did not set is no fault of it", arguments: [50, 400, 1000, 2000])
    func untried(rate: Int) {
        let findings = check(rate, rate, isLimited: false).findings()
        #expect(findings.allSatisfy { $0.level != .problem && $0.code != "thin" }, "\(findings)")
        #expect(findings.contains { $0.advice?.contains("higher --max-bitrate") == true } == (rate < 1700))
    }

    @Test("A long queue under load is noted with what to do")
    func queue() {
        #expect(check(6000, 6000, loaded: .milliseconds(500)).findings().contains { $0.code == "queue" })
        #expect(check(6000, 6000).findings().allSatisfy { $0.level == .ok })
    }
}
