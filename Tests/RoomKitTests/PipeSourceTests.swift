import Glibc
import MediaFiles
import TestTools
import Testing
import Threading

@testable import RoomKit

@Suite("Pictures of a running program", .timeLimit(.minutes(2)))
struct PipeSourceTests {
    /// A program that writes grey pictures of 16x16 to a pipe, which holds a hundred of them.
    private final class Program: Sendable {
        let path: String
        private let directory: TemporaryDirectory
        private let end: Int32

        /// States `rate` as Y4M writes it.
        init(rate: String) throws {
            directory = try TemporaryDirectory()
            path = directory("pipe")
            try #require(mkfifo(path, 0o600) == 0)
            // For reading too: the open does not wait for the source then.
            end = open(path, O_RDWR | O_CLOEXEC)
            try #require(end >= 0)
            try write(Array("YUV4MPEG2 W16 H16 F\(rate) C420jpeg\n".utf8))
        }

        func write(_ bytes: [UInt8]) throws {
            try #require(Glibc.write(end, bytes, bytes.count) == bytes.count)
        }

        func writeLine() throws { try write(Array("FRAME\n".utf8)) }

        func writePixels(_ value: UInt8) throws { try write(Array(repeating: value, count: 16 * 16 * 3 / 2)) }

        func writePicture(_ value: UInt8) throws {
            try writeLine()
            try writePixels(value)
        }

        func leave() { close(end) }
    }

    /// Keeps the values of the pictures that come.
    private final class ValueSink: VideoSink {
        let values = Monitor<[UInt8]>([])

        let sourceRequirements = VideoFormatRequest()

        func onVideoFormatRequest(_ request: VideoFormatRequest) {}

        func onVideoFrame(_ frame: VideoFrame) {
            let value = frame.buffer.withPlanes { luma, _, _ in luma[0] }
            values.change { $0.append(value) }
        }

        func values(atLeast count: Int) -> [UInt8] {
            values.wait { $0.count >= count ? $0 : nil } ?? []
        }
    }

    // A ClipSource showed one in each interval, and was as far behind for ever.
    @Test("Of the pictures that wait the newest is shown, and then each as it comes, also behind the next one's line")
    func newest() async throws {
        let (program, sink) = (try Program(rate: "1:10"), ValueSink())
        let source = PipeSource(path: program.path)
        for value in 0..<50 { try program.writePicture(UInt8(value)) }
        try await source.startCapture(for: sink)
        #expect(sink.values(atLeast: 1) == [49])
        try program.writeLine()
        for value in 100..<105 {
            // More than an interval of the highest rate.
            usleep(20_000)
            try program.writePixels(UInt8(value))
            try program.writeLine()
            #expect(sink.values(atLeast: value - 98).last == UInt8(value))
        }
        let statistics = source.captureStatistics
        #expect(statistics.framesCaptured == 55)
        #expect(statistics.framesDropped[.late] == 49 && statistics.framesDropped.total == 49)
        #expect(source.captureFormat?.frameRate == FrameRate(numerator: 1, denominator: 10))
        await source.stopCapture(for: sink)
        program.leave()
    }

    @Test("A program that always has a newer picture is shown nevertheless")
    func flood() async throws {
        let (program, sink) = (try Program(rate: "200:1"), ValueSink())
        let source = PipeSource(path: program.path, kind: .screen)
        #expect(source.isScreencast)
        let events = source.captureEvents()
        try await source.startCapture(for: sink)
        let writing = Task.detached {
            var written = 0
            while sink.values.withLock({ $0.count < 10 }) {
                for _ in 0..<20 { try program.writePicture(1) }
                written += 20
            }
            try program.writePicture(2)
            program.leave()
            return written + 1
        }
        var isFinished = false
        for await event in events {
            if case .finished = event { isFinished = true }
            break
        }
        #expect(isFinished)
        let statistics = source.captureStatistics
        #expect(try await writing.value == statistics.framesCaptured)
        #expect(statistics.framesCaptured == sink.values(atLeast: 1).count + statistics.framesDropped.total)
    }

    @Test("What is no pipe of a program, or brings no picture, is an error, and a silent program can be left")
    func bad() async throws {
        let directory = try TemporaryDirectory()
        _ = try Y4MWriter(
            path: directory("clip.y4m"),
            dimensions: Dimensions(width: 16, height: 16),
            frameRate: FrameRate(10)
        )
        let file = await #expect(throws: MediaFileError.self) {
            try await PipeSource(path: directory("clip.y4m")).startCapture()
        }
        #expect(file?.code == .notLive)
        let absent = await #expect(throws: MediaFileError.self) {
            try await PipeSource(path: directory("absent")).startCapture()
        }
        #expect(absent?.code == .notFound)

        let silent = try Program(rate: "10:1")
        let source = PipeSource(path: silent.path)
        try await source.startCapture()
        await source.stopCapture()
        #expect(source.failure == nil)
        silent.leave()

        let empty = try Program(rate: "10:1")
        let nothing = PipeSource(path: empty.path)
        try await nothing.startCapture()
        empty.leave()
        try await eventually("it ends") { !nothing.isCapturing }
        #expect((nothing.failure as? SyntheticSourceError)?.code == .emptyClip)
    }
}
