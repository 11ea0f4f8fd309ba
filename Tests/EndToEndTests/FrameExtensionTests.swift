import MediaCore
import RoomKit
import TestSupport
import TestTools
import Testing
import Threading

@Suite("Pushed frames with metadata and orientation", .timeLimit(.minutes(2)))
struct FrameExtensionTests {
    /// All bytes but the first of as much metadata as a frame may carry.
    private static let rest = [UInt8](repeating: 7, count: 899)

    /// Keeps the metadata of the pictures that it shows.
    private final class NotingRenderer: VideoRenderer {
        let frames = Monitor<[(metadata: FrameMetadata?, size: Dimensions, isSubstitute: Bool)]>([])
        func render(_ frame: VideoFrame) {
            frames.withLock { $0.append((frame.metadata, frame.dimensions, frame.isSubstitute)) }
        }
        var count: Int { frames.withLock { $0.count } }
    }

    @Test("Metadata and orientation reach the renderer and the log; files keep the picture as it was encoded")
    func fromEndToEnd() async throws {
        let stage = try Stage()
        let directory = try TemporaryDirectory()
        let viewer = try await stage.join("viewer")
        let author = try await stage.join("author")
        let track = LocalVideoTrack(writtenAs: "lidar")
        let writer = Task {
            let buffer = VideoBuffer(dimensions: Dimensions(width: 96, height: 64))
            buffer.withMutablePlanes { luma, chromaU, chromaV in
                luma.update(repeating: 90)
                chromaU.update(repeating: 128)
                chromaV.update(repeating: 128)
            }
            var number = UInt8(0)
            while !Task.isCancelled {
                var frame = VideoFrame(buffer: buffer, timestamp: MonotonicClock.now, rotation: .clockwise90)
                frame.metadata = try FrameMetadata([number] + Self.rest)
                frame.isSubstitute = number % 4 == 1
                if track.write(frame) { number &+= 1 }
                try? await Task.sleep(for: .milliseconds(20))
            }
        }
        var options = VideoPublishOptions()
        options.orientation = .tagged
        try await author.room.localParticipant.publish(track, options: options)
        let remote = try await viewer.subscribedTrack("lidar")
        #expect(remote.dimensions == Dimensions(width: 64, height: 96))
        let renderer = NotingRenderer()
        remote.addRenderer(renderer)
        let recorders = try [TrackRecorder.Format.ivf, .y4m].map {
            try TrackRecorder(track: remote, directory: directory.path, recorderID: $0.rawValue, format: $0)
        }
        try await eventually("pictures are shown") { renderer.count >= 20 }
        for recorder in recorders { recorder.stop() }
        writer.cancel()
        try await writer.value
        let statistics = track.writeStatistics
        #expect(statistics.framesCaptured >= 20)
        for member in [viewer, author] { await member.room.disconnect() }

        let shown = renderer.frames.withLock { $0 }
        #expect(shown.allSatisfy { $0.size == Dimensions(width: 64, height: 96) })
        #expect(shown.allSatisfy { $0.metadata.map { Array($0.bytes.dropFirst()) } == Self.rest })
        let numbers = shown.compactMap { $0.metadata?.bytes.first }
        #expect(numbers.count == shown.count && zip(numbers, numbers.dropFirst()).allSatisfy { $1 &- $0 >= 1 })
        #expect(shown.allSatisfy { $0.isSubstitute == ($0.metadata.map { $0.bytes[0] % 4 } == 1) })
        for recorder in recorders {
            let path = try #require(recorder.statistics.files.first)
            let log = try FrameLogEntry.read(text(of: "\(path.dropLast(4)).frames.jsonl"))
            #expect(!log.isEmpty)
            #expect(log.allSatisfy { $0.rotation == 90 && $0.mirrored == false })
            // 900 bytes, of which the last three are 7.
            #expect(log.allSatisfy { $0.metadata?.count == 1200 && $0.metadata?.hasSuffix("BwcH") == true })
            #expect(log.contains { $0.substitute == true } && log.contains { $0.substitute == false })
            #expect(log.compactMap(\.dimensions).allSatisfy { $0 == Dimensions(width: 96, height: 64) })
            if path.hasSuffix(".ivf") {
                let reading = try DumpReading(path)
                #expect(reading.dimensions == Dimensions(width: 96, height: 64))
                #expect(reading.pictureSizes == [Dimensions(width: 96, height: 64)])
            } else {
                #expect(try bytes(of: path).starts(with: Array("YUV4MPEG2 W64 H96 ".utf8)))
            }
        }
    }
}
