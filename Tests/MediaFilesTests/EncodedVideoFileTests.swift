import Foundation
import MediaCore
import MediaFiles
import TestTools
import Testing

@Suite("IVF and WebM files", .timeLimit(.minutes(5)))
struct EncodedVideoFileTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test(
        "The reader returns what was written: bytes, times, keyframes, size",
        arguments: [(EncodedVideoFormat.webm, 1000), (.ivf, 90_000)] as [(EncodedVideoFormat, Int64)]
    )
    func roundTrip(format: EncodedVideoFormat, unitsPerSecond: Int64) async throws {
        let clip = try await Clip("testsrc2=size=322x178:rate=30000/1001:duration=7", keyframeInterval: 45)
        #expect(clip.pictures.count > 200)
        let path = directory("clip")
        try clip.write(format, to: path)
        let read = try Clip(reading: EncodedVideoFormat.openReader(path: path))
        #expect(read.dimensions == clip.dimensions)
        #expect(read.pictures == clip.pictures(rounding: unitsPerSecond))
        #expect(read.pictures.filter(\.isKeyframe).count == (clip.pictures.count + 44) / 45)
    }

    @Test(
        "ffmpeg and vpxdec read a file without a complaint, whole and to its last frame",
        arguments: EncodedVideoFormat.allCases,
        [true, false]
    )
    func tools(format: EncodedVideoFormat, isFinished: Bool) async throws {
        let clip = try await Clip("testsrc2=size=128x96:rate=30:duration=12", keyframeInterval: 200)
        let (reference, path) = (directory("reference.ivf"), directory("clip.\(format.rawValue)"))
        try clip.write(.ivf, to: reference)
        try clip.write(format, to: path, finishing: isFinished)

        let probe = try await run(
            "ffprobe -v warning -count_packets -of default=nk=0:nw=1 -show_entries"
                + " format=duration:stream=codec_name,width,height,nb_read_packets,color_range,color_space \(path)"
        )
        #expect(probe.complaints == "")
        let expected = ["codec_name=vp8", "width=128", "height=96", "nb_read_packets=360"]
        for line in expected { #expect(probe.output.contains(line + "\n"), "\(probe.output)") }
        if format == .webm {
            #expect(probe.output.contains("color_range=tv\n"), "\(probe.output)")
            #expect(probe.output.contains("color_space=smpte170m\n"), "\(probe.output)")
        }
        if isFinished { #expect(probe.output.contains("\nduration=12.0"), "\(probe.output)") }

        let decoding = try await run("ffmpeg -v warning -i \(path) -f null -")
        #expect(decoding.status == 0 && decoding.complaints == "")
        let sum = try await run("vpxdec --md5 --i420 \(path)")
        #expect(sum.status == 0 && sum.complaints == "", "\(sum.complaints)")
        #expect(try await sum.output == run("vpxdec --md5 --i420 \(reference)").output)
    }

    @Test("Players find a finished WebM file's keyframes by its index")
    func seeking() async throws {
        let clip = try await Clip("testsrc2=size=64x48:rate=10:duration=20", keyframeInterval: 30)
        let path = directory("clip.webm")
        try clip.write(.webm, to: path)
        let seek = try await run("ffprobe -v warning -read_intervals 15.5%+#1 -show_packets -of compact \(path)")
        #expect(seek.complaints == "" && seek.output.contains("pts_time=15.000000"), "\(seek.output)")
        #expect(try hasCues(path))
        let unfinished = directory("cut.webm")
        try clip.write(.webm, to: unfinished, finishing: false)
        #expect(try !hasCues(unfinished))
    }

    private func hasCues(_ path: String) throws -> Bool {
        let all = try bytes(of: path)
        let id: [UInt8] = [0x1C, 0x53, 0xBB, 0x6B]
        // Once in the seek head, once where the index stands.
        return (0..<all.count - 4).filter { Array(all[$0..<$0 + 4]) == id }.count == 2
    }

    @Test(
        "ffmpeg's WebM, live or not, reads back with the packets that ffprobe sees",
        arguments: ["file", "live", "groups", "audio", "zeros"]
    )
    func foreign(kind: String) async throws {
        let path = directory("foreign.webm")
        let sound = kind == "audio" ? "-f lavfi -i sine=duration=4 -c:a libopus" : ""
        let live = kind == "live" ? "-live 1 -cluster_time_limit 700" : ""
        let ffmpeg = try await run(
            "ffmpeg -v error -f lavfi -i testsrc2=size=160x120:rate=25:duration=4 \(sound)"
                + " -c:v libvpx -g 40 \(live) \(path)"
        )
        try #require(ffmpeg.status == 0, "\(ffmpeg.complaints)")
        if kind == "groups" { try store(withBlockGroups(bytes(of: path)), at: path) }
        if kind == "zeros" { try store(withZeroEndedTexts(bytes(of: path)), at: path) }
        let clip = try Clip(reading: WebMReader(path: path))
        let probe = try await run(
            "ffprobe -v error -select_streams v -show_entries packet=pts,size,flags -of csv=p=0 \(path)"
        )
        let packets = clip.pictures.map { picture in
            let flags = picture.isKeyframe ? "K_" : "__"
            return "\(picture.time.wholeMicroseconds / 1000),\(picture.bytes.count),\(flags)"
        }
        #expect(packets.count == 100)
        #expect(probe.output.split(separator: "\n").map(String.init) == packets)
        #expect(clip.dimensions == Dimensions(width: 160, height: 120))
    }

    @Test("A file that exists is never overwritten", arguments: EncodedVideoFormat.allCases)
    func existing(format: EncodedVideoFormat) throws {
        let path = directory("precious")
        try store([1, 2, 3], at: path)
        #expect(
            code { _ = try format.makeWriter(path: path, dimensions: .init(width: 2, height: 2), codec: .vp8) }
                == .fileExists
        )
        #expect(try bytes(of: path) == [1, 2, 3])
        let missing = directory("no/such/file")
        #expect(
            code { _ = try format.makeWriter(path: missing, dimensions: .init(width: 2, height: 2), codec: .vp8) }
                == .notFound
        )
    }

    @Test(
        "A file that must not be made is refused",
        .enabled(if: ForbiddenDirectory.path != nil, ForbiddenDirectory.absence),
        arguments: EncodedVideoFormat.allCases
    )
    func forbidden(format: EncodedVideoFormat) throws {
        let path = try #require(ForbiddenDirectory.path) + "/clip"
        #expect(
            code { _ = try format.makeWriter(path: path, dimensions: .init(width: 2, height: 2), codec: .vp8) }
                == .notPermitted
        )
    }

    @Test("A file begins with a keyframe", arguments: EncodedVideoFormat.allCases)
    func firstFrame(format: EncodedVideoFormat) async throws {
        let clip = try await Clip("testsrc2=size=64x48:rate=10:duration=1", keyframeInterval: 5)
        let path = directory("clip")
        let writer = try format.makeWriter(path: path, dimensions: clip.dimensions, codec: .vp8)
        #expect(code { try writer.write(clip.frames[1]) } == .startsWithoutKeyframe)
        for frame in clip.frames[5...] { try writer.write(frame) }
        try writer.finish()
        try writer.finish()
        let read = try Clip(reading: EncodedVideoFormat.openReader(path: path))
        #expect(read.pictures.map(\.bytes) == clip.pictures[5...].map(\.bytes))
        #expect(read.pictures.first?.time == .zero)
    }

    // The reader took the second file for the end, and a later call read on in its middle.
    @Test("A file that was appended to another one is named, and not read", arguments: EncodedVideoFormat.allCases)
    func appended(format: EncodedVideoFormat) async throws {
        let clip = try await Clip("testsrc2=size=64x48:rate=10:duration=0.6", keyframeInterval: 100)
        let path = directory("clip")
        try clip.write(format, to: path)
        let file = try bytes(of: path)
        try store(file + file, at: path)
        let reader = try EncodedVideoFormat.openReader(path: path)
        for _ in clip.pictures {
            #expect(reader.nextFileOffset == nil)
            #expect(try reader.nextFrame() != nil)
        }
        for _ in 0..<3 {
            #expect(try reader.nextFrame() == nil)
            #expect(reader.nextFileOffset == Int64(file.count))
        }
    }

    // A program before a pipe that was started again was "damaged", and in WebM the end of the track.
    @Test(
        "Behind a file, in a pipe also in the middle of a frame, another one can be gone on with",
        arguments: EncodedVideoFormat.allCases,
        [false, true]
    )
    func another(format: EncodedVideoFormat, isCut: Bool) async throws {
        let clip = try await Clip("testsrc2=size=64x48:rate=10:duration=0.6", keyframeInterval: 100)
        let other = try await Clip("testsrc2=size=80x64:rate=10:duration=0.6", keyframeInterval: 100)
        let (first, second, pipe) = (directory("first"), directory("second"), directory("pipe"))
        try clip.write(format, to: first, finishing: false)
        try other.write(format, to: second, finishing: false)
        let whole = try bytes(of: first)
        let last = try #require(clip.pictures.last).bytes.count
        for left in isCut ? [1, 5, last / 2, last - 1] : [0] {
            try #require(mkfifo(pipe, 0o600) == 0)
            defer { unlink(pipe) }
            let joined = try Array(whole.dropLast(left) + bytes(of: second))
            let writer = Thread {
                let file = open(pipe, O_WRONLY)
                _ = write(file, joined, joined.count)
                close(file)
            }
            writer.start()
            let reader = try EncodedVideoFormat.openReader(path: pipe)
            let before = try Clip(reading: reader)
            #expect(before.pictures.starts(with: isCut ? clip.pictures.dropLast() : clip.pictures[...]))
            // Of a few bytes that are missing at the end of a frame, nobody knows before more has come.
            #expect(before.pictures.count <= clip.pictures.count - (left > 15 ? 1 : 0))
            #expect(reader.nextFileOffset == Int64(whole.count - left))
            #expect(try reader.beginNextFile())
            let after = try Clip(reading: reader)
            #expect(after.dimensions == other.dimensions && after.pictures == other.pictures)
            #expect(try !reader.beginNextFile())
        }
    }

    @Test("An error of reading says where in the file it is", arguments: EncodedVideoFormat.allCases)
    func errorOffset(format: EncodedVideoFormat) async throws {
        let clip = try await Clip("testsrc2=size=64x48:rate=10:duration=0.6", keyframeInterval: 100)
        let path = directory("clip")
        try clip.write(format, to: path, finishing: false)
        let file = try bytes(of: path)
        try store(file.dropLast(5), at: path)
        let reader = try EncodedVideoFormat.openReader(path: path)
        let error = #expect(throws: MediaFileError.self) { while try reader.nextFrame() != nil {} }
        let offset = Int(try #require(error?.offset))
        let last = try #require(clip.pictures.last).bytes.count
        #expect(offset < file.count && offset >= file.count - last - 20)
    }

    @Test("Times strictly increase and long pauses are kept", arguments: EncodedVideoFormat.allCases)
    func times(format: EncodedVideoFormat) async throws {
        let clip = try await Clip("testsrc2=size=64x48:rate=10:duration=0.6", keyframeInterval: 100)
        let path = directory("clip")
        let writer = try format.makeWriter(path: path, dimensions: clip.dimensions, codec: .vp8)
        let microseconds: [Int64] = [1_000_000, 1_000_000, 900_000, 4_000_000, 40_000_000, 2_401_000_000]
        for (frame, time) in zip(clip.frames, microseconds) {
            var frame = frame
            frame.info.timestamp = MonotonicInstant(microseconds: time)
            try writer.write(frame)
        }
        try writer.finish()
        let times = try Clip(reading: EncodedVideoFormat.openReader(path: path)).pictures.map(\.time)
        #expect(times.count == 6 && zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
        #expect(times.suffix(3) == [.seconds(3), .seconds(39), .seconds(2400)])
        let probe = try await run("ffprobe -v warning -show_entries packet=pts_time -of csv=p=0 \(path)")
        #expect(probe.complaints == "")
        #expect(probe.output.hasSuffix("\n3.000000\n39.000000\n2400.000000\n"), "\(probe.output)")
    }
}
