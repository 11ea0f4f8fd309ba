import RoomKit
import TestSupport
import Testing

/// Runs `room-client verify` to its end.
func verify(_ path: String) async throws -> (ending: Program.Ending, events: [JSONObject], errors: String) {
    let program = try Program("room-client", ["verify", path, "--json"])
    return (try await program.end(), try program.events(), program.errors)
}

/// Records a dump of 20 frames or more; returns its path without extension.
func recordDump(_ format: TrackRecorder.Format, in directory: TemporaryDirectory) async throws -> String {
    let stage = try Stage()
    let viewer = try await stage.join("viewer")
    let author = try await stage.join("author") { $0.videoTracks = [makePattern()] }
    let track = try await viewer.subscribedTrack()
    let recorder = try TrackRecorder(track: track, directory: directory.path, recorderID: "x", format: format)
    try await eventually("frames are recorded") { recorder.statistics.framesWritten >= 20 }
    for member in [author, viewer] { await member.room.disconnect() }
    recorder.stop()
    let file = try #require(recorder.statistics.files.first)
    return String(file.dropLast(format.rawValue.count + 1))
}
