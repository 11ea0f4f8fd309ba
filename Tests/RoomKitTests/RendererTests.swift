import MediaCore
import Synchronization
import TestTools
import Testing
import Threading

@testable import RoomKit

/// Blocks in its first call until it is let go, or `patience` is over.
private final class BlockingRenderer: VideoRenderer {
    let state = Monitor((isOpen: false, timestamps: [MonotonicInstant]()))

    func render(_ frame: VideoFrame) {
        state.change { $0.timestamps.append(frame.timestamp) }
        if state.wait(until: MonotonicClock.now + patience, for: { $0.isOpen ? true : nil }) == nil { open() }
    }

    var count: Int { state.withLock { $0.timestamps.count } }

    func open() {
        state.change { $0.isOpen = true }
    }
}

/// An executor with one thread.
private final class ThreadExecutor: TaskExecutor {
    private let jobs = BoundedQueue<UnownedJob>(depth: 1000)
    private let thread = Monitor<WorkerThread?>(nil)

    init() throws {
        let thread = try WorkerThread(name: "executor") { [jobs, unowned self] in
            while let job = jobs.take() { job.runSynchronously(on: asUnownedTaskExecutor()) }
        }
        self.thread.withLock { $0 = thread }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        _ = jobs.put(UnownedJob(job))
    }

    var isCurrent: Bool { thread.withLock { $0 }?.isCurrent ?? false }

    func stop() {
        jobs.close()
        thread.withLock { $0 }?.join()
    }
}

@Suite("Renderers of a track", .timeLimit(.minutes(1)))
struct RendererTests {
    // It began with a picture from before the pause, however long ago that was.
    @Test("A picture that stood still is not shown to a renderer that comes after a pause of the preview")
    func stillAcrossPause() {
        let source = HandSource()
        let track = LocalVideoTrack(source: source)
        let first = NotingRenderer()
        track.addRenderer(first)
        var still = picture(64, 48)
        still.isRepeat = true
        // The first one is new to the track.
        for count in 1...2 {
            source.deliver(still)
            wait { first.count == count }
        }
        #expect(first.frames.withLock { $0.map(\.isRepeat) } == [false, true])
        let second = NotingRenderer()
        track.addRenderer(second)
        wait { second.count == 1 }
        #expect(second.frames.withLock { $0.allSatisfy { !$0.isRepeat } })
        for renderer in [first, second] { track.removeRenderer(renderer) }
        let third = NotingRenderer()
        track.addRenderer(third)
        source.deliver(picture(64, 48, at: 1))
        wait { third.count == 1 }
        #expect(third.frames.withLock { $0.allSatisfy { !$0.isRepeat } })
    }

    private func rendered(_ count: Int, by renderer: any VideoRenderer, of renderers: TrackRenderers) {
        wait { renderers.statistics(of: renderer)?.framesRendered == count }
    }

    @Test("A renderer that blocks misses pictures and gets the newest next; another one gets them all")
    func blocked() {
        let renderers = TrackRenderers()
        let (blocked, free) = (BlockingRenderer(), NotingRenderer())
        renderers.add(blocked, on: nil)
        renderers.add(free, on: nil)
        for index in 0..<10 {
            renderers.offer(picture(64, 48, at: index))
            rendered(index + 1, by: free, of: renderers)
            if index == 0 { wait { blocked.count == 1 } }
        }
        #expect(renderers.statistics(of: blocked)?.framesDropped == 8)
        blocked.open()
        rendered(2, by: blocked, of: renderers)
        #expect(blocked.state.withLock { $0.timestamps } == [timestamp(at: 0), timestamp(at: 9)])
        #expect(free.frames.withLock { $0.map(\.timestamp) } == (0..<10).map { timestamp(at: $0) })
    }

    @Test("A renderer that throws is counted, with its newest error, and called again; another one gets every picture")
    func throwing() {
        struct Refusal: Error, Equatable {
            var number: Int
        }
        final class Thrower: VideoRenderer {
            let calls = Atomic(0)
            func render(_ frame: VideoFrame) throws {
                let number = calls.add(1, ordering: .relaxed).newValue
                if number != 2 { throw Refusal(number: number) }
            }
        }
        let renderers = TrackRenderers()
        let (thrower, free) = (Thrower(), NotingRenderer())
        renderers.add(thrower, on: nil)
        renderers.add(free, on: nil)
        for index in 0..<3 {
            renderers.offer(picture(64, 48, at: index))
            wait {
                let counts = renderers.statistics(of: thrower)
                return counts.map { $0.framesFailed + $0.framesRendered == index + 1 } ?? false
            }
            rendered(index + 1, by: free, of: renderers)
        }
        let counts = renderers.remove(thrower)
        #expect(counts?.framesFailed == 2 && counts?.framesRendered == 1 && counts?.framesDropped == 0)
        #expect(counts?.lastError as? Refusal == Refusal(number: 3))
    }

    @Test("Removing a renderer that is rendering returns at once; it is released when its call returns")
    func removedWhileRendering() {
        let renderers = TrackRenderers()
        weak var released: BlockingRenderer?
        do {
            let renderer = BlockingRenderer()
            released = renderer
            renderers.add(renderer, on: nil)
            renderers.offer(picture(64, 48))
            wait { renderer.count == 1 }
            renderers.offer(picture(64, 48, at: 1))
            #expect(renderers.remove(renderer)?.framesDropped == 1)
            #expect(renderers.remove(renderer) == nil && renderers.isEmpty)
            renderers.offer(picture(64, 48, at: 2))
            renderer.open()
            #expect(renderer.count == 1)
        }
        wait { released == nil }
    }

    @Test("A renderer is released when it is removed, and when its track is", arguments: [false, true])
    func released(byTrack: Bool) {
        weak var released: NotingRenderer?
        var track: RemoteVideoTrack? = remoteTrack()
        do {
            let renderer = NotingRenderer()
            released = renderer
            track?.addRenderer(renderer)
            track?.renderers.offer(picture(64, 48))
            wait { renderer.count == 1 }
            if !byTrack { track?.removeRenderer(renderer) }
        }
        if byTrack { track = nil }
        wait { released == nil }
        _ = track
    }

    @Test("A picture that a newer one replaces is free for its pool at once")
    func pooled() {
        let renderers = TrackRenderers()
        let blocked = BlockingRenderer()
        renderers.add(blocked, on: nil)
        let pool = VideoBufferPool()
        var buffers: Set<ObjectIdentifier> = []
        for index in 0..<50 {
            let buffer = pool.take(Dimensions(width: 64, height: 48))
            buffers.insert(ObjectIdentifier(buffer))
            renderers.offer(VideoFrame(buffer: buffer, timestamp: timestamp(at: index)))
            if index == 0 { wait { blocked.count == 1 } }
        }
        // One is being rendered, one waits, and one is new.
        #expect(buffers.count <= 3)
        blocked.open()
    }

    @Test("On an executor of the caller's, each call runs there, and the newest picture wins")
    func executor() throws {
        final class Checker: VideoRenderer {
            let executor: ThreadExecutor
            let elsewhere = Atomic(0)
            let timestamps = Monitor<[MonotonicInstant]>([])
            init(_ executor: ThreadExecutor) { self.executor = executor }
            func render(_ frame: VideoFrame) {
                if !executor.isCurrent { elsewhere.add(1, ordering: .relaxed) }
                timestamps.withLock { $0.append(frame.timestamp) }
            }
        }
        let executor = try ThreadExecutor()
        let renderers = TrackRenderers()
        let (blocked, checker) = (BlockingRenderer(), Checker(executor))
        renderers.add(checker, on: executor)
        for index in 0..<3 {
            renderers.offer(picture(64, 48, at: index))
            rendered(index + 1, by: checker, of: renderers)
        }
        // The executor is busy with another renderer.
        renderers.add(blocked, on: executor)
        renderers.offer(picture(64, 48, at: 3))
        wait { blocked.count == 1 }
        rendered(4, by: checker, of: renderers)
        for index in 4..<8 { renderers.offer(picture(64, 48, at: index)) }
        #expect(renderers.statistics(of: checker)?.framesDropped == 3)
        blocked.open()
        rendered(5, by: checker, of: renderers)
        #expect(checker.timestamps.withLock { $0.last } == timestamp(at: 7))
        #expect(checker.elsewhere.load(ordering: .relaxed) == 0)
        for renderer in [checker, blocked] as [any VideoRenderer] { _ = renderers.remove(renderer) }
        // The tasks end on the executor; a job behind theirs says that they have.
        executor.stop()
    }

    @Test("Renderers that come and go while pictures are handed out leave every count true")
    func changing() throws {
        let renderers = TrackRenderers()
        let isOver = Atomic(false)
        let offering = try WorkerThread(name: "offering") {
            var index = 0
            while !isOver.load(ordering: .acquiring) {
                renderers.offer(picture(16, 16, at: index))
                index += 1
            }
        }
        for _ in 0..<100 {
            let renderer = NotingRenderer()
            renderers.add(renderer, on: nil)
            wait { renderer.count > 0 }
            let counts = renderers.remove(renderer)
            #expect(counts.map { $0.framesFailed == 0 && $0.framesRendered <= renderer.count } ?? false)
        }
        isOver.store(true, ordering: .releasing)
        offering.join()
        #expect(renderers.isEmpty)
    }
}
