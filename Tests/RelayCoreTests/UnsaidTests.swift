import MediaCore
import RoomProtocol
import Testing

@testable import RelayCore

/// Peers that have what was sent, and say so only when they get more.
@Suite("Relay: what a peer need not acknowledge", .timeLimit(.minutes(2)))
struct UnsaidTests {
    /// A path whose peer acknowledges when told to, with its clock as ours and 10 ms each way.
    private struct Bench {
        var path = SubscriberPath()
        var now = MonotonicInstant(microseconds: 5_000_000)
        var written = 0

        mutating func write(_ bytes: Int, _ message: SubscriberPath.Message = .media, endsFrame: Bool = true) {
            if message == .media { path.endsFrame = endsFrame }
            path.wrote(bytes, message, at: now)
            written += bytes
        }

        /// All that was written was received `milliseconds` from now, and is acknowledged 10 ms later.
        mutating func acknowledge(after milliseconds: Int) {
            let received = now + .milliseconds(milliseconds)
            path.acknowledged(
                MediaAcknowledgement(
                    cumulativeBytes: UInt64(written),
                    receiveTime: .init(microseconds: UInt64(received.microseconds)),
                    trackAlias: 0,
                    frameNumber: 0
                ),
                at: received + .milliseconds(10)
            )
        }

        mutating func advance(_ milliseconds: Int) { now += .milliseconds(milliseconds) }
    }

    // A peer that thinned spoke in the middle of a frame of 40 kB. The relay took the frame's own time for a queue, and
    // waited for an acknowledgement of each frame; the peer saw no delay, and waited for the next frame. For 6 s.
    @Test("A peer that goes on thinning gets the next frame", arguments: [700, 1000])
    func goesOnThinning(outage: Int) throws {
        let fast = 10_000_000.0
        var room = try EmulatedRoom(cap: 6_000_000) { bench in
            [EmulatedViewer(bench, "viewer", bitsPerSecond: fast, delay: .milliseconds(20))]
        }
        let viewer = room.viewers[0]
        room.run(24_000) { millisecond in
            let isOut = millisecond >= 5000 && (millisecond - 5000) % 10_000 < outage
            viewer.bitsPerSecond = isOut ? 0 : fast
        }
        let times = viewer.frames.map(\.time).filter { $0 >= 4000 } + [24_000]
        let longest = zip(times, times.dropFirst()).map { $1 - $0 }.max() ?? 0
        #expect(longest < outage + 300, "\(longest) ms without a frame")
    }

    @Test("A text right behind the last acknowledgement holds no frame back, and its silence is no outage")
    func text() {
        var bench = Bench()
        // From the twentieth frame on, a queue of 40 ms stands: the path has a limit.
        for index in 0..<60 {
            bench.write(8000)
            bench.acknowledge(after: index < 20 ? 10 : 50)
            bench.advance(100)
        }
        #expect(bench.path.isLimited)
        bench.write(8000)
        bench.acknowledge(after: 50)
        bench.advance(65)
        bench.write(1300, .text)
        bench.advance(1000)
        let isAdmitted = bench.path.admitsFrame(at: bench.now)
        #expect(isAdmitted)
        let rate = bench.path.rate ?? 0
        bench.write(1000)
        bench.acknowledge(after: 10)
        #expect(!bench.path.endsOutage)
        #expect((bench.path.rate ?? .infinity) >= rate)
    }

    // A viewer whose track was disabled got no answer to `timeSync`, and was not told that its network is well again,
    // until other pictures came.
    @Test("Texts of which the peer says nothing hold back the next ones for two seconds, and media for longer")
    func laterTexts() {
        for areMediaMissing in [false, true] {
            var bench = Bench()
            // A queue of 40 ms stands in the end, so that the peer does not thin.
            for index in 0..<60 {
                bench.write(8000)
                bench.acknowledge(after: index < 20 ? 10 : 50)
                bench.advance(100)
            }
            bench.write(areMediaMissing ? 8000 : 1300, areMediaMissing ? .media : .text)
            bench.advance(1500)
            let isSilentSoon = bench.path.isSilent(at: bench.now)
            #expect(isSilentSoon)
            bench.advance(1500)
            let isSilentLater = bench.path.isSilent(at: bench.now)
            #expect(isSilentLater == areMediaMissing)
        }
    }

    // The end of an unfinished frame need not be acknowledged, so a frame is tried after it. If that is not acknowledged
    // either, the path delivers nothing.
    @Test("An outage behind an unfinished frame is one", arguments: [1500, 3000], [true, false])
    func outage(milliseconds: Int, isTried: Bool) {
        var bench = Bench()
        for _ in 0..<100 {
            bench.write(8000)
            bench.acknowledge(after: 10)
            bench.advance(33)
        }
        // The socket takes what it can, until the peer should have spoken even if it thins.
        for _ in 0..<21 {
            bench.write(3000)
            bench.advance(33)
        }
        bench.write(3000, endsFrame: false)
        var tried = 0
        for _ in 0..<(milliseconds / 33) {
            bench.advance(33)
            guard bench.path.admitsFrame(at: bench.now), isTried else { continue }
            bench.write(8000)
            tried += 1
        }
        #expect(tried == (isTried ? 1 : 0))
        bench.acknowledge(after: 10)
        #expect(bench.path.endsOutage)
        for _ in 0..<30 {
            bench.advance(33)
            bench.write(8000)
            bench.acknowledge(after: 10)
        }
        #expect(bench.path.rate == nil)
    }

    @Test("The end of an unfinished frame that was there all the time is no outage")
    func unfinished() {
        var bench = Bench()
        for _ in 0..<100 {
            bench.write(8000)
            bench.acknowledge(after: 10)
            bench.advance(33)
        }
        bench.write(3000, endsFrame: false)
        bench.advance(1100)
        let isAdmitted = bench.path.admitsFrame(at: bench.now)
        #expect(isAdmitted)
        bench.write(8000)
        bench.acknowledge(after: 10)
        #expect(!bench.path.endsOutage && bench.path.rate == nil)
    }
}
