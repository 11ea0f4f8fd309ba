import MediaCore
import RelayCore
import RoomProtocol
import TestTools
import Testing

@Suite("Relay: the path to a subscriber", .timeLimit(.minutes(1)))
struct SubscriberPathTests {
    private func acknowledgement(_ bytes: Int, at time: MonotonicInstant) -> MediaAcknowledgement {
        MediaAcknowledgement(
            cumulativeBytes: UInt64(bytes),
            receiveTime: .init(microseconds: UInt64(time.microseconds)),
            trackAlias: 0,
            frameNumber: 0
        )
    }

    private let start = MonotonicInstant(microseconds: 5_000_000)

    @Test("A peer that never acknowledges has no limit, and leaves nothing behind")
    func neverAcknowledges() {
        var path = SubscriberPath()
        for index in 0..<100_000 {
            let now = start + .milliseconds(index)
            path.wrote(1000, .media, at: now)
            let mayBegin = path.mayBegin(at: now)
            #expect(mayBegin)
        }
        #expect(!path.isAcknowledged && path.rate == nil)
        #expect(path.unacknowledgedBytes <= 4097 * 1000)
    }

    // The first acknowledgement came behind more writes than were remembered, and so the estimate began again, for ever.
    @Test(
        "A peer far away is known by its first acknowledgement, however many messages are on their way",
        arguments: [(700, 4), (1300, 8), (2500, 20), (5000, 4), (8000, 50)]
    )
    func longWay(roundTrip: Int, every interval: Int) {
        var path = SubscriberPath()
        var known: Int?
        for index in 0..<(20_000 / interval) {
            let now = start + .milliseconds(index * interval)
            path.wrote(1000, .media, at: now)
            let answered = index - roundTrip / interval
            guard answered >= 0 else { continue }
            let arrival = now - .milliseconds(roundTrip / 2)
            path.acknowledged(acknowledgement(1000 * (answered + 1), at: arrival), at: now)
            if path.isAcknowledged, known == nil { known = index * interval }
        }
        // What was written before the estimate began anew, after six seconds in vain, does not count.
        let latest = roundTrip < 6000 ? roundTrip + 2 * interval : 2 * roundTrip + 2 * interval
        #expect(known ?? .max <= latest)
        #expect(path.disregarded == 0 && path.rate == nil)
    }

    // The gate closed for good: what opened it again were acknowledgements, and none came without frames.
    @Test("A peer whose clock is set goes on getting its frames", arguments: [-200, -1, 200], [33, 100, 500])
    func setClock(leap: Int, every interval: Int) {
        var path = SubscriberPath()
        var (sent, written) = (0, 0)
        var underway: [(bytes: Int, arrival: MonotonicInstant)] = []
        for millisecond in 0..<20_000 {
            let now = start + .milliseconds(millisecond)
            while let first = underway.first, first.arrival + .milliseconds(30) <= now {
                underway.removeFirst()
                let clock = first.arrival + .seconds(1000 + (millisecond > 5000 ? leap : 0))
                path.acknowledged(acknowledgement(first.bytes, at: clock), at: now)
            }
            guard millisecond % interval == 0 else { continue }
            guard path.admitsFrame(at: now) else { continue }
            path.wrote(4000, .media, at: now)
            written += 4000
            sent += 1
            underway.append((written, now + .milliseconds(30)))
        }
        #expect(sent >= 20_000 / interval - 2)
        #expect(path.disregarded <= 20 && path.rate == nil)
    }

    @Test("Thinned acknowledgements of a path without a queue give no limit and never close the gate")
    func thinned() {
        var path = SubscriberPath()
        var written = 0
        for frame in 0..<600 {
            let now = start + .milliseconds(frame * 33)
            let isAdmitted = path.admitsFrame(at: now)
            #expect(isAdmitted, "frame \(frame)")
            path.wrote(8000, .media, at: now)
            written += 8000
            if frame < 30 || frame % 16 == 0 {
                path.acknowledged(acknowledgement(written, at: now + .milliseconds(2)), at: now + .milliseconds(4))
            }
        }
        #expect(path.rate == nil && path.isAcknowledged)
    }

    // A repeat that came 80 ms late began a limit of 25 kbit/s: a new page was then too much for the path, and dropped.
    @Test("A still picture whose repeats sometimes come late shows no limit", arguments: [40, 80, 150, 240])
    func lateRepeats(lateness: Int) {
        var path = SubscriberPath()
        var written = 0
        for second in 0..<120 {
            let now = start + .seconds(second)
            path.wrote(250, .media, at: now)
            written += 250
            let arrival = now + .milliseconds(second % 7 == 6 ? 5 + lateness : 5)
            path.acknowledged(acknowledgement(written, at: arrival), at: arrival + .milliseconds(5))
            #expect(path.rate == nil, "after \(second) s")
        }
        #expect(path.isAcknowledged)
    }

    @Test("A track that pauses while acknowledgements are thinned goes on")
    func pauseWhileThinned() {
        var path = SubscriberPath()
        var written = 0
        for frame in 0..<74 {
            let now = start + .milliseconds(frame * 33)
            path.wrote(8000, .media, at: now)
            written += 8000
            guard frame < 60 else { continue }
            path.acknowledged(acknowledgement(written, at: now + .milliseconds(2)), at: now + .milliseconds(4))
        }
        // What was sent last is not acknowledged yet, and need not be for ten seconds.
        let mayBegin = path.mayBegin(at: start + .seconds(13))
        #expect(mayBegin)
    }

    @Test("A peer whose path breaks is sent no more frames a moment later, and again with its next acknowledgement")
    func brokenPath() {
        var path = SubscriberPath()
        var written = 0
        var now = start
        var closedAfter: Duration?
        for frame in 0..<300 {
            now = start + .milliseconds(frame * 33)
            guard path.admitsFrame(at: now) else {
                closedAfter = closedAfter ?? now.duration(since: start + .milliseconds(99 * 33))
                continue
            }
            path.wrote(8000, .media, at: now)
            written += 8000
            let queue = Duration.milliseconds(20 + frame % 2 * 5)
            guard frame < 100 else { continue }
            path.acknowledged(acknowledgement(written, at: now + queue), at: now + queue + .milliseconds(20))
        }
        // The base delay is the first one's, so this queue is small: the peer may be thinning, up to 500 ms.
        #expect(closedAfter ?? .seconds(9) < .milliseconds(900))
        #expect(path.unacknowledgedBytes < 300_000)
        path.acknowledged(acknowledgement(written, at: now), at: now)
        let mayBegin = path.mayBegin(at: now)
        #expect(mayBegin)
    }

    @Test("A silence with bytes on their way is an outage, and slow delivery is none")
    func outages() {
        var path = SubscriberPath()
        var (written, now) = (0, start)
        for frame in 0..<60 {
            now = start + .milliseconds(frame * 33)
            path.wrote(8000, .media, at: now)
            written += 8000
            path.acknowledged(acknowledgement(written, at: now + .milliseconds(5)), at: now + .milliseconds(10))
            #expect(!path.endsOutage)
        }
        // A keyframe that takes 2 s at 80 kbit/s.
        now += .milliseconds(33)
        path.wrote(20_000, .media, at: now)
        for _ in 0..<13 {
            (written, now) = (written + 1500, now + .milliseconds(150))
            path.acknowledged(acknowledgement(written, at: now), at: now)
            #expect(!path.endsOutage)
        }
        now += .milliseconds(800)
        written += 500
        path.acknowledged(acknowledgement(written, at: now), at: now)
        #expect(path.endsOutage)
        now += .milliseconds(33)
        path.wrote(8000, .media, at: now)
        path.acknowledged(acknowledgement(written + 8000, at: now), at: now)
        #expect(!path.endsOutage)
    }

    // It waited for a round trip more, until nearly all was acknowledged.
    @Test("After an outage one frame follows when a quarter of what was on its way has arrived")
    func afterOutage() {
        var path = SubscriberPath()
        var (written, now) = (0, start)
        func write(_ frames: Int) {
            for _ in 0..<frames {
                now += .milliseconds(33)
                path.wrote(4000, .media, at: now)
                written += 4000
            }
        }
        func acknowledge(upTo bytes: Int) {
            path.acknowledged(acknowledgement(bytes, at: now + .milliseconds(50)), at: now + .milliseconds(100))
        }
        for _ in 0..<60 {
            write(1)
            acknowledge(upTo: written)
        }
        let arrived = written
        write(8)
        now += .seconds(3)
        func expect(_ mayBegin: Bool, afterFrames count: Int) {
            acknowledge(upTo: arrived + count * 4000)
            let isRight = path.mayBegin(at: now + .milliseconds(100)) == mayBegin
            #expect(isRight, "\(count)")
        }
        expect(false, afterFrames: 1)
        now += .milliseconds(100)
        expect(true, afterFrames: 2)
        write(1)
        expect(false, afterFrames: 3)
    }

    @Test("A path is silent soon after the last arrival, and not while its peer thins or nothing is on its way")
    func silence() {
        var path = SubscriberPath()
        var (written, now) = (0, start)
        func isSilent(after duration: Duration) -> Bool { path.isSilent(at: now + duration) }
        path.wrote(8000, .media, at: now)
        #expect(!isSilent(after: .seconds(9)), "a peer that never acknowledges")
        written += 8000
        for frame in 0..<60 {
            now = start + .milliseconds(frame * 33)
            path.wrote(8000, .media, at: now)
            written += 8000
            path.acknowledged(acknowledgement(written, at: now + .milliseconds(5)), at: now + .milliseconds(10))
        }
        #expect(!isSilent(after: .seconds(9)), "nothing is on its way")
        path.wrote(8000, .media, at: now + .milliseconds(33))
        #expect(!isSilent(after: .milliseconds(400)), "it may be thinning")
        // A delay, after which no peer thins.
        now += .milliseconds(200)
        path.acknowledged(acknowledgement(written + 8000, at: now), at: now)
        path.wrote(8000, .media, at: now)
        #expect(!isSilent(after: .milliseconds(100)))
        #expect(isSilent(after: .milliseconds(300)))
        path.acknowledged(acknowledgement(written + 16_000, at: now), at: now + .milliseconds(310))
        #expect(!isSilent(after: .milliseconds(320)))
    }

    // Their age counted as if the media had not come. Jitter keeps the path from counting as one that thins.
    @Test("A peer whose acknowledgements come late goes on to be sent all frames")
    func lateAcknowledgements() {
        var path = SubscriberPath()
        var left: [Int] = []
        /// Acknowledges a frame that came after 2 ms, or 22 ms.
        func acknowledge(_ frame: Int, at now: MonotonicInstant? = nil) {
            let received = start + .milliseconds(frame * 33 + 2 + frame % 2 * 20)
            path.acknowledged(acknowledgement((frame + 1) * 8000, at: received), at: now ?? received + .milliseconds(2))
        }
        for frame in 0..<300 {
            let now = start + .milliseconds(frame * 33)
            // From the hundredth frame on they take 250 ms more.
            if frame >= 108 { acknowledge(frame - 8, at: now) }
            if !path.admitsFrame(at: now) { left.append(frame) }
            path.wrote(8000, .media, at: now)
            if frame < 100 { acknowledge(frame) }
        }
        #expect(left.allSatisfy { $0 < 110 }, "\(left)")
    }

    @Test("Acknowledgements that lie are counted and change nothing")
    func lies() {
        var path = SubscriberPath()
        var generator = SeededGenerator(seed: 7)
        path.wrote(1000, .media, at: start)
        path.acknowledged(acknowledgement(1000, at: start), at: start)
        for index in 0..<1000 {
            let body = MediaAcknowledgement(
                cumulativeBytes: .random(in: 1001 ... .max, using: &generator),
                receiveTime: .init(microseconds: .random(in: 0 ... .max, using: &generator)),
                trackAlias: 0,
                frameNumber: 0
            )
            path.acknowledged(body, at: start + .milliseconds(index))
        }
        #expect(path.disregarded == 1000 && path.unacknowledgedBytes == 0 && path.rate == nil)
        path.acknowledged(acknowledgement(10, at: start), at: start)
        #expect(path.disregarded == 1001, "bytes that go back")
    }

    @Test("Times that leap ahead are believed once, and never overflow")
    func absurdTimes() {
        var path = SubscriberPath()
        for index in 0..<100 {
            let now = start + .milliseconds(index * 33)
            path.wrote(1000, .media, at: now)
            let body = MediaAcknowledgement(
                cumulativeBytes: UInt64(index + 1) * 1000,
                receiveTime: .init(microseconds: index == 50 ? UInt64(Int64.max) : UInt64(index)),
                trackAlias: 0,
                frameNumber: 0
            )
            path.acknowledged(body, at: now)
        }
        #expect(path.disregarded == 1)
    }

    @Test("Our own acknowledgements in between make nothing look old")
    func ownAcknowledgements() {
        var path = SubscriberPath()
        var written = 0
        for frame in 0..<100 {
            let now = start + .milliseconds(frame * 200)
            let mayBegin = path.mayBegin(at: now)
            #expect(mayBegin, "frame \(frame)")
            path.wrote(5000, .media, at: now)
            written += 5000
            path.acknowledged(acknowledgement(written, at: now + .milliseconds(30)), at: now + .milliseconds(60))
            path.wrote(48, .acknowledgement, at: now + .milliseconds(100))
            written += 48
        }
        #expect(path.disregarded == 0)
    }
}
