import MediaCore
import RelayCore
import RoomProtocol
import Testing

/// What is learned of a path while it is full from the beginning, and what is done where a frame was left unfinished.
@Suite("Relay: the beginning of a path, and unfinished frames", .timeLimit(.minutes(1)))
struct PathBeginningTests {
    /// The rate that is found, when acknowledgements of these bytes come each 50 ms on a path that is full.
    private func rate(_ bytes: [Int64], isFull: (Int) -> Bool = { _ in true }) -> Double? {
        var delivery = FirstDelivery()
        for (index, count) in bytes.enumerated() {
            let time = 7_000_000 + Int64(index) * 50_000
            let found = delivery.acknowledged(count, isFull: isFull(index), at: time)
            if let found { return found }
        }
        return nil
    }

    @Test("A path that is full and delivers as much as before carries that")
    func steady() {
        #expect(rate((0..<20).map { $0 * 2500 }) == 400_000)
        // What TCP delivers late comes together.
        let bursts = (0..<40).map { Int64($0) / 3 * 7500 }
        let found = rate(bursts) ?? 0
        #expect((250_000.0...600_000).contains(found), "\(found)")
    }

    @Test("What still grows, and a path that is not full, shows no limit")
    func noLimit() {
        // Slow start doubles what comes in each round trip, of 200 ms here.
        #expect(rate((0..<20).map { 14_000 * (Int64(1) << ($0 / 4)) }) == nil)
        #expect(rate((0..<100).map { $0 * 2500 }, isFull: { $0 % 5 != 0 }) == nil)
        #expect(rate((0..<400).map { $0 * 2500 }, isFull: { $0 > 250 }) == nil, "the beginning is long over")
    }

    private let start = MonotonicInstant(microseconds: 5_000_000)

    /// A path whose round trip of 20 ms is known, with an acknowledged frame, and one of `bytes` that was begun since.
    private func path(unfinished bytes: Int, acknowledged part: Int) -> (path: SubscriberPath, now: MonotonicInstant) {
        var path = SubscriberPath()
        var now = start
        var written = 0
        func acknowledge(_ count: Int) {
            let body = MediaAcknowledgement(
                cumulativeBytes: UInt64(count),
                receiveTime: .init(microseconds: UInt64(now.microseconds)),
                trackAlias: 0,
                frameNumber: 0
            )
            path.acknowledged(body, at: now + .milliseconds(10))
        }
        for _ in 0..<10 {
            path.endsFrame = true
            path.wrote(8000, .media, at: now)
            written += 8000
            now += .milliseconds(10)
            acknowledge(written)
            now += .milliseconds(23)
        }
        path.endsFrame = false
        path.wrote(bytes, .media, at: now)
        now += .milliseconds(10)
        acknowledge(written + part)
        return (path, now)
    }

    // The viewer had all and said nothing of the last bytes; it saw nothing for 6 s.
    @Test("The end of an unfinished frame, of which the peer says nothing, holds nothing back for long")
    func unfinished() {
        var (path, now) = path(unfinished: 48_000, acknowledged: 16_000)
        let atOnce = path.mayBegin(at: now + .milliseconds(200))
        // The next frame waits for what may still be on its way.
        let opening = path.opening(at: now) ?? now
        #expect(opening > now && opening < now + .seconds(2))
        let isSilent = path.isSilent(at: opening + .milliseconds(1))
        #expect(!isSilent)
        let mayBegin = path.mayBegin(at: opening)
        // Whole frames of that age would be missing.
        let mayBeginLater = path.mayBegin(at: opening + .milliseconds(200))
        #expect(mayBegin && mayBeginLater)
        #expect(!atOnce || opening < now + .milliseconds(200))
        // Nor is that silence an outage.
        now = opening
        path.endsFrame = true
        path.wrote(8000, .media, at: now)
        let body = MediaAcknowledgement(
            cumulativeBytes: UInt64(80_000 + 48_000 + 8000),
            receiveTime: .init(microseconds: UInt64((now + .milliseconds(10)).microseconds)),
            trackAlias: 0,
            frameNumber: 0
        )
        path.acknowledged(body, at: now + .milliseconds(20))
        #expect(!path.endsOutage && path.unacknowledgedBytes == 0)
    }

    @Test("What is missing of a whole frame is waited for")
    func whole() {
        var (path, now) = path(unfinished: 48_000, acknowledged: 16_000)
        path.endsFrame = true
        path.wrote(16_000, .media, at: now)
        now += .milliseconds(300)
        let mayBegin = path.mayBegin(at: now)
        let opening = path.opening(at: now)
        #expect(!mayBegin && opening == nil)
    }
}
