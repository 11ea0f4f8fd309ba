import ArgumentParser
import Capture
import Glibc
import MediaCore
import ScreenCapture
import Synchronization
import Threading
import VideoProcessing

/// Compares one reader of a source's frames with several, by turns on the same source.
struct ReaderCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "readers",
        abstract: "Conversions and CPU time of a frame of a screen that one loop reads, and several."
    )

    @Option(help: "The X display, on which something must move.")
    var display: String

    @Option(help: "How many loops read at once in the other phases.")
    var readers = 3

    @Option(help: "Frames a second.")
    var fps = 30

    @Option(help: "Seconds of a phase.")
    var seconds = 5.0

    @Option(help: "How often each phase is measured.")
    var rounds = 5

    private struct Phase: Encodable {
        var round: Int
        var readers: Int
        /// Frames that the source delivered.
        var frames: Int
        /// Pictures that were converted.
        var conversions: Int
        /// Frames that all loops read.
        var read: Int
        var milliseconds: Double

        enum CodingKeys: String, CodingKey {
            case round, readers, frames, conversions, read
            case milliseconds = "ms_per_frame"
        }
    }

    func run() async throws {
        for round in 0..<rounds {
            for count in round.isMultiple(of: 2) ? [1, readers] : [readers, 1] {
                try report(try await measure(count, round))
            }
        }
    }

    private func measure(_ count: Int, _ round: Int) async throws -> Phase {
        let conversions = Tally()
        let source = ScreenSource(
            target: .screen,
            display: display,
            showsCursor: true,
            request: VideoFormatRequest(frameRate: FrameRate(fps))
        ) {
            CountingConverter(conversions)
        }
        let read = Tally()
        // The first user's start reports errors; it takes no frames.
        let user = NoFrames()
        try await source.startCapture(for: user)
        let loops = (0..<count).map { _ in Task { for await _ in source.frames { read.add() } } }
        try await Task.sleep(for: .seconds(1))
        let before = (source.captureStatistics, conversions.count, read.count, ProcessCPU.time)
        try await Task.sleep(for: .seconds(seconds))
        let after = (source.captureStatistics, conversions.count, read.count, ProcessCPU.time)
        for loop in loops { loop.cancel() }
        for loop in loops { await loop.value }
        await source.stopCapture(for: user)
        guard after.0.framesCaptured - before.0.framesCaptured > 0 else {
            throw ValidationError("Nothing moved on display \(display).")
        }
        let frames = after.0.framesCaptured - before.0.framesCaptured
        return Phase(
            round: round,
            readers: count,
            frames: frames,
            conversions: after.1 - before.1,
            read: after.2 - before.2,
            milliseconds: (after.3 - before.3).milliseconds / Double(frames)
        )
    }
}

/// Counts from any thread.
final class Tally: Sendable {
    private let value = Atomic(0)
    var count: Int { value.load(ordering: .relaxed) }
    func add() { value.add(1, ordering: .relaxed) }
}

/// A user of a source that looks at no frame.
private final class NoFrames: VideoSink {
    var sourceRequirements: VideoFormatRequest { VideoFormatRequest() }
    func onVideoFrame(_ frame: VideoFrame) {}
    func onVideoFormatRequest(_ request: VideoFormatRequest) {}
}

/// The converter of published screens, with a count of the pictures that it makes.
private final class CountingConverter: ScreenConverter {
    private let converter = ScreenPictureConverter()
    private let tally: Tally

    init(_ tally: Tally) { self.tally = tally }

    func makePicture(_ dimensions: Dimensions, from previous: VideoBuffer?) -> VideoBuffer {
        tally.add()
        return converter.makePicture(dimensions, from: previous)
    }

    func convert(_ pixels: RawSpan, of area: PixelArea, into picture: VideoBuffer) {
        converter.convert(pixels, of: area, into: picture)
    }
}

/// CPU time of this process, all its threads.
enum ProcessCPU {
    static var time: Duration {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
