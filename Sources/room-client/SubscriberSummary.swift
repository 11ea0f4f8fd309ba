import Foundation
import RoomKit
import Wording

extension SubscriberSummary.Track {
    init(_ track: RemoteVideoTrack, _ recording: RecordingStatistics?) {
        let statistics = track.statistics
        participant = track.publisherIdentity
        self.track = track.name
        framesReceived = statistics.framesReceived
        framesDecoded = statistics.framesDecoded
        framesRendered = statistics.framesRendered
        framesRepeated = statistics.framesRepeated
        framesDropped = statistics.framesDropped
        framesDroppedByReason = reasons(of: statistics)
        keyframes = statistics.keyframes
        bytes = statistics.bytes
        sizeChanges = statistics.sizeChanges
        freezeCount = statistics.freezeCount
        totalFreezesDuration = statistics.totalFreezesDuration.seconds
        totalDecodeTime = statistics.totalDecodeTime.seconds
        clock = statistics.clock.rawValue
        clockErrorMs = statistics.ageErrorBound.milliseconds
        frameWidth = statistics.dimensions?.width
        frameHeight = statistics.dimensions?.height
        file = recording?.files.first
        lastFile = recording?.lastFile
        fileCount = recording?.fileCount
        framesRecorded = recording?.framesWritten
        framesNotRecorded = recording?.framesDropped
        firstFrameMs = statistics.timeToFirstFrame?.milliseconds
        frameAgeMs = statistics.frameAge.map {
            Percentiles(p50: $0.p50.milliseconds, p95: $0.p95.milliseconds, max: $0.maximum.milliseconds)
        }
    }
}

extension SubscriberStatus.Track {
    init(_ track: RemoteVideoTrack) {
        let statistics = track.statistics
        participant = track.publisherIdentity
        self.track = track.name
        framesReceived = statistics.framesReceived
        framesDecoded = statistics.framesDecoded
        framesRendered = statistics.framesRendered
        framesRepeated = statistics.framesRepeated
        framesDropped = statistics.framesDropped
        framesDroppedByReason = reasons(of: statistics)
        bytes = statistics.bytes
        bitsPerSecond = statistics.bitrate.bitsPerSecond
        framesPerSecond = statistics.framesPerSecond
        sizeChanges = statistics.sizeChanges
        simulcastLayer = statistics.simulcastLayer
        freezeCount = statistics.freezeCount
        totalFreezesDuration = statistics.totalFreezesDuration.seconds
        clock = statistics.clock.rawValue
        clockErrorMs = statistics.ageErrorBound.milliseconds
        frameWidth = statistics.dimensions?.width
        frameHeight = statistics.dimensions?.height
        sinceLastFrameMs = statistics.timeSinceLastFrame?.milliseconds
        decodeMs = statistics.decodeTime?.milliseconds
        frameAgeMs = statistics.recentFrameAge.map {
            SubscriberStatus.RecentAge(last: $0.last.milliseconds, p50: $0.p50.milliseconds, p95: $0.p95.milliseconds)
        }
    }
}

/// The reasons for which a received frame can be dropped.
private let dropReasons: [FrameDropReason] = [.late, .network, .corrupt, .notWanted, .encrypted]

/// The counts of dropped frames by the names of the reasons.
private func reasons(of statistics: RemoteVideoTrackStatistics) -> [String: Int] {
    Dictionary(uniqueKeysWithValues: dropReasons.map { ($0.name, statistics.framesDroppedByReason[$0]) })
}

extension RemoteVideoTrack {
    /// The track's state in the live status line.
    var statusWords: String {
        let statistics = statistics
        var words = ["\(publisherIdentity)/\(name)"]
        if !isEnabled { words.append("paused") }
        if isSwitchedOff { words.append("not sent") }
        if let size = statistics.dimensions { words.append("\(size)") }
        words.append("\(statistics.framesPerSecond) fps")
        words.append("\(statistics.bitrate)")
        if let age = statistics.recentFrameAge {
            let clock = clockWords(statistics.clock.rawValue, errorMs: statistics.ageErrorBound.milliseconds)
            let (p50, p95) = (age.p50.milliseconds, age.p95.milliseconds)
            words.append(String(format: "frame age p50 %.0f p95 %.0f ms, ", p50, p95) + clock)
        }
        if let time = statistics.decodeTime { words.append(String(format: "decode %.1f ms", time.milliseconds)) }
        if isFrozen, let time = statistics.timeSinceLastFrame {
            words.append(String(format: "no picture for %.0f s", time.seconds.rounded(.down)))
        }
        if statistics.freezeCount > 0 {
            let seconds = statistics.totalFreezesDuration.seconds
            words.append(counted(statistics.freezeCount, "freeze") + String(format: " %.1f s", seconds))
        }
        if statistics.framesDropped > 0 {
            let counts = dropReasons.map { (statistics.framesDroppedByReason[$0], $0.name) }.filter { $0.0 > 0 }
            let reasons = counts.map { "\($0) \($1)" }.joined(separator: ", ")
            words.append("\(statistics.framesDropped) dropped (\(reasons))")
        }
        return words.joined(separator: "  ")
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
            let freezeTime = String(format: "%.2f s", track.totalFreezesDuration)
            let freezes = track.freezeCount > 0 ? "; \(counted(track.freezeCount, "freeze")), \(freezeTime)" : ""
            let dropped = track.framesDropped > 0 ? ", \(track.framesDropped) dropped" : ""
            let missing = notRecordedWords(track.framesNotRecorded ?? 0)
            let file = track.file.map { file in
                "\n    -> \(listed(first: file, last: track.lastFile, count: track.fileCount ?? 1))"
            }
            let keyframes = counted(track.keyframes, "keyframe")
            return """
                \(track.participant)/\(track.track): \(counted(track.framesReceived, "frame")) received, \
                \(track.framesDecoded) decoded\(dropped) (\(DataSize(bytes: track.bytes)), \(keyframes))\(age ?? "")\(freezes)\(missing)\(file ?? "")
                """
        }.joined(separator: "\n") + omissionWords
    }

    private var omissionWords: String {
        guard tracksOmitted > 0 else { return "" }
        return "\n\(counted(tracksOmitted, "earlier track")) \(tracksOmitted == 1 ? "is" : "are") not listed."
    }
}
