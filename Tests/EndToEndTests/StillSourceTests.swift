import MediaCore
import RoomKit
import TestSupport
import TestTools
import Testing
import Threading

/// Sources that deliver a picture only when it changes, or rarely.
@Suite("Pictures that stand still", .timeLimit(.minutes(2)))
struct StillSourceTests {
    private func picture(
        _ luma: UInt8,
        _ size: Dimensions = Dimensions(width: 96, height: 64)
    ) -> VideoFrame {
        let buffer = VideoBuffer(dimensions: size)
        buffer.withMutablePlanes { plane, chromaU, chromaV in
            plane.update(repeating: luma)
            chromaU.update(repeating: 128)
            chromaV.update(repeating: 128)
        }
        return VideoFrame(buffer: buffer, timestamp: MonotonicClock.now)
    }

    // A picture that was written before anybody watched was never sent, and one from the cache never shown.
    @Test("A picture that was written once reaches everybody, whenever they come", arguments: [0, 400, 2500, 5000])
    func writtenOnce(latecomerAfter wait: Int) async throws {
        let stage = try Stage()
        let author = try await stage.join("author")
        let track = LocalVideoTrack(writtenAs: "dashboard")
        let publishing = Task { try await author.room.localParticipant.publish(track) }
        try await eventually("it is written") { track.write(picture(90)) }
        try await publishing.value
        try await Task.sleep(for: .milliseconds(300))
        // One that comes when the picture has long been written, and one beside it.
        for name in ["viewer", "latecomer"] {
            let member = try await stage.join(name)
            let remote = try await member.subscribedTrack()
            let renderer = CountingRenderer()
            remote.addRenderer(renderer)
            try await eventually("\(name) sees it") { renderer.frames >= 1 }
            if name == "viewer" { try await Task.sleep(for: .milliseconds(wait)) }
        }
        // It becomes sharp, and then it is shown once a second.
        try await eventually("it is sharp") {
            let (before, began) = (track.statistics.framesEncoded, MonotonicClock.now)
            try await Task.sleep(for: .milliseconds(1500))
            let count = track.statistics.framesEncoded - before
            let most = MonotonicClock.now.duration(since: began) / .seconds(1)
            return count > 0 && Double(count) <= most.rounded(.up)
        }
        let statistics = track.statistics
        #expect(statistics.framesRepeated == statistics.framesCaptured - 1)
        #expect(statistics.unaccounted == 0)
        // The next picture follows as usual.
        #expect(track.write(picture(200)))
        try await eventually("it is encoded") { track.statistics.framesEncoded > statistics.framesEncoded }
    }

    // It was taken for one of 30 a second: for the CPU's load, the quantizer, and a viewer's wish for 30.
    @Test("A source that does not state its rate is announced with the one that it has")
    func measuredRate() async throws {
        let stage = try Stage()
        let author = try await stage.join("author")
        let track = LocalVideoTrack(writtenAs: "arm")
        let start = MonotonicClock.now
        let writing = Task {
            for index in 0... {
                // On time by its stamps, also where this thread is late.
                let time = start + .microseconds(index * 1_000_000 / 60)
                while MonotonicClock.now < time { try await Task.sleep(for: .milliseconds(2)) }
                var picture = picture(UInt8(truncatingIfNeeded: index))
                picture.timestamp = time
                track.write(picture)
            }
        }
        defer { writing.cancel() }
        try await author.room.localParticipant.publish(track)
        try await eventually("its rate is measured") { track.frameRate == FrameRate(60) }
        // The server hears of it in a second. Who comes then knows it.
        try await eventually("its rate is announced") {
            let viewer = try await stage.join("viewer")
            let rate = try await viewer.subscribedTrack().frameRate
            await viewer.room.disconnect()
            return rate == 60
        }
        await author.room.disconnect()
    }

    // It was scaled down to the size of the first picture for good.
    @Test("A track whose pictures become larger shows them as large as they are, and its dump plays")
    func growing() async throws {
        let stage = try Stage()
        let directory = try TemporaryDirectory()
        let author = try await stage.join("author")
        let viewer = try await stage.join("viewer")
        let track = LocalVideoTrack(writtenAs: "window")
        let size = Monitor(Dimensions(width: 96, height: 64))
        let writer = Task {
            while true {
                _ = track.write(picture(90, size.withLock { $0 }))
                try await Task.sleep(for: .milliseconds(30))
            }
        }
        var options = VideoPublishOptions()
        // On a busy machine, the size is otherwise what the CPU takes.
        options.degradationPreference = .maintainResolution
        try await author.room.localParticipant.publish(track, options: options)
        let remote = try await viewer.subscribedTrack()
        let recorder = try TrackRecorder(track: remote, directory: directory.path, recorderID: "x", format: .webm)
        for (width, height) in [(96, 64), (320, 240), (64, 480), (640, 360), (32, 24), (480, 640)] {
            let next = Dimensions(width: width, height: height)
            size.withLock { $0 = next }
            try await eventually("\(next) comes") { remote.statistics.dimensions == next }
            #expect(track.dimensions == next)
        }
        writer.cancel()
        _ = await writer.result
        for member in [author, viewer] { await member.room.disconnect() }
        recorder.stop()
        let dump = try DumpReading(try #require(recorder.statistics.files.first))
        // There is no barcode in them.
        #expect(dump.faults.allSatisfy { $0.hasSuffix(" unreadable") }, "\(dump.faults)")
        #expect(zip(dump.log, dump.log.dropFirst()).allSatisfy { $0.number < $1.number })
        #expect(remote.statistics.sizeChanges == 5)
        #expect(remote.statistics.framesDropped == remote.statistics.framesDroppedByReason[.late])
        #expect(track.statistics.unaccounted == 0)
    }
}
