public import MediaCore

/// What a source shows, for participants and logs.
public struct VideoSourceKind: RawRepresentable, Hashable, Sendable {
    /// The word that announces a track of this kind in the room.
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

    /// The kind of content that a source of this kind has unless it says otherwise.
    var contentHint: VideoContentHint { self == .screen ? .detail : .none }
}

/// What happens to a source while it captures.
public enum CaptureEvent: Sendable {
    /// The source has no pictures for a while and goes on by itself; the error says why.
    ///
    /// Meanwhile a camera delivers slates (`VideoFrame.isSubstitute`), and a hidden window its last picture
    /// (`VideoFrame.isRepeat`). The event comes again during the same interruption if the cause changes for longer.
    case interrupted(any Error)
    /// The source delivers frames again.
    case interruptionEnded
    /// The source was started and has delivered no frame yet, for longer than is usual; the error says what to look at.
    case noFramesCaptured(any Error)
    /// The source goes on, but not as requested, or some of its frames cannot be used; the error says what to do.
    case warning(any Error)
    /// Capturing ended with an error; the device is closed and the counts are final.
    case failed(any Error)
    /// The source has delivered its last frame, as at the end of a clip.
    case finished
}

/// Produces frames and delivers them to its sinks.
///
/// A source may serve several tracks. Each track is a sink of its own, with its own format request and its own counts.
/// A source without a device or a clock implements only `sinks` and calls `sinks.deliver(_:)`.
public protocol VideoSource: AnyObject, Sendable {
    /// The sinks of the source.
    var sinks: VideoSinks { get }

    /// What the source shows; by default `.screen` for a screencast and `.other` for the rest.
    var kind: VideoSourceKind { get }

    /// Whether the frames show a screen, where detail matters more than frame rate; `false` by default.
    var isScreencast: Bool { get }

    /// The kind of content in the frames; `.detail` by default for a screencast, and `.none` for the rest.
    var contentHint: VideoContentHint { get }

    /// Asks the source for another output format, for all sinks, in place of what was requested before.
    ///
    /// A field that is `nil` means "don't care": pictures have the size and the rate at which the source captures.
    ///
    /// The source applies the request as soon as it can. Check each frame for the actual format. The source passes on
    /// to its sinks what it cannot do itself (`onVideoFormatRequest`): a published track crops and scales,
    /// or only scales the pictures of a screen.
    func requestOutputFormat(_ request: VideoFormatRequest)

    /// Goes back to the request that the source was created with.
    ///
    /// Sizes and rates change back at once. Requests for single sinks stay (`VideoSinks.resetRequest(for:)`).
    func resetOutputFormat()

    /// Asks for a frame soon, although the picture may not have changed; does nothing by default.
    ///
    /// A track asks when a receiver needs a keyframe, and after a repeat (`VideoFrame.isRepeat`) if another one would
    /// make the picture sharper. A source that always delivers frames can ignore it. It is called on any thread,
    /// also on the one that serves all connections: return at once, and deliver the frame from your own thread.
    func requestFrame()

    /// Why capturing ended by itself, or could not start; `nil` while it goes on, after a stop, and after a new start.
    var failure: (any Error)? { get }

    /// A stream of the source's events from now on.
    ///
    /// Each call makes a stream of its own. It buffers the 16 newest unread events, continues after a restart, and ends
    /// when the source is released. A start throws its errors; they do not appear here.
    func captureEvents() -> AsyncStream<CaptureEvent>
}

extension VideoSource {
    /// The default kind, which follows from `isScreencast`.
    public var kind: VideoSourceKind { isScreencast ? .screen : .other }

    /// Not a screen.
    public var isScreencast: Bool { false }

    /// The default hint, which follows from `isScreencast`.
    public var contentHint: VideoContentHint { isScreencast ? .detail : .none }

    /// The sink of an application that has only one; setting it replaces the sink that was set before.
    ///
    /// Sinks that were added to `sinks` stay. Reading returns the sink that was set, or else the first one that was
    /// added. A source keeps its sinks alive while it captures, and not while it is idle.
    public var sink: (any VideoSink)? {
        get { sinks.first }
        set { sinks.setPrimary(newValue) }
    }

    /// Passes the request on to all sinks.
    public func requestOutputFormat(_ request: VideoFormatRequest) {
        sinks.request(request, forwarding: request)
    }

    /// Asks for all of `format`, for all sinks; see `requestOutputFormat(_:)` with a `VideoFormatRequest`.
    public func requestOutputFormat(_ format: VideoFormat) {
        requestOutputFormat(VideoFormatRequest(format))
    }

    /// Removes the requests, also those that were passed on to the sinks.
    public func resetOutputFormat() { sinks.resetRequest() }

    /// Does nothing.
    public func requestFrame() {}

    /// No failure.
    public var failure: (any Error)? { nil }

    /// No events.
    public func captureEvents() -> AsyncStream<CaptureEvent> { AsyncStream { $0.finish() } }

    /// The frames captured and dropped since the source was made; may be read from any thread.
    public var captureStatistics: CaptureStatistics { sinks.statistics }
}

/// A source with a device or a clock of its own, which can be started and stopped.
///
/// Capturing begins with the first user and ends with the last. A user is either a sink (a published track is one) or
/// the application itself (`startCapture()`).
public protocol VideoCapturer: VideoSource {
    /// Opens the device and begins to deliver frames to all sinks, on a thread of the capturer's own.
    ///
    /// Returns once frames can arrive. The application counts as one user: a second call does nothing.
    ///
    /// - Throws: The capturer's own error when the device cannot deliver; `CancellationError` if the task is cancelled, or
    ///   the use ended, before it does.
    func startCapture() async throws

    /// Ends the application's use of the capturer.
    ///
    /// If no sink uses the capturer, this closes the device, and no frame is delivered after it returns. Otherwise
    /// capturing goes on. A second call does nothing.
    func stopCapture() async

    /// Adds `sink` and starts capturing for it, unless the source already captures.
    ///
    /// - Throws: The same errors as `startCapture()`. The sink is then not a user, but stays added; after a
    ///   `CancellationError` it gets no frame until it is added again.
    func startCapture(for sink: any VideoSink) async throws

    /// Ends the use by `sink`; it gets no frame after this returns.
    ///
    /// The device closes when its last user ends. The sink stays added, with its counts, until it is removed.
    func stopCapture(for sink: any VideoSink) async

    /// Whether the capturer is started: frames can arrive, and neither a stop nor a failure has ended that.
    var isCapturing: Bool { get }

    /// The format that is being captured, once started; `nil` if the capturer does not know it.
    var captureFormat: VideoFormat? { get }
}

/// A source of frames that are compressed already; a track sends them as they are.
///
/// It passes its frames on with `VideoSinks.deliver(_:counting:)`. `requestFrame()` asks it for a keyframe.
package protocol EncodedVideoSource: VideoSource {}

/// A sink that takes the frames of an `EncodedVideoSource`.
package protocol EncodedVideoSink: VideoSink {
    /// Receives a compressed frame, as `onVideoFrame(_:)` receives a picture.
    func onEncodedFrame(_ frame: EncodedFrame)
}
