import MediaCore
import Testing

@testable import room_client

@Suite("Summaries for people")
struct SummaryWordsTests {
    private func result(frames: Int) -> VerificationResult {
        let size = Dimensions(width: 640, height: 480)
        var result = VerificationResult(file: "d.webm", size: size, published: size)
        result.counts.frames = frames
        return result
    }

    @Test("One frame, freeze or track is in the singular", arguments: [(1, ""), (2, "s")])
    func grammar(count: Int, ending: String) {
        let track = SubscriberSummary.Track(
            participant: "robot",
            track: "camera",
            framesReceived: count,
            framesDecoded: count,
            framesRendered: count,
            framesRepeated: 0,
            framesDropped: 0,
            framesDroppedByReason: [:],
            keyframes: count,
            bytes: 1000,
            sizeChanges: 0,
            freezeCount: count,
            totalFreezesDuration: 0.5,
            totalDecodeTime: 0,
            clock: "same-host",
            clockErrorMs: 0
        )
        let words = SubscriberSummary(tracks: [track], tracksOmitted: count).words
        for part in ["frame\(ending) received", "keyframe\(ending)", "freeze\(ending), 0.50 s", "track\(ending) "] {
            #expect(words.contains("\(part)"), "\(words)")
        }
        #expect(result(frames: count).words.hasPrefix("d.webm: 640x480, \(count) frame\(ending), "))
    }

    // Only --json told them, and verify called them lost.
    @Test("The pictures that a recorder left out are in the summary of subscribe")
    func notRecorded() {
        var track = SubscriberSummary.Track(
            participant: "robot",
            track: "camera",
            framesReceived: 9,
            framesDecoded: 9,
            framesRendered: 9,
            framesRepeated: 0,
            framesDropped: 0,
            framesDroppedByReason: [:],
            keyframes: 1,
            bytes: 1000,
            sizeChanges: 0,
            freezeCount: 0,
            totalFreezesDuration: 0,
            totalDecodeTime: 0,
            clock: "same-host",
            clockErrorMs: 0
        )
        track.file = "d.y4m"
        #expect(!SubscriberSummary(tracks: [track]).words.contains("not recorded"))
        track.framesNotRecorded = 4
        let words = SubscriberSummary(tracks: [track]).words
        #expect(words.contains(", 4 not recorded: the disk was too slow or full\n    -> d.y4m"), "\(words)")
    }

    // A dump whose log lacked frames ended with 65, and the last line said only good of it.
    @Test("The last line of verify counts the frames that the logs lack")
    func missingInLog() {
        var result = result(frames: 5)
        result.counts.notInLog = 2
        var summary = VerificationSummary()
        summary.add(DumpVerifier.Outcome(result: result, ages: []))
        summary.finish()
        #expect(summary.words.contains(", 2 not in their logs, "), "\(summary.words)")
    }
}
