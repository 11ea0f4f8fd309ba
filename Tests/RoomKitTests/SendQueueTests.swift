import MediaCore
import RoomProtocol
import TestTools
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
        layer: UInt8 = 0,
        isLayerSync: Bool = false,
        isDiscardable: Bool = false,
        after: Duration = .zero
    ) {
        var packets = packets(counts)
        let frame = EncodedFrameInfo(
            number: 0,
            timestamp: start,
            isKeyframe: isKeyframe,
            temporalLayer: layer,
            isLayerSync: isLayerSync,
            isDiscardable: isDiscardable
        )
        queue.append(&packets, of: frame, at: start + after)
        #expect(packets.isEmpty)
    }

    /// The lengths of the packets that can be sent after a time.
    private func send(_ queue: SendQueue, after: Duration = .zero, atMost count: Int = .max) -> [Int] {
        var counts: [Int] = []
        while counts.count < count, let packet = queue.take(at: start + after).packet { counts.append(packet.count) }
        return counts
    }

    @Test("There is room for two frames, whatever they are cut into")
    func depth() {
        let queue = SendQueue()
        append([10, 10, 10], to: queue, isKeyframe: true)
        #expect(queue.hasRoom)
        append([10], to: queue)
        #expect(!queue.hasRoom)
        #expect(send(queue, atMost: 2) == [10, 10])
        #expect(!queue.hasRoom, "the first frame is not out yet")
        #expect(send(queue, atMost: 1) == [10])
        #expect(queue.hasRoom)
    }

    @Test("Packets come out in order, and bytes and whole frames are counted")
    func counting() {
        let queue = SendQueue()
        append([1, 2], to: queue, isKeyframe: true)
        append([3], to: queue)
        #expect(queue.waitingBytes == 6)
        #expect(send(queue, atMost: 1) == [1])
        #expect(queue.counts.framesSent == 0 && queue.counts.bytesSent == 1)
        #expect(send(queue) == [2, 3])
        #expect(queue.counts.framesSent == 2 && queue.counts.bytesSent == 6 && queue.counts.framesExpired == 0)
        #expect(queue.waitingBytes == 0)
    }

    // A keyframe took longer than the deadline. The frame behind it was then given up, the next one had to be a
    // keyframe, and so on: a slow link saw nothing but keyframes.
    @Test("A slow keyframe does not cost the frame behind it, which would cost the next keyframe")
    func noKeyframeSpiral() {
        let queue = SendQueue()
        queue.expectRate(.kilobitsPerSecond(1000))
        append([1000, 1000, 1000], to: queue, isKeyframe: true)
        append([100], to: queue, after: .milliseconds(33))
        for chunk in 1...3 { #expect(send(queue, after: .milliseconds(300 * chunk), atMost: 1) == [1000]) }
        #expect(send(queue, after: .milliseconds(900)) == [100])
        #expect(!queue.takeBroken())
        #expect(queue.counts.framesExpired == 0)
    }

    // At 30 frames a second, with keyframes of 48 kB, this ended in a keyframe each second and nothing else.
    @Test("A link that takes a second for a keyframe gets one keyframe, and then the frames that follow it")
    func slowLink() {
        let queue = SendQueue()
        queue.expectRate(.kilobitsPerSecond(400))
        var (keyframes, isFree) = (0, start)
        for tick in 0..<300 {
            let now = start + .microseconds(33_333 * tick)
            if queue.hasRoom {
                let isKeyframe = queue.takeBroken() || tick == 0
                if isKeyframe { keyframes += 1 }
                append(
                    isKeyframe ? [16_000, 16_000, 16_000] : [1500],
                    to: queue,
                    isKeyframe: isKeyframe,
                    after: .microseconds(33_333 * tick)
                )
            }
            while isFree <= now, let packet = queue.take(at: now).packet {
                isFree = now + .microseconds(packet.count * 20)
            }
        }
        #expect(keyframes == 1 && queue.counts.framesExpired == 0)
        #expect(queue.counts.framesSent > 200)
    }

    @Test("Frames that waited beyond the deadline are given up if that saves more than a keyframe, and one is due once")
    func expiry() {
        let queue = SendQueue()
        queue.expectRate(.kilobitsPerSecond(1000))
        append([10, 10], to: queue, isKeyframe: true)
        append([10], to: queue, after: .milliseconds(300))
        let step = queue.take(at: start + .milliseconds(401))
        #expect(step.packet == nil && step.hasGivenUp)
        #expect(queue.isEmpty && queue.hasRoom && queue.waitingBytes == 0)
        #expect(queue.counts.framesExpired == 2 && queue.counts.framesSent == 0)
        #expect(queue.takeBroken())
        #expect(!queue.takeBroken())
    }

    @Test("A frame at its deadline still goes out")
    func atDeadline() {
        let queue = SendQueue()
        queue.expectRate(.kilobitsPerSecond(1000))
        append([10], to: queue, isKeyframe: true)
        append([10], to: queue)
        #expect(send(queue, after: .milliseconds(400), atMost: 1) == [10])
        #expect(!queue.takeBroken())
    }

    @Test("A begun frame is abandoned only where its rest is more than a keyframe costs at the present rate")
    func abandoned() {
        for (rate, isAbandoned) in [(1000, false), (500, false), (300, true)] {
            let queue = SendQueue()
            queue.expectRate(.kilobitsPerSecond(1000))
            append([100, 100, 100], to: queue, isKeyframe: true)
            #expect(send(queue, atMost: 1) == [100])
            queue.expectRate(.kilobitsPerSecond(rate))
            #expect(send(queue, after: .milliseconds(300), atMost: 1) == [100], "before its deadline, it goes on")
            append([50], to: queue, after: .milliseconds(300))
            #expect(send(queue, after: .milliseconds(401)) == (isAbandoned ? [] : [100, 50]), "\(rate) kbit/s")
            #expect(queue.takeBroken() == isAbandoned)
            #expect(queue.counts.framesExpired == (isAbandoned ? 2 : 0))
            append([10], to: queue, isKeyframe: true, after: .milliseconds(500))
            #expect(send(queue, after: .milliseconds(500)) == [10], "the next frame begins with its first packet")
        }
    }

    @Test("Late frames before a keyframe that waits as well are given up, and no further keyframe is due")
    func beforeKeyframe() {
        let queue = SendQueue()
        queue.expectRate(.kilobitsPerSecond(1000))
        append([1], to: queue, isKeyframe: true)
        #expect(send(queue) == [1])
        append([2, 3], to: queue)
        #expect(send(queue, after: .milliseconds(10), atMost: 1) == [2])
        append([100], to: queue, isKeyframe: true, after: .milliseconds(300))
        #expect(send(queue, after: .milliseconds(401)) == [100])
        #expect(!queue.takeBroken())
        #expect(queue.counts.framesExpired == 1 && queue.counts.framesSent == 2)
    }

    @Test("Frames of higher temporal layers are left out first, and what refers to them with them")
    func layers() {
        let queue = SendQueue()
        queue.expectRate(.kilobitsPerSecond(1000))
        append([1], to: queue, isKeyframe: true)
        #expect(send(queue) == [1])
        append([2], to: queue, layer: 2, isDiscardable: true)
        append([3], to: queue, layer: 1, isLayerSync: true)
        #expect(send(queue, after: .milliseconds(121)) == [3], "layer 2 is late")
        append([4], to: queue, layer: 1, after: .milliseconds(130))
        append([5], to: queue, layer: 2, isDiscardable: true, after: .milliseconds(320))
        #expect(send(queue, after: .milliseconds(331)) == [], "layer 1 is late, and layer 2 needs it")
        append([6], to: queue, after: .milliseconds(340))
        append([7], to: queue, layer: 1, after: .milliseconds(340))
        #expect(send(queue, after: .milliseconds(340)) == [6], "layer 1 refers to the frame that was left out")
        append([8], to: queue, layer: 1, isLayerSync: true, after: .milliseconds(350))
        append([9], to: queue, layer: 2, isDiscardable: true, after: .milliseconds(350))
        #expect(send(queue, after: .milliseconds(350)) == [8, 9])
        #expect(!queue.takeBroken())
        #expect(queue.counts.framesExpired == 4 && queue.counts.framesSent == 5)
    }

    @Test("A begun frame of a higher layer is abandoned once it is late, and its layer waits for a sync")
    func abandonedLayer() {
        let queue = SendQueue()
        append([1], to: queue, isKeyframe: true)
        append([2, 3], to: queue, layer: 1, isLayerSync: true)
        #expect(send(queue, atMost: 2) == [1, 2])
        append([4], to: queue, layer: 1, after: .milliseconds(390))
        #expect(send(queue, after: .milliseconds(401)) == [])
        append([5], to: queue, after: .milliseconds(401))
        #expect(send(queue, after: .milliseconds(401)) == [5])
        #expect(!queue.takeBroken() && queue.counts.framesExpired == 2)
    }

    // The encoder had asked whether frames were given up, and encoded while they were: the frame went out.
    @Test("A frame that was encoded while those before it were given up goes with them; a keyframe goes out")
    func encodedMeanwhile() {
        let queue = SendQueue()
        queue.expectRate(.kilobitsPerSecond(1000))
        append([10], to: queue, isKeyframe: true)
        append([10], to: queue)
        #expect(!queue.takeBroken())
        #expect(send(queue, after: .seconds(1)) == [])
        append([10], to: queue, after: .seconds(1))
        append([10], to: queue, layer: 2, isDiscardable: true, after: .seconds(1))
        #expect(queue.isEmpty && queue.hasRoom && queue.counts.framesExpired == 4)
        #expect(queue.takeBroken(), "what the next frame must be is still to be told")
        append([10], to: queue, isKeyframe: true, after: .seconds(3))
        append([10], to: queue, after: .seconds(3))
        #expect(send(queue, after: .seconds(3)) == [10, 10])
        #expect(!queue.takeBroken(), "a keyframe has come already")
        #expect(queue.counts.framesExpired == 4 && queue.counts.framesSent == 2)
    }

    @Test("A closed queue sends nothing, and counts what it had and what still comes")
    func closed() {
        let queue = SendQueue()
        append([1, 2], to: queue, isKeyframe: true)
        #expect(send(queue, atMost: 1) == [1])
        queue.close()
        append([3], to: queue)
        #expect(send(queue) == [] && queue.isEmpty)
        #expect(queue.counts.framesExpired == 2)
    }

    /// What a receiver can decode: it is told every packet, as in section 6.6 of the protocol.
    @Test("Whatever is late, no frame goes out that cannot be decoded, and all are counted", arguments: 0..<40)
    func decodable(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        let queue = SendQueue()
        var gate = TemporalLayerGate()
        var now = start
        var numbers: [Int: EncodedFrameInfo] = [:]
        var (appended, isKeyframeDue) = (0, true)
        queue.expectRate(.kilobitsPerSecond(1000))
        for step in 0..<600 {
            now += .milliseconds(Int.random(in: 0...60, using: &random))
            if queue.takeBroken() { isKeyframeDue = true }
            if queue.hasRoom, Bool.random(using: &random) {
                let layer: UInt8 = isKeyframeDue ? 0 : [0, 2, 1, 2][step % 4]
                let frame = EncodedFrameInfo(
                    number: UInt32(step),
                    timestamp: now,
                    isKeyframe: isKeyframeDue,
                    temporalLayer: layer,
                    isLayerSync: layer == 1 && Bool.random(using: &random),
                    isDiscardable: layer == 2
                )
                isKeyframeDue = Int.random(in: 0..<50, using: &random) == 0
                var packets = packets([1000 + step, 5000][..<Int.random(in: 1...2, using: &random)].map { $0 })
                numbers[1000 + step] = frame
                appended += 1
                queue.append(&packets, of: frame, at: now)
            }
            if Int.random(in: 0..<20, using: &random) == 0 {
                queue.expectRate(.kilobitsPerSecond(Int.random(in: 50...1000, using: &random)))
            }
            // Now and then the socket takes nothing for a while.
            guard step / 40 % 3 != 1, let packet = queue.take(at: now).packet, packet.count < 5000 else { continue }
            let frame = numbers[packet.count]
            #expect(frame.map { gate.passes($0) } == true, "step \(step): \(String(describing: frame))")
        }
        queue.close()
        #expect(queue.counts.framesSent + queue.counts.framesExpired == appended)
    }
}
