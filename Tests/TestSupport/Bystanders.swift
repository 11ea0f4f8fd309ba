import RoomKit

/// A publisher and a subscriber who mind their own business while something goes on around them.
package final class Bystanders: Sendable {
    private let author: Member
    private let viewer: Member
    private let track: LocalVideoTrack
    private let remote: RemoteVideoTrack
    private let recorder: TrackRecorder
    private let directory: TemporaryDirectory

    /// Joins both to `room`, which nobody else need be in.
    package init(on stage: Stage, room: String = "bystanders") async throws {
        viewer = try await stage.join("bystanding-viewer", room: room)
        author = try await stage.join("bystanding-author", room: room)
        directory = try TemporaryDirectory()
        track = makePattern()
        try await author.room.localParticipant.publish(track)
        remote = try await viewer.subscribedTrack()
        recorder = try TrackRecorder(track: remote, directory: directory.path, recorderID: "x", format: .ivf)
        try await frames(3)
    }

    /// Waits for so many more frames to be received.
    package func frames(_ count: Int) async throws {
        let before = recorder.statistics.framesWritten
        try await eventually("the bystanders go on") { recorder.statistics.framesWritten >= before + count }
    }

    /// Lets both leave; what was wrong with what the subscriber received, by the numbers on the wire and in the pictures.
    package func faults() async throws -> [String] {
        try await frames(5)
        var faults: [String] = []
        for member in [author, viewer] {
            if member.events.contains(where: { if case .disconnected = $0 { true } else { false } }) {
                faults.append("\(member.room.localParticipant.identity) was thrown out")
            }
            await member.room.disconnect()
        }
        recorder.stop()
        let dump = try DumpReading(recorder.statistics.files.first ?? "")
        faults += dump.faults
        let accounted =
            remote.statistics.framesDropped + recorder.statistics.framesDropped + track.statistics.framesExpired
        if dump.missing > accounted { faults.append("\(dump.missing) frames missing, \(accounted) accounted for") }
        // One at the beginning; a receiver that falls behind on a busy machine may need another.
        if track.statistics.keyframes > 1 + accounted { faults.append("\(track.statistics.keyframes) keyframes") }
        if track.statistics.unaccounted != 0 { faults.append("captured \(track.statistics)") }
        return faults
    }
}
