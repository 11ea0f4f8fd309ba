import MediaCore
import Testing

@testable import RoomKit

extension DisplayGate {
    /// Decides by a clock that is the server's.
    fileprivate mutating func shows(
        _ frame: EncodedFrameInfo,
        newestWaiting: MonotonicInstant?,
        at now: MonotonicInstant
    ) -> Bool {
        shows(frame, clockOffset: .zero, newestWaiting: newestWaiting, at: now)
    }
}

@Suite("Display gate", .timeLimit(.minutes(1)))
struct DisplayGateTests {
    private let start = MonotonicInstant(microseconds: 10_000_000)

    private func frame(captured: Duration, layer: UInt8 = 0) -> EncodedFrameInfo {
        EncodedFrameInfo(number: 0, simulcastLayer: layer, timestamp: start + captured, isKeyframe: false)
    }

    /// A gate that was shown a second of frames, each 20 ms after its capture.
    private func usualGate() -> DisplayGate {
        var gate = DisplayGate()
        for index in 0..<30 {
            let captured = Duration.milliseconds(33 * index)
            _ = gate.shows(frame(captured: captured), newestWaiting: nil, at: start + captured + .milliseconds(20))
        }
        return gate
    }

    @Test(
        "A frame is left out if one that is newer by more than 50 ms waits",
        arguments: [(waiting: 0, isShown: true), (33, true), (50, true), (51, false), (500, false)]
    )
    func replaced(waiting: Int, isShown: Bool) {
        var gate = usualGate()
        let newest = start + .milliseconds(1000 + waiting)
        let result = gate.shows(
            frame(captured: .milliseconds(1000)),
            newestWaiting: newest,
            at: start + .milliseconds(1020)
        )
        #expect(result == isShown)
    }

    @Test("A decoder that never catches up shows a picture every quarter of a second")
    func overloaded() {
        var gate = usualGate()
        var shown: [Int] = []
        // Each frame takes 40 ms, and 33 ms later the next one comes: frames wait all the time.
        for index in 0..<100 {
            let captured = Duration.milliseconds(1000 + 33 * index)
            let now = start + .milliseconds(1020 + 40 * index)
            if gate.shows(frame(captured: captured), newestWaiting: start + captured + .milliseconds(99), at: now) {
                shown.append(40 * index)
            }
        }
        let gaps = zip(shown, shown.dropFirst()).map { $1 - $0 }
        #expect(shown.count >= 12 && gaps.allSatisfy { (250...320).contains($0) }, "\(shown)")
    }

    @Test("After an outage, what stood in the network's queue is not shown, however long the outage was")
    func stale() {
        for outage in [2, 30, 3600] {
            var gate = usualGate()
            let end = start + .seconds(1) + .seconds(outage)
            // The queue's 600 ms arrive within 100 ms, each frame as soon as the one before is decoded.
            for index in 0..<18 {
                let old = frame(captured: .seconds(1) + .milliseconds(33 * index))
                let isShown = gate.shows(old, newestWaiting: nil, at: end + .milliseconds(5 * index))
                #expect(!isShown, "frame \(index) after \(outage) s")
            }
            let live = frame(captured: .seconds(1 + outage) + .milliseconds(80))
            let isShown = gate.shows(live, newestWaiting: nil, at: end + .milliseconds(100))
            #expect(isShown)
        }
    }

    @Test("A path that has become slow for good shows its pictures again after a second, each of them")
    func slowForGood() {
        var gate = usualGate()
        var shown: [Int] = []
        for index in 0..<120 {
            let captured = Duration.milliseconds(1000 + 33 * index)
            if gate.shows(frame(captured: captured), newestWaiting: nil, at: start + captured + .seconds(3)) {
                shown.append(index)
            }
        }
        #expect(shown.first == 31 && shown == Array(31..<120), "\(shown)")
    }

    @Test("After a change of the simulcast layer nothing goes back in time, and live goes on at once")
    func layerChange() {
        var gate = usualGate()
        // The last one shown was captured at 957 ms.
        for captured in [900, 933, 957] {
            let earlier = frame(captured: .milliseconds(captured), layer: 1)
            let isShown = gate.shows(earlier, newestWaiting: nil, at: start + .milliseconds(1000))
            #expect(!isShown)
        }
        let next = frame(captured: .milliseconds(990), layer: 1)
        let isShown = gate.shows(next, newestWaiting: nil, at: start + .milliseconds(1010))
        #expect(isShown)
    }

    @Test("A publisher whose times go back within a layer is shown all the same")
    func timesGoBack() {
        var gate = usualGate()
        for index in 0..<10 {
            let earlier = frame(captured: .milliseconds(500 + 33 * index))
            let isShown = gate.shows(earlier, newestWaiting: nil, at: start + .milliseconds(1020 + 33 * index))
            #expect(isShown)
        }
    }

    @Test("Absurd times are taken")
    func absurd() {
        var gate = usualGate()
        for nanoseconds in [Int64.min, .max, 0, -1] {
            let info = EncodedFrameInfo(number: 0, timestamp: .init(nanoseconds: nanoseconds), isKeyframe: true)
            _ = gate.shows(info, newestWaiting: .init(nanoseconds: ~nanoseconds), at: start)
        }
        // Hidden for little more than a second in which frames come.
        let shown = (0..<60).count { index in
            let captured = Duration.milliseconds(1000 + 33 * index)
            return gate.shows(frame(captured: captured), newestWaiting: nil, at: start + captured + .milliseconds(20))
        }
        #expect(shown > 0)
    }

    @Test("One late frame before an outage, and a queue that drains slowly, bring nothing stale")
    func staleInPieces() {
        // A retransmission passes one frame that is late; then the link stops again.
        var gate = usualGate()
        var isShown = gate.shows(frame(captured: .seconds(1)), newestWaiting: nil, at: start + .milliseconds(2300))
        #expect(!isShown)
        for index in 0..<18 {
            let old = frame(captured: .milliseconds(1033 + 33 * index))
            isShown = gate.shows(old, newestWaiting: nil, at: start + .milliseconds(5000 + 5 * index))
            #expect(!isShown, "frame \(index)")
        }
        // Three seconds of frames that come half as fast again as they were captured.
        gate = usualGate()
        for index in 0..<200 {
            let old = frame(captured: .milliseconds(1000 + 33 * index))
            let now = start + .seconds(4) + .milliseconds(22 * index)
            let delay = now.duration(since: old.timestamp)
            isShown = gate.shows(old, newestWaiting: nil, at: now)
            #expect(!isShown || delay < .milliseconds(1100), "\(delay)")
        }
        #expect(isShown)
    }

    // A laptop slept for some seconds, in which its clock stood still: until the next round trip to the server, frames
    // seemed to come early, and then too late for a second.
    @Test("Live frames are shown while the clock's offset is wrong, and when it is corrected")
    func correctedClock() {
        var gate = usualGate()
        for index in 0..<90 {
            let now = start + .milliseconds(1020 + 33 * index)
            let isCorrected = index >= 30
            let info = frame(captured: .milliseconds(1000 + 33 * index) + .seconds(isCorrected ? 0 : 20))
            let offset = Duration.seconds(isCorrected ? 20 : 0)
            let isShown = gate.shows(info, clockOffset: offset, newestWaiting: nil, at: now)
            #expect(isShown, "frame \(index)")
        }
    }

    // A frame that had arrived just before the program was stopped was shown 29 s later, when it went on.
    @Test("A frame during whose decoding the program was stopped is not shown, and the next one is")
    func stoppedWhileDecoding() {
        var gate = usualGate()
        let shown = [0.004, 29, 0.004, 0.9, 1.5, 1.5, 1.5].map { gate.stillShows(after: .seconds($0)) }
        #expect(shown == [true, false, true, true, false, true, false])
    }
}
