import Capture
import Glibc
import MediaCore
import SyntheticSources
import TestTools
import Testing
import Threading

/// A clip of grey pictures, the first of luma 0, the next 1 and so on.
final class FakeReader: VideoFrameReader {
    struct Failure: Error, Equatable { var what: String }

    let dimensions: Dimensions
    let frameRate: FrameRate
    private let count: Int
    private let failsAt: Int?
    private let canRewind: Bool
    /// The picture for which it waits for 0.2 s, as for a pipe that is silent.
    private let waitsAt: Int?
    private var next = 0

    init(
        count: Int,
        dimensions: Dimensions = Dimensions(width: 16, height: 16),
        frameRate: FrameRate = FrameRate(200),
        failsAt: Int? = nil,
        canRewind: Bool = true,
        waitsAt: Int? = nil
    ) {
        self.count = count
        self.dimensions = dimensions
        self.frameRate = frameRate
        self.failsAt = failsAt
        self.canRewind = canRewind
        self.waitsAt = waitsAt
    }

    func readFrame(into buffer: VideoBuffer) throws -> Bool {
        if next == waitsAt { usleep(200_000) }
        if next == failsAt { throw Failure(what: "read") }
        guard next < count else { return false }
        buffer.withMutablePlanes { luma, _, _ in luma.update(repeating: UInt8(next)) }
        next += 1
        return true
    }

    func rewind() throws {
        guard canRewind else { throw Failure(what: "rewind") }
        next = 0
    }
}

@Suite("Clips", .serialized, .timeLimit(.minutes(2)))
struct ClipTests {
    /// How a source ended, by its events.
    private final class Ending: Sendable {
        private let outcome = Monitor<[(any Error)?]>([])

        init(of source: ClipSource) {
            let events = source.captureEvents()
            Task { [outcome] in
                for await event in events {
                    switch event {
                    case .failed(let error): outcome.change { $0.append(error) }
                    case .finished: outcome.change { $0.append(nil) }
                    case .interrupted, .interruptionEnded, .noFramesCaptured, .warning: break
                    }
                }
            }
        }

        func wait() async throws -> (any Error)? {
            try await eventually("the source ends") { self.count > 0 }
            return outcome.withLock { $0[0] }
        }

        var count: Int { outcome.withLock { $0.count } }
    }

    @Test("A clip is played once, whole and in order, and can be played again")
    func once() async throws {
        let sink = CollectingSink()
        let source = ClipSource(reader: { FakeReader(count: 5) })
        let ending = Ending(of: source)
        source.sink = sink
        try await source.startCapture()
        #expect(try await ending.wait() == nil)
        #expect(sink.frames.map { $0.buffer.luma(0, 0) } == [0, 1, 2, 3, 4])
        #expect(source.captureStatistics.framesCaptured == 5)
        await source.stopCapture()
        try await source.startCapture()
        #expect(sink.frames(atLeast: 10).suffix(5).map { $0.buffer.luma(0, 0) } == [0, 1, 2, 3, 4])
        await source.stopCapture()
        #expect((1...2).contains(ending.count))
    }

    // Each slot in which a pipe was silent counted as a captured frame that was dropped.
    @Test("A clip that is slow to read has as many frames captured as it has pictures, and none is late")
    func slowReader() async throws {
        let sink = CollectingSink()
        let source = ClipSource(reader: { FakeReader(count: 6, waitsAt: 3) })
        let ending = Ending(of: source)
        source.sink = sink
        try await source.startCapture()
        #expect(try await ending.wait() == nil)
        #expect(sink.frames.count == 6)
        #expect(source.captureStatistics.framesCaptured == 6)
        #expect(source.captureStatistics.framesDropped.total == 0)
        await source.stopCapture()
    }

    @Test("A looped clip begins again")
    func looped() async throws {
        let sink = CollectingSink()
        let source = ClipSource(reader: { FakeReader(count: 3) }, loop: true)
        let ending = Ending(of: source)
        source.sink = sink
        try await source.startCapture()
        #expect(sink.frames(atLeast: 8).prefix(8).map { $0.buffer.luma(0, 0) } == [0, 1, 2, 0, 1, 2, 0, 1])
        await source.stopCapture()
        #expect(ending.count == 0)
    }

    @Test("At a lower rate frames are left out evenly")
    func lowerRate() async throws {
        let sink = CollectingSink(VideoFormatRequest(frameRate: FrameRate(80)))
        let source = ClipSource(reader: { FakeReader(count: 60) })
        source.sink = sink
        try await source.startCapture()
        let frames = sink.frames(atLeast: 6)
        await source.stopCapture()
        #expect(frames.prefix(6).map { $0.buffer.luma(0, 0) } == [0, 2, 5, 7, 10, 12])
    }

    @Test("The start throws if the reader cannot open the clip, and a later start may succeed")
    func openFailure() async throws {
        let isBroken = Monitor(true)
        let sink = CollectingSink()
        let source = ClipSource(reader: {
            if isBroken.withLock({ $0 }) { throw FakeReader.Failure(what: "open") }
            return FakeReader(count: 2)
        })
        source.sink = sink
        await #expect(throws: FakeReader.Failure(what: "open")) { try await source.startCapture() }
        isBroken.withLock { $0 = false }
        try await source.startCapture()
        #expect(sink.frames(atLeast: 2).count == 2)
        await source.stopCapture()
    }

    @Test("An error on the way, in reading or rewinding, is told once and ends the source")
    func laterFailure() async throws {
        for (loop, what) in [(false, "read"), (true, "rewind")] {
            let sink = CollectingSink()
            let source = ClipSource(
                reader: { FakeReader(count: 2, failsAt: loop ? nil : 2, canRewind: false) },
                loop: loop
            )
            let ending = Ending(of: source)
            source.sink = sink
            try await source.startCapture()
            #expect(try await ending.wait() as? FakeReader.Failure == FakeReader.Failure(what: what))
            #expect(sink.frames.count == 2)
            await source.stopCapture()
            #expect(ending.count == 1)
        }
    }

    @Test("A clip without pictures is an error, not an endless loop", arguments: [true, false])
    func empty(loop: Bool) async throws {
        let sink = CollectingSink()
        let source = ClipSource(reader: { FakeReader(count: 0) }, loop: loop)
        let ending = Ending(of: source)
        source.sink = sink
        try await source.startCapture()
        #expect((try await ending.wait() as? SyntheticSourceError)?.code == .emptyClip)
        await source.stopCapture()
    }

    @Test("Pictures of impossible sizes are refused", arguments: [(0, 10), (10, -1), (20_000, 10)])
    func impossibleSize(width: Int, height: Int) async throws {
        let source = ClipSource(reader: {
            FakeReader(count: 1, dimensions: Dimensions(width: width, height: height))
        })
        await #expect(throws: SyntheticSourceError.self) { try await source.startCapture() }
    }
}
