import Foundation
import MediaCore
import MediaFiles
import RoomProtocol
import TestTools
import Testing
import Threading

@testable import RoomKit

@Suite("Track recorder", .timeLimit(.minutes(3)))
struct TrackRecorderTests {
    typealias Format = TrackRecorder.Format

    /// A track with a recorder behind its decoder.
    private final class Stage {
        let track = remoteTrack()
        let directory: TemporaryDirectory
        let recorder: TrackRecorder
        let receiver: VideoReceiver

        init(_ format: TrackRecorder.Format, in directory: TemporaryDirectory, path: String? = nil) throws {
            self.directory = directory
            recorder = try TrackRecorder(
                track: track,
                directory: path ?? directory.path,
                recorderID: "PA_1",
                format: format
            )
            receiver = try VideoReceiver(
                track: track,
                codec: .forPublishing,
                clock: ClockBox(),
                start: .init(),
                subscribed: MonotonicClock.now
            )
        }

        /// Gives a frame and waits until the recorder is done with it.
        func give(_ frame: FrameAssembler.Frame) {
            receiver.receive(frame, at: MonotonicClock.now)
            wait {
                let (received, recorded) = (track.statistics, recorder.statistics)
                return received.framesReceived == recorded.framesWritten + recorded.framesDropped
            }
        }

        func finish() async -> RecordingStatistics {
            await receiver.stop()
            recorder.stop()
            return recorder.statistics
        }
    }

    private func frameCount(_ path: String) throws -> Int {
        if path.hasSuffix(".y4m") {
            let reader = try Y4MReader(path: path)
            let buffer = VideoBuffer(dimensions: reader.dimensions)
            var count = 0
            while try reader.readFrame(into: buffer) { count += 1 }
            return count
        }
        let reader = try EncodedVideoFormat.openReader(path: path)
        var count = 0
        while try reader.nextFrame() != nil { count += 1 }
        return count
    }

    private func log(beside path: String) throws -> [FrameLogEntry] {
        let stem = path.split(separator: ".").dropLast().joined(separator: ".")
        let text = try String(contentsOfFile: "/\(stem).frames.jsonl".replacing("//", with: "/"), encoding: .utf8)
        return try FrameLogEntry.read(text)
    }

    @Test("Every frame is in the file and in its log", arguments: TrackRecorder.Format.allCases)
    func formats(_ format: TrackRecorder.Format) async throws {
        let directory = try TemporaryDirectory()
        let stage = try Stage(format, in: directory)
        for frame in try await encodedFrames(6) { stage.give(frame) }
        let statistics = await stage.finish()
        #expect(statistics.framesWritten == 6 && statistics.framesDropped == 0 && statistics.error == nil)
        let file = try #require(statistics.files.first)
        let name = format == .png ? "robot-camera-PA_1-000001.png" : "robot-camera-PA_1.\(format.rawValue)"
        #expect(statistics.files == ["\(directory.path)/\(name)"])
        if format == .png {
            #expect(directory.names.count { $0.hasSuffix(".png") } == 6)
            #expect(directory.names.contains("robot-camera-PA_1-000006.png"))
        } else {
            #expect(try frameCount(file) == 6)
        }
        let entries = try log(beside: "\(directory.path)/robot-camera-PA_1.\(format.rawValue)")
        #expect(entries.map(\.number) == Array(0..<6))
        #expect(entries.map(\.key) == [true, false, false, false, false, false])
        #expect(entries.allSatisfy { $0.captured <= $0.received && $0.received <= $0.decoded ?? 0 && $0.bytes > 0 })
        #expect(entries.allSatisfy { $0.shown == true && $0.simulcastLayer == 0 })
    }

    // Each size began another file, which no player plays on from the one before.
    @Test("A change of size goes on in the same file, and the log says each frame's size", arguments: Format.allCases)
    func sizeChange(_ format: Format) async throws {
        let directory = try TemporaryDirectory()
        let stage = try Stage(format, in: directory)
        for frame in try await encodedFrames(3) { stage.give(frame) }
        for frame in try await encodedFrames(4, width: 32, height: 24) { stage.give(frame) }
        for frame in try await encodedFrames(2) { stage.give(frame) }
        let statistics = await stage.finish()
        #expect(statistics.framesWritten == 9 && statistics.error == nil)
        let file = try #require(statistics.files.first)
        #expect(statistics.files.count == 1)
        let log = try log(beside: directory.path + "/robot-camera-PA_1.\(format.rawValue)")
        #expect(log.map(\.width) == [64, 64, 64, 32, 32, 32, 32, 64, 64])
        #expect(log.map(\.height) == [48, 48, 48, 24, 24, 24, 24, 48, 48])
        #expect(stage.track.statistics.sizeChanges == 2)
        if format == .png {
            #expect(directory.names.count { $0.hasSuffix(".png") } == 9)
            #expect(directory.names.contains("robot-camera-PA_1-000009.png"))
        } else {
            #expect(try frameCount(file) == 9)
        }
    }

    @Test(
        "After changes of size ffmpeg and vpxdec play every frame",
        arguments: [Format.webm, .ivf, .y4m]
    )
    func playable(_ format: Format) async throws {
        let directory = try TemporaryDirectory()
        let stage = try Stage(format, in: directory)
        for size in [(32, 24), (64, 48), (16, 12), (64, 48)] {
            for frame in try await encodedFrames(5, width: size.0, height: size.1) { stage.give(frame) }
        }
        let statistics = await stage.finish()
        let file = try #require(statistics.files.first)
        let probe = "-v error -count_frames -show_entries stream=width,height,nb_read_frames -of csv=p=0"
        let (status, output) = try run("ffprobe", probe.split(separator: " ").map(String.init) + [file])
        #expect(status == 0)
        // The size as published, though the first picture is smaller.
        #expect(output.trimmingCharacters(in: .whitespacesAndNewlines) == "64,48,20")
        if format != .y4m {
            let (status, output) = try run("vpxdec", ["--md5", "--scale", file])
            #expect(status == 0 && !output.isEmpty)
        }
    }

    /// Runs a program to its end; its exit code and what it wrote.
    ///
    /// (Foundation's `Process` leaks a weak reference, which LeakSanitizer reports.)
    private func run(_ program: String, _ arguments: [String]) throws -> (status: Int32, output: String) {
        let command = ([program] + arguments).map { "'\($0)'" }.joined(separator: " ")
        let stream = try #require(popen("\(command) 2>&1", "r"))
        var output: [UInt8] = []
        while true {
            let byte = getc(stream)
            guard byte != EOF else { break }
            output.append(UInt8(truncatingIfNeeded: byte))
        }
        let status = pclose(stream)
        return (status, String(decoding: output, as: UTF8.self))
    }

    @Test("Raw pictures of any size have the size of the file, odd sides included")
    func scaledPictures() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/a"
        var files = RecordingFiles(
            directory: directory.path,
            name: "a",
            format: .y4m,
            codec: .forPublishing,
            announced: Dimensions(width: 63, height: 47),
            frameRate: 30,
            start: timestamp(at: 0)
        )
        for (index, size) in [(63, 47), (32, 24), (128, 96), (1, 1), (63, 47)].enumerated() {
            var frame = bareFrame(UInt32(index), key: true)
            frame.picture = picture(size.0, size.1)
            _ = try files.write(frame)
        }
        try files.finish()
        let reader = try Y4MReader(path: path + ".y4m")
        #expect(reader.dimensions == Dimensions(width: 63, height: 47))
        #expect(try frameCount(path + ".y4m") == 5)
    }

    @Test(
        "A size that was published and cannot be one is not the file's",
        arguments: [
            Dimensions(width: 0, height: 0), Dimensions(width: -1, height: 48), Dimensions(width: 16383, height: 16383),
        ]
    )
    func absurdAnnouncement(announced: Dimensions) throws {
        let directory = try TemporaryDirectory()
        var files = RecordingFiles(
            directory: directory.path,
            name: "a",
            format: .y4m,
            codec: .forPublishing,
            announced: announced,
            frameRate: 30,
            start: timestamp(at: 0)
        )
        var frame = bareFrame(0, key: true)
        frame.picture = picture(32, 24)
        _ = try files.write(frame)
        try files.finish()
        #expect(try Y4MReader(path: directory.path + "/a.y4m").dimensions == Dimensions(width: 32, height: 24))
    }

    // A log of the same name made the recording end with its first frame, and pictures had no look at what was there.
    @Test(
        "A file that exists, of whatever format, is left alone, and a number added",
        arguments: TrackRecorder.Format.allCases,
        ["robot-camera-PA_1.frames.jsonl", nil]
    )
    func existing(_ format: TrackRecorder.Format, name: String?) async throws {
        if format == .png && name == nil { return }
        let directory = try TemporaryDirectory()
        let old = "\(directory.path)/" + (name ?? "robot-camera-PA_1.\(format.rawValue)")
        try Data("old".utf8).write(to: URL(fileURLWithPath: old))
        let stage = try Stage(format, in: directory)
        for frame in try await encodedFrames(2) { stage.give(frame) }
        let statistics = await stage.finish()
        let number = format == .png ? "-000001" : ""
        #expect(statistics.files == ["\(directory.path)/robot-camera-PA_1-2\(number).\(format.rawValue)"])
        #expect(statistics.error == nil && statistics.framesWritten == 2)
        #expect(try String(contentsOfFile: old, encoding: .utf8) == "old")
        // The name that was tried first leaves no trace.
        #expect(directory.names.count { !$0.contains("PA_1-2") } == 1)
    }

    @Test("The directory is made, with those above it")
    func directories() async throws {
        let directory = try TemporaryDirectory()
        let stage = try Stage(.ivf, in: directory, path: directory.path + "/a/b//c/")
        for frame in try await encodedFrames(1) { stage.give(frame) }
        let statistics = await stage.finish()
        #expect(statistics.framesWritten == 1)
        #expect(FileManager.default.fileExists(atPath: directory.path + "/a/b/c/robot-camera-PA_1.ivf"))
    }

    // It was found out with the first frame, if at all.
    @Test("A directory that cannot be made, written to, or is none, is refused at once")
    func badDirectories() throws {
        let directory = try TemporaryDirectory()
        let file = directory.path + "/file"
        try Data().write(to: URL(fileURLWithPath: file))
        for path in [file, file + "/below"] { expectRefusal(of: path, .systemFailure) }
        for path in ["/proc/nothing", ""] { expectRefusal(of: path, .notFound) }
    }

    // It said that the file system takes no new directories.
    @Test("A link that leads nowhere is named, also above the directory; one to a directory is followed")
    func links() throws {
        let directory = try TemporaryDirectory()
        let (link, good) = (directory("link"), directory("good"))
        try #require(symlink(directory("nowhere"), link) == 0 && symlink(directory.path, good) == 0)
        for path in [link, "\(link)/below"] {
            let error = #expect(throws: RecordingError.self) { try TrackRecorder.prepareDirectory(path) }
            #expect(error?.cause.code == .notFound)
            #expect(error?.description.contains("\(link): it is a link to a directory that does not exist") == true)
        }
        try TrackRecorder.prepareDirectory("\(good)/below")
        #expect(directory.names == ["below", "good", "link"])
    }

    @Test(
        "A directory that must not be made is refused at once",
        .enabled(if: ForbiddenDirectory.path != nil, ForbiddenDirectory.absence)
    )
    func forbiddenDirectory() throws {
        expectRefusal(of: try #require(ForbiddenDirectory.path) + "/nothing", .notPermitted)
    }

    private func expectRefusal(of path: String, _ code: MediaFileError.Code) {
        let error = #expect(throws: RecordingError.self, "\(path)") {
            try TrackRecorder(track: remoteTrack(), directory: path, recorderID: "PA_1", format: .webm)
        }
        #expect(error?.cause.code == code, "\(path)")
        #expect(error?.description.hasPrefix("Cannot make the directory \(path): ") == true)
    }

    @Test("A full disk ends the recording with its reason, the file plays, and the rest is counted")
    func diskFull() async throws {
        let directory = try TemporaryDirectory()
        guard mount("tmpfs", directory.path, "tmpfs", 0, "size=64k") == 0 else { return }
        defer { umount(directory.path) }
        let stage = try Stage(.y4m, in: directory)
        for frame in try await encodedFrames(20, width: 128, height: 96) { stage.give(frame) }
        let statistics = await stage.finish()
        #expect(statistics.error?.isStorageFull == true)
        #expect(statistics.framesWritten > 0 && statistics.framesDropped > 0)
        #expect(statistics.framesWritten + statistics.framesDropped == 20)
        #expect(stage.track.statistics.framesDecoded == 20, "the disk held up the decoder")
    }

    @Test("A disk that takes nothing costs pictures of the recording, in a bounded queue")
    func slowDiskPictures() async throws {
        let tap = RecorderTap(format: .png) {}
        var frame = bareFrame(0, key: true)
        frame.picture = picture(16, 16)
        for _ in 0..<100 { tap.receive(frame) }
        #expect(tap.dropped == 92)
        tap.close()
        var left = 0
        while tap.take() != nil { left += 1 }
        #expect(left == 8)
    }

    // What waited was discarded, and a keyframe was asked for while nothing could be written.
    @Test("A disk that takes nothing for long costs what comes then, up to a keyframe that is asked for in good time")
    func slowDiskFrames() {
        let requests = Monitor(0)
        let tap = RecorderTap(format: .webm) { requests.withLock { $0 += 1 } }
        #expect(!tap.wantsPictures)
        tap.receive(bareFrame(0, key: true))
        // Three seconds of one layer at 60 fps.
        for number in 1..<180 { tap.receive(bareFrame(UInt32(number))) }
        #expect(tap.dropped == 0 && requests.withLock { $0 } == 0)
        for number in 180..<190 { tap.receive(bareFrame(UInt32(number), key: number == 185)) }
        #expect(tap.dropped == 10 && requests.withLock { $0 } == 0, "nobody pays for what there is no room for")
        for number in 0..<89 { #expect(tap.take()?.frame.info.number == UInt32(number)) }
        tap.receive(bareFrame(190))
        #expect(requests.withLock { $0 } == 0, "the queue is still more than half full")
        #expect(tap.take()?.frame.info.number == 89)
        tap.receive(bareFrame(191))
        tap.receive(bareFrame(192))
        #expect(tap.dropped == 13 && requests.withLock { $0 } == 1)
        tap.receive(bareFrame(193, key: true))
        tap.receive(bareFrame(194))
        tap.close()
        for number in Array(90..<180) + [193, 194] { #expect(tap.take()?.frame.info.number == UInt32(number)) }
        #expect(tap.take() == nil)
    }

    // Of a recorder that began in the middle, and had to wait for a keyframe, the summary blamed the disk.
    @Test("What comes before a recording's first keyframe, or after its end, is not dropped by the disk")
    func outside() {
        let requests = Monitor(0)
        let tap = RecorderTap(format: .webm) { requests.withLock { $0 += 1 } }
        for number in 0..<5 as Range<UInt32> { tap.receive(bareFrame(number)) }
        #expect(tap.dropped == 0 && requests.withLock { $0 } == 1)
        tap.receive(bareFrame(5, key: true))
        tap.receive(bareFrame(6))
        tap.close()
        tap.receive(bareFrame(7))
        #expect(tap.dropped == 0)
        #expect(tap.take()?.frame.info.number == 5 && tap.take()?.frame.info.number == 6 && tap.take() == nil)
    }

    @Test("A recorder that is dropped ends by itself")
    func dropped() async throws {
        let directory = try TemporaryDirectory()
        let track = remoteTrack()
        weak var recorder: TrackRecorder?
        do {
            let made = try TrackRecorder(track: track, directory: directory.path, recorderID: "PA_1", format: .webm)
            recorder = made
            #expect(track.sinks.count == 1)
        }
        #expect(recorder == nil && track.sinks.isEmpty)
    }

    @Test(
        "Whatever people are called, the files stay in the directory",
        arguments: [
            ("../../etc/passwd", "_._.._etc_passwd"), ("a/b", "a_b"), (".hidden", "_hidden"), ("..", "_."),
            ("tab\tline\n", "tab_line_"), ("nul\0", "nul_"), ("crlf\r\n", "crlf__"), ("", ""),
            // A slash or a point with an accent on it is one character, and its first byte a slash or a point.
            ("a/\u{301}b", "a_\u{301}b"), (".\u{301}a", "_\u{301}a"), ("Zoë 🤖", "Zoë 🤖"),
            // FAT and NTFS refuse these.
            ("lab:cam*1?", "lab_cam_1_"), ("a\\b<c>|\"d\"", "a_b_c___d_"),
            // A name that turns the direction of the text shows another ending than it has.
            ("a\u{202E}gpj.exe", "a_gpj.exe"), ("a\u{2028}b\u{200B}\u{2066}c", "a_b__c"),
        ]
    )
    func names(name: String, file: String) {
        #expect(TrackRecorder.fileName(name, limit: 100).utf8.elementsEqual(file.utf8))
        #expect(!TrackRecorder.fileName(name, limit: 100).utf8.contains(UInt8(ascii: "/")))
        #expect(TrackRecorder.fileName(name, limit: 100).utf8.first != UInt8(ascii: "."))
    }

    // Names of the protocol's 128 bytes made a file name that Linux refuses, for PNG even after they had been cut.
    @Test("The longest names make a file", arguments: ["x", "é", "🤖"])
    func longNames(letter: String) async throws {
        let directory = try TemporaryDirectory()
        let name = String(repeating: letter, count: WireFormat.maximumNameBytes / letter.utf8.count)
        let track = remoteTrack(name: name, publisher: name)
        let recorder = try TrackRecorder(track: track, directory: directory.path, recorderID: name, format: .png)
        let receiver = try VideoReceiver(
            track: track,
            codec: .forPublishing,
            clock: ClockBox(),
            start: .init(),
            subscribed: MonotonicClock.now
        )
        for frame in try await encodedFrames(1) { receiver.receive(frame, at: MonotonicClock.now) }
        await receiver.stop()
        recorder.stop()
        #expect(recorder.statistics.framesWritten == 1 && recorder.statistics.error == nil)
        #expect(directory.names.count == 2)
    }
}
