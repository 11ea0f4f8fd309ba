import MediaCore
import TestTools
import Testing
import Threading

@testable import RoomKit

@Suite("Frames of a remote track", .timeLimit(.minutes(1)))
struct RemoteFrameStreamTests {
    @Test("A loop gets pictures in order, and ends with the track")
    func oneLoop() async throws {
        let track = remoteTrack()
        let stamps = Monitor<[MonotonicInstant]>([])
        let loop = Task { for await frame in track.frames { stamps.withLock { $0.append(frame.timestamp) } } }
        try await eventually { !track.renderers.isEmpty }
        for index in 0..<3 {
            track.renderers.offer(picture(64, 48, at: index))
            try await eventually { stamps.withLock { $0.count } == index + 1 }
        }
        track.end()
        await loop.value
        #expect(stamps.withLock { $0 } == (0..<3).map { timestamp(at: $0) })
        try await eventually { track.renderers.isEmpty }
        for await _ in track.frames { Issue.record("a picture of a track that has ended") }
    }

    @Test("A slow loop gets the newest picture, beside one that gets all, and what it missed is counted")
    func newestWins() async throws {
        let track = remoteTrack()
        var (slow, fast) = (track.frames.makeAsyncIterator(), track.frames.makeAsyncIterator())
        var still = picture(64, 48)
        still.isRepeat = true
        track.renderers.offer(still)
        // Each begins with the picture that stands still.
        #expect(await slow.next()?.timestamp == timestamp(at: 0))
        #expect(await fast.next()?.timestamp == timestamp(at: 0))
        for index in 1..<5 {
            track.renderers.offer(picture(64, 48, at: index))
            #expect(await fast.next()?.timestamp == timestamp(at: index))
        }
        #expect(await slow.next()?.timestamp == timestamp(at: 4))
        #expect(slow.framesDropped == 3 && fast.framesDropped == 0)
    }

    // A repeat that was being decoded came behind the word that there are no pictures, and was shown minutes later.
    @Test("A picture that was on its way at a mute or a pause is none to begin with later", arguments: [true, false])
    func mutedMeanwhile(isMuted: Bool) async throws {
        let track = remoteTrack()
        var still = picture(64, 48)
        still.isRepeat = true
        if isMuted {
            track.setEnabled(false)
        } else {
            track.setPreferences(VideoSubscriptionPreferences(isPaused: true))
        }
        track.show(still)
        var loop = track.frames.makeAsyncIterator()
        let first = Task { await loop.next() }
        try await eventually { !track.renderers.isEmpty }
        track.renderers.offer(picture(64, 48, at: 1))
        #expect(await first.value?.timestamp == timestamp(at: 1))
    }

    @Test("A loop that is left, and one whose task is cancelled, want no more pictures")
    func left() async throws {
        let track = remoteTrack()
        let loop = Task { for await _ in track.frames { break } }
        try await eventually { !track.renderers.isEmpty }
        track.renderers.offer(picture(64, 48))
        await loop.value
        try await eventually { track.renderers.isEmpty }
        let cancelled = Task { for await _ in track.frames {} }
        try await eventually { !track.renderers.isEmpty }
        cancelled.cancel()
        await cancelled.value
        try await eventually { track.renderers.isEmpty }
    }

    @Test("The track is freed although a loop was made and never read")
    func released() async throws {
        var track: RemoteVideoTrack? = remoteTrack()
        weak let kept = track
        let iterator = track?.frames.makeAsyncIterator()
        track = nil
        #expect(kept == nil)
        withExtendedLifetime(iterator) {}
    }

    @Test("Memory stays the same at any speed of the loop", arguments: [0, 1, 7, .max])
    func flatMemory(picturesBetweenReads: Int) async {
        let track = remoteTrack()
        var iterator = track.frames.makeAsyncIterator()
        var still = picture(32, 32)
        still.isRepeat = true
        track.renderers.offer(still)
        _ = await iterator.next()
        let pool = VideoBufferPool()
        var buffers: Set<ObjectIdentifier> = []
        for index in 0..<500 {
            let buffer = pool.take(Dimensions(width: 32, height: 32))
            buffers.insert(ObjectIdentifier(buffer))
            track.renderers.offer(VideoFrame(buffer: buffer, timestamp: timestamp(at: index)))
            guard picturesBetweenReads == 0 || index % picturesBetweenReads == 0 else { continue }
            _ = await iterator.next()
        }
        // The one that is painted, the one that waits, and the one that a pool looks at next.
        #expect(buffers.count <= 3, "\(buffers.count) buffers")
    }
}

@Suite("Renderers that are closures", .timeLimit(.minutes(1)))
struct ClosureRendererTests {
    private struct Refusal: Error {}

    @Test("A closure gets the pictures of a remote track until its registration is removed, or released")
    func remote() {
        let track = remoteTrack()
        let stamps = Monitor<[MonotonicInstant]>([])
        let registration = track.addRenderer { frame in stamps.withLock { $0.append(frame.timestamp) } }
        track.renderers.offer(picture(64, 48, at: 0))
        wait { stamps.withLock { $0.count } == 1 && registration.statistics?.framesRendered == 1 }
        #expect(registration.remove()?.framesRendered == 1)
        #expect(registration.remove() == nil && registration.statistics == nil && track.renderers.isEmpty)

        var second: RendererRegistration? = track.addRenderer { _ in throw Refusal() }
        track.renderers.offer(picture(64, 48, at: 1))
        wait { second?.statistics?.framesFailed == 1 }
        #expect(second?.statistics?.lastError is Refusal && !track.renderers.isEmpty)
        second = nil
        #expect(track.renderers.isEmpty)
    }

    @Test("A closure of a local track is a preview, and its registration does not keep the track")
    func local() {
        let source = HandSource()
        var track: LocalVideoTrack? = LocalVideoTrack(source: source)
        weak let kept = track
        let count = Monitor(0)
        let registration = track?.addRenderer { _ in count.withLock { $0 += 1 } }
        source.deliver(picture(64, 48))
        wait { count.withLock { $0 } == 1 }
        track = nil
        #expect(kept == nil && registration?.statistics == nil && registration?.remove() == nil)
    }
}
