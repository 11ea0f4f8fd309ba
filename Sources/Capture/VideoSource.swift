public import MediaCore

/// What a source shows, for participants and logs.
public struct VideoSourceKind: RawRepresentable, Hashable, Sendable {
    /// The word that tracks are announced with.
    public let rawValue: String

    /// The kind called `rawValue`, of 1 to 32 bytes of UTF-8.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// A camera.
    public static let camera = VideoSourceKind(rawValue: "camera")
    /// A screen or a window.
    public static let screen = VideoSourceKind(rawValue: "screen")
    /// The test pattern.
    public static let pattern = VideoSourceKind(rawValue: "pattern")
    /// Noise.
    public static let noise = VideoSourceKind(rawValue: "noise")
    /// A clip from a file.
    public static let file = VideoSourceKind(rawValue: "file")
    /// Anything else.
    public static let other = VideoSourceKind(rawValue: "other")
}

/// What happens to a source while it captures.
public enum CaptureEvent: Sendable {
    /// The source delivers nothing for a while and goes on by itself; the error says why.
    case interrupted(any Error)
    /// The source delivers again.
    case interruptionEnded
    /// Capturing has ended with an error; the device is closed and the counts are final.
    case failed(any Error)
    /// The source has delivered its last frame, as at the end of a clip.
    case finished
}

/// Produces frames and hands them to its sinks.
///
/// A source may serve several tracks. Each is a sink of its own, with its own format request and its own counts. A
/// source without a device or clock conforms with `sinks` alone and calls `sinks.deliver(_:)`.
public protocol VideoSource: AnyObject, Sendable {
    /// The sinks of the source.
    var sinks: VideoSinks { get }

    /// What the source shows; `.screen` for a screencast, else `.other` unless the source says so.
    var kind: VideoSourceKind { get }

    /// Whether the frames show a screen: then detail matters more than frame rate. `false` unless the source says so.
    var isScreencast: Bool { get }

    /// Asks the source for another output format, for all sinks; fields that are `nil` stay as they are.
    ///
    /// The source applies the request as soon as it can. Check each frame for the actual format. What the source cannot
    /// do itself, it passes on to its sinks (`onVideoFormatRequest`): a published track crops and scales.
    func requestOutputFormat(_ request: VideoFormatRequest)

    /// Why capturing ended by itself; `nil` while it goes on, after it was stopped, and after a new start.
    var failure: (any Error)? { get }

    /// What happens to the source from now on.
    ///
    /// Each call makes a stream of its own. It holds the 16 newest events that were not read, goes on after a restart,
    /// and ends when the source is released. Errors of a start are thrown there and are not sent here.
    func captureEvents() -> AsyncStream<CaptureEvent>
}

extension VideoSource {
    /// The kind that follows from `isScreencast`.
    public var kind: VideoSourceKind { isScreencast ? .screen : .other }

    /// Not a screen.
    public var isScreencast: Bool { false }

    /// The sink of an application that has only one: setting it replaces the sink that was set before.
    ///
    /// Sinks that were added to `sinks` stay. Reading gives the sink that was set, else the first one that was added. A
    /// source keeps its sinks alive while it captures, and not while it is idle.
    public var sink: (any VideoSink)? {
        get { sinks.first }
        set { sinks.setPrimary(newValue) }
    }

    /// Passes the request on to all sinks.
    public func requestOutputFormat(_ request: VideoFormatRequest) {
        sinks.request(request, forwarding: request)
    }

    /// No failure.
    public var failure: (any Error)? { nil }

    /// No events.
    public func captureEvents() -> AsyncStream<CaptureEvent> { AsyncStream { $0.finish() } }

    /// What has been captured and dropped since the source was made; may be read from any thread.
    public var captureStatistics: CaptureStatistics { sinks.statistics }
}

/// A source that has a device or a clock of its own to start and stop.
///
/// Capturing is counted by use: it begins with the first user and ends with the last. A user is either a sink (a
/// published track is one) or the application itself (`startCapture()`).
public protocol VideoCapturer: VideoSource {
    /// Opens the device and begins to deliver frames to all sinks, on a thread of the capturer's own.
    ///
    /// Returns once the first frames may come. The application is one user: starting twice does nothing.
    ///
    /// - Throws: The capturer's own error when the device cannot deliver.
    func startCapture() async throws

    /// Ends the application's use.
    ///
    /// Where no sink uses the capturer, the device is closed and no frame is delivered after this returns; otherwise
    /// capturing goes on. Stopping twice does nothing.
    func stopCapture() async

    /// Adds `sink`, and starts capturing on its behalf unless that is done already.
    ///
    /// - Throws: As `startCapture()`; the sink is then no user, and stays added.
    func startCapture(for sink: any VideoSink) async throws

    /// Ends the use by `sink`; no frame is delivered to it after this returns.
    ///
    /// The last user's end closes the device. The sink stays added, with its counts, until it is removed.
    func stopCapture(for sink: any VideoSink) async

    /// What is being captured, once started; `nil` where the capturer cannot say.
    var captureFormat: VideoFormat? { get }
}
