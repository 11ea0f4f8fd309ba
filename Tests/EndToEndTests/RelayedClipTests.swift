import FoundationEssentials
import Glibc
import MediaCore
import RelayCore
import RelayServer
import RoomKit
import TestSupport
import TestTools
import Testing
import Threading

@Suite("VP8 frames that are sent as they are", .timeLimit(.minutes(3)))
struct RelayedClipTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Checks that each frame of a dump is, byte by byte, the frame of the clip that its number says.
    private func expectSame(
        _ dump: String,
        as clip: EncodedClip,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let dumped = try EncodedClip(reading: "\(dump).ivf")
        let log = try FrameLogEntry.read(text(of: "\(dump).frames.jsonl"))
        #expect(dumped.frames.count == log.count && !log.isEmpty, sourceLocation: sourceLocation)
        for (entry, frame) in zip(log, dumped.frames) {
            let index = Int(entry.number) % clip.frames.count
            #expect(frame == clip.frames[index], "frame \(entry.number)", sourceLocation: sourceLocation)
            #expect(entry.key == clip.keyframes.contains(index) && entry.layer == 0, sourceLocation: sourceLocation)
        }
        for (former, entry) in zip(log, log.dropFirst()) {
            let follows = entry.number == former.number + 1 || entry.key
            #expect(follows, "frame \(entry.number) after \(former.number)", sourceLocation: sourceLocation)
        }
    }

    @Test("A file's frames arrive byte by byte", .enabled(if: Program.isAllowed), arguments: ["ivf", "webm"])
    func file(format: String) async throws {
        let server = try await ServerProgram()
        let clip = try await EncodedClip(directory("clip.\(format)"), frames: 45, keyframeInterval: 15)
        #expect(clip.frames.count == 45 && clip.keyframes == [0, 15, 30])
        let subscriber = try server.client("subscribe", ["--dump", directory("dump"), "--format", "ivf"])
        try await subscriber.says("Joined")
        let source = ["--source", "vp8:\(clip.path)", "--loop", "--json", "--verbose"]
        let publisher = try await server.publisher(source)
        let dump = try await recorded(60, in: directory("dump"))
        #expect(try await end([publisher, subscriber], with: SIGINT) == [.exit(0), .exit(0)])
        try expectSame(dump, as: clip)
        let events = try publisher.events()
        let published = events.first { $0.string("event") == "published" }
        #expect(published?.number("width") == 320 && published?.number("height") == 180)
        // The times of WebM are whole milliseconds.
        #expect(abs((published?.number("frameRate") ?? 0) - 30) < 0.1, "\(String(describing: published))")
        let layer = try #require(events.last?.objects("layers").first)
        #expect(layer.string("qualityLimitation") == "other")
        #expect(layer.fields["quantizer"] == .null && layer.fields["targetBitrate"] == .null)
        #expect(events.last?.objects("layers").count == 1, "no simulcast")
        #expect(try await end([server.program], with: SIGTERM) == [.exit(0)])
    }

    @Test("A file that ends ends the publisher, and its last frames are sent", .enabled(if: Program.isAllowed))
    func ended() async throws {
        let server = try await ServerProgram()
        let clip = try await EncodedClip(directory("clip.ivf"), frames: 90, keyframeInterval: 10)
        let subscriber = try server.client("subscribe", ["--dump", directory("dump"), "--format", "ivf"])
        try await subscriber.says("Joined")
        let publisher = try server.client("connect", ["--source", "vp8:\(clip.path)", "--json"])
        #expect(try await publisher.end() == .exit(0), "\(publisher.errors)")
        #expect(try await end([subscriber], with: SIGINT) == [.exit(0)])
        let summary = try #require(try publisher.events().last)
        #expect(summary.number("framesCaptured") == 90)
        let dropped = summary.object("framesDropped")?.fields.values.reduce(0.0) { sum, value in
            if case .number(let count) = value { sum + count } else { sum }
        }
        #expect(summary.number("framesEncoded").map { $0 + (dropped ?? 0) } == 90)
        let dump = try await recorded(1, in: directory("dump"))
        try expectSame(dump, as: clip)
        #expect(try await end([server.program], with: SIGTERM) == [.exit(0)])
    }

    @Test(
        "Frames that another encoder pipes arrive as they come",
        .enabled(if: Program.isAllowed),
        arguments: ["ivf", "webm"]
    )
    func pipe(format: String) async throws {
        let server = try await ServerProgram()
        let subscriber = try server.client("subscribe", ["--dump", directory("dump"), "--format", "ivf"])
        try await subscriber.says("Joined")
        let encoder =
            "ffmpeg -v error -re -f lavfi -i testsrc2=size=320x180:rate=30 -frames:v 90 -c:v libvpx -g 15"
            + " -deadline realtime -auto-alt-ref 0 -f \(format) -"
        let client = Program.path(of: "room-client")
        let connect = "\(client) connect --room stage --url \(server.url) --source vp8:-"
        let publisher = try Program("sh", ["-c", "\(encoder) | tee \(directory("copy")) | \(connect)"])
        let dump = try await recorded(20, in: directory("dump"))
        #expect(try await publisher.end() == .exit(0), "\(publisher.errors)")
        let words = /90 frames read, (\d+) passed on unchanged, (\d+) sent/
        let account = try #require(publisher.text.firstMatch(of: words), "\(publisher.text)")
        let sent = try #require(Int(account.2))
        // On a busy machine the first ones may come before the server has asked for the track.
        let isComplete = sent == 90 || publisher.text.contains("dropped: \(90 - sent) notWanted")
        #expect(account.1 == account.2 && isComplete, "\(publisher.text)")
        #expect(try await end([subscriber], with: SIGINT) == [.exit(0)])
        try expectSame(dump, as: EncodedClip(reading: directory("copy")))
        #expect(try await end([server.program], with: SIGTERM) == [.exit(0)])
    }

    // With WebM the track ended as if that were right, and with IVF as damaged.
    @Test("A program before a pipe can be started again", .enabled(if: Program.isAllowed), arguments: ["ivf", "webm"])
    func startedAgain(format: String) async throws {
        let server = try await ServerProgram()
        let encoder =
            "ffmpeg -v error -f lavfi -i testsrc2=size=320x180:rate=30 -frames:v 30 -c:v libvpx -g 15"
            + " -deadline realtime -auto-alt-ref 0 -f \(format) -"
        let client = Program.path(of: "room-client")
        let connect = "\(client) connect --room stage --url \(server.url) --source vp8:-"
        let publisher = try Program("sh", ["-c", "(\(encoder); \(encoder)) | \(connect)"])
        #expect(try await publisher.end() == .exit(0), "\(publisher.errors)")
        #expect(publisher.text.contains("60 frames read, "), "\(publisher.text)")
        #expect(try await end([server.program], with: SIGTERM) == [.exit(0)])
    }

    // The track failed after ten seconds: its source was said to deliver no frame.
    @Test("A file whose first keyframe comes late begins with that")
    func lateKeyframe() async throws {
        let stage = try Stage()
        let clip = try await EncodedClip(directory("clip.ivf"), frames: 14, keyframeInterval: 13)
        var file = Array(try Data(contentsOf: URL(fileURLWithPath: clip.path)).prefix(32))
        for (index, frame) in clip.frames.enumerated().dropFirst() {
            // A second apart: the keyframe comes after twelve of them.
            withUnsafeBytes(of: UInt32(frame.count).littleEndian) { file += $0 }
            withUnsafeBytes(of: UInt64(30 * index).littleEndian) { file += $0 }
            file += frame
        }
        let path = directory("late.ivf")
        try Data(file).write(to: URL(fileURLWithPath: path))
        let author = try await stage.join("author")
        let track = LocalVideoTrack(source: VP8Source(path: path))
        try await author.room.localParticipant.publish(track)
        #expect(track.dimensions == testSize)
        await author.room.disconnect()
    }

    // After ten seconds its source was said to deliver no frame.
    @Test("A keyframe that comes later than any other source's first picture may is waited for while frames come")
    func keyframeAfterElevenSeconds() async throws {
        let stage = try Stage()
        let clip = try await EncodedClip(directory("clip.ivf"), frames: 14, keyframeInterval: 13)
        let source = PushedVP8Source(kind: .camera)
        let track = LocalVideoTrack(source: source)
        let author = try await stage.join("author")
        let writing = Task {
            for index in 0... {
                let frame = clip.frames[index < 44 ? 1 : 0]
                try source.write(frame.span.bytes)
                try await Task.sleep(for: .milliseconds(250))
            }
        }
        try await author.room.localParticipant.publish(track)
        writing.cancel()
        #expect(track.dimensions == testSize)
        await author.room.disconnect()
    }

    @Test("A subscriber who comes late waits for a keyframe, for which the source is asked")
    func late() async throws {
        let stage = try Stage { $0.relay.stream.liveWindow = .milliseconds(100) }
        let clip = try await EncodedClip(directory("clip.ivf"), frames: 40, keyframeInterval: 20)
        let requests = Monitor(0)
        let source = PushedVP8Source(kind: .camera) { requests.withLock { $0 += 1 } }
        let track = LocalVideoTrack(source: source)
        let encoder = Task {
            // A keyframe whenever it is asked for, and none else.
            var (index, answered) = (1, 0)
            while !Task.isCancelled {
                let asked = requests.withLock { $0 }
                if asked > answered { (index, answered) = (20, asked) }
                let frame = clip.frames[index]
                try source.write(frame.span.bytes)
                index += 1
                if index == 20 || index == 40 { index -= 19 }
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        let author = try await stage.join("author")
        try await author.room.localParticipant.publish(track)
        try await eventually("the first keyframe is long past") { track.statistics.framesDropped[.notWanted] > 60 }
        #expect(requests.withLock { $0 } == 1, "for the size of the pictures")
        let viewer = try await stage.join("viewer")
        let remote = try await viewer.subscribedTrack()
        try await eventually("frames are decoded") { remote.statistics.framesDecoded > 10 }
        #expect(requests.withLock { $0 } > 1)
        #expect(remote.statistics.framesDroppedByReason[.corrupt] == 0)
        encoder.cancel()
        _ = await encoder.result
        await viewer.room.disconnect()
        await author.room.disconnect()
        #expect(track.statistics.unaccounted == 0)
        #expect(track.statistics.framesDropped[.notWanted] > 60, "before anybody came")
        #expect(track.statistics.layers.first?.qualityLimitation == .other)
    }

    @Test("On a thin link, frames are dropped up to the next keyframe, and whatever arrives can be decoded")
    func thinLink() async throws {
        let stage = try Stage()
        let link = try ThinLink(to: stage.server.port, rate: .kilobitsPerSecond(250), direction: .fromClient)
        defer { link.stop() }
        let options = ["-auto-alt-ref", "0", "-b:v", "1M", "-minrate", "1M", "-maxrate", "1M", "-bufsize", "300k"]
        let clip = try await EncodedClip(directory("clip.ivf"), frames: 90, keyframeInterval: 15, options: options)
        let track = LocalVideoTrack(source: VP8Source(path: clip.path, loop: true))
        let viewer = try await stage.join("viewer")
        let author = try await stage.join("author") { $0.url = "ws://127.0.0.1:\(link.port)" }
        try await author.room.localParticipant.publish(track)
        let remote = try await viewer.subscribedTrack()
        let recorder = try TrackRecorder(track: remote, directory: directory.path, recorderID: "x", format: .ivf)
        try await eventually("frames are given up several times, and keyframes arrive all the same") {
            track.statistics.framesDropped[.network] > 60 && remote.statistics.keyframes > 3
        }
        #expect(remote.statistics.framesDroppedByReason[.corrupt] == 0)
        #expect(remote.statistics.framesDroppedByReason[.network] == 0, "nothing comes that refers to what does not")
        recorder.stop()
        await author.room.disconnect()
        await viewer.room.disconnect()
        #expect(track.statistics.unaccounted == 0)
        #expect(track.statistics.layers.first?.qualityLimitation == .other)
        let dump = try await recorded(1, in: directory.path)
        try expectSame(dump, as: clip)
    }

    @Test("A keyframe of another size changes the track's size, for both ends")
    func sizeChange() async throws {
        let stage = try Stage()
        let small = try await EncodedClip(directory("small.ivf"), frames: 30, keyframeInterval: 10)
        let large = try await EncodedClip(
            directory("large.ivf"),
            frames: 30,
            keyframeInterval: 10,
            size: Dimensions(width: 642, height: 362)
        )
        let source = PushedVP8Source()
        let isLarge = Monitor(false)
        let encoder = Task {
            var (index, clip) = (0, small)
            while !Task.isCancelled {
                if index % 10 == 0 { clip = isLarge.withLock { $0 } ? large : small }
                let frame = clip.frames[index]
                try source.write(frame.span.bytes)
                index = (index + 1) % 30
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        let viewer = try await stage.join("viewer")
        let author = try await stage.join("author")
        let track = LocalVideoTrack(source: source)
        try await author.room.localParticipant.publish(track)
        let remote = try await viewer.subscribedTrack()
        try await eventually("the small size is shown") { remote.statistics.dimensions == testSize }
        isLarge.withLock { $0 = true }
        let size = Dimensions(width: 642, height: 362)
        try await eventually("the large size is shown; \(track.statistics) \(remote.statistics)") {
            remote.statistics.dimensions == size
        }
        try await eventually("the publisher says so") { track.statistics.layers.first?.dimensions == size }
        #expect(remote.statistics.framesDroppedByReason[.corrupt] == 0)
        encoder.cancel()
        _ = await encoder.result
        await viewer.room.disconnect()
        await author.room.disconnect()
        #expect(track.statistics.unaccounted == 0)
    }

    @Test("Orientation and metadata that come with pushed frames reach the renderer")
    func tags() async throws {
        let stage = try Stage()
        let clip = try await EncodedClip(directory("tagged.ivf"), frames: 30, keyframeInterval: 10)
        let source = PushedVP8Source()
        let encoder = Task {
            var index = 0
            while !Task.isCancelled {
                let metadata = try FrameMetadata([UInt8(index)])
                let frame = clip.frames[index]
                try source.write(frame.span.bytes, rotation: .clockwise90, metadata: metadata)
                index = (index + 1) % 30
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        let viewer = try await stage.join("viewer")
        let author = try await stage.join("author")
        try await author.room.localParticipant.publish(LocalVideoTrack(source: source))
        let remote = try await viewer.subscribedTrack()
        #expect(remote.dimensions == testSize.transposed)
        let renderer = TagRenderer()
        remote.addRenderer(renderer)
        try await eventually("pictures are shown") { renderer.shown.withLock { $0.count } >= 20 }
        encoder.cancel()
        _ = await encoder.result
        for shown in renderer.shown.withLock({ $0 }) {
            #expect(shown.dimensions == testSize.transposed)
            #expect(shown.metadata?.bytes.count == 1)
        }
        #expect(Set(renderer.shown.withLock { $0.map { $0.metadata?.bytes } }).count > 10)
        await viewer.room.disconnect()
        await author.room.disconnect()
    }

    private final class TagRenderer: VideoRenderer {
        let shown = Monitor<[(dimensions: Dimensions, metadata: FrameMetadata?)]>([])
        func render(_ frame: VideoFrame) { shown.withLock { $0.append((frame.dimensions, frame.metadata)) } }
    }

    @Test("A clip that cannot be sent as it is ends with 65 and advice", .enabled(if: Program.isAllowed))
    func refusals() async throws {
        let server = try await ServerProgram()
        let clip = try await EncodedClip(directory("good.ivf"), frames: 20, keyframeInterval: 10)
        let good = try bytes(of: clip.path)
        // 32 bytes of file header, 12 of frame header.
        let second = 32 + 12 + clip.frames[0].count
        try store(good[..<(good.count - 5)], at: directory("cut.ivf"))
        try store(good[..<32] + good[second...], at: directory("late.ivf"))
        try store(good[..<32], at: directory("none.ivf"))
        var large = good
        // The first keyframe claims 16383x16383.
        large.replaceSubrange(32 + 12 + 6..<32 + 12 + 10, with: [0xFF, 0x3F, 0xFF, 0x3F])
        try store(large, at: directory("large.ivf"))
        var junk = good
        junk.replaceSubrange(32 + 12..<32 + 12 + 6, with: [UInt8](repeating: 0xEE, count: 6))
        try store(junk, at: directory("junk.ivf"))
        var hidden = good
        hidden[second + 12] &= ~0x10
        try store(hidden, at: directory("hidden.ivf"))
        try store(Array("no video at all".utf8), at: directory("text.ivf"))
        let vp9 = try Program(
            "ffmpeg",
            "-v error -f lavfi -i testsrc2=size=64x64:rate=5 -frames:v 5 -c:v libvpx-vp9".split(separator: " ")
                .map(String.init) + [directory("vp9.webm")]
        )
        #expect(try await vp9.end() == .exit(0), "\(vp9.errors)")
        let cases: [(name: String, code: Int32, words: String)] = [
            ("cut.ivf", 65, "it ends in the middle of the frame"),
            ("none.ivf", 65, "There are no frames in"), ("large.ivf", 65, "has 16383x16383 pixels"),
            ("junk.ivf", 65, "Frame 1 of \(directory("junk.ivf")) is not VP8, or damaged"),
            ("hidden.ivf", 65, "Frame 2 of \(directory("hidden.ivf")) is invisible"),
            ("text.ivf", 65, "neither WebM nor IVF"), ("vp9.webm", 65, "it holds V_VP9 video, not V_VP8"),
            ("missing.ivf", 66, "there is no such file"),
        ]
        for (name, code, words) in cases {
            let program = try server.client("connect", ["--source", "vp8:\(directory(name))"])
            #expect(try await program.end() == .exit(code), "\(name): \(program.errors)")
            #expect(program.errors.contains(words), "\(name): \(program.errors)")
        }
        let late = try server.client("connect", ["--source", "vp8:\(directory("late.ivf"))", "--loop"])
        try await late.complains("They are left out until the first keyframe.")
        #expect(try await end([late], with: SIGINT) == [.exit(0)])
        #expect(late.errors.count(where: { $0 == "\n" }) == 1, "\(late.errors)")
        // Nothing came: standard input is empty here.
        let silent = try server.client("connect", ["--source", "vp8:-"])
        #expect(try await silent.end() == .exit(65))
        #expect(silent.errors.contains("nothing came"), "\(silent.errors)")
        #expect(silent.text.contains("The source gave no frame in "), "\(silent.text)")
        #expect(try await end([server.program], with: SIGTERM) == [.exit(0)])
    }

    // The rate that was asked for was announced, and all frames came.
    @Test("A rate that is asked for is not announced, because no frame is left out for it")
    func askedForRate() async throws {
        let stage = try Stage()
        let clip = try await EncodedClip(directory("clip.ivf"), frames: 30, keyframeInterval: 15)
        let track = LocalVideoTrack(source: VP8Source(path: clip.path, loop: true))
        track.requestOutputFormat(VideoFormatRequest(frameRate: FrameRate(5)))
        let (author, viewer) = (try await stage.join("author"), try await stage.join("viewer"))
        try await author.room.localParticipant.publish(track)
        #expect(track.frameRate == FrameRate(30))
        #expect(try await viewer.subscribedTrack().frameRate == 30)
        await author.room.disconnect()
        await viewer.room.disconnect()
    }

    @Test("An application's frames that cannot be sent are refused one by one")
    func refusedFrames() async throws {
        let clip = try await EncodedClip(directory("clip.ivf"), frames: 12, keyframeInterval: 6)
        let source = PushedVP8Source()
        func write(_ bytes: [UInt8]) throws -> Bool { try source.write(bytes.span.bytes) }
        var hidden = clip.frames[1]
        hidden[0] &= ~0x10
        #expect(try !write(clip.frames[0]), "nobody takes it")
        #expect(throws: VP8SourceError.self) { _ = try write(hidden) }
        #expect(throws: VP8SourceError.self) { _ = try write([]) }
        #expect(throws: VP8SourceError.self) { _ = try write([1, 2, 3]) }
        #expect(throws: VP8SourceError.self) { _ = try write(clip.frames[6] + [UInt8](repeating: 0, count: 5 << 20)) }
        #expect(try !write(clip.frames[1]), "it refers to one that was refused")
        #expect(source.writeStatistics.framesCaptured == 6 && source.writeStatistics.framesDropped[.corrupt] == 5)
        _ = try write(clip.frames[6])
        #expect(source.writeStatistics.framesDropped[.notWanted] == 2)
    }

    @Test(
        "Options that need pictures are refused with frames that are VP8 already",
        .enabled(if: Program.isAllowed),
        arguments: [
            ["--size", "64x64"], ["--fps", "5"], ["--max-bitrate", "1M"], ["--min-bitrate", "1M"],
            ["--simulcast", "on"], ["--degradation", "balanced"], ["--preview"], ["--crop", "8x8"],
        ]
    )
    func options(arguments: [String]) async throws {
        let program = try Program(
            "room-client",
            ["connect", "--room", "r", "--source", "vp8:x.ivf"] + arguments,
            areLeaksSought: false
        )
        #expect(try await program.end() == .exit(64), "\(program.errors)")
        #expect(program.errors.contains(arguments[0]) && program.errors.contains("leave it out"), "\(program.errors)")
    }
}
