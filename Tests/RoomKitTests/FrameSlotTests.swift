import MediaCore
import Testing
import Threading

@testable import RoomKit

@Suite("Frame slot", .timeLimit(.minutes(1)))
struct FrameSlotTests {
    private let size = Dimensions(width: 16, height: 16)

    private func frame(_ ticket: UInt64, largest: Dimensions? = nil) -> FrameSlot.Picture {
        FrameSlot.Picture(frame: picture(16, 16), ticket: ticket, largest: largest ?? size)
    }

    @Test("The newest picture wins, and an older one is dropped by the reason why it waited")
    func reasons() {
        let slot = FrameSlot()
        #expect(slot.put(frame(1)) == nil)
        #expect(slot.put(frame(2)) == FrameSlot.Loss(ticket: 1, reason: .encoderBusy), "nobody has looked at it")
        #expect(slot.look(by: nil) == FrameSlot.Look(isNewFrame: true, largest: size))
        slot.hold(.network)
        #expect(slot.put(frame(3)) == FrameSlot.Loss(ticket: 2, reason: .network))
        #expect(slot.look(by: nil) == FrameSlot.Look(isNewFrame: true, largest: size))
        #expect(slot.take()?.ticket == 3 && slot.take() == nil)
        #expect(slot.put(frame(4)) == nil)
        #expect(slot.put(frame(5)) == FrameSlot.Loss(ticket: 4, reason: .encoderBusy), "the encoder is at work")
    }

    @Test("A picture that waits is looked at again after a nudge, and at the chosen time")
    func again() {
        let slot = FrameSlot()
        _ = slot.put(frame(1))
        #expect(slot.look(by: nil)?.isNewFrame == true)
        slot.hold(.network)
        slot.nudge()
        #expect(slot.look(by: nil) == FrameSlot.Look(isNewFrame: false, largest: size))
        #expect(slot.look(by: MonotonicClock.now) == FrameSlot.Look(isNewFrame: false, largest: size))
        #expect(slot.take()?.ticket == 1)
    }

    @Test("A newer picture of another size is not taken in place of the one that was looked at")
    func anotherSize() {
        let slot = FrameSlot()
        _ = slot.put(frame(1))
        #expect(slot.look(by: nil)?.largest == size)
        let half = Dimensions(width: 8, height: 8)
        _ = slot.put(frame(2, largest: half))
        #expect(slot.take(in: size) == nil)
        #expect(slot.look(by: nil) == FrameSlot.Look(isNewFrame: true, largest: half))
        #expect(slot.take(in: half)?.ticket == 2)
        #expect(slot.look(by: MonotonicClock.now) == FrameSlot.Look(isNewFrame: false, largest: nil))
    }

    @Test("Once closed, every look ends, and what comes is dropped as late")
    func closed() throws {
        let slot = FrameSlot()
        _ = slot.put(frame(1))
        #expect(slot.close() == FrameSlot.Loss(ticket: 1, reason: .late))
        #expect(slot.close() == nil)
        #expect(slot.look(by: nil) == nil && slot.look(by: MonotonicClock.now) == nil)
        #expect(slot.put(frame(2)) == FrameSlot.Loss(ticket: 2, reason: .late))
        slot.nudge()
        #expect(slot.take() == nil)
    }

    @Test("A thread that waits is woken by a picture, and by the end")
    func waking() throws {
        let slot = FrameSlot()
        let looks = Monitor<[FrameSlot.Look?]>([])
        let thread = try WorkerThread(name: "looker") {
            while true {
                let look = slot.look(by: nil)
                looks.withLock { $0.append(look) }
                guard look != nil else { return }
                _ = slot.take()
            }
        }
        _ = slot.put(frame(1))
        wait { looks.withLock { $0.count } == 1 }
        _ = slot.close()
        thread.join()
        #expect(looks.withLock { $0 } == [FrameSlot.Look(isNewFrame: true, largest: size), nil])
    }
}

@Suite("Picture tally")
struct PictureTallyTests {
    @Test("A picture of several encodings counts once, as encoded if one of them encoded it")
    func several() {
        let tally = PictureTally()
        let first = tally.captured(for: 2)
        let second = tally.captured(for: 2)
        tally.dropped(FrameSlot.Loss(ticket: first, reason: .network))
        tally.dropped(FrameSlot.Loss(ticket: second, reason: .encoderBusy))
        #expect(tally.counts.framesDropped.total == 0, "the other encoding may still encode it")
        tally.encoded(first)
        tally.dropped(FrameSlot.Loss(ticket: second, reason: .network))
        tally.capturedAndDropped(.notWanted)
        let counts = tally.counts
        #expect(counts.framesCaptured == 3 && counts.framesEncoded == 1)
        #expect(counts.framesDropped[.network] == 1 && counts.framesDropped[.notWanted] == 1)
        #expect(counts.framesDropped.total == 2)
    }

    @Test("A picture that both encode counts once")
    func both() {
        let tally = PictureTally()
        let ticket = tally.captured(for: 2)
        tally.encoded(ticket)
        tally.encoded(ticket)
        #expect(tally.counts.framesEncoded == 1 && tally.counts.framesDropped.total == 0)
    }
}

@Suite("Keyframe demand")
struct KeyframeDemandTests {
    @Test("A beginning makes a keyframe due at once, a request only when it may be answered")
    func due() {
        var demand = KeyframeDemand()
        #expect(demand.isDue(mayAnswer: false))
        demand.keyframeEncoded(begunAt: demand.mark)
        #expect(!demand.isDue(mayAnswer: true))
        demand.request()
        #expect(!demand.isDue(mayAnswer: false) && demand.isDue(mayAnswer: true))
        demand.keyframeEncoded(begunAt: demand.mark)
        #expect(!demand.isDue(mayAnswer: true))
    }

    @Test("A beginning while a keyframe is encoded needs another one; a request does not")
    func meanwhile() {
        var demand = KeyframeDemand()
        let mark = demand.mark
        demand.begin()
        demand.request()
        demand.keyframeEncoded(begunAt: mark)
        #expect(demand.isDue(mayAnswer: false))
        demand.keyframeEncoded(begunAt: demand.mark)
        #expect(!demand.isDue(mayAnswer: true))
    }
}
