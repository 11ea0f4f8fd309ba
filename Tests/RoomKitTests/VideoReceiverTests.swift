import Foundation
import MediaCore
import RoomProtocol
import TestTools
import Testing
import Threading

@testable import RoomKit

@Suite("Video receiver", .timeLimit(.minutes(1)))
struct VideoReceiverTests {
    /// The receivers' clock, which goes on by a frame interval with each frame: a test machine that is stopped for
    /// seconds does not make a picture late.
    private let time = Monitor(timestamp(at: 0))

    private func receiver(
        for track: RemoteVideoTrack,
        codec: TrackCodec = .forPublishing,
        catchUpThrough: UInt32? = nil,
        clock: ClockBox = ClockBox(),
        after former: VideoReceiver? = nil
    ) throws -> VideoReceiver {
        try VideoReceiver(
            track: track,
            codec: codec,
            clock: clock,
            start: .init(catchUpThrough: catchUpThrough),
            subscribed: MonotonicClock.now,
            after: former,
            now: { [time] in time.withLock { $0 } }
        )
    }

    /// Gives a frame and waits until it is decoded or dropped, and rendered.
    private func give(
        _ frame: FrameAssembler.Frame,
        to receiver: VideoReceiver,
        seenBy renderer: NotingRenderer? = nil,
        at now: MonotonicInstant = MonotonicClock.now
    ) {
        time.withLock { $0 += .milliseconds(33) }
        receiver.receive(frame, at: now)
        wait {
            let statistics = receiver.track.statistics
            return statistics.framesReceived == statistics.framesDecoded + statistics.framesDropped
                && renderer.map { receiver.track.isSettled(for: $0) } ?? true
        }
    }

    @Test("Every frame is decoded and handed to the renderers, in order, with its time of capture")
    func decoding() async throws {
        let frames = try await encodedFrames(8)
        let track = remoteTrack()
        let renderer = NotingRenderer()
        track.addRenderer(renderer)
        track.addRenderer(renderer)
        let receiver = try receiver(for: track)
        for frame in frames { give(frame, to: receiver, seenBy: renderer) }
        await receiver.stop()
        #expect(
            renderer.frames.withLock { $0.map(\.timestamp.microseconds) }
                == (0..<8).map { timestamp(at: $0).microseconds }
        )
        let statistics = track.statistics
        #expect(statistics.framesReceived == 8 && statistics.framesDecoded == 8 && statistics.framesDropped == 0)
        #expect(statistics.keyframes == 1 && statistics.timeToFirstFrame != nil && statistics.frameAge != nil)
        #expect(statistics.bytes == frames.reduce(0) { $0 + $1.range.count })
    }

    @Test("A frame is stamped with the room's time on the way, and with each end's own time at that end")
    func clocks() async throws {
        func clock(ahead offset: Duration) -> ClockBox {
            let clock = ClockBox()
            clock.estimate = ClockEstimate(basis: .estimated, offset: offset, errorBound: .milliseconds(1))
            return clock
        }
        let bench = try PublisherBench(clock: clock(ahead: .seconds(5)))
        let sent = try #require(try bench.pass(picture(64, 48)))
        await bench.publisher.stop()
        #expect(sent.header.captureTime.microseconds == (timestamp(at: 0) + .seconds(5)).microseconds)
        let track = remoteTrack()
        let renderer = NotingRenderer()
        track.addRenderer(renderer)
        // The server's clock is 3 s behind the viewer's.
        let receiver = try receiver(for: track, clock: clock(ahead: .seconds(-3)))
        let captured = timestamp(at: 0) + .seconds(8)
        time.withLock { $0 = captured }
        give(sent, to: receiver, seenBy: renderer)
        await receiver.stop()
        #expect(renderer.frames.withLock { $0.map(\.timestamp) } == [captured])
        #expect(track.statistics.frameAge?.p50 == .milliseconds(33))
    }

    @Test("A correction of the clock makes no frame late")
    func correctedClock() async throws {
        let frames = try await encodedFrames(30)
        let (track, clock) = (remoteTrack(), ClockBox())
        let receiver = try receiver(for: track, clock: clock)
        for (index, frame) in frames.enumerated() {
            // The machine slept for 20 s, and finds out a little later.
            if index == 10 { time.withLock { $0 = $0 - .seconds(20) } }
            if index == 20 {
                clock.estimate = ClockEstimate(basis: .estimated, offset: .seconds(20), errorBound: .milliseconds(1))
            }
            give(frame, to: receiver)
        }
        await receiver.stop()
        #expect(track.statistics.framesRendered == frames.count)
    }

    // The damaged frame was counted for a moment only.
    @Test("A damaged frame, and what refers to it, is dropped and counted; a keyframe is asked for once")
    func damage() async throws {
        let frames = try await encodedFrames(6)
        let whole = try #require(try await encodedFrames(1).first)
        let track = remoteTrack()
        let requests = Monitor(0)
        track.setKeyframeRequest { _ in requests.withLock { $0 += 1 } }
        let renderer = NotingRenderer()
        track.addRenderer(renderer)
        let receiver = try receiver(for: track)
        give(frames[0], to: receiver, seenBy: renderer)
        give(frames[1], to: receiver, seenBy: renderer)
        // A keyframe without its start code (RFC 6386, section 9.1).
        var bytes = whole.bytes
        bytes[3] ^= 0xFF
        give(whole.with(bytes), to: receiver, seenBy: renderer)
        for frame in frames[2...] { give(frame, to: receiver, seenBy: renderer) }
        #expect(requests.withLock { $0 } == 1)
        give(whole, to: receiver, seenBy: renderer)
        await receiver.stop()
        let statistics = track.statistics
        #expect(statistics.framesReceived == 8)
        #expect(statistics.framesDecoded == 3 && statistics.framesDropped == 5)
        #expect(renderer.count == 3)
    }

    @Test("No bytes do worse than cost frames", arguments: 0..<8)
    func hostile(seed: Int) async throws {
        let frame = try #require(try await encodedFrames(1).first)
        let track = remoteTrack()
        let receiver = try receiver(for: track)
        let bytes = frame.bytes
        for length in 1..<min(bytes.count, 200) {
            give(frame.with(Array(bytes[..<length])), to: receiver)
            // So that the track is not given up.
            if length % 5 == 0 { give(frame, to: receiver) }
        }
        for index in 0..<100 {
            if index % 5 == 0 { give(frame, to: receiver) }
            var changed = bytes
            for step in 0..<20 {
                changed[(index * 31 + step * step * (seed + 3)) % bytes.count] ^= UInt8(1 << (step % 8))
            }
            give(frame.with(changed), to: receiver)
        }
        give(frame, to: receiver)
        await receiver.stop()
        let statistics = track.statistics
        #expect(statistics.framesReceived == statistics.framesDecoded + statistics.framesDropped)
        #expect(statistics.framesDecoded >= 1)
    }

    @Test("Frames from the relay's cache are decoded, not shown, and have no age")
    func catchUp() async throws {
        let frames = try await encodedFrames(5)
        let track = remoteTrack()
        let renderer = NotingRenderer()
        track.addRenderer(renderer)
        let receiver = try receiver(for: track, catchUpThrough: 2)
        for frame in frames[..<3] { give(frame, to: receiver, seenBy: renderer) }
        #expect(track.statistics.framesDecoded == 3 && renderer.count == 0)
        // Both counted frames that nobody saw.
        #expect(track.statistics.frameAge == nil && track.statistics.timeToFirstFrame == nil)
        for frame in frames[3...] { give(frame, to: receiver, seenBy: renderer) }
        await receiver.stop()
        #expect(renderer.count == 2)
        #expect(track.statistics.frameAge != nil && track.statistics.timeToFirstFrame != nil)
    }

    // Who joined a screen that stood still saw nothing until the next repeat, up to a second.
    @Test("The last frame from the relay's cache is shown if the source stands still, unless a newer one is there")
    func presentPicture() async throws {
        var frames = try await encodedFrames(6)
        for index in frames.indices.dropFirst(2) { frames[index].header.isRepeat = true }
        let track = remoteTrack()
        let renderer = NotingRenderer()
        track.addRenderer(renderer)
        let receiver = try receiver(for: track, catchUpThrough: 3)
        for frame in frames[..<3] { give(frame, to: receiver, seenBy: renderer) }
        #expect(renderer.count == 0)
        give(frames[3], to: receiver, seenBy: renderer)
        let shown = renderer.frames.withLock { $0 }
        #expect(shown.map(\.timestamp.microseconds) == [timestamp(at: 3).microseconds])
        #expect(shown.first?.isRepeat == true)
        #expect(track.statistics.frameAge == nil && track.statistics.timeToFirstFrame != nil)
        for frame in frames[4...] { give(frame, to: receiver, seenBy: renderer) }
        await receiver.stop()
        #expect(renderer.count == 3 && track.statistics.frameAge != nil)
    }

    // The server named a frame that never came, and nothing was shown for as long as the subscription lasted.
    @Test("A server that calls all frames old keeps the picture dark for ten seconds, and not for ever")
    func endlessCatchUp() async throws {
        let frames = try await encodedFrames(4)
        let track = remoteTrack()
        let renderer = NotingRenderer()
        track.addRenderer(renderer)
        let receiver = try receiver(for: track, catchUpThrough: .max)
        let start = MonotonicClock.now
        give(frames[0], to: receiver, seenBy: renderer, at: start)
        give(frames[1], to: receiver, seenBy: renderer, at: start + .milliseconds(9_999))
        #expect(track.statistics.framesDecoded == 2 && renderer.count == 0)
        give(frames[2], to: receiver, seenBy: renderer, at: start + .seconds(10))
        give(frames[3], to: receiver, seenBy: renderer, at: start + .milliseconds(10_033))
        await receiver.stop()
        #expect(renderer.count == 2 && track.statistics.frameAge != nil)
    }

    // After a stop of 29 s in a decoder, the picture of before it was shown.
    @Test("A picture whose decoding took longer than a second is counted and not shown")
    func heldUp() async throws {
        let frames = try await encodedFrames(2)
        let track = remoteTrack()
        let renderer = NotingRenderer()
        track.addRenderer(renderer)
        let receiver = try receiver(for: track, codec: .heldUp(at: timestamp(at: 1), by: .milliseconds(1001), on: time))
        for frame in frames { give(frame, to: receiver, seenBy: renderer) }
        await receiver.stop()
        #expect(track.statistics.framesDecoded == 2)
        #expect(renderer.frames.withLock { $0.map(\.timestamp.microseconds) } == [timestamp(at: 0).microseconds])
    }

    // A track that was requested again had two threads that passed on its pictures at a time.
    @Test("A new receiver of a track waits until the former one has passed on its last frame")
    func succession() async throws {
        final class Gate: ReceivedFrameSink {
            let state = Monitor((isOpen: false, inside: 0, most: 0, count: 0))
            var wantsPictures: Bool { false }
            func begin(with earlier: [ReceivedFrame]) {}
            func receive(_ frame: ReceivedFrame) {
                state.change { state in
                    state.inside += 1
                    state.most = max(state.most, state.inside)
                    state.count += 1
                }
                _ = state.wait { $0.isOpen ? true : nil }
                state.change { $0.inside -= 1 }
            }
            func end() {}
        }
        let frames = try await encodedFrames(2)
        let track = remoteTrack()
        let gate = Gate()
        track.addSink(gate)
        let former = try receiver(for: track)
        former.receive(frames[0], at: MonotonicClock.now)
        _ = gate.state.wait { $0.inside == 1 ? true : nil }
        former.close()
        let new = try receiver(for: track, after: former)
        let now = MonotonicClock.now
        for frame in frames { new.receive(frame, at: now) }
        gate.state.change { $0.isOpen = true }
        await new.stop()
        await former.stop()
        #expect(gate.state.withLock { $0.most } == 1)
        #expect(gate.state.withLock { $0.count } == 3)
    }

    /// How the pictures of a track end for now.
    enum Pause: CaseIterable { case disabled, switchedOff, paused, unsubscribed }

    // A recording that began after a mute began with the picture of before it.
    @Test("A recorder that comes after the pictures have ended gets none of before", arguments: Pause.allCases)
    func laterSink(pause: Pause) async throws {
        final class Beginning: ReceivedFrameSink {
            let count = Monitor(0)
            var wantsPictures: Bool { false }
            func begin(with earlier: [ReceivedFrame]) { count.withLock { $0 = earlier.count } }
            func receive(_ frame: ReceivedFrame) {}
            func end() {}
        }
        let frames = try await encodedFrames(4)
        let track = remoteTrack()
        var receiver = try receiver(for: track)
        for frame in frames.prefix(3) { give(frame, to: receiver) }
        /// The frames of before that a recorder gets which comes now.
        func earlierFrames() -> Int {
            let sink = Beginning()
            track.addSink(sink)
            return sink.count.withLock { $0 }
        }
        // A frame is counted before it is kept.
        try await eventually("the last frame is kept") { earlierFrames() == 3 }
        switch pause {
        case .disabled: track.setEnabled(false)
        case .switchedOff: track.setSwitchedOff(true)
        case .paused: track.expectNothing()
        case .unsubscribed: await receiver.stop()
        }
        // It was on its way.
        if pause == .disabled || pause == .switchedOff { give(frames[0], to: receiver) }
        #expect(earlierFrames() == 0)
        await receiver.stop()
        track.setEnabled(true)
        track.setSwitchedOff(false)
        receiver = try self.receiver(for: track)
        for frame in frames.prefix(2) { give(frame, to: receiver) }
        try await eventually("the last frame is kept") { earlierFrames() == 2 }
        await receiver.stop()
    }

    // A viewer's pause of its own was a freeze, and the time since the last picture went on.
    @Test("A frame that was on its way when the pictures ended begins no wait", arguments: [Pause.disabled, .paused])
    func lateFrame(pause: Pause) async throws {
        let frames = try await encodedFrames(12)
        let track = remoteTrack()
        let receiver = try receiver(for: track)
        for frame in frames.prefix(8) { give(frame, to: receiver) }
        #expect(track.statistics.timeSinceLastFrame != nil)
        switch pause {
        case .disabled: track.setEnabled(false)
        default:
            track.setPreferences(VideoSubscriptionPreferences(isPaused: true))
            track.expectNothing()
        }
        give(frames[8], to: receiver)
        // A frame is counted before its wait is ended.
        try await eventually("no picture is waited for") { track.statistics.timeSinceLastFrame == nil }
        time.withLock { $0 += .milliseconds(600) }
        // The publisher's return is an event, after which frames come; the viewer's own is known to nobody else.
        if pause == .disabled { track.setEnabled(true) } else { track.setPreferences(VideoSubscriptionPreferences()) }
        for frame in frames.suffix(3) { give(frame, to: receiver) }
        await receiver.stop()
        let statistics = track.statistics
        #expect(statistics.framesRendered == 12 && statistics.freezeCount == 0)
        #expect(statistics.timeSinceLastFrame != nil)
    }

    @Test("Stopped, it leaves nothing behind")
    func freed() async throws {
        weak var weakReceiver: VideoReceiver?
        weak var weakTrack: RemoteVideoTrack?
        do {
            let track = remoteTrack()
            let receiver = try receiver(for: track)
            (weakReceiver, weakTrack) = (receiver, track)
            for frame in try await encodedFrames(2) { give(frame, to: receiver) }
            await receiver.stop()
        }
        #expect(weakReceiver == nil && weakTrack == nil)
    }
}

extension TrackCodec {
    /// The codec of new tracks, with a decoder for which `time` passes in the frame that was captured at `timestamp`.
    fileprivate static func heldUp(
        at timestamp: MonotonicInstant,
        by delay: Duration,
        on time: Monitor<MonotonicInstant>
    ) -> TrackCodec {
        let codec = forPublishing
        return TrackCodec(
            kind: codec.kind,
            name: codec.name,
            stored: codec.stored,
            maximumDimensions: codec.maximumDimensions,
            defaultBitrate: codec.defaultBitrate,
            makeEncoder: codec.makeEncoder,
            makeDecoder: { HeldUpDecoder(try codec.makeDecoder(), at: timestamp, by: delay, on: time) },
            keyframeDimensions: codec.keyframeDimensions
        )
    }
}

private final class HeldUpDecoder: FrameDecoder {
    private let decoder: any FrameDecoder
    private let slowFrame: MonotonicInstant
    private let delay: Duration
    private let time: Monitor<MonotonicInstant>

    init(
        _ decoder: any FrameDecoder,
        at slowFrame: MonotonicInstant,
        by delay: Duration,
        on time: Monitor<MonotonicInstant>
    ) {
        self.decoder = decoder
        self.slowFrame = slowFrame
        self.delay = delay
        self.time = time
    }

    func decode(
        _ bytes: RawSpan,
        timestamp: MonotonicInstant,
        makeBuffer: (Dimensions) -> VideoBuffer?
    ) throws(DecodingFailure) -> VideoFrame? {
        if timestamp.microseconds == slowFrame.microseconds { time.withLock { $0 += delay } }
        return try decoder.decode(bytes, timestamp: timestamp, makeBuffer: makeBuffer)
    }
}
