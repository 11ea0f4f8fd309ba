import Diagnosis
import RoomKit
import Wording

/// A finding, as `doctor --json` writes it.
struct FindingEvent: Encodable {
    var event = "finding"
    /// The part: `cameras`, `screen`, `libraries`, `encoder`, `limits`, `server`, `clock` or `network`.
    var check: String
    /// `ok`, `note` or `problem`.
    var level: String
    /// A stable name of the kind of problem.
    @Nullable var code: String?
    var found: String
    @Nullable var advice: String?

    init(_ finding: Finding) {
        check = finding.check.rawValue
        level = finding.level.rawValue
        found = finding.found
        code = finding.code
        advice = finding.advice
    }
}

/// What `doctor` counted and measured.
struct DoctorSummary: Encodable {
    struct Capture: Encodable {
        var width: Int
        var height: Int
        @Nullable var pixelFormat: String?
        @Nullable var frameRate: Double?
        var firstFrameMs: Double
        var frames: Int
        var missed: Int
        var dropped: Int
        var damaged: Int
    }

    struct Encoding: Encodable {
        var width: Int
        var height: Int
        var frameRate: Double
        var encodeMs: Double
    }

    struct Server: Encodable {
        var version: String
        @Nullable var roundTripMs: Double?
        @Nullable var clockErrorMs: Double?
    }

    struct Network: Encodable {
        var upBitrate: Int
        var upLimited: Bool
        var downBitrate: Int
        var downLimited: Bool
        @Nullable var roundTripMs: Double?
        @Nullable var loadedRoundTripMs: Double?
        @Nullable var frameAgeMs: Double?
    }

    var event = "summary"
    var problems: Int
    var notes: Int
    var complete: Bool
    var seconds: Double
    @Nullable var capture: Capture?
    var encodings: [Encoding]
    @Nullable var server: Server?
    @Nullable var network: Network?

    init(_ findings: [Finding], _ figures: Doctor.Figures, isComplete: Bool, elapsed: Duration) {
        problems = findings.count { $0.level == .problem }
        notes = findings.count { $0.level == .note }
        complete = isComplete
        seconds = elapsed.seconds
        encodings = figures.encodings.map { encoding in
            Encoding(
                width: encoding.dimensions.width,
                height: encoding.dimensions.height,
                frameRate: encoding.frameRate.framesPerSecond,
                encodeMs: encoding.meanTime.milliseconds
            )
        }
        capture = figures.capture.map { Capture($0) }
        network = figures.network.map { Network($0) }
        if let version = figures.serverVersion {
            var server = Server(version: version)
            server.roundTripMs = figures.roundTrips.min()?.milliseconds
            server.clockErrorMs = figures.clockError?.milliseconds
            self.server = server
        }
    }

    /// The counts as text for people.
    var words: String {
        let end = complete ? "" : " Stopped before the end."
        let remarks = notes == 0 ? "" : " \(counted(notes, "note"))."
        return (problems == 0 ? "No problems." : "\(counted(problems, "problem")).") + remarks + end
    }
}

extension DoctorSummary.Capture {
    fileprivate init(_ measurement: CaptureMeasurement) {
        width = measurement.dimensions.width
        height = measurement.dimensions.height
        firstFrameMs = measurement.timeToFirstFrame.milliseconds
        frames = measurement.frames
        missed = measurement.missed
        dropped = measurement.dropped
        damaged = measurement.damaged
        pixelFormat = measurement.format?.pixelFormat.description
        frameRate = measurement.framesPerSecond
    }
}

extension DoctorSummary.Network {
    fileprivate init(_ measurement: NetworkMeasurement) {
        upBitrate = measurement.up.bitsPerSecond
        upLimited = measurement.isUpLimited
        downBitrate = measurement.down.bitsPerSecond
        downLimited = measurement.isDownLimited
        roundTripMs = measurement.roundTrip?.milliseconds
        loadedRoundTripMs = measurement.loadedRoundTrip?.milliseconds
        frameAgeMs = measurement.frameAge?.milliseconds
    }
}
