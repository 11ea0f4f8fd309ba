import MediaCore
import Testing
import Threading

@testable import RoomKit

@Suite("Send queue", .timeLimit(.minutes(1)))
struct SendQueueTests {
    private let start = MonotonicInstant(microseconds: 1_000_000)

    private func packets(_ counts: [Int]) -> [PacketBuffer] {
        counts.map { count in
            let packet = PacketBuffer(capacity: count)
            packet.count = count
            return packet
        }
    }

    private func append(
        _ counts: [Int],
        to queue: SendQueue,
        isKeyframe: Bool = false,
        isDiscardable: Bool = false,
        after: Duration = .zero
    ) {
        var packets = packets(counts)
        queue.append(&packets, isKeyframe: isKeyframe, isDiscardable: isDiscardable, at: start + after)
        #expect(packets.isEmpty)
    }

    @Test("There is room for two frames, whatever they are cut into")
    func depth() {
        let queue = SendQueue()
        #expect(queue.hasRoom && queue.isEmpty)
        append([10, 10, 10], to: queue)
        #expect(queue.hasRoom)
        append([10], to: queue)
        #expect(!queue.hasRoom)
        for _ in 0..<2 { #expect(queue.next(at: start) != nil) }
        #expect(!queue.hasRoom, "the first frame is not out yet")
        #expect(queue.next(at: start) != nil)
        #expect(queue.hasRoom)
    }

    @Test("Packets come out in order, and bytes and whole frames are counted")
    func counting() {
        let queue = SendQueue()
        append([1, 2], to: queue)
        append([3], to: queue)
        #expect(queue.next(at: start)?.count == 1)
        #expect(queue.counts.framesSent == 0 && queue.counts.bytesSent == 1)
        #expect(
            [queue.next(at: start)?.count, queue.next(at: start)?.count, queue.next(at: start)?.count] == [2, 3, nil]
        )
        #expect(queue.counts.framesSent == 2 && queue.counts.bytesSent == 6 && queue.counts.framesExpired == 0)
    }

    @Test("What waited beyond the deadline is given up with all after it, and a keyframe is due once")
    func expiry() {
        let queue = SendQueue()
        append([10, 10], to: queue)
        append([10], to: queue, after: .milliseconds(300))
        #expect(queue.next(at: start + .milliseconds(401)) == nil)
        #expect(queue.isEmpty && queue.hasRoom)
        #expect(queue.counts.framesExpired == 2 && queue.counts.framesSent == 0)
        #expect(queue.takeBroken())
        #expect(!queue.takeBroken())
    }

    @Test("A frame at its deadline still goes out")
    func atDeadline() {
        let queue = SendQueue()
        append([10], to: queue)
        #expect(queue.next(at: start + .milliseconds(400)) != nil)
        #expect(!queue.takeBroken())
    }

    @Test("A frame of which a part is out is finished, however late; then the old one behind it is given up")
    func halfSent() {
        let queue = SendQueue()
        append([1, 2], to: queue)
        append([3], to: queue)
        #expect(queue.next(at: start)?.count == 1)
        #expect(queue.next(at: start + .seconds(5))?.count == 2)
        #expect(queue.next(at: start + .seconds(5)) == nil)
        #expect(queue.counts.framesSent == 1 && queue.counts.framesExpired == 1)
        #expect(queue.takeBroken())
    }

    // The encoder had asked whether frames were given up, and encoded while they were: the frame went out.
    @Test("A frame that was encoded while those before it were given up goes with them; a keyframe goes out")
    func encodedMeanwhile() {
        let queue = SendQueue()
        append([10], to: queue)
        #expect(!queue.takeBroken())
        #expect(queue.next(at: start + .seconds(1)) == nil)
        append([10], to: queue, after: .seconds(1))
        append([10], to: queue, isDiscardable: true, after: .seconds(1))
        #expect(queue.isEmpty && queue.hasRoom && queue.counts.framesExpired == 3)
        #expect(queue.takeBroken(), "what the next frame must be is still to be told")
        append([10], to: queue, isKeyframe: true, after: .seconds(2))
        #expect(queue.next(at: start + .seconds(3)) == nil)
        append([10], to: queue, isKeyframe: true, after: .seconds(3))
        append([10], to: queue, after: .seconds(3))
        #expect(queue.next(at: start + .seconds(3)) != nil && queue.next(at: start + .seconds(3)) != nil)
        #expect(!queue.takeBroken(), "a keyframe has come already")
        #expect(queue.counts.framesExpired == 4 && queue.counts.framesSent == 2)
    }

    @Test("Giving up frames that nothing refers to makes no keyframe due")
    func discardable() {
        let queue = SendQueue()
        append([10], to: queue, isDiscardable: true)
        #expect(queue.next(at: start + .seconds(1)) == nil)
        #expect(queue.counts.framesExpired == 1)
        #expect(!queue.takeBroken())
        append([10], to: queue, isDiscardable: true)
        append([10], to: queue)
        #expect(queue.next(at: start + .seconds(1)) == nil)
        #expect(queue.takeBroken())
    }
}
