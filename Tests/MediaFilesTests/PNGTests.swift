import CPNG
import Foundation
import MediaCore
import MediaFiles
import TestTools
import Testing
import VideoProcessing

@Suite("PNG files", .timeLimit(.minutes(2)))
struct PNGTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// The size and the bytes, three a pixel, of a PNG file.
    private func decode(_ path: String) throws -> (width: Int, height: Int, pixels: [UInt8]) {
        var image = png_image()
        image.version = UInt32(PNG_IMAGE_VERSION)
        try #require(png_image_begin_read_from_file(&image, path) != 0)
        image.format = UInt32(PNG_FORMAT_RGB)
        var pixels = [UInt8](repeating: 0, count: Int(image.width * image.height) * 3)
        try #require(png_image_finish_read(&image, nil, &pixels, 0, nil) != 0)
        return (Int(image.width), Int(image.height), pixels)
    }

    private func picture(_ source: String) async throws -> VideoFrame {
        let file = directory("\(UUID().uuidString).y4m")
        let ffmpeg = try await run("ffmpeg -v error -f lavfi -i \(source) -frames:v 1 -pix_fmt yuv420p \(file)")
        try #require(ffmpeg.status == 0, "\(ffmpeg.complaints)")
        let reader = try Y4MReader(path: file)
        let buffer = VideoBuffer(dimensions: reader.dimensions)
        try #require(try reader.readFrame(into: buffer))
        return VideoFrame(buffer: buffer, timestamp: MonotonicInstant(nanoseconds: 0))
    }

    @Test("Colours are those of ffmpeg's conversion", arguments: ["smptebars", "rgbtestsrc", "testsrc2"])
    func colours(source: String) async throws {
        // Sizes at which the bars' edges fall between chroma samples.
        let frame = try await picture("\(source)=size=224x96")
        let (ours, raw, theirs) = (directory("ours.png"), directory("raw.y4m"), directory("theirs.rgb"))
        try PNGWriter().write(frame, to: ours)
        let writer = try Y4MWriter(path: raw, dimensions: frame.dimensions, frameRate: FrameRate(1))
        try writer.write(frame)
        let ffmpeg = try await run(
            "ffmpeg -v error -i \(raw) -vf scale=in_color_matrix=bt601:in_range=tv:out_range=pc"
                + ":flags=accurate_rnd+full_chroma_int+neighbor,format=rgb24 -f rawvideo \(theirs)"
        )
        try #require(ffmpeg.status == 0, "\(ffmpeg.complaints)")
        let (picture, reference) = (try decode(ours), try bytes(of: theirs))
        #expect(picture.width == 224 && picture.height == 96)
        try #require(picture.pixels.count == reference.count)
        let worst = zip(picture.pixels, reference).map { abs(Int($0) - Int($1)) }.max()
        #expect(try #require(worst) <= 2)
    }

    @Test("Black, white and the primaries are exact")
    func primaries() throws {
        let buffer = VideoBuffer(dimensions: Dimensions(width: 10, height: 2))
        let columns: [(UInt8, UInt8, UInt8)] = [
            (16, 128, 128), (235, 128, 128), (81, 90, 240), (145, 54, 34), (41, 240, 110),
        ]
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            for (column, colour) in columns.enumerated() {
                for index in [0, 1, buffer.lumaStride, buffer.lumaStride + 1] { luma[2 * column + index] = colour.0 }
                chromaU[column] = colour.1
                chromaV[column] = colour.2
            }
        }
        let path = directory("primaries.png")
        try PNGWriter().write(VideoFrame(buffer: buffer, timestamp: MonotonicInstant(nanoseconds: 0)), to: path)
        let decoded = try decode(path).pixels
        let expected: [[UInt8]] = [[0, 0, 0], [255, 255, 255], [255, 0, 0], [0, 255, 0], [0, 0, 255]]
        for (column, colour) in expected.enumerated() {
            let pixel = decoded[6 * column..<6 * column + 3]
            #expect(zip(pixel, colour).allSatisfy { abs(Int($0) - Int($1)) <= 1 }, "\(Array(pixel)), \(colour)")
        }
    }

    // A mirrored picture was turned, but not mirrored.
    @Test(
        "A turned or mirrored picture is written upright, as it is made upright elsewhere",
        arguments: VideoRotation.allCases,
        [false, true]
    )
    func rotation(rotation: VideoRotation, isMirrored: Bool) async throws {
        var frame = try await picture("testsrc2=size=46x34")
        let writer = PNGWriter()
        try writer.write(frame, to: directory("plain.png"))
        (frame.rotation, frame.isMirrored) = (rotation, isMirrored)
        try writer.write(frame, to: directory("turned.png"))
        try writer.write(FrameScaler().upright(frame), to: directory("upright.png"))
        let filters = [0: "null", 90: "transpose=clock", 180: "hflip,vflip", 270: "transpose=cclock"]
        let filter = try #require(filters[rotation.rawValue]) + (isMirrored ? ",hflip" : "")
        let ffmpeg = try await run(
            "ffmpeg -v error -i \(directory("plain.png")) -vf \(filter) \(directory("theirs.png"))"
        )
        try #require(ffmpeg.status == 0, "\(ffmpeg.complaints)")
        let ours = try decode(directory("turned.png"))
        for name in ["theirs.png", "upright.png"] {
            let other = try decode(directory(name))
            let isSame = ours.width == other.width && ours.height == other.height && ours.pixels == other.pixels
            #expect(isSame, "\(name)")
        }
    }

    @Test("A file appears whole or not at all, and replaces another only when asked to")
    func files() throws {
        let writer = PNGWriter()
        let path = directory("picture.png")
        let contents = { try FileManager.default.contentsOfDirectory(atPath: directory.path) }
        try writer.write(noise(Dimensions(width: 64, height: 48)), to: path)
        let first = try bytes(of: path)
        let small = noise(Dimensions(width: 3, height: 5), seed: 9)
        #expect(code { try writer.write(small, to: path) } == .fileExists)
        #expect(try bytes(of: path) == first)
        try writer.write(small, to: path, replacing: true)
        #expect(try decode(path).width == 3)
        #expect(try contents() == ["picture.png"])
        #expect(code { try writer.write(small, to: directory("none/picture.png")) } == .notFound)
        try FileManager.default.createDirectory(atPath: directory("taken"), withIntermediateDirectories: false)
        #expect(code { try writer.write(small, to: directory("taken"), replacing: true) } == .systemFailure)
        #expect(try contents().sorted() == ["picture.png", "taken"])
    }

    // The file's first name was made of the process's number, which is the same at each start of a container.
    @Test("What a process that was killed left behind is in nobody's way")
    func leftBehind() throws {
        let names = ["picture.png", "plot.svg"]
        for name in names {
            try Data("half".utf8).write(to: URL(fileURLWithPath: directory("\(name).\(getpid()).part")))
        }
        try PNGWriter().write(noise(Dimensions(width: 3, height: 5)), to: directory(names[0]))
        try WholeFile.write("<svg/>", to: directory(names[1]))
        #expect(try decode(directory(names[0])).width == 3 && bytes(of: directory(names[1])) == Array("<svg/>".utf8))
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).count == 4)
    }

    // A name is given by renaming, which replaces a device as well as a file; and the error spoke of the name before.
    @Test("Only a regular file gives way, and errors name what the caller named")
    func replacing() throws {
        let writer = PNGWriter()
        let frame = noise(Dimensions(width: 3, height: 5))
        let (pipe, link) = (directory("pipe"), directory("link"))
        try #require(mkfifo(pipe, 0o600) == 0 && symlink(pipe, link) == 0)
        for path in [pipe, link] {
            let error = #expect(throws: MediaFileError.self) { try writer.write(frame, to: path, replacing: true) }
            #expect(error?.code == .notRegular)
            #expect(error?.description == "Cannot create \(path): it is a link, a pipe or a device; name another")
        }
        // This name is not too long, but that of the file that is renamed is.
        let long = directory(String(repeating: "x", count: 255))
        for replacing in [false, true] {
            let error = #expect(throws: MediaFileError.self) {
                try writer.write(frame, to: long, replacing: replacing)
            }
            #expect(error?.path == long && error?.status == ENAMETOOLONG)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() == ["link", "pipe"])
    }
}
