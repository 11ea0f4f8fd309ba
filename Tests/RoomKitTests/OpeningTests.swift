import MediaCore
import RoomProtocol
import Testing

@testable import RoomKit

@Suite("The beginning of a subscription", .timeLimit(.minutes(1)))
struct OpeningTests {
    private let start = MonotonicInstant(microseconds: 10_000_000)

    private func frame(_ number: UInt32, layer: UInt8 = 0) -> EncodedFrameInfo {
        EncodedFrameInfo(number: number, simulcastLayer: layer, timestamp: start, isKeyframe: false)
    }

    // MARK: Which frames come from the cache

    @Test("Frames up to the named one come from the cache, and none after the first that does not")
    func window() {
        var window = CatchUpWindow(.init(catchUpThrough: 5))
        let numbers: [(UInt32, Bool)] = [(3, true), (5, true), (6, false), (4, false)]
        for (number, isCatchUp) in numbers {
            let result = window.contains(frame(number), at: start)
            #expect(result == isCatchUp, "\(number)")
        }
    }

    @Test("Another simulcast layer ends the cache, and without a named frame there is none")
    func otherLayer() {
        var window = CatchUpWindow(.init(simulcastLayer: 1, catchUpThrough: 5))
        let results = [1, 0, 1].map { window.contains(frame(3, layer: $0), at: start) }
        #expect(results == [true, false, false])
        var live = CatchUpWindow(.init())
        let isCatchUp = live.contains(frame(0), at: start)
        #expect(!isCatchUp)
    }

    @Test("The cache ends ten seconds after its first frame, whatever the server says, and time that goes back")
    func bound() {
        var window = CatchUpWindow(.init(catchUpThrough: .max))
        let times: [(Duration, Bool)] = [
            (.zero, true), (.seconds(9), true), (.seconds(-3600), true), (.seconds(10), false), (.zero, false),
        ]
        for (time, isCatchUp) in times {
            let result = window.contains(frame(0), at: start + time)
            #expect(result == isCatchUp, "\(time)")
        }
    }

    @Test("The last frame from the cache shows the present picture if it is a repeat, and no other does")
    func present() {
        let window = CatchUpWindow(.init(simulcastLayer: 1, catchUpThrough: 5))
        var last = frame(5, layer: 1)
        #expect(!window.isPresent(last))
        last.isRepeat = true
        #expect(window.isPresent(last))
        for (number, layer) in [(4, 1), (6, 1), (5, 0)] {
            var other = frame(UInt32(number), layer: UInt8(layer))
            other.isRepeat = true
            #expect(!window.isPresent(other) && !CatchUpWindow(.init()).isPresent(other))
        }
    }

    // MARK: Which frames are shown first

    @Test("The present picture is shown at once, and those behind it when they are live")
    func presentFirst() {
        var gate = OpeningGate()
        func shows(late milliseconds: Int, after received: Int, isPresent: Bool? = nil) -> Bool {
            let now = start + .milliseconds(received)
            return gate.shows(
                relayed: now - .milliseconds(milliseconds),
                received: now,
                pathDelay: .milliseconds(50),
                isCatchUp: isPresent != nil,
                isPresent: isPresent ?? false
            )
        }
        #expect(!shows(late: 60_000, after: 0, isPresent: false))
        #expect(shows(late: 900, after: 10, isPresent: true))
        #expect(!shows(late: 400, after: 200))
        #expect(!shows(late: 200, after: 400))
        #expect(shows(late: 60, after: 500))
    }

    /// The frames shown of those that the relay got every 33 ms, the first `cached` from its cache.
    ///
    /// `arrival` is when the frame of a number arrives, in milliseconds after the join.
    private func shown(cached: Int, frames: Int = 60, arrival: (Int) -> Int) -> [Int] {
        var gate = OpeningGate()
        return (0..<frames).filter { number in
            gate.shows(
                relayed: start + .milliseconds(33 * (number - cached)),
                received: start + .milliseconds(arrival(number)),
                pathDelay: .milliseconds(50),
                isCatchUp: number < cached
            )
        }
    }

    @Test("Frames that waited behind the cache on a fast path are not shown, and all are from the first live one on")
    func draining() {
        // The cache of 2 s arrives at eight times the track's rate, and so does what came meanwhile.
        let shown = shown(cached: 60, frames: 100) { max(50 + $0 * 33 / 8, 50 + 33 * ($0 - 60)) }
        let first = shown.first ?? 0
        let age = (50 + first * 33 / 8) - 33 * (first - 60)
        #expect(first > 60 && age <= 150, "frame \(first) of age \(age)")
        #expect(shown == Array(first..<100))
    }

    @Test("Without a cache, and behind one that came at once, the first frame is shown")
    func live() {
        #expect(shown(cached: 0) { 50 + 33 * $0 } == Array(0..<60))
        #expect(shown(cached: 0) { 900 + 33 * $0 } == Array(0..<60), "a keyframe on a thin path")
        #expect(shown(cached: 30) { max(60, 50 + 33 * ($0 - 30)) } == Array(30..<60))
    }

    @Test("Frames that are late and stay late are shown after a moment")
    func steady() {
        // Frames behind 30 of the cache, each two seconds late.
        #expect(shown(cached: 30) { 2000 + 33 * ($0 - 30) } == Array(35..<60))
    }

    @Test("A delay that falls slowly is waited for, and for a second at most")
    func slow() {
        // On a link of 1.2 times the rate, a lag of 300 ms falls by 5 ms with each frame, and one of 2 s hardly.
        let short = shown(cached: 10, frames: 100) { max(370 + 28 * ($0 - 10), 50 + 33 * ($0 - 10)) }
        let first = short.first ?? 0
        #expect((40...46).contains(first) && short == Array(first..<100), "\(first)")
        let long = shown(cached: 30, frames: 100) { 2000 + 28 * ($0 - 30) }
        #expect(long.first.map { (65...68).contains($0) } ?? false, "\(long.first ?? 0)")
    }

    @Test("Without the relay's times, frames are shown")
    func unknown() {
        var gate = OpeningGate()
        let isShown = gate.shows(relayed: nil, received: start, pathDelay: .zero, isCatchUp: false)
        #expect(isShown)
    }
}
