import MediaCore
import RoomProtocol
import Testing

@testable import RoomKit

@Suite("Times in a recording")
struct RecordingTimeTests {
    private let start = MonotonicInstant(microseconds: 1_000_000_000)

    /// The times of frames in a recording, in milliseconds after the first one.
    private func times(_ frames: [(captured: Int, received: Int, isCatchUp: Bool)]) -> [Int] {
        var time = RecordingTime(start: start)
        let moved = frames.map { captured, received, isCatchUp in
            var frame = bareFrame(0, isCatchUp: isCatchUp, received: start + .milliseconds(received))
            frame.frame.info.timestamp = start + .milliseconds(captured)
            return time.moved(frame)
        }
        return moved.map { Int($0.duration(since: moved[0]).wholeMicroseconds / 1000) }
    }

    @Test("Frames that were captured long before the recording take no time, and the others keep theirs")
    func earlier() {
        // From the relay's cache, with the last repeat 0.7 s before the join.
        let cached = [-200_000, -150_000, -1700, -700].map { (captured: $0, received: 20, isCatchUp: true) }
        let live = [300, 1300, 1400].map { (captured: $0, received: $0 + 20, isCatchUp: false) }
        #expect(times(cached + live) == [0, 0, 0, 0, 1000, 2000, 2100])
        // Received long before somebody began to record the track.
        let old = [-90_000, -2000, -900, -100].map { (captured: $0, received: $0 + 20, isCatchUp: false) }
        #expect(times(old + live) == [0, 0, 1100, 1900, 2300, 3300, 3400])
        #expect(times(live) == [0, 1000, 1100])
    }

    @Test("A track that is subscribed to again goes on where it is, whatever the relay kept")
    func again() {
        let first = [0, 1000, 2000].map { (captured: $0, received: $0 + 20, isCatchUp: false) }
        let cached = [-100_000, -50_000, 58_000, 59_000].map { (captured: $0, received: 60_020, isCatchUp: true) }
        let live = [60_000, 61_000].map { (captured: $0, received: $0 + 20, isCatchUp: false) }
        #expect(times(first + cached + live) == [0, 1000, 2000, 2000, 2000, 58_000, 59_000, 60_000, 61_000])
    }

    @Test("A capture time that cannot be true moves no other frame")
    func falseTime() {
        let first = [0, 33].map { (captured: $0, received: $0 + 20, isCatchUp: false) }
        let wild = [(3_600_066, 86, false), (99, 119, false), (-900_000, 152, false), (165, 185, false)].map {
            (captured: $0.0, received: $0.1, isCatchUp: $0.2)
        }
        #expect(times(first + wild) == [0, 33, 66, 99, 132, 165])
        // A clock that was set, forward or back, goes on from where the recording is.
        for leap in [3_600_000, -3_600_000] {
            let later = (2..<6).map { (captured: 33 * $0 + leap, received: 33 * $0 + 20, isCatchUp: false) }
            #expect(times(first + later) == [0, 33, 66, 99, 132, 165])
        }
    }

    @Test("A better estimate of the room's time moves no frame")
    func estimate() {
        var time = RecordingTime(start: start)
        let moved = [0, 33, 66].map { milliseconds in
            var frame = bareFrame(0, received: start + .milliseconds(milliseconds))
            let offset = milliseconds == 66 ? 200 : 0
            frame.clock.offset = .milliseconds(offset)
            frame.frame.info.timestamp = start + .milliseconds(milliseconds - offset)
            return time.moved(frame)
        }
        #expect(moved.map { Int($0.duration(since: moved[0]).wholeMicroseconds / 1000) } == [0, 33, 66])
    }

    @Test("A publisher whose clock is hours off, or goes back, is recorded as it comes")
    func otherClock() {
        let frames = [0, 33, 66].map { (captured: $0 - 10_000_000, received: $0, isCatchUp: false) }
        #expect(times(frames) == [0, 33, 66])
        let back = [(0, 0, true), (-500, 10, true), (33, 33, false)].map {
            (captured: $0.0, received: $0.1, isCatchUp: $0.2)
        }
        #expect(times(back) == [0, -500, 33])
    }
}
