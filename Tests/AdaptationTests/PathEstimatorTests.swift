import MediaCore
import RoomProtocol
import Testing

@testable import Adaptation

@Suite("The estimate of a path from acknowledgements") struct PathEstimatorTests {
    private func acknowledgement(_ bytes: Int, _ received: Int64) -> MediaAcknowledgement {
        MediaAcknowledgement(
            cumulativeBytes: UInt64(bytes),
            receiveTime: .init(microseconds: UInt64(received)),
            trackAlias: 0,
            frameNumber: 0
        )
    }

    // The time at which the beginning of a frame came counted as that of the end of the frame before it.
    @Test("On an empty path, acknowledgements that end within a message tell of no queue")
    func parts() throws {
        var path = PathEstimator()
        for frame in 1...60 {
            let now = Int64(frame) * 33_000
            path.wrote(8000, at: now)
            // The first frames are acknowledged whole, 20 ms after they were written. Of the later ones, half is there
            // after 10 ms, and acknowledged together with the rest of the frame before.
            let isWhole = frame <= 10
            let bytes = frame * 8000 - (isWhole ? 0 : 4000)
            let received = now + (isWhole ? 20_000 : 10_000)
            let sample = path.acknowledged(acknowledgement(bytes, received), at: now + 25_000)
            guard frame > 11 else { continue }
            let told = try #require(sample)
            #expect(told.queue == 0 && told.standingQueue == 0 && told.written == now)
        }
    }

    @Test("On a path with a queue, they tell of it as those do that end with a message")
    func queue() throws {
        var path = PathEstimator()
        var last: PathEstimator.Sample?
        for frame in 1...60 {
            let now = Int64(frame) * 33_000
            path.wrote(4000, at: now)
            // From the tenth frame on each waits for 100 ms, and comes with the first bytes of the next one.
            let wait: Int64 = frame > 10 ? 110_000 : 10_000
            guard frame > 4 else { continue }
            let frames = frame - (frame > 10 ? 4 : 1)
            let written = Int64(frames) * 33_000
            last = path.acknowledged(acknowledgement(frames * 4000 + 100, written + wait), at: now + 20_000) ?? last
        }
        let sample = try #require(last)
        #expect((66_000...100_000).contains(sample.standingQueue), "\(sample)")
    }

    /// The longest standing queues, in ms, that are told of a link of 1 Mbit/s on which a frame of 20,500 bytes comes
    /// each 180 ms, before and after `queue` ms of other bytes come; the receiver acknowledges each 10 ms what it has.
    // The time of the suspend counted as a queue for ten seconds, and the rate went down and down.
    @Test("A machine that was suspended has no queue for that", arguments: [-5_000_000, 3_000_000, 20_000_000])
    func suspended(ahead: Int) {
        var path = PathEstimator()
        var queue: Int64 = 0
        for frame in 1...400 {
            let now = Int64(frame) * 33_000
            path.wrote(8000, at: now)
            let received = 30_000_000 + now + 20_000 + (frame > 200 ? Int64(ahead) : 0)
            let sample = path.acknowledged(acknowledgement(frame * 8000, received), at: now + 40_000)
            if frame > 200, let sample { queue = max(queue, sample.queue, sample.standingQueue) }
        }
        #expect(queue == 0)
    }

    private func standingQueues(_ queue: Int) -> (before: Int64, after: Int64) {
        var path = PathEstimator()
        var (before, after) = (Int64(0), Int64(0))
        var (written, carried) = (0, 0)
        for millisecond in 0..<3000 {
            let now = Int64(millisecond) * 1000
            let bytes = (millisecond % 180 == 0 ? 20_500 : 0) + (millisecond == 1980 ? queue * 125 : 0)
            path.wrote(bytes, at: now)
            written += bytes
            carried = min(written, carried + 125)
            guard millisecond % 10 == 9 else { continue }
            let told = acknowledgement(carried, now + 1000)
            guard let sample = path.acknowledged(told, at: now + 1000) else { continue }
            if millisecond < 1980 { before = max(before, sample.standingQueue) }
            if millisecond > 2300 { after = max(after, sample.standingQueue) }
        }
        return (before / 1000, after / 1000)
    }

    // It counted from the delay of the fastest whole frame, 164 ms: a queue as long was taken for none.
    @Test("The beginning of a large frame shows how long it waited", arguments: [0, 60, 90, 120, 200])
    func waitOfBeginnings(queue: Int) {
        let told = standingQueues(queue)
        #expect(told.before == 0 && told.after <= queue && told.after >= queue / 2, "\(told)")
    }

    // The fastest beginning was kept for good if no other one came.
    @Test("A path that becomes longer has no queue any more after a while, also if no beginnings are acknowledged then")
    func longerPath() throws {
        var path = PathEstimator()
        var last: PathEstimator.Sample?
        for frame in 1...900 {
            let now = Int64(frame) * 33_000
            path.wrote(4000, at: now)
            // For 10 s, the beginning of each frame comes with the frame before.
            let isLong = frame > 300
            let bytes = isLong ? frame * 4000 : frame * 4000 - 3000
            let received = now + (isLong ? 80_000 : 10_000)
            last = path.acknowledged(acknowledgement(bytes, received), at: received + 5000) ?? last
        }
        let sample = try #require(last)
        #expect(sample.standingQueue == 0 && sample.standingDelay == 0, "\(sample)")
    }

    // The window of the rate held the parts of one frame alone. They came too close together to tell a rate, so that
    // nothing was learnt of the path, however long it lasted.
    @Test("Few frames a second tell of the path although all parts of each come within a moment", arguments: [1, 2, 3])
    func partsOfFewFrames(framesPerSecond: Int64) throws {
        var path = PathEstimator()
        var samples: [PathEstimator.Sample] = []
        for frame in 1...20 {
            let now = Int64(frame) * 1_000_000 / framesPerSecond
            path.wrote(8000, at: now)
            for (bytes, time) in [(3000, now + 12_000), (8000, now + 24_000)] {
                let told = acknowledgement((frame - 1) * 8000 + bytes, time)
                if let sample = path.acknowledged(told, at: time + 10_000) { samples.append(sample) }
            }
        }
        #expect(samples.count >= 18)
        let last = try #require(samples.last)
        #expect((0.9..<2).contains(last.deliveryRate / Double(framesPerSecond * 64_000)), "\(last)")
    }

    /// What a path of `kilobits` per second tells that carries messages of `bytes` one after another; the receiver
    /// counts whole ones.
    private func samples(kilobits: Int, bytes: Int, silence: Int64 = 0) -> [PathEstimator.Sample] {
        var settings = PathEstimator.Settings()
        settings.slowMargin = 1.5
        var path = PathEstimator(settings)
        let each = Int64(bytes * 8000 / kilobits)
        for _ in 0..<20 { path.wrote(bytes, at: 0) }
        for message in 1...20 { path.wrote(bytes, at: Int64(message)) }
        return (1...20).compactMap { message in
            let time = Int64(message) * each + (message > 10 ? silence : 0)
            return path.acknowledged(acknowledgement((20 + message) * bytes, time), at: time + 20_000)
        }
    }

    // Each message took longer than a stall, so that nothing that was delayed counted.
    @Test(
        "A receiver that counts whole messages on a slow link tells of its rate and its queue",
        arguments: [100, 300, 900]
    )
    func slow(kilobits: Int) throws {
        let last = try #require(samples(kilobits: kilobits, bytes: 12_000).last)
        #expect(!last.isAfterStall && last.standingQueue > 500_000, "\(last)")
        #expect(abs(last.activeRate - Double(kilobits) * 1000) < 0.02 * last.activeRate, "\(last)")
    }

    /// The active rate of a path of `kilobits` per second whose queue never ends, in kbit/s, as a publisher's estimator
    /// has it after `seconds` with messages of 1,200 bytes.
    private func activeRate(kilobits: Int, seconds: Int) throws -> Double {
        var path = PathEstimator()
        let each = Int64(1200 * 8000 / kilobits)
        var last: PathEstimator.Sample?
        for time in 0..<2 { path.wrote(1200, at: Int64(time)) }
        for message in 1...(seconds * 1_000_000 / Int(each)) {
            let now = Int64(message) * each
            path.wrote(1200, at: now)
            last = path.acknowledged(acknowledgement(message * 1200, now), at: now + 20_000) ?? last
        }
        return try #require(last).activeRate / 1000
    }

    // Of the 120 ms that a message takes at 80 kbit/s, 80 counted.
    @Test("The rate is known of a link on which a message takes longer than a silence may", arguments: [60, 80, 100])
    func thin(kilobits: Int) throws {
        let rate = try activeRate(kilobits: kilobits, seconds: 10)
        #expect(abs(rate - Double(kilobits)) < 0.02 * Double(kilobits), "\(rate)")
    }

    @Test("A silence of a thin link is none of the time in which it delivers")
    func thinSilence() {
        var path = PathEstimator()
        var now: Int64 = 0
        var samples: [PathEstimator.Sample] = []
        for time in 0..<4 { path.wrote(1200, at: Int64(time)) }
        for message in 1...200 {
            // 100 kbit/s; every tenth message comes 200 ms late, and the two after it with it.
            let place = message % 10
            now += message > 10 && place == 0 ? 296_000 : place == 1 || place == 2 ? 1_000 : 96_000
            path.wrote(1200, at: now)
            path.acknowledged(acknowledgement(message * 1200, now), at: now + 20_000).map { samples.append($0) }
        }
        let last = samples.suffix(10)
        let mean = last.reduce(0) { $0 + $1.activeRate } / 10
        #expect(last.allSatisfy(\.isThin) && mean > 110_000, "\(mean)")
    }

    /// The largest active rate, in kbit/s, that is told of a link of 300 kbit/s which never rests, whose receiver is
    /// silent for `silence` ms in each second; `counts` says whether the kernel's count of packets is told.
    private func rateAfterLosses(silence: Int, counts: Bool) -> Double {
        var path = PathEstimator()
        var most = 0.0
        path.wrote(1500, at: 0)
        for packet in 1...250 {
            let now = Int64(packet) * 40_000
            path.wrote(1500, at: now)
            let isHeld = packet * 40 % 1000 < silence
            if counts, path.isSilent(at: now - 10_000) { path.delivered(packets: UInt32(packet), at: now - 10_000) }
            guard !isHeld else { continue }
            let sample = path.acknowledged(acknowledgement(packet * 1500, now), at: now + 1000)
            if packet > 30 { most = max(most, sample?.activeRate ?? 0) }
        }
        return most / 1000
    }

    // A lost packet on a link of 250 kbit/s made it look like one of 500: the queue stood at half a second.
    @Test("What comes at once after a lost packet is no faster link", arguments: [200, 320, 480])
    func heldDelivery(silence: Int) {
        #expect(rateAfterLosses(silence: silence, counts: false) > 400)
        #expect(rateAfterLosses(silence: silence, counts: true) < 340)
    }

    @Test("Packets that came before a silence are no sign of life in it")
    func silenceWithoutPackets() {
        func rate(counts: Bool) -> Double {
            var path = PathEstimator()
            var (most, now) = (0.0, Int64(0))
            path.wrote(1500, at: 0)
            for message in 1...200 {
                let begin = now
                now += message.isMultiple(of: 20) ? 400_000 : 40_000
                path.wrote(1500, at: begin)
                for time in stride(from: begin + 33_000, to: now, by: 33_000) where counts && path.isSilent(at: time) {
                    path.delivered(packets: UInt32(message), at: time)
                }
                let sample = path.acknowledged(acknowledgement(message * 1500, now), at: now + 1000)
                if message > 20 { most = max(most, sample?.activeRate ?? 0) }
            }
            return most
        }
        #expect(rate(counts: true) == rate(counts: false))
    }

    @Test("A silence of a link that was faster before is a stall still")
    func stall() throws {
        let samples = samples(kilobits: 2000, bytes: 6000, silence: 600_000)
        #expect(samples.prefix(7).allSatisfy { !$0.isAfterStall })
        #expect(samples.last?.isAfterStall == true)
        #expect(try #require(samples.last).activeRate > 1_000_000)
    }

    // The age of what is not acknowledged counted as time on the way of the media.
    @Test("Acknowledgements that come late tell how late, for two seconds, and a queue of the media is no lateness")
    func lateness() {
        var path = PathEstimator()
        var written = 0
        /// Ten frames a second, each a queue after its write, acknowledged with `lateness`.
        func play(_ frames: Range<Int>, lateness: Int64, queue: Int64) -> Int64 {
            for frame in frames {
                let now = Int64(frame) * 100_000
                written += 4000
                path.wrote(4000, at: now)
                let received = now + 10_000 + queue
                _ = path.acknowledged(acknowledgement(written, received), at: received + 10_000 + lateness)
            }
            return path.unsaidTime
        }
        #expect(play(1..<10, lateness: 0, queue: 0) == 0)
        #expect(play(10..<20, lateness: 10_000, queue: 0) == 0, "a receiver may wait as long for more bytes")
        #expect(play(20..<30, lateness: 70_000, queue: 0) == 70_000)
        #expect(play(30..<36, lateness: 0, queue: 30_000) == 40_000, "what waits has not come")
        #expect(play(36..<60, lateness: 0, queue: 70_000) == 0)
        #expect(play(60..<70, lateness: 900_000, queue: 0) == 500_000)
    }
}
