import Foundation
import RoomKit
import Wording

/// The reasons for which a captured frame can be dropped.
private let captureDropReasons = FrameDropReason.allCases.filter { $0 != .encrypted }

/// A track of this program is published.
struct PublishedEvent: Encodable {
    var event = "published"
    var track: String
    var source: String
    @Nullable var width: Int?
    @Nullable var height: Int?
    @Nullable var frameRate: Double?
    @Nullable var pixelFormat: String?

    init(_ track: LocalVideoTrack) {
        let format = (track.source as? any VideoCapturer)?.captureFormat
        self.track = track.name
        source = track.sourceKind
        width = track.dimensions?.width
        height = track.dimensions?.height
        frameRate = track.frameRate?.framesPerSecond
        pixelFormat = format?.pixelFormat.description
    }
}

/// Something that happened to the source of a local track, which goes on.
struct SourceEvent: Encodable {
    /// `interrupted`, `interruptionEnded` or `warning`.
    var event: String
    var track: String
    /// What happened and what to do about it; `null` for `interruptionEnded`.
    @Nullable var error: String?
    /// The kind of cause, if it has a stable name.
    @Nullable var code: String?

    init(_ event: String, of track: LocalVideoTrack, _ error: (any Error)? = nil) {
        self.event = event
        self.track = track.name
        self.error = error.map { "\($0)" }
        code = error.flatMap { codeName(of: $0) }
    }
}

/// The statistics of one simulcast layer, in the publisher's status and summary.
struct PublisherLayer: Encodable {
    var simulcastLayer: Int
    var framesEncoded: Int
    var framesSent: Int
    var keyframes: Int
    var bytesSent: Int
    /// The rate that the encoder aims at, in bits per second.
    @Nullable var targetBitrate: Int?
    /// The size of the last frame.
    @Nullable var width: Int?
    @Nullable var height: Int?
    @Nullable var temporalLayers: Int?
    /// Frames encoded in the last second.
    var framesPerSecond: Double
    /// The last frame's quantizer, 0 to 127.
    @Nullable var quantizer: Int?
    /// The mean time of scaling and encoding a frame.
    @Nullable var encodeMs: Double?
    /// `none`, `bandwidth`, `cpu` or `other`.
    var qualityLimitation: String
    /// The seconds in which each of these limited the quality.
    var qualityLimitationSeconds: [String: Double]

    init(_ layer: LocalVideoLayerStatistics) {
        simulcastLayer = layer.simulcastLayer
        framesEncoded = layer.framesEncoded
        framesSent = layer.framesSent
        keyframes = layer.keyframes
        bytesSent = layer.bytesSent
        targetBitrate = layer.targetBitrate?.bitsPerSecond
        width = layer.dimensions?.width
        height = layer.dimensions?.height
        temporalLayers = layer.temporalLayerCount
        framesPerSecond = (layer.framesPerSecond * 10).rounded() / 10
        quantizer = layer.quantizer.map { Int($0) }
        if layer.framesEncoded > 0 { encodeMs = layer.encodeDuration.milliseconds / Double(layer.framesEncoded) }
        qualityLimitation = layer.qualityLimitation.rawValue
        qualityLimitationSeconds = Dictionary(
            uniqueKeysWithValues: layer.qualityLimitationDurations.map { ($0.key.rawValue, $0.value.seconds) }
        )
    }
}

extension PublisherLayer {
    /// The size, the rate and what limits them, for people; `nil` before the first frame.
    var words: String? {
        guard let width, let height else { return nil }
        var words = "\(width)x\(height)"
        if let targetBitrate { words += " of \(Bitrate(bitsPerSecond: targetBitrate))" }
        if qualityLimitation != "none" { words += " (\(qualityLimitation))" }
        return words
    }

    /// What was encoded, for people; `nil` if nothing was.
    var total: String? {
        guard let width, let height, framesEncoded > 0 else { return nil }
        let size = DataSize(bytes: bytesSent)
        return "\(width)x\(height) \(counted(framesEncoded, "frame")), \(counted(keyframes, "keyframe")), \(size)"
    }
}

/// The state of the connection to the server, in the publisher's status and summary.
struct PublisherConnection: Encodable {
    /// The highest rate at which all tracks together are sent, in bits per second.
    var sendBitrate: Int
    /// The rate at which the connection has lately carried what was sent, in bits per second.
    var estimatedBitrate: Int
    @Nullable var queueMs: Double?
    @Nullable var roundTripMs: Double?
    /// Whether the server acknowledges what it receives.
    var acknowledged: Bool
    /// Whether nothing was acknowledged for a while.
    var interrupted: Bool

    init(_ connection: UplinkStatistics) {
        sendBitrate = connection.sendBitrate.bitsPerSecond
        estimatedBitrate = connection.estimatedBitrate.bitsPerSecond
        queueMs = connection.queueDelay?.milliseconds
        roundTripMs = connection.roundTripTime?.milliseconds
        acknowledged = connection.isAcknowledged
        interrupted = connection.isInterrupted
    }
}

/// The publisher's counts, written every second with `--verbose`.
struct PublisherStatus: Encodable {
    var event = "status"
    var framesCaptured: Int
    var framesEncoded: Int
    var framesSent: Int
    var bytesSent: Int
    @Nullable var connection: PublisherConnection?
    var layers: [PublisherLayer]

    init(_ statistics: LocalVideoTrackStatistics) {
        framesCaptured = statistics.framesCaptured
        framesEncoded = statistics.framesEncoded
        framesSent = statistics.framesSent
        bytesSent = statistics.bytesSent
        connection = statistics.connection.map { PublisherConnection($0) }
        layers = statistics.layers.map { PublisherLayer($0) }
    }

    /// The size and rate of each encoding and what limits them, for people; `nil` before the first frame.
    var words: String? {
        let active = layers.filter { $0.framesPerSecond > 0 }.compactMap(\.words)
        guard !active.isEmpty else { return nil }
        var words = active.joined(separator: " + ")
        if let connection, connection.acknowledged, let queue = connection.queueMs {
            words += "  queue \(Int(queue.rounded())) ms"
        }
        return words
    }
}

struct PublisherSummary: Encodable {
    var event = "summary"
    var framesCaptured: Int
    /// Frames of a screen that stood still or of a hidden window, which show the last picture again; part of
    /// `framesCaptured`.
    var framesRepeated: Int
    var framesMissed: Int
    /// Slates in place of pictures that did not come; part of `framesCaptured`.
    var framesSubstituted: Int
    /// How often the source gave no pictures for a while.
    var interruptions: Int
    /// The time from the first to the last captured frame, by the device's stamps.
    ///
    /// The device's own rate is (framesCaptured + framesMissed - 1) / captureSeconds.
    var captureSeconds: Double
    /// The mean time from a frame's stamp until it was taken from the device.
    @Nullable var captureDelayMs: Double?
    var framesEncoded: Int
    var framesSent: Int
    var framesExpired: Int
    var framesDropped: [String: Int]
    var keyframes: Int
    var bytesSent: Int
    var seconds: Double
    @Nullable var connection: PublisherConnection?
    var layers: [PublisherLayer]

    init(_ statistics: LocalVideoTrackStatistics, elapsed: Duration) {
        framesCaptured = statistics.framesCaptured
        framesRepeated = statistics.framesRepeated
        framesMissed = statistics.framesMissed
        framesSubstituted = statistics.framesSubstituted
        interruptions = statistics.interruptions
        captureSeconds = statistics.captureDuration.seconds
        captureDelayMs = statistics.captureDelay?.milliseconds
        framesEncoded = statistics.framesEncoded
        framesSent = statistics.framesSent
        framesExpired = statistics.framesExpired
        framesDropped = Dictionary(
            uniqueKeysWithValues: captureDropReasons.map { ($0.name, statistics.framesDropped[$0]) }
        )
        keyframes = statistics.keyframes
        bytesSent = statistics.bytesSent
        seconds = elapsed.seconds
        connection = statistics.connection.map { PublisherConnection($0) }
        layers = statistics.layers.map { PublisherLayer($0) }
    }

    /// The summary as text for people.
    ///
    /// - Parameter isEncoded: Whether the source's frames were encoded elsewhere.
    /// - Returns: What happened to the frames, or that there were none.
    func words(isEncoded: Bool) -> String {
        let time = String(format: "%.1f", seconds)
        guard framesCaptured > 0 else {
            return "The source gave no \(isEncoded ? "frame" : "picture") in \(time) s, so nothing was sent."
        }
        let drops = framesDropped.sorted { $0.key < $1.key }.filter { $0.value > 0 }.map { "\($0.value) \($0.key)" }
        let frames = counted(framesCaptured, "frame")
        return """
            \(frames) \(isEncoded ? "read" : "captured"), \
            \(framesEncoded) \(isEncoded ? "passed on unchanged" : "encoded"), \(framesSent) sent \
            (\(DataSize(bytes: bytesSent)), \(counted(keyframes, "keyframe"))) in \
            \(time) s\(drops.isEmpty ? "" : "; dropped: " + drops.joined(separator: ", ")).\
            \(encodings)\(limitations)
            """
    }

    /// What each encoding sent, for people; empty if there was one.
    private var encodings: String {
        let totals = layers.compactMap(\.total)
        return totals.count > 1 ? " Encodings: \(totals.joined(separator: "; "))." : ""
    }

    /// What limited the quality and for how long, for people; empty if nothing did.
    ///
    /// WebRTC's "other" is left out: frames that came encoded cannot be limited, and viewers may want less than all.
    private var limitations: String {
        let reasons = layers.flatMap { layer in
            layer.qualityLimitationSeconds.filter { !["none", "other"].contains($0.key) && $0.value >= 0.05 }
                .sorted { $0.key < $1.key }
                .map { String(format: "%.1f s by %@", $0.value, $0.key) }
        }
        return reasons.isEmpty ? "" : " Limited for \(reasons.joined(separator: ", "))."
    }
}
