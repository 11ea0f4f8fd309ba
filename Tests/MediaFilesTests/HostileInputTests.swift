import Foundation
import MediaCore
import MediaFiles
import TestTools
import Testing

@Suite("Hostile files", .timeLimit(.minutes(5)))
struct HostileInputTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Reads a file to its end or its error.
    ///
    /// - Returns: The number of frames.
    private func readThrough(_ path: String) -> Int {
        var count = 0
        do {
            let reader = try EncodedVideoFormat.openReader(path: path)
            while let frame = try reader.nextFrame() {
                count += 1
                #expect(reader.withFrameBytes { $0.byteCount } == frame.size.bytes)
            }
        } catch {
            #expect(error.description.hasPrefix("Cannot ") && error.path == path)
        }
        return count
    }

    @Test("Changed bytes anywhere in a good file end in frames or an error", arguments: EncodedVideoFormat.allCases)
    func mutations(format: EncodedVideoFormat) async throws {
        let clip = try await Clip("testsrc2=size=32x32:rate=5:duration=1", keyframeInterval: 2)
        let path = directory("clip")
        try clip.write(format, to: path)
        let file = try bytes(of: path)
        var generator = SeededGenerator(seed: 1)
        var total = 0
        for _ in 0..<4000 {
            var changed = file
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                // Mostly in the header, where the structure is.
                let limit = Bool.random(using: &generator) ? min(300, file.count) : file.count
                changed[Int.random(in: 0..<limit, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            try store(changed, at: path)
            let count = readThrough(path)
            #expect(count <= file.count)
            total += count
        }
        #expect(total > 4000)
    }

    @Test(
        "Random bytes after a signature end in an error",
        arguments: ["DKIF", "\u{1A}", "YUV4MPEG2 W4 H4 F1:1\nFRAME"]
    )
    func random(signature: String) throws {
        let path = directory("random")
        var generator = SeededGenerator(seed: 2)
        for _ in 0..<2000 {
            var bytes = Array(signature.utf8) + (signature == "\u{1A}" ? [0x45, 0xDF, 0xA3] : [])
            for _ in 0..<Int.random(in: 0...300, using: &generator) {
                bytes.append(.random(in: 0...255, using: &generator))
            }
            try store(bytes, at: path)
            _ = readThrough(path)
            guard let reader = try? Y4MReader(path: path) else { continue }
            let buffer = VideoBuffer(dimensions: reader.dimensions)
            while (try? reader.readFrame(into: buffer)) == true {}
        }
    }

    @Test("A length that is only claimed costs no memory")
    func claimedLength() async throws {
        let clip = try await Clip("testsrc2=size=32x32:rate=5:duration=0.2", keyframeInterval: 2)
        let (webm, ivf) = (directory("webm"), directory("ivf"))
        try clip.write(.webm, to: webm, finishing: false)
        try clip.write(.ivf, to: ivf)
        // 64 MiB in five bytes and in eight, and in IVF: the most that a frame may have.
        let claims: [(String, [UInt8])] = [
            (webm, [0xA3, 0x08, 0x04, 0, 0, 0, 0x81]),
            (webm, [0xA3, 0x01, 0, 0, 0, 0x04, 0, 0, 0, 0x81]),
            (ivf, [0, 0, 0, 0x04] + [UInt8](repeating: 0, count: 8)),
        ]
        var readers: [any EncodedVideoReader] = []
        let path = directory("claimed")
        let before = try residentBytes()
        for (whole, claim) in claims {
            try store(bytes(of: whole) + claim, at: path)
            let reader = try EncodedVideoFormat.openReader(path: path)
            #expect(try reader.nextFrame() != nil)
            #expect(code { _ = try reader.nextFrame() } == .truncated)
            readers.append(reader)
        }
        // Each of them keeps its memory; other tests need some meanwhile.
        #expect(try residentGrowth(since: before) < 100_000_000)
        #expect(readers.count == 3)
    }

    @Test("A length above the limit is damage", arguments: [[0x08, 0x04, 0, 0, 1], [0x01, 0, 0, 0, 0x04, 0, 0, 1]])
    func excessiveLength(size: [UInt8]) async throws {
        let clip = try await Clip("testsrc2=size=32x32:rate=5:duration=0.2", keyframeInterval: 2)
        let (webm, ivf) = (directory("webm"), directory("ivf"))
        try clip.write(.webm, to: webm, finishing: false)
        try store(bytes(of: webm) + [0xA3] + size + [0x81], at: webm)
        try clip.write(.ivf, to: ivf)
        try store(bytes(of: ivf) + [0xFF, 0xFF, 0xFF, 0xFF] + [UInt8](repeating: 0, count: 8), at: ivf)
        for path in [webm, ivf] {
            let reader = try EncodedVideoFormat.openReader(path: path)
            #expect(try reader.nextFrame() != nil)
            #expect(code { _ = try reader.nextFrame() } == .damaged)
            #expect(code { _ = try reader.nextFrame() } == .damaged)
        }
    }

    @Test("Other codecs, laced and encoded tracks are refused by name")
    func refusals() async throws {
        let path = directory("vp9.webm")
        let source = "testsrc2=size=32x32:rate=5:duration=0.4"
        let vp9 = try await run("ffmpeg -v error -f lavfi -i \(source) -c:v libvpx-vp9 \(path)")
        try #require(vp9.status == 0, "\(vp9.complaints)")
        let error = try #require(throws: MediaFileError.self) { _ = try EncodedVideoFormat.openReader(path: path) }
        #expect(error.code == .unsupported && error.description.contains("V_VP9"))
        let sound = directory("sound.webm")
        #expect(try await run("ffmpeg -v error -f lavfi -i sine=duration=0.1 -c:a libopus \(sound)").status == 0)
        #expect(code { _ = try EncodedVideoFormat.openReader(path: sound) } == .unsupported)

        let laced = directory("laced.webm")
        let clip = try await Clip(source, keyframeInterval: 10)
        try clip.write(.webm, to: laced)
        var file = try bytes(of: laced)
        let picture = try #require(clip.pictures.first).bytes
        let start = try #require(file.indices.first { Array(file[$0...].prefix(picture.count)) == picture })
        file[start - 1] |= 0x02
        try store(file, at: laced)
        let reader = try WebMReader(path: laced)
        #expect(code { _ = try reader.nextFrame() } == .unsupported)
        #expect(code { _ = try IVFReader(path: laced) } == .wrongFormat)
        #expect(code { _ = try EncodedVideoFormat.openReader(path: "/bin/sh") } == .wrongFormat)
    }
}
