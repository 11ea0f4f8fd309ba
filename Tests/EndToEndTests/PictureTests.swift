import MediaCore
import RoomKit
import TestSupport
import Testing

@Suite("Pictures from source to dump", .timeLimit(.minutes(2)))
struct PictureTests {
    let stage: Stage
    let directory: TemporaryDirectory

    init() throws {
        stage = try Stage()
        directory = try TemporaryDirectory()
    }

    @Test(
        "A dump holds every frame that was sent, once, in order and whole",
        arguments: [TrackRecorder.Format.webm, .ivf]
    )
    func wholeDump(format: TrackRecorder.Format) async throws {
        let viewer = try await stage.join("viewer")
        let author = try await stage.join("author")
        let track = makePattern()
        try await author.room.localParticipant.publish(track)
        let remote = try await viewer.subscribedTrack()
        let recorder = try TrackRecorder(track: remote, directory: directory.path, recorderID: "viewer", format: format)
        try await eventually("40 frames are recorded") { recorder.statistics.framesWritten >= 40 }
        await author.room.localParticipant.unpublish(track)
        _ = try await viewer.event("the track is withdrawn") { if case .trackUnpublished = $0 { true } else { nil } }
        await viewer.room.disconnect()
        recorder.stop()
        await author.room.disconnect()

        let sent = track.statistics
        #expect(sent.unaccounted == 0, "\(sent)")
        #expect(sent.framesSent + sent.framesExpired == sent.framesEncoded)
        #expect(recorder.statistics.error == nil)
        let file = try #require(recorder.statistics.files.first)
        #expect(recorder.statistics.files.count == 1)
        let dump = try DumpReading(file)
        #expect(dump.faults == [])
        #expect(dump.dimensions == testSize)
        #expect(dump.counts.frames == recorder.statistics.framesWritten)
        // Every gap in the wire's numbers is a frame that the receiver itself left out, and says so.
        let received = remote.statistics
        #expect(dump.missing <= received.framesDropped + recorder.statistics.framesDropped + sent.framesExpired)
        #expect(received.framesReceived == received.framesDecoded + received.framesDropped)
        #expect(received.clock == .sameHost)
        #expect(dump.log.allSatisfy { $0.captured <= $0.received && $0.received <= $0.decoded ?? 0 })
    }

    @Test("A dump begins with the first frame that the subscriber is sent, and costs no keyframe of its own")
    func dumpFromTheStart() async throws {
        // A recording program learns of the track from an event, and is late by a moment or two.
        let (viewer, author, track, remote) = try await stage.show(frames: 5)
        let recorder = try TrackRecorder(track: remote, directory: directory.path, recorderID: "viewer", format: .webm)
        try await eventually("frames are recorded") { recorder.statistics.framesWritten >= 15 }
        await author.room.disconnect()
        await viewer.room.disconnect()
        recorder.stop()
        // Who falls behind on a busy machine counts what it drops, and may need another one.
        let dropped = (remote.statistics.framesDropped, recorder.statistics.framesDropped)
        #expect(track.statistics.keyframes <= 1 + dropped.0 + dropped.1)
        let dump = try DumpReading(try #require(recorder.statistics.files.first))
        #expect(dump.faults == [])
        #expect(dump.log.first?.number == 0)
        #expect(dump.counts.frames + dropped.1 == remote.statistics.framesDecoded)
    }

    @Test(
        "A new size goes on in the same file, which is whole",
        arguments: [(Dimensions(width: 480, height: 270), testSize), (testSize, Dimensions(width: 192, height: 112))]
    )
    func sizeChange(announcedSize: Dimensions, newSize: Dimensions) async throws {
        let viewer = try await stage.join("viewer")
        let author = try await stage.join("author")
        let track = makePattern(size: announcedSize)
        var options = VideoPublishOptions()
        // On a busy machine, the size is otherwise what the CPU takes.
        options.degradationPreference = .maintainResolution
        try await author.room.localParticipant.publish(track, options: options)
        let remote = try await viewer.subscribedTrack()
        let recorder = try TrackRecorder(track: remote, directory: directory.path, recorderID: "viewer", format: .webm)
        try await eventually("frames are recorded") { recorder.statistics.framesWritten >= 10 }
        track.source.requestOutputFormat(VideoFormatRequest(dimensions: newSize))
        try await eventually("the size changes") { remote.statistics.sizeChanges == 1 }
        let before = recorder.statistics.framesWritten
        try await eventually("frames are recorded") { recorder.statistics.framesWritten >= before + 10 }
        #expect(remote.statistics.dimensions == newSize)
        await author.room.disconnect()
        await viewer.room.disconnect()
        recorder.stop()

        let files = recorder.statistics.files
        try #require(files.count == 1, "\(files)")
        let dump = try DumpReading(files[0])
        #expect(dump.faults == [])
        #expect(dump.dimensions == announcedSize)
        #expect(dump.pictureSizes == [announcedSize, newSize])
        let sizes = dump.log.map(\.dimensions)
        let change = try #require(sizes.firstIndex(of: newSize))
        #expect(sizes[..<change].allSatisfy { $0 == announcedSize } && sizes[change...].allSatisfy { $0 == newSize })
        #expect(dump.log[change].key)
        #expect(track.statistics.unaccounted == 0)
        #expect(track.failure == nil)
    }

    @Test(
        "A track that is withdrawn and published again arrives again, in a file of its own",
        arguments: [TrackRecorder.Format.webm, .png]
    )
    func publishAgain(format: TrackRecorder.Format) async throws {
        let viewer = try await stage.join("viewer")
        let author = try await stage.join("author")
        let track = makePattern()
        var files: [String] = []
        for occurrence in 1...2 {
            try await author.room.localParticipant.publish(track)
            let remote = try await viewer.subscribedTrack(occurrence: occurrence)
            let recorder = try TrackRecorder(
                track: remote,
                directory: directory.path,
                recorderID: "viewer",
                format: format
            )
            try await eventually("frames are recorded") { recorder.statistics.framesWritten >= 5 }
            await author.room.localParticipant.unpublish(track)
            recorder.stop()
            #expect(recorder.statistics.error == nil)
            #expect(track.statistics.unaccounted == 0)
            files += recorder.statistics.files
        }
        #expect(Set(files).count == 2, "\(files)")
        await author.room.disconnect()
        await viewer.room.disconnect()
    }

    @Test("A paused track sends nothing, and goes on with a keyframe")
    func pause() async throws {
        let (viewer, author, track, remote) = try await stage.show(frames: 5)
        await track.setEnabled(false)
        _ = try await viewer.event("the pause is told") { if case .trackDisabled = $0 { true } else { nil } }
        #expect(!remote.isEnabled)
        // What was on its way may still come; then it is quiet, while the source runs on.
        try await eventually("pictures are not wanted") {
            let sent = track.statistics
            return sent.framesDropped[.notWanted] >= 5 && sent.unaccounted == 0
        }
        let encoded = track.statistics.framesEncoded
        let keyframes = remote.statistics.keyframes
        let dropped = track.statistics.framesDropped[.notWanted]
        try await eventually("pictures go on") { track.statistics.framesDropped[.notWanted] >= dropped + 5 }
        #expect(track.statistics.framesEncoded == encoded)
        await track.setEnabled(true)
        _ = try await viewer.event("the end of the pause is told") { if case .trackEnabled = $0 { true } else { nil } }
        try await eventually("a keyframe comes") { remote.statistics.keyframes > keyframes }
        let decoded = remote.statistics.framesDecoded
        try await eventually("frames are decoded") { remote.statistics.framesDecoded >= decoded + 5 }
        await author.room.disconnect()
        await viewer.room.disconnect()
        #expect(track.statistics.unaccounted == 0)
        let made = track.statistics.keyframes
        #expect(made >= 2 && made <= 2 + remote.statistics.framesDropped, "\(made)")
    }

    @Test("A track that was paused before it is published sends nothing until it is resumed")
    func pausedBefore() async throws {
        let viewer = try await stage.join("viewer")
        let author = try await stage.join("author")
        let track = makePattern()
        await track.setEnabled(false)
        try await author.room.localParticipant.publish(track)
        let remote = try await viewer.subscribedTrack()
        try await eventually("the pause is known") { !remote.isEnabled }
        try await eventually("pictures are not wanted") { track.statistics.framesDropped[.notWanted] >= 10 }
        #expect(track.statistics.framesEncoded == 0)
        await track.setEnabled(true)
        try await eventually("frames are decoded") { remote.statistics.framesDecoded >= 3 }
        await author.room.disconnect()
        await viewer.room.disconnect()
        #expect(track.statistics.unaccounted == 0)
    }

    @Test("A track that nobody receives is not encoded; the first subscriber gets a keyframe at once")
    func nobodyWatches() async throws {
        let author = try await stage.join("author")
        let track = makePattern()
        try await author.room.localParticipant.publish(track)
        try await eventually("pictures are not wanted") { track.statistics.framesDropped[.notWanted] >= 10 }
        #expect(track.statistics.framesEncoded == 0)
        // On a machine that stood still, the source itself was late.
        let unsent = track.statistics.framesDropped
        #expect(unsent.total == unsent[.notWanted] + unsent[.late], "\(unsent)")

        let viewer = try await stage.join("viewer")
        let remote = try await viewer.subscribedTrack()
        try await eventually("frames are decoded") { remote.statistics.framesDecoded >= 5 }
        #expect(track.statistics.keyframes <= 1 + remote.statistics.framesDropped)
        try await eventually("all that is received is decoded or dropped") {
            let received = remote.statistics
            return received.framesReceived == received.framesDecoded + received.framesDropped
        }

        await viewer.room.disconnect()
        let dropped = track.statistics.framesDropped[.notWanted]
        try await eventually("nothing is wanted") {
            let sent = track.statistics
            return sent.framesDropped[.notWanted] >= dropped + 3 && sent.unaccounted == 0
        }
        let encoded = track.statistics.framesEncoded
        try await eventually("pictures go on") { track.statistics.framesDropped[.notWanted] >= dropped + 8 }
        #expect(track.statistics.framesEncoded == encoded)
        await author.room.disconnect()
        #expect(track.statistics.unaccounted == 0)
    }

    @Test("Several tracks of one participant arrive side by side, each whole")
    func severalTracks() async throws {
        let viewer = try await stage.join("viewer")
        let tracks = [makePattern(name: "left"), makePattern(name: "right", size: Dimensions(width: 256, height: 144))]
        let author = try await stage.join("author") { $0.videoTracks = tracks }
        var recorders: [TrackRecorder] = []
        for track in tracks {
            let remote = try await viewer.subscribedTrack(track.name)
            recorders.append(
                try TrackRecorder(track: remote, directory: directory.path, recorderID: "viewer", format: .ivf)
            )
        }
        try await eventually("both are recorded") { recorders.allSatisfy { $0.statistics.framesWritten >= 15 } }
        await author.room.disconnect()
        await viewer.room.disconnect()
        for (recorder, track) in zip(recorders, tracks) {
            recorder.stop()
            #expect(track.statistics.unaccounted == 0)
            #expect(try DumpReading(try #require(recorder.statistics.files.first)).faults == [])
        }
    }
}
