import Foundation
import MediaCore
import RoomProtocol
import TestTools
import Testing

@testable import RoomKit

@Suite("Frame log", .timeLimit(.minutes(1)))
struct FrameLogTests {
    private func write(_ frames: [ReceivedFrame]) throws -> String {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/a.frames.jsonl"
        do {
            let log = try FrameLogWriter(path: path)
            for frame in frames { try log.write(frame) }
        }
        return try String(contentsOfFile: path, encoding: .utf8)
    }

    private var frames: [ReceivedFrame] {
        var shown = bareFrame(7, key: true)
        shown.received = shown.frame.info.timestamp + .milliseconds(5)
        shown.decoded = shown.received + .milliseconds(2)
        shown.dimensions = Dimensions(width: 640, height: 360)
        shown.isShown = true
        shown.clock = ClockEstimate(basis: .estimated, offset: .seconds(1), errorBound: .milliseconds(3))
        return [shown, bareFrame(8, layer: 2, isCatchUp: true), bareFrame(.max)]
    }

    @Test("The log is read as it was written, in room time")
    func roundTrip() throws {
        let entries = try FrameLogEntry.read(write(frames))
        #expect(entries == frames.map { FrameLogEntry($0) })
        let captured = timestamp(at: 7).microseconds + 1_000_000
        #expect(entries[0].captured == captured)
        #expect(entries[0].received == captured + 5000 && entries[0].decoded == captured + 7000)
        #expect(entries[0].clock == "estimated" && entries[1].clock == "same-host")
        #expect(entries.map(\.clockError) == [3000, 0, 0])
        #expect(entries.map(\.catchUp) == [false, true, false])
        #expect(entries.map(\.layer) == [0, 2, 0])
        #expect(entries.map(\.dimensions) == [Dimensions(width: 640, height: 360), nil, nil])
        #expect(entries.map(\.isShown) == [true, false, false])
    }

    @Test("Orientation and metadata are in the line of the frame that has them")
    func extensions() throws {
        var tagged = bareFrame(1)
        let metadata = try FrameMetadata([0, 255, 62])
        tagged.extensions = PacketExtensions(rotation: .clockwise270, isMirrored: true, metadata: metadata)
        let entries = try FrameLogEntry.read(write([tagged, bareFrame(2)]))
        #expect(entries[0].rotation == 270 && entries[0].mirrored == true && entries[0].metadata == "AP8+")
        #expect(entries[1].rotation == 0 && entries[1].mirrored == false && entries[1].metadata == nil)
    }

    @Test("A frame that was not decoded has the key all the same, with null")
    func notDecoded() throws {
        let lines = try write(frames).split(separator: "\n")
        #expect(lines[0].contains("\"decoded\":") && !lines[0].contains("\"decoded\":null"))
        #expect(lines[1].contains("\"decoded\":null") && lines[2].contains("\"decoded\":null"))
    }

    /// An empty file to write, open under `path`.
    private func makeFile(_ path: String) throws -> Int32 {
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        try #require(descriptor >= 0)
        return descriptor
    }

    @Test("A log that is removed while it is written is reported")
    func removed() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/a.frames.jsonl"
        let log = try FrameLogWriter(adopting: makeFile(path), path: path)
        try log.write(frames[0])
        try #require(unlink(path) == 0)
        #expect(throws: RecordingError.self) { try log.write(frames[1]) }
    }

    // A file system that counts no links made every log look removed.
    @Test("A log on a file system that counts no links is written")
    func withoutLinks() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/a.frames.jsonl"
        let descriptor = try makeFile(path)
        let copy = dup(descriptor)
        defer { close(copy) }
        try #require(unlink(path) == 0)
        try FrameLogWriter(adopting: descriptor, path: path).write(frames[0])
        #expect(lseek(copy, 0, SEEK_END) > 0)
    }

    @Test("Cut anywhere, the whole lines are read")
    func cut() throws {
        let text = try write(frames)
        let lines = text.split(separator: "\n").map { $0.utf8.count + 1 }
        for length in 0...text.utf8.count {
            let whole = [lines[0], lines[0] + lines[1], text.utf8.count].count { $0 <= length }
            #expect(try FrameLogEntry.read(String(decoding: text.utf8.prefix(length), as: UTF8.self)).count == whole)
        }
    }

    // A line feed after a carriage return is one character with it, so that the log was one line.
    @Test("A log whose lines end as on Windows is read, and its incomplete last line is left out")
    func carriageReturns() throws {
        let text = try write(frames)
        let foreign = text.replacing("\n", with: "\r\n")
        #expect(try FrameLogEntry.read(foreign) == FrameLogEntry.read(text))
        #expect(try FrameLogEntry.read(String(foreign.dropLast(5))).count == frames.count - 1)
    }

    @Test("A log without the clock's error is read")
    func older() throws {
        let text = try write(frames).replacing(/"clockError":\d+,/, with: "")
        #expect(try FrameLogEntry.read(text).map(\.clockError) == [nil, nil, nil])
        let oldest = text.replacing(/,"(simulcastLayer|width|height)":\d+/, with: "")
            .replacing(/,"shown":(true|false)/, with: "")
        let entries = try FrameLogEntry.read(oldest)
        #expect(entries.map(\.simulcastLayer) == [nil, nil, nil] && entries.map(\.dimensions) == [nil, nil, nil])
        #expect(entries.map(\.isShown) == [true, false, false])
    }

    @Test("A line that is damaged is not passed over", arguments: ["{}\n", "x\n", "[1]\n", "{\"number\":-1}\n"])
    func damaged(line: String) {
        #expect(throws: (any Error).self) { try FrameLogEntry.read(line) }
    }

    @Test("A log that exists is not overwritten")
    func existing() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/a"
        try Data("old".utf8).write(to: URL(fileURLWithPath: path))
        #expect(throws: RecordingError.self) { _ = try FrameLogWriter(path: path) }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "old")
    }
}
