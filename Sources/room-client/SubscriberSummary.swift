import Foundation
import RoomKit

extension SubscriberSummary.Track {
    init(_ track: RemoteVideoTrack, _ recording: RecordingStatistics?) {
        let statistics = track.statistics
        participant = track.publisherIdentity
        self.track = track.name
        framesReceived = statistics.framesReceived
        framesDecoded = statistics.framesDecoded
        framesDropped = statistics.framesDropped
        keyframes = statistics.keyframes
        bytes = statistics.bytes
        clock = statistics.clock.rawValue
        clockErrorMs = statistics.ageErrorBound.milliseconds
        file = recording?.files.first
        framesRecorded = recording?.framesWritten
        framesNotRecorded = recording?.framesDropped
        firstFrameMs = statistics.timeToFirstFrame?.milliseconds
        frameAgeMs = statistics.frameAge.map {
            Percentiles(p50: $0.p50.milliseconds, p95: $0.p95.milliseconds, max: $0.maximum.milliseconds)
        }
    }
}

/// Names the clock behind an age, for people; every age is printed with it (`docs/protocol.md`, section 8.3).
func clockWords(_ clock: String, errorMs: Double?) -> String {
    if clock == "same-host" { return "same clock" }
    return "estimated clock" + (errorMs.map { String(format: " ± %.1f ms", $0) } ?? "")
}

extension SubscriberSummary {
    /// The summary as text for people.
    var words: String {
        if tracks.isEmpty { return "No track was received." }
        return tracks.map { track in
            let age = track.frameAgeMs.map {
                String(format: "; frame age p50 %.1f, p95 %.1f, max %.1f ms, ", $0.p50, $0.p95, $0.max ?? $0.p95)
                    + clockWords(track.clock, errorMs: track.clockErrorMs)
            }
            let file = track.file.map { "\n    -> \($0)" } ?? ""
            return """
                \(track.participant)/\(track.track): \(track.framesReceived) frames received, \(track.framesDecoded) \
                decoded (\(DataSize(bytes: track.bytes)), \(track.keyframes) keyframes)\(age ?? "")\(file)
                """
        }.joined(separator: "\n") + (tracksOmitted > 0 ? "\n\(tracksOmitted) earlier tracks are not listed." : "")
    }
}
