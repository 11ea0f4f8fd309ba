import Glibc
import MediaCore
import MediaFiles
import TestTools
import Testing
import Threading

@testable import RoomKit

@Suite("Renderers in the box", .timeLimit(.minutes(1)))
struct BoxedRendererTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A picture whose luma says where each pixel was: 16 + 10 × row + column; the rows have padding.
    private func map(_ width: Int, _ height: Int, rotation: VideoRotation = .none) -> VideoFrame {
        let buffer = VideoBuffer(dimensions: Dimensions(width: width, height: height))
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            luma.update(repeating: 255)
            for row in 0..<height {
                for column in 0..<width { luma[row * buffer.lumaStride + column] = UInt8(16 + 10 * row + column) }
            }
            chromaU.update(repeating: 100)
            chromaV.update(repeating: 150)
        }
        return VideoFrame(buffer: buffer, timestamp: timestamp(at: 1), rotation: rotation)
    }

    // The document that this follows took the width for the stride.
    @Test("A grey picture has no padding, the full range, and stands upright")
    func grey() throws {
        let renderer = GrayscaleRenderer()
        #expect(renderer.picture == nil)
        renderer.render(map(6, 4))
        func grey(_ row: Int, _ column: Int) -> UInt8 { UInt8((Double(10 * row + column) * 255 / 219).rounded()) }
        var upright: [UInt8] = []
        for row in 0..<4 { for column in 0..<6 { upright.append(grey(row, column)) } }
        var right: [UInt8] = []
        for row in 0..<6 { for column in 0..<4 { right.append(grey(3 - column, row)) } }
        let picture = try #require(renderer.picture)
        #expect(picture.dimensions == Dimensions(width: 6, height: 4) && picture.timestamp == timestamp(at: 1))
        #expect(picture.bytes == upright)
        #expect(picture.pgm == Array("P5\n6 4\n255\n".utf8) + picture.bytes)
        renderer.render(map(6, 4, rotation: .clockwise90))
        let turned = try #require(renderer.picture)
        #expect(turned.dimensions == Dimensions(width: 4, height: 6))
        #expect(turned.bytes == right)
    }

    @Test("A grey picture that somebody keeps does not change")
    func keptGrey() throws {
        let renderer = GrayscaleRenderer()
        renderer.render(map(6, 4))
        let kept = try #require(renderer.picture)
        let bytes = kept.bytes.map { $0 }
        for index in 0..<4 { renderer.render(picture(6, 4, at: index)) }
        #expect(kept.bytes == bytes && renderer.picture?.bytes != bytes)
    }

    @Test("A snapshot is written at once, replaced by the newest on request, and by no other")
    func snapshot() throws {
        let renderer = try PNGSnapshotRenderer(path: directory("now.png"))
        try renderer.writeNewest()
        #expect(renderer.isEmpty && directory.names == [])
        try renderer.render(picture(64, 48))
        let first = try bytes(of: directory("now.png"))
        try renderer.render(picture(64, 48, at: 20))
        #expect(try bytes(of: directory("now.png")) == first)
        try renderer.writeNewest()
        #expect(try bytes(of: directory("now.png")) != first && directory.names == ["now.png"])
        #expect(throws: RecordingError.self) { try PNGSnapshotRenderer(path: directory("no/now.png")) }
    }

    @Test("Pictures of other sizes and turns are fitted to the first size of a pipe", arguments: [true, false])
    func pipe(isY4M: Bool) async throws {
        let path = directory("out")
        let renderer = VideoPipeRenderer(path: path, format: isY4M ? .y4m : .raw)
        try renderer.render(picture(64, 48))
        renderer.prepare(dimensions: Dimensions(width: 10, height: 10), framesPerSecond: 5)
        try renderer.render(picture(48, 64, rotation: .clockwise90))
        try renderer.render(picture(128, 96))
        #expect(await renderer.finish())
        try renderer.render(picture(64, 48))
        #expect(renderer.framesWritten == 3 && renderer.dimensions == Dimensions(width: 64, height: 48))
        let written = try bytes(of: path)
        let size = 64 * 48 * 3 / 2
        guard isY4M else {
            #expect(written.count == 3 * size)
            return
        }
        let reader = try Y4MReader(path: path)
        let buffer = VideoBuffer(dimensions: Dimensions(width: 64, height: 48))
        var count = 0
        while try reader.readFrame(into: buffer) { count += 1 }
        #expect(count == 3)
    }

    @Test("Sizes and rates that no picture can have are ignored")
    func absurd() throws {
        let renderer = VideoPipeRenderer(path: directory("out"), format: .raw)
        renderer.prepare(dimensions: Dimensions(width: 0, height: 70_000), framesPerSecond: .infinity)
        try renderer.render(picture(64, 48))
        #expect(renderer.dimensions == Dimensions(width: 64, height: 48))
    }

    @Test("A file that is there already is an error that says so, each time")
    func taken() throws {
        try store([1], at: directory("out"))
        let renderer = VideoPipeRenderer(path: directory("out"), format: .y4m)
        for _ in 0..<2 { #expect(throws: RecordingError.self) { try renderer.render(picture(64, 48)) } }
        #expect(renderer.error?.isFileThere == true && renderer.framesWritten == 0)
    }
}
