import Foundation
import MediaCore
@testable import MediaFiles
import TestTools
import Testing

/// `memfd_create`, which Swift's Glibc leaves out.
@_silgen_name("memfd_create")
private func memfdCreate(_ name: UnsafePointer<CChar>, _ flags: UInt32) -> Int32

@Suite("Files on bad ground", .timeLimit(.minutes(2)))
struct FailureTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A file in memory that cannot grow beyond `limit` bytes; the kernel then takes what fits, and refuses the rest.
    private func limitedFile(_ limit: Int) throws -> (number: Int32, path: String) {
        let number = memfdCreate("limited", 2)  // MFD_ALLOW_SEALING
        try #require(number >= 0 && ftruncate(number, limit) == 0)
        // F_ADD_SEALS, F_SEAL_GROW: linux/fcntl.h.
        try #require(fcntl(number, 1033, 0x0004) == 0)
        return (number, "/proc/self/fd/\(number)")
    }

    @Test("A block that does not fit is taken back, and the file plays", arguments: EncodedVideoFormat.allCases)
    func fullDisk(format: EncodedVideoFormat) async throws {
        let clip = try await Clip("testsrc2=size=128x96:rate=30:duration=3", keyframeInterval: 30)
        let total = clip.pictures.reduce(0) { $0 + $1.bytes.count }
        let (number, path) = try limitedFile(total / 2)
        let file = OutputFile(OpenFile(adopting: number, path: "limited"))
        let writer: any EncodedVideoWriter =
            switch format {
            case .ivf: try IVFWriter(file, dimensions: clip.dimensions, codec: .vp8)
            case .webm: try WebMWriter(file, dimensions: clip.dimensions, codec: .vp8)
            }
        var written = 0
        let failure = code {
            for frame in clip.frames {
                try writer.write(frame)
                written += 1
            }
        }
        #expect(failure == .notPermitted)
        #expect((30..<60).contains(written))
        try store(bytes(of: path), at: directory("copy"))
        let read = try Clip(reading: EncodedVideoFormat.openReader(path: directory("copy")))
        #expect(read.pictures.map(\.bytes) == clip.pictures.prefix(written).map(\.bytes))
        // There is no room for the index; without it, the file is as good as if it had not been tried.
        #expect(code { try writer.finish() } == (format == .webm ? .notPermitted : nil))
        try store(bytes(of: path), at: directory("finished"))
        let finished = try Clip(reading: EncodedVideoFormat.openReader(path: directory("finished")))
        #expect(finished.pictures == read.pictures)
        #expect(try await run("ffprobe -v warning \(directory("finished"))").complaints == "")
    }

    @Test("A picture that does not fit is taken back")
    func fullDiskRaw() throws {
        let size = Dimensions(width: 50, height: 50)
        let (number, path) = try limitedFile(10_000)
        let file = OutputFile(OpenFile(adopting: number, path: "limited"))
        let writer = try Y4MWriter(file, dimensions: size, frameRate: FrameRate(30))
        try writer.write(noise(size))
        try writer.write(noise(size))
        #expect(code { try writer.write(noise(size)) } == .notPermitted)
        #expect(
            try bytes(of: path).count == Y4MHeader(dimensions: size, frameRate: FrameRate(30)).line.utf8.count + 2
                * 3756
        )
    }

    // A user who removed a dump's folder lost all later frames, and was told that they had been recorded.
    @Test("A file that is removed while it is written is reported", arguments: EncodedVideoFormat.allCases)
    func removed(format: EncodedVideoFormat) async throws {
        let clip = try await Clip("testsrc2=size=64x48:rate=10:duration=1", keyframeInterval: 5)
        let path = directory("clip")
        let writer = try format.makeWriter(path: path, dimensions: clip.dimensions, codec: .vp8)
        try writer.write(clip.frames[0])
        // It may get another name.
        try #require(rename(path, directory("moved")) == 0)
        try writer.write(clip.frames[1])
        try #require(unlink(directory("moved")) == 0)
        let error = #expect(throws: MediaFileError.self) { try writer.write(clip.frames[2]) }
        #expect(error?.code == .removed && error?.description.contains("was removed meanwhile") == true)
    }

    @Test("A full disk is reported as such, with what to do")
    func noSpace() throws {
        let error = try #require(throws: MediaFileError.self) {
            let file = OutputFile(OpenFile(adopting: open("/dev/full", O_WRONLY), path: "clip.webm"))
            _ = try WebMWriter(file, dimensions: Dimensions(width: 2, height: 2), codec: .vp8)
        }
        #expect(error.code == .storageFull && error.status == ENOSPC)
        #expect(
            error.description
                == "Cannot write clip.webm: there is no space left for it; free some, or choose another disk"
        )
    }

    @Test("A reader that goes away ends the writing with an error, not the program")
    func brokenPipe() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let size = Dimensions(width: 2, height: 2)
        let file = OutputFile(OpenFile(adopting: ends[1], path: "pipe"))
        let writer = try Y4MWriter(file, dimensions: size, frameRate: FrameRate(30))
        close(ends[0])
        #expect(code { try writer.write(noise(size)) } == .readerGone)
        #expect(code { try writer.write(noise(size)) } == .readerGone)
    }

    @Test(
        "The system's refusals become codes that a program can act on",
        arguments: [
            (EACCES, .notPermitted), (EROFS, .notPermitted), (EDQUOT, .storageFull), (EFBIG, .storageFull),
            (ENOTDIR, .notFound), (EIO, .systemFailure), (ENAMETOOLONG, .systemFailure), (EEXIST, .fileExists),
        ] as [(Int32, MediaFileError.Code)]
    )
    func codes(status: Int32, code: MediaFileError.Code) {
        let error = MediaFileError(.create, "clip", status: status)
        #expect(error.code == code && error.status == status)
        #expect(error.description.hasPrefix("Cannot create clip: "))
    }

    @Test("The error says that a file does not exist, or is a directory")
    func opening() {
        #expect(code { _ = try EncodedVideoFormat.openReader(path: directory("none")) } == .notFound)
        #expect(code { _ = try EncodedVideoFormat.openReader(path: directory.path) } == .systemFailure)
        #expect(code { _ = try Y4MReader(path: directory("none")) } == .notFound)
        #expect(code { _ = try Y4MReader(path: directory.path) } == .systemFailure)
    }

    @Test("A finished file takes no more frames")
    func writingAfterTheEnd() async {
        await #expect(processExitsWith: .failure) {
            let directory = try TemporaryDirectory()
            let writer = try IVFWriter(
                path: directory("clip"),
                dimensions: Dimensions(width: 2, height: 2),
                codec: .vp8
            )
            try writer.finish()
            let info = EncodedFrameInfo(number: 0, timestamp: MonotonicInstant(nanoseconds: 0), isKeyframe: true)
            try writer.write(EncodedFrame(info: info, buffer: PacketBuffer(capacity: 1), range: 0..<0))
        }
    }

    @Test("The index stays within its memory, even over the file's time")
    func cues() throws {
        var cues = CueList()
        for number in 0..<100_000 as Range<Int64> { cues.append(.init(time: number * 1000, clusterOffset: number)) }
        #expect((CueList.limit / 2...CueList.limit).contains(cues.cues.count))
        let gaps = zip(cues.cues, cues.cues.dropFirst()).map { $1.time - $0.time }
        let (least, most) = (try #require(gaps.min()), try #require(gaps.max()))
        #expect(least > 0 && most <= 3 * least)
        #expect(cues.cues.first?.time == 0)
    }
}
