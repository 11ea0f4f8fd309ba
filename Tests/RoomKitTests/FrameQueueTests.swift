import MediaCore
import Synchronization
import Testing
import Threading

@testable import RoomKit

@Suite("Frame queue", .timeLimit(.minutes(1)))
struct FrameQueueTests {
    /// The temporal layers of a 4-frame pattern: 0 2 1 2.
    private func layer(_ number: UInt32) -> UInt8 { [0, 2, 1, 2][Int(number) % 4] }

    private func drain(_ queue: FrameQueue) -> [UInt32] {
        queue.close()
        var numbers: [UInt32] = []
        while let frame = queue.take() { numbers.append(frame.frame.info.number) }
        return numbers
    }

    private func put(_ frames: [ReceivedFrame], into queue: FrameQueue) -> [FrameQueue.Outcome] {
        frames.map { queue.put($0) }
    }

    @Test("Nothing is let in before a keyframe, and it is said that one is needed")
    func keyframeFirst() {
        let queue = FrameQueue()
        #expect(put([bareFrame(1), bareFrame(2, layer: 1)], into: queue) == [.needsKeyframe, .dropped])
        #expect(put([bareFrame(3, key: true), bareFrame(4)], into: queue) == [.taken, .taken])
        #expect(queue.dropped.total == 2)
        #expect(drain(queue) == [3, 4])
    }

    @Test("As it fills, layer 2 is left out, then layer 1, then everything up to a keyframe")
    func depths() {
        let depths = FrameQueue.Depths(dropTopLayer: 4, dropMiddleLayer: 8, skip: 12, catchUp: 64)
        let queue = FrameQueue(depths)
        #expect(queue.put(bareFrame(0, key: true)) == .taken)
        // Up to four wait: all layers come in.
        #expect(put((1...3).map { bareFrame($0, layer: layer($0)) }, into: queue) == [.taken, .taken, .taken])
        // Up to eight: layers 0 and 1 alone.
        let middle = put((4...11).map { bareFrame($0, layer: layer($0)) }, into: queue)
        #expect(middle == [.taken, .dropped, .taken, .dropped, .taken, .dropped, .taken, .dropped])
        // Up to twelve: layer 0 alone.
        let low = put((12...27).map { bareFrame($0, layer: layer($0)) }, into: queue)
        #expect(low.enumerated().allSatisfy { ($0.element == .taken) == ($0.offset % 4 == 0) })
        // Then, with the thirteenth, all that wait are given up; that a keyframe is needed is said once.
        #expect(queue.dropped[.late] == queue.dropped.total)
        #expect(low.firstIndex(of: .needsKeyframe) == 13 && low.count { $0 == .needsKeyframe } == 1)
        #expect(put([bareFrame(28), bareFrame(29, layer: 2)], into: queue) == [.dropped, .dropped])
        #expect(queue.put(bareFrame(30, key: true)) == .taken)
        #expect(queue.dropped.total == 30)
        #expect(drain(queue) == [30])
    }

    @Test("A keyframe that finds it full comes in, in place of all that wait")
    func keyframeWhenFull() {
        let queue = FrameQueue(FrameQueue.Depths(dropTopLayer: 2, dropMiddleLayer: 2, skip: 3, catchUp: 3))
        #expect(put([bareFrame(0, key: true), bareFrame(1), bareFrame(2)], into: queue) == [.taken, .taken, .taken])
        #expect(queue.put(bareFrame(3, key: true)) == .taken)
        #expect(queue.dropped.total == 3)
        #expect(drain(queue) == [3])
    }

    @Test("Frames of the cache are let in beyond the other depths, up to a bound of their own")
    func catchUp() {
        let queue = FrameQueue(FrameQueue.Depths(dropTopLayer: 2, dropMiddleLayer: 4, skip: 6, catchUp: 20))
        #expect(queue.put(bareFrame(0, key: true, isCatchUp: true)) == .taken)
        for number in 1..<20 { #expect(queue.put(bareFrame(UInt32(number), isCatchUp: true)) == .taken) }
        #expect(queue.put(bareFrame(20, isCatchUp: true)) == .needsKeyframe)
        #expect(queue.dropped.total == 21)
        #expect(drain(queue) == [])
    }

    @Test("Live frames behind those of the cache are not given up with them")
    func liveBehindCatchUp() {
        let queue = FrameQueue(FrameQueue.Depths(dropTopLayer: 2, dropMiddleLayer: 4, skip: 6, catchUp: 20))
        #expect(queue.put(bareFrame(0, key: true, isCatchUp: true)) == .taken)
        for number in 1..<10 { #expect(queue.put(bareFrame(UInt32(number), isCatchUp: true)) == .taken) }
        #expect(queue.put(bareFrame(10)) == .taken)
        #expect(drain(queue) == Array(0...10))
    }

    // 64 frames held three seconds of layer 0 of three; of the one layer that is usual, they held one.
    @Test("Three seconds of one layer at 60 fps from the cache fit, and the live frames behind them")
    func catchUpOfOneLayer() {
        let queue = FrameQueue()
        let now = timestamp(at: 1000)
        #expect(queue.put(bareFrame(0, key: true, isCatchUp: true, size: 30_000, received: now)) == .taken)
        for number in 1..<180 {
            #expect(queue.put(bareFrame(UInt32(number), isCatchUp: true, size: 10_000, received: now)) == .taken)
        }
        // Half a second of live frames comes while those are decoded.
        for number in 180..<210 {
            let frame = bareFrame(UInt32(number), received: now + .microseconds(16_667 * (number - 180)))
            #expect(queue.put(frame) == .taken)
        }
        #expect(drain(queue) == Array(0..<210))
    }

    @Test("Frames of the cache are bounded in bytes, too")
    func catchUpBytes() {
        let queue = FrameQueue()
        #expect(queue.put(bareFrame(0, key: true, isCatchUp: true, size: 4 << 20)) == .taken)
        #expect(queue.put(bareFrame(1, isCatchUp: true, size: 4 << 20)) == .taken)
        #expect(queue.put(bareFrame(2, isCatchUp: true, size: 1)) == .needsKeyframe)
        #expect(drain(queue) == [])
    }

    // At 16 frames, half a second of one layer, all of them were given up, and every viewer paid for a keyframe.
    @Test("A burst of one layer is decoded, and costs no keyframe")
    func burstOfOneLayer() {
        let queue = FrameQueue()
        let now = timestamp(at: 1000)
        #expect(queue.put(bareFrame(0, key: true, received: now)) == .taken)
        for number in 1..<60 { #expect(queue.put(bareFrame(UInt32(number), received: now)) == .taken) }
        #expect(queue.newestCapture == timestamp(at: 59))
        #expect(queue.dropped.total == 0)
        #expect(drain(queue) == Array(0..<60))
    }

    @Test("Live frames are bounded in frames and in bytes; a frame of any size fits into an empty queue")
    func bounds() {
        let now = timestamp(at: 1000)
        let frames = FrameQueue()
        #expect(frames.put(bareFrame(0, key: true, received: now)) == .taken)
        for number in 1..<120 { #expect(frames.put(bareFrame(UInt32(number), received: now)) == .taken) }
        #expect(frames.put(bareFrame(120, received: now)) == .needsKeyframe)
        let bytes = FrameQueue()
        #expect(bytes.put(bareFrame(0, key: true, size: 5 << 20)) == .taken)
        #expect(bytes.put(bareFrame(1, size: 1)) == .needsKeyframe)
        #expect(drain(bytes) == [])
    }

    @Test("A decoder that is a second behind gets only what follows a keyframe")
    func longestWait() {
        let queue = FrameQueue()
        #expect(queue.put(bareFrame(0, key: true)) == .taken)
        // Two a second, so that no depth is reached.
        for number in [15, 29] { #expect(queue.put(bareFrame(UInt32(number))) == .taken) }
        #expect(queue.put(bareFrame(31)) == .needsKeyframe)
        #expect(queue.dropped[.late] == 4)
        #expect(queue.put(bareFrame(40, key: true)) == .taken)
        #expect(drain(queue) == [40])
    }

    @Test("While the cache's frames are decoded, the live frames behind them do not count as waiting")
    func waitBehindCatchUp() {
        let queue = FrameQueue()
        #expect(queue.put(bareFrame(0, key: true, isCatchUp: true)) == .taken)
        for number in 1..<40 { #expect(queue.put(bareFrame(UInt32(number))) == .taken, "frame \(number)") }
        // The decoder was busy with the cache for 1.3 s; then the live frames get their second.
        #expect(queue.take()?.isCatchUp == true)
        for number in 40..<60 { #expect(queue.put(bareFrame(UInt32(number))) == .taken, "frame \(number)") }
        #expect(queue.put(bareFrame(75)) == .needsKeyframe)
    }

    // All waiting frames were thrown away, and another keyframe was asked for.
    @Test("When it is full and a keyframe waits, the frames before that keyframe make room")
    func skipToWaitingKeyframe() {
        let queue = FrameQueue(FrameQueue.Depths(dropTopLayer: 9, dropMiddleLayer: 9, skip: 6, catchUp: 6))
        let frames = [bareFrame(0, key: true), bareFrame(1), bareFrame(2), bareFrame(3, key: true), bareFrame(4)]
        #expect(put(frames + [bareFrame(5), bareFrame(6)], into: queue).allSatisfy { $0 == .taken })
        #expect(queue.dropped.total == 3 && queue.dropped[.late] == 3)
        // The statistics counted them with the next keyframe only, and never if none came.
        #expect(queue.takeDropped()?[.late] == 3 && queue.takeDropped() == nil)
        queue.countDrop(.encrypted)
        #expect(queue.takeDropped()?.total == 1)
        #expect(drain(queue) == [3, 4, 5, 6])
    }

    // A keyframe that waited behind a damaged frame was thrown away, and another one asked for.
    @Test("After a damaged frame, decoding goes on with the keyframe that waits already")
    func keyframeWaits() {
        let queue = FrameQueue()
        _ = put([bareFrame(0, key: true), bareFrame(1), bareFrame(2, key: true), bareFrame(3)], into: queue)
        #expect(queue.take()?.frame.info.number == 0)
        #expect(!queue.skipToKeyframe())
        #expect(queue.dropped.total == 2, "the one that could not be decoded, and the one before the keyframe")
        #expect(queue.put(bareFrame(4)) == .taken)
        #expect(drain(queue) == [2, 3, 4])
    }

    @Test("After a damaged frame without a keyframe behind it, nothing is let in until one comes")
    func keyframeIsDue() {
        let queue = FrameQueue()
        _ = put([bareFrame(0, key: true), bareFrame(1)], into: queue)
        #expect(queue.take() != nil)
        #expect(queue.skipToKeyframe())
        #expect(queue.put(bareFrame(2)) == .dropped, "the caller asks for one")
        #expect(queue.dropped.total == 3, "the one that could not be decoded, the one behind it, and this one")
        #expect(queue.dropped[.corrupt] == 3)
    }

    @Test("After a lost frame what waits is still good, and nothing comes in until a keyframe, asked for once")
    func lostFrame() {
        let queue = FrameQueue()
        _ = put([bareFrame(0, key: true), bareFrame(1)], into: queue)
        queue.frameWasLost()
        #expect(put([bareFrame(3), bareFrame(4)], into: queue) == [.needsKeyframe, .dropped])
        queue.frameWasLost()
        #expect(put([bareFrame(5), bareFrame(6, key: true)], into: queue) == [.dropped, .taken])
        #expect(queue.dropped.total == 3 && queue.dropped[.network] == 3)
        #expect(drain(queue) == [0, 1, 6])
    }

    @Test("The frames that a recording begins with are taken first, however many, as far as they can be decoded")
    func opening() {
        let queue = FrameQueue(FrameQueue.Depths(dropTopLayer: 2, dropMiddleLayer: 2, skip: 2, catchUp: 2))
        queue.begin(with: [bareFrame(1), bareFrame(2, key: true)] + (3..<30).map { bareFrame($0) })
        #expect(queue.put(bareFrame(30)) == .taken)
        #expect(drain(queue) == Array(2...30))
    }

    @Test("Closed, it lets nothing in, gives what waits and ends a waiting take")
    func closing() throws {
        let queue = FrameQueue()
        _ = queue.put(bareFrame(0, key: true))
        let taken = Monitor<[UInt32]>([])
        let thread = try WorkerThread(name: "taker") {
            while let frame = queue.take() { taken.withLock { $0.append(frame.frame.info.number) } }
        }
        queue.close()
        thread.join()
        #expect(taken.withLock { $0 } == [0])
        #expect(queue.put(bareFrame(1, key: true)) == .dropped)
        #expect(queue.dropped.total == 1 && queue.dropped[.notWanted] == 1)
        #expect(queue.take() == nil)
    }
}
