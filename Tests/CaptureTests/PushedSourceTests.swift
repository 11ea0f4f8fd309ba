import MediaCore
import TestTools
import Testing
import Threading

@testable import Capture

@Suite("Pushed source", .timeLimit(.minutes(1)))
struct PushedSourceTests {
    /// The beginning of the tests' timelines, so that no timestamp is in the future or long ago.
    private let start = MonotonicClock.now - .seconds(9)

    private func frame(atMilliseconds milliseconds: Int64) -> VideoFrame {
        var frame = CaptureTests.frame(atMilliseconds: 0)
        frame.timestamp = start + .milliseconds(milliseconds)
        return frame
    }

    @Test("A frame that nobody wants is dropped, and the writer is told")
    func nobody() {
        let source = PushedSource()
        #expect(!source.write(frame(atMilliseconds: 0)))
        #expect(source.writeStatistics.framesCaptured == 1)
        #expect(source.writeStatistics.framesDropped[.notWanted] == 1)
    }

    @Test("A frame is taken by every sink, or dropped if it is older than the one before")
    func order() {
        let source = PushedSource()
        let (first, second) = (StampSink(), StampSink())
        source.sinks.add(first)
        source.sinks.add(second)
        #expect(source.write(frame(atMilliseconds: 10)))
        #expect(source.write(frame(atMilliseconds: 10)))
        #expect(!source.write(frame(atMilliseconds: 9)))
        #expect(source.write(frame(atMilliseconds: 11)))
        #expect(first.count == 3 && second.count == 3)
        let statistics = source.writeStatistics
        #expect(statistics.framesCaptured == 4)
        #expect(statistics.framesDropped[.late] == 1 && statistics.framesDropped.total == 1)
    }

    @Test("Timestamps that have jumped back count as now, from the second on, and go on as before when they can")
    func jump() throws {
        let source = PushedSource()
        let sink = StampSink()
        source.sinks.add(sink)
        let before = MonotonicClock.now
        #expect(source.write(frame(atMilliseconds: 9000)))
        #expect(!source.write(frame(atMilliseconds: 5000)))
        #expect(source.write(frame(atMilliseconds: 5033)))
        #expect(source.write(frame(atMilliseconds: 5066)))
        #expect(source.write(VideoFrame(buffer: frame(atMilliseconds: 0).buffer, timestamp: MonotonicClock.now)))
        let stamps = sink.received.withLock { $0.timestamps }
        #expect(stamps == stamps.sorted() && stamps.dropFirst().allSatisfy { $0 >= before })
        let statistics = source.writeStatistics
        #expect(statistics.framesCaptured == 5 && statistics.timestampsReplaced == 2)
        #expect(statistics.framesDropped[.late] == 1 && statistics.framesDropped.total == 1)
    }

    @Test("A thread that was held up for long brings no older picture back")
    func disorder() {
        let source = PushedSource()
        let sink = StampSink()
        source.sinks.add(sink)
        for step in 0..<10 as Range<Int64> {
            #expect(source.write(frame(atMilliseconds: 8000 + 100 * step)))
            #expect(!source.write(frame(atMilliseconds: 5000 + 100 * step)))
        }
    }

    // Viewers were told that the frames were as old as the machine has been up.
    @Test("A timestamp of long ago, as that of a clip, counts as now")
    func longAgo() {
        let source = PushedSource()
        let sink = StampSink()
        source.sinks.add(sink)
        let before = MonotonicClock.now
        for number in 0..<3 as Range<Int64> {
            let picture = CaptureTests.frame(atMilliseconds: 33 * number)
            #expect(source.write(VideoFrame(buffer: picture.buffer, timestamp: before - .seconds(11 + number))))
        }
        let stamps = sink.received.withLock { $0.timestamps }
        #expect(stamps == stamps.sorted() && stamps.allSatisfy { $0 >= before && $0 <= MonotonicClock.now })
        #expect(source.writeStatistics.timestampsReplaced == 3)
    }

    @Test("A frame from the future counts as one of now")
    func future() throws {
        let source = PushedSource()
        let sink = StampSink()
        source.sinks.add(sink)
        let before = MonotonicClock.now
        var early = frame(atMilliseconds: 0)
        early.timestamp = before + .seconds(3600)
        #expect(source.write(early))
        let stamp = try #require(sink.received.withLock { $0.timestamps.first })
        #expect(stamp >= before && stamp <= MonotonicClock.now)
        #expect(source.writeStatistics.timestampsReplaced == 1)
        // A stamp that was believed would have made every later frame old.
        #expect(source.write(VideoFrame(buffer: early.buffer, timestamp: MonotonicClock.now)))
    }

    @Test("A writer never waits for a sink: a frame that comes meanwhile is dropped")
    func busySink() {
        let source = PushedSource()
        let sink = StampSink()
        source.sinks.add(sink)
        let results = Monitor<[Bool]>([])
        // The sink itself writes, as another thread would while the sink takes a frame.
        sink.atNextFrame { [weak source] in
            let result = source?.write(frame(atMilliseconds: 2)) ?? true
            results.withLock { $0.append(result) }
        }
        #expect(source.write(frame(atMilliseconds: 1)))
        #expect(results.withLock { $0 } == [false])
        #expect(source.write(frame(atMilliseconds: 3)))
        #expect(sink.count == 2)
    }

    @Test("From many threads, each frame is taken or dropped, and time never goes back")
    func manyWriters() async throws {
        let source = PushedSource()
        let sink = StampSink()
        source.sinks.add(sink)
        let taken = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    (0..<500).count { _ in
                        let buffer = VideoBuffer(dimensions: Dimensions(width: 2, height: 2))
                        return source.write(VideoFrame(buffer: buffer, timestamp: MonotonicClock.now))
                    }
                }
            }
            return await group.reduce(0, +)
        }
        let stamps = sink.received.withLock { $0.timestamps }
        #expect(stamps.count == taken && taken > 0)
        #expect(zip(stamps, stamps.dropFirst()).allSatisfy { $0 <= $1 })
        let statistics = source.writeStatistics
        #expect(statistics.framesCaptured == 2000 && statistics.framesDropped.total == 2000 - taken)
    }
}
