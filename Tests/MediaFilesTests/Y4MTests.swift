import Foundation
import MediaCore
@testable import MediaFiles
import Synchronization
import TestTools
import Testing

private final class Flag: Sendable {
    let isUp = Atomic(false)
}

@Suite("Y4M files", .timeLimit(.minutes(2)))
struct Y4MTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func read(_ path: String) throws -> [[UInt8]] {
        let reader = try Y4MReader(path: path)
        let buffer = VideoBuffer(dimensions: reader.dimensions)
        var all: [[UInt8]] = []
        while try reader.readFrame(into: buffer) { all.append(pixels(of: buffer)) }
        return all
    }

    @Test(
        "Pictures of any size come back as they were",
        arguments: [(1, 1), (3, 5), (64, 48), (50, 2100), (322, 178), (32, 33)]
    )
    func roundTrip(width: Int, height: Int) throws {
        let size = Dimensions(width: width, height: height)
        let frames = (0..<3).map { noise(size, seed: $0) }
        let path = directory("clip.y4m")
        let writer = try Y4MWriter(
            path: path,
            dimensions: size,
            frameRate: FrameRate(numerator: 30000, denominator: 1001)
        )
        for frame in frames { try writer.write(frame) }
        #expect(try read(path) == frames.map { pixels(of: $0.buffer) })
        let reader = try Y4MReader(path: path)
        #expect(reader.dimensions == size && reader.frameRate == FrameRate(numerator: 30000, denominator: 1001))
        #expect(code { try writer.write(noise(size.transposed)) } == (width == height ? nil : .wrongSize))
        #expect(code { _ = try Y4MWriter(path: path, dimensions: size, frameRate: FrameRate(1)) } == .fileExists)
    }

    @Test("ffmpeg sees the same pixels, and limited range, in both directions")
    func ffmpeg() async throws {
        let (theirs, ours, raw) = (directory("theirs.y4m"), directory("ours.y4m"), directory("raw"))
        let source = "testsrc2=size=102x77:rate=25:duration=1"
        #expect(try await run("ffmpeg -v error -f lavfi -i \(source) -pix_fmt yuv420p \(theirs)").status == 0)
        let reader = try Y4MReader(path: theirs)
        let writer = try Y4MWriter(path: ours, dimensions: reader.dimensions, frameRate: reader.frameRate)
        let buffer = VideoBuffer(dimensions: reader.dimensions)
        var count = 0
        while try reader.readFrame(into: buffer) {
            try writer.write(VideoFrame(buffer: buffer, timestamp: MonotonicInstant(nanoseconds: 0)))
            count += 1
        }
        #expect(count == 25)
        let probe = try await run("ffprobe -v warning -show_entries stream=color_range,r_frame_rate \(ours)")
        #expect(probe.complaints == "")
        #expect(probe.output.contains("color_range=tv") && probe.output.contains("r_frame_rate=25/1"))
        #expect(try await run("ffmpeg -v warning -i \(ours) -f rawvideo \(raw)").complaints == "")
        #expect(try read(theirs).flatMap(\.self) == bytes(of: raw))
    }

    @Test("Rewinding begins anew, even after the end")
    func rewinding() throws {
        let size = Dimensions(width: 8, height: 6)
        let path = directory("clip.y4m")
        let writer = try Y4MWriter(path: path, dimensions: size, frameRate: FrameRate(30))
        for seed in 0..<3 as Range<UInt8> { try writer.write(noise(size, seed: seed)) }
        let reader = try Y4MReader(path: path)
        let buffer = VideoBuffer(dimensions: size)
        for _ in 0..<3 {
            for seed in 0..<3 as Range<UInt8> {
                #expect(try reader.readFrame(into: buffer))
                #expect(pixels(of: buffer) == pixels(of: noise(size, seed: seed).buffer))
            }
            #expect(try !reader.readFrame(into: buffer))
            try reader.rewind()
        }
    }

    // The program before a pipe is started again when its camera comes back. This was "damaged".
    @Test("The same header again is passed over, and another one ends the file with what has changed")
    func headerAgain() throws {
        let size = Dimensions(width: 8, height: 6)
        let (path, other) = (directory("clip.y4m"), directory("other.y4m"))
        for (path, rate) in [(path, 30), (other, 25)] {
            let writer = try Y4MWriter(path: path, dimensions: size, frameRate: FrameRate(rate))
            for seed in 0..<2 as Range<UInt8> { try writer.write(noise(size, seed: seed)) }
        }
        let file = try bytes(of: path)
        try store(file + file + bytes(of: other), at: path)
        let reader = try Y4MReader(path: path)
        let buffer = VideoBuffer(dimensions: size)
        for seed in [0, 1, 0, 1] as [UInt8] {
            #expect(try reader.readFrame(into: buffer))
            #expect(pixels(of: buffer) == pixels(of: noise(size, seed: seed).buffer))
        }
        let error = try #require(throws: MediaFileError.self) { _ = try reader.readFrame(into: buffer) }
        #expect(error.code == .unsupported)
        #expect(error.description.contains("from byte \(2 * file.count) on"), "\(error.description)")
    }

    // It was "damaged", and a track that came through a pipe ended with its program's crash.
    @Test("In a pipe whose program was killed within a picture, a picture of the new one is found", arguments: 0..<40)
    func cutOff(seed: Int) throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let size = Dimensions(width: 40, height: 30)
        let path = directory("clip.y4m")
        let writer = try Y4MWriter(path: path, dimensions: size, frameRate: FrameRate(30))
        for seed in 0..<5 as Range<UInt8> { try writer.write(noise(size, seed: seed)) }
        let file = try bytes(of: path)
        var generator = SeededGenerator(seed: UInt64(seed))
        let cut = seed < 20 ? seed + 1 : Int.random(in: 1..<1800, using: &generator)
        let stream = file.dropLast(cut) + file
        try #require(write(ends[1], Array(stream), stream.count) == stream.count)
        close(ends[1])
        let reader = try Y4MReader(OpenFile(adopting: ends[0], path: "pipe"))
        let buffer = VideoBuffer(dimensions: size)
        func next() throws -> Int? {
            guard try reader.readFrame(into: buffer) else { return -1 }
            return (0..<5).first { pixels(of: buffer) == pixels(of: noise(size, seed: UInt8($0)).buffer) }
        }
        #expect(try (0..<4).map { _ in try next() } == [0, 1, 2, 3])
        // The one that was cut off goes on as the beginning of the new stream.
        #expect(try next() == nil)
        let rest = try (0..<5).map { _ in try next() }
        #expect(rest == [1, 2, 3, 4, -1] || rest == [0, 1, 2, 3, 4], "\(rest)")
    }

    @Test("A pipe is read picture by picture without waiting for the next, and cannot be rewound")
    func pipes() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let size = Dimensions(width: 40, height: 30)
        let writer = try Y4MWriter(
            OutputFile(OpenFile(adopting: ends[1], path: "pipe")),
            dimensions: size,
            frameRate: FrameRate(30)
        )
        let reader = try Y4MReader(OpenFile(adopting: ends[0], path: "pipe"))
        let buffer = VideoBuffer(dimensions: size)
        for seed in 0..<20 as Range<UInt8> {
            // One thread: were the reader to wait for more than the picture, this would never end.
            try writer.write(noise(size, seed: seed))
            #expect(try reader.readFrame(into: buffer))
            #expect(pixels(of: buffer) == pixels(of: noise(size, seed: seed).buffer))
        }
        #expect(code { try reader.rewind() } == .notRewindable)
    }

    @Test("A reader that waits for a pipe's writer can be stopped: before the first byte and within a picture")
    func stopping() throws {
        let path = directory("pipe")
        try #require(mkfifo(path, 0o600) == 0)
        #expect(code { _ = try Y4MReader(path: path) { true } } == .interrupted)
        let pipe = open(path, O_RDWR | O_CLOEXEC)
        defer { close(pipe) }
        let start = Array("YUV4MPEG2 W4 H2 F30:1\nFRAME\n".utf8) + [1, 2, 3]
        try #require(write(pipe, start, start.count) == start.count)
        let stop = Flag()
        let reader = try Y4MReader(path: path) { stop.isUp.load(ordering: .relaxed) }
        stop.isUp.store(true, ordering: .relaxed)
        let buffer = VideoBuffer(dimensions: reader.dimensions)
        #expect(code { _ = try reader.readFrame(into: buffer) } == .interrupted)
    }

    @Test(
        "Headers of any order and of our samplings are read",
        arguments: [
            "YUV4MPEG2 W4 H2 F30:1", "YUV4MPEG2 F30:1 H2 W4 C420", "YUV4MPEG2 C420jpeg A1:1 Ip W4 F30:1 H2",
            "YUV4MPEG2 W4 H2 F30:1 C420mpeg2 XYSCSS=420MPEG2", "YUV4MPEG2 W4 H2 F60:2 I? C420paldv XCOLORRANGE=LIMITED",
            // A rate that is not known, or varies.
            "YUV4MPEG2 W4 H2 F0:0", "YUV4MPEG2 W4 H2 F0:1",
            // The unit of timestamps.
            "YUV4MPEG2 W4 H2 F90000:1", "YUV4MPEG2 W4 H2 F24000:1", "YUV4MPEG2 W4 H2 F1000000:1",
        ]
    )
    func headers(line: String) throws {
        let path = directory("clip.y4m")
        try store(Array("\(line)\nFRAME Ip\n".utf8) + Array(0..<12) + Array("FRAME\n".utf8) + Array(12..<24), at: path)
        let reader = try Y4MReader(path: path)
        #expect(reader.dimensions == Dimensions(width: 4, height: 2) && reader.frameRate == FrameRate(30))
        #expect(try read(path) == [Array(0..<12), Array(12..<24)])
    }

    @Test(
        "A file that cannot be read is refused with the reason",
        arguments: [
            ("YUV4MPEG2 W4 H2 F30:1 C422", .unsupported, "C422, not C420"),
            ("YUV4MPEG2 W4 H2 F30:1 C444", .unsupported, "ffmpeg -i FILE -pix_fmt yuv420p"),
            ("YUV4MPEG2 W4 H2 F30:1 Cmono", .unsupported, "Cmono"),
            ("YUV4MPEG2 W4 H2 F30:1 C420p10 XYSCSS=420P10", .unsupported, "C420p10"),
            ("YUV4MPEG2 W4 H2 F30:1 XCOLORRANGE=FULL", .unsupported, "full range"),
            ("YUV4MPEG2 W0 H0 F30:1", .damaged, "0 pixels"),
            ("YUV4MPEG2 W100000 H100000 F30:1", .damaged, "100000 pixels"),
            ("YUV4MPEG2 W-4 H2 F30:1", .damaged, "-4"),
            ("YUV4MPEG2 W99999999999999999999 H2 F30:1", .damaged, "99999"),
            ("YUV4MPEG2 W4 H2 F1:0", .damaged, "frame rate is 1:0"),
            ("YUV4MPEG2 W4 H2 F0:x", .damaged, "frame rate is 0:x"),
            ("YUV4MPEG2 W4 H2 F30", .damaged, "frame rate is 30"),
            ("YUV4MPEG2 W4 H2 F1000000001:1", .damaged, "frame rate"),
            ("YUV4MPEG2 W4 H2", .damaged, "frame rate (F)"),
            ("YUV4MPEG2 H2 F30:1", .damaged, "size"),
            ("YUV4MPEG2X W4 H2 F30:1", .wrongFormat, "not a Y4M file"),
            ("just some text", .wrongFormat, "ffmpeg -i FILE"),
            ("", .wrongFormat, "not a Y4M file"),
            ("YUV4MPEG2 " + String(repeating: "X", count: 2000), .damaged, "1024 bytes"),
        ] as [(String, MediaFileError.Code, String)]
    )
    func refusals(line: String, code: MediaFileError.Code, reason: String) throws {
        let path = directory("clip.y4m")
        try store(Array("\(line)\n".utf8), at: path)
        let error = try #require(throws: MediaFileError.self) { _ = try Y4MReader(path: path) }
        #expect(error.code == code)
        #expect(error.description.contains(reason), "\(error)")
    }

    @Test("A file cut at any byte gives its whole pictures, then says where it is cut")
    func cut() throws {
        let size = Dimensions(width: 5, height: 3)
        let path = directory("clip.y4m")
        let writer = try Y4MWriter(path: path, dimensions: size, frameRate: FrameRate(30))
        for seed in 0..<3 as Range<UInt8> { try writer.write(noise(size, seed: seed)) }
        let file = try bytes(of: path)
        let (picture, header) = (6 + 15 + 2 * 6, try #require(file.firstIndex(of: 10)) + 1)
        for length in header..<file.count {
            try store(file[..<length], at: path)
            let reader = try Y4MReader(path: path)
            let buffer = VideoBuffer(dimensions: size)
            let (whole, rest) = (length - header).quotientAndRemainder(dividingBy: picture)
            for _ in 0..<whole { #expect(try reader.readFrame(into: buffer)) }
            guard rest > 0 else {
                #expect(try !reader.readFrame(into: buffer))
                continue
            }
            for _ in 0..<2 {
                let error = try #require(throws: MediaFileError.self) { try reader.readFrame(into: buffer) }
                #expect(error.code == .truncated, "\(length)")
                #expect(error.description.contains("byte \(header + whole * picture), after \(whole) whole frames"))
            }
        }
        for length in 0..<header {
            try store(file[..<length], at: path)
            #expect(code { _ = try Y4MReader(path: path) } == (length == 0 ? .wrongFormat : .truncated), "\(length)")
        }
    }
}
