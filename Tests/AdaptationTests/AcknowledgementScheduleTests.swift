import MediaCore
import RoomProtocol
import TestTools
import Testing

@testable import Adaptation

@Suite struct AcknowledgementScheduleTests {
    /// A receiver on a path of a fixed delay, to which frames of one track come.
    private struct Receiver {
        var schedule = AcknowledgementSchedule()
        var acknowledgements: [(at: Int64, value: MediaAcknowledgement)] = []
        var number: UInt32 = 0

        /// A frame of one message that was sent at `sent` and comes at `arrived`, both in microseconds.
        mutating func frame(bytes: Int = 3000, sent: Int64, arrived: Int64) {
            ask(before: arrived)
            schedule.received(bytes, at: MonotonicInstant(microseconds: arrived))
            schedule.chunkEnded(
                AcknowledgementSchedule.Chunk(
                    trackAlias: 7,
                    frameNumber: number,
                    isFirst: true,
                    isLast: true,
                    sentTime: sent
                )
            )
            number += 1
            ask(at: arrived)
        }

        mutating func ask(at time: Int64) {
            guard let value = schedule.acknowledgement(at: MonotonicInstant(microseconds: time)) else { return }
            acknowledgements.append((time, value))
        }

        /// Asks at each deadline before `time`, as a timer does.
        mutating func ask(before time: Int64) {
            while let deadline = schedule.nextDeadline, deadline.microseconds < time { ask(at: deadline.microseconds) }
        }
    }

    @Test("Each frame's end is acknowledged at first, with what came and when")
    func atFrameEnds() throws {
        var receiver = Receiver()
        for frame in 0..<10 { receiver.frame(sent: Int64(frame) * 33_000, arrived: Int64(frame) * 33_000 + 20_000) }
        #expect(receiver.acknowledgements.count == 10)
        let last = try #require(receiver.acknowledgements.last?.value)
        #expect(last.cumulativeBytes == 30_000)
        #expect(last.receiveTime.microseconds == 9 * 33_000 + 20_000)
        #expect(last.trackAlias == 7 && last.frameNumber == 9)
        #expect(last.firstByteTime == last.lastByteTime)
    }

    @Test("Without delay they become fewer step by step, down to two a second; a delay brings them all back")
    func thinning() {
        var receiver = Receiver()
        for frame in 0..<300 { receiver.frame(sent: Int64(frame) * 33_000, arrived: Int64(frame) * 33_000 + 20_000) }
        let times = receiver.acknowledgements.map(\.at)
        let gaps = zip(times, times.dropFirst()).map { $1 - $0 }
        #expect(gaps.allSatisfy { $0 <= 500_000 + 33_000 })
        #expect(gaps.suffix(5).allSatisfy { $0 >= 500_000 })
        for (earlier, later) in zip(gaps, gaps.dropFirst()) { #expect(later <= 2 * earlier + 33_000) }
        receiver.acknowledgements = []
        for frame in 300..<320 { receiver.frame(sent: Int64(frame) * 33_000, arrived: Int64(frame) * 33_000 + 26_000) }
        #expect(receiver.acknowledgements.count == 20)
    }

    @Test("A frame that arrives for long is acknowledged every 10 ms meanwhile, also after a quiet time")
    func whileBytesArrive() {
        var receiver = Receiver()
        for frame in 0..<200 { receiver.frame(sent: Int64(frame) * 33_000, arrived: Int64(frame) * 33_000 + 20_000) }
        let start: Int64 = 200 * 33_000 + 20_000
        receiver.ask(before: start)
        receiver.acknowledgements = []
        for piece in 0..<100 {
            let now = start + Int64(piece) * 2000
            receiver.schedule.received(500, at: MonotonicInstant(microseconds: now))
            receiver.ask(at: now)
        }
        // 200 ms, of which the first 20 are no sign of a delay.
        #expect((17...19).contains(receiver.acknowledgements.count))
    }

    // Acknowledged by its beginning, each frame seemed to come when the next one began.
    @Test("A frame that comes at once is not acknowledged within it, one that comes slowly is")
    func withinFrames() {
        var receiver = Receiver()
        for frame in 0..<200 { receiver.frame(sent: Int64(frame) * 33_000, arrived: Int64(frame) * 33_000 + 20_000) }
        let start: Int64 = 230 * 33_000
        for milliseconds in Int64(0)...30 {
            let now = MonotonicInstant(microseconds: start + milliseconds * 1000)
            receiver.schedule.received(500, at: now)
            let isDue = receiver.schedule.isDueWithinFrame(at: now)
            #expect(isDue == (milliseconds >= 10), "after \(milliseconds) ms")
        }
    }

    @Test("The last bytes before a pause are acknowledged without another arrival")
    func theLastBytes() {
        var receiver = Receiver()
        for frame in 0..<200 { receiver.frame(sent: Int64(frame) * 33_000, arrived: Int64(frame) * 33_000 + 20_000) }
        receiver.ask(before: .max / 2)
        #expect(receiver.acknowledgements.last?.value.cumulativeBytes == 600_000)
        #expect(receiver.schedule.nextDeadline == nil)
    }

    @Test("Acknowledgements are not acknowledged one by one, but not left uncounted for ever either")
    func acknowledgementsOfAcknowledgements() {
        var receiver = Receiver()
        for number in 0..<100 {
            let now = Int64(number) * 33_000
            receiver.ask(before: now)
            receiver.schedule.received(MediaAcknowledgement.length, at: MonotonicInstant(microseconds: now))
            receiver.schedule.messageEnded(isAcknowledgement: true)
            receiver.ask(at: now)
        }
        #expect((1...5).contains(receiver.acknowledgements.count))
    }

    @Test("The first byte is that of the frame's first chunk, though other tracks' chunks come between")
    func firstByte() throws {
        var schedule = AcknowledgementSchedule()
        func chunk(_ alias: UInt32, first: Bool, last: Bool) -> AcknowledgementSchedule.Chunk {
            AcknowledgementSchedule.Chunk(
                trackAlias: alias,
                frameNumber: 5,
                isFirst: first,
                isLast: last,
                sentTime: nil
            )
        }
        schedule.received(8000, at: MonotonicInstant(microseconds: 100))
        schedule.received(8000, at: MonotonicInstant(microseconds: 150))
        schedule.chunkEnded(chunk(1, first: true, last: false))
        schedule.received(900, at: MonotonicInstant(microseconds: 170))
        schedule.chunkEnded(chunk(2, first: true, last: true))
        schedule.received(900, at: MonotonicInstant(microseconds: 190))
        schedule.chunkEnded(chunk(1, first: false, last: true))
        let due = schedule.acknowledgement(at: MonotonicInstant(microseconds: 190))
        let value = try #require(due)
        #expect(value.trackAlias == 1 && value.frameNumber == 5)
        #expect(value.firstByteTime?.microseconds == 100)
        #expect(value.lastByteTime?.microseconds == 190)
        #expect(value.cumulativeBytes == 17_800)
    }

    // A publisher sends the encodings of a track by turns. A small frame of one ended the frame of the other that was
    // arriving, whose first byte was then that of a later chunk.
    @Test("The first byte is that of the frame's first chunk, though frames of another encoding come between")
    func firstByteOfEncoding() throws {
        var schedule = AcknowledgementSchedule()
        func chunk(_ layer: UInt8, _ frame: UInt32, last: Bool) -> AcknowledgementSchedule.Chunk {
            AcknowledgementSchedule.Chunk(
                trackAlias: 7,
                simulcastLayer: layer,
                frameNumber: frame,
                isFirst: true,
                isLast: last,
                sentTime: nil
            )
        }
        for (time, part) in [
            (100, chunk(2, 5, last: false)), (200, chunk(0, 9, last: true)),
            (300, chunk(2, 5, last: false)), (400, chunk(1, 5, last: true)), (500, chunk(2, 5, last: true)),
        ] {
            schedule.received(2000, at: MonotonicInstant(microseconds: Int64(time)))
            schedule.chunkEnded(part)
        }
        let due = schedule.acknowledgement(at: MonotonicInstant(microseconds: 500))
        let value = try #require(due)
        #expect(value.frameNumber == 5 && value.firstByteTime?.microseconds == 100)
        #expect(value.lastByteTime?.microseconds == 500)
    }

    @Test("Any content leaves it bounded", arguments: UInt64(0)..<20)
    func anyContent(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var schedule = AcknowledgementSchedule()
        var now: Int64 = 0
        var last: UInt64 = 0
        for _ in 0..<2000 {
            now += Int64.random(in: 0...20_000, using: &random)
            schedule.received(Int.random(in: 0...16_000, using: &random), at: MonotonicInstant(microseconds: now))
            if Bool.random(using: &random) {
                schedule.chunkEnded(
                    AcknowledgementSchedule.Chunk(
                        trackAlias: UInt32.random(in: 0...500, using: &random),
                        frameNumber: .random(in: 0 ... .max, using: &random),
                        isFirst: .random(using: &random),
                        isLast: .random(using: &random),
                        sentTime: Bool.random(using: &random) ? nil : .random(in: .min ... .max, using: &random)
                    )
                )
            } else {
                schedule.messageEnded(isAcknowledgement: .random(using: &random))
            }
            if let value = schedule.acknowledgement(at: MonotonicInstant(microseconds: now)) {
                #expect(value.cumulativeBytes >= last)
                last = value.cumulativeBytes
                #expect(schedule.acknowledgement(at: MonotonicInstant(microseconds: now)) == nil)
            }
        }
        #expect(last > 0)
    }
}
