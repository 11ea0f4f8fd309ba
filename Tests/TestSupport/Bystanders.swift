import RoomKit

/// A publisher and a subscriber that must not be affected by what else happens at the server.
package final class Bystanders: Sendable {
    private let author: Member
    private let viewer: Member
    private let track: LocalVideoTrack
    private let remote: RemoteVideoTrack
    private let recorder: TrackRecorder
    private let directory: TemporaryDirectory

    /// Joins both to `room`, in which nobody else needs to be.
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

    /// Waits until `count` more frames are received.
    package func frames(_ count: Int) async throws {
        let before = recorder.statistics.framesWritten
        try await eventually("the bystanders go on") { recorder.statistics.framesWritten >= before + count }
    }

    /// Makes both leave, and checks what the subscriber got by the numbers on the wire and in the pictures.
    ///
    /// - Throws: An error that lists the faults.
    package func checkUndisturbed() async throws {
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
        // There is one keyframe at the beginning. A receiver that falls behind on a busy machine may need another.
        if track.statistics.keyframes > 1 + accounted { faults.append("\(track.statistics.keyframes) keyframes") }
        if track.statistics.unaccounted != 0 { faults.append("captured \(track.statistics)") }
        if !faults.isEmpty { throw TestFailure("the bystanders were disturbed: \(faults)") }
    }
}
