public import Capture
public import MediaCore
import Synchronization
import Threading

/// The screen, a monitor, a region or a window of an X11 display.
///
/// Pictures are fetched and converted on one thread of the source's own, which alone speaks to the X server. Only the
/// parts that changed are fetched. While the screen stands still, the last frame is delivered again: after 130 ms, then
/// at each `requestFrame()`, and at least once a second, so that a late joiner sees it. A published track calls
/// `requestFrame()` until the picture is sharp. A repeat is stamped with the time at which the screen was found
/// unchanged. It is marked (`VideoFrame.isRepeat`) up to the subscribers' frame logs and counts in `framesRepeated`. It
/// is neither a failure nor an interruption, and no freeze.
///
/// If the window or the screen changes its size, the next frame has the new size. Sides are rounded down to even
/// numbers. Unless a size is requested, a published track scales them down to 1920x1080, with a warning (`CaptureEvent.warning`). While a window is
/// hidden, the source is interrupted (`CaptureEvent.interrupted`) and repeats the window's last picture once a second.
/// A window that is hidden at the start has no picture: the start throws `windowHidden`. If the window is closed, the
/// monitor is switched off or unplugged, or the X server ends, the source fails with a `ScreenError`. All members may
/// be used from any thread.
public final class ScreenSource: VideoCapturer, CoreCapturer {
    /// How long the X server may take for an answer before the source fails.
    public static let patience = Duration.seconds(5)
    /// The highest rate unless another one is requested: 15 frames a second.
    public static let defaultFrameRate = FrameRate(15)
    /// The format of the server's pixels, which the captured format states: bytes B G R and one that is ignored.
    static let pixelFormat = PixelFormat(fourCC: "XR24") ?? .i420

    /// What the source shows.
    public let target: ScreenTarget
    /// The core that captures for this source.
    package let core: CaptureCore
    /// Always `.screen`.
    public var kind: VideoSourceKind { .screen }
    /// Always `true`: a published track keeps the resolution and lowers the frame rate.
    public var isScreencast: Bool { true }
    private let refresh: RefreshRequest

    /// Creates a source of pictures of `target`; the first start connects to the display.
    ///
    /// - Parameters:
    ///   - target: What to show.
    ///   - display: The X display, as in `:0`; `nil` for that of the environment's `DISPLAY`.
    ///   - showsCursor: Whether the cursor is drawn.
    ///   - request: The highest frame rate, and a size, into which a published track scales the pictures.
    ///   - sharesMemory: Whether pixels come through shared memory, if the server can do that.
    ///   - makeConverter: Called on the capture thread at each start; the converter is used and released there.
    package init(
        target: ScreenTarget,
        display: String?,
        showsCursor: Bool,
        request: VideoFormatRequest,
        sharesMemory: Bool = true,
        makeConverter: @escaping @Sendable () -> any ScreenConverter
    ) {
        let refresh = RefreshRequest()
        let plan = ScreenLoop.Plan(
            target: target,
            display: display,
            showsCursor: showsCursor,
            sharesMemory: sharesMemory,
            refresh: refresh,
            makeConverter: makeConverter
        )
        self.target = target
        self.refresh = refresh
        core = CaptureCore(threadName: "screen") { shortage in
            ScreenError(.outOfResources, target: "the screen", "\(shortage)")
        } body: { context in
            try ScreenLoop.run(plan, context)
        }
        core.setInitialRequest(request)
    }

    deinit {
        // Do not wait: the X server may take seconds to answer.
        core.abandon(waiting: false)
    }

    /// Delivers the last frame again at the next tick, even if nothing has changed, but no sooner than 60 ms after it;
    /// does nothing while stopped.
    public func requestFrame() { refresh.make() }
}

/// Asks the capture thread to deliver a frame even if nothing has changed.
final class RefreshRequest: Sendable {
    private let isMade = Atomic(false)

    /// Makes the request, from any thread.
    func make() { isMade.store(true, ordering: .relaxed) }

    /// Takes the request; returns whether one was made.
    func take() -> Bool { isMade.exchange(false, ordering: .relaxed) }
}

// MARK: - Finding screens

extension ScreenSource {
    /// Checks whether a source of `target` could start now; a start would fail with the same error.
    ///
    /// - Parameters:
    ///   - target: What the source would show.
    ///   - display: The X display, as in `:0`; `nil` for that of the environment's `DISPLAY`.
    /// - Throws: The same errors as `monitors(display:)`, and `noSuchMonitor`, `noSuchWindow`, `ambiguousWindow`,
    ///   `windowHidden`, `monitorLost`, `regionOutside`, `unsupportedFormat`.
    public static func check(_ target: ScreenTarget, display: String? = nil) throws(ScreenError) {
        let display = try SessionEnvironment.current.displayName(given: display)
        let name = target.words(on: display)
        do throws(XFailure) {
            _ = try CapturedScene(target, name, XConnection(display: display)).locateFirst()
        } catch {
            throw ScreenError(error, target: name)
        }
    }

    /// Lists the monitors of a display that can be captured.
    ///
    /// Those of Xwayland cannot: it shows the windows of X11 programs and nothing else of the screen.
    ///
    /// - Parameter display: The X display, as in `:0`; `nil` for that of the environment's `DISPLAY`.
    /// - Returns: The monitors in the server's order; none if the display is Xwayland's.
    /// - Throws: `noDisplay`, `invalidDisplay`, `waylandSession`, `displayUnreachable`, `displayLost`, `noAnswer`,
    ///   `serverFailed`.
    public static func monitors(display: String? = nil) throws(ScreenError) -> [ScreenMonitor] {
        try ask(display) { directory throws(XFailure) in try directory.capturableMonitors() }
    }

    /// Lists the windows of a display.
    ///
    /// - Parameter display: The X display, as in `:0`; `nil` for that of the environment's `DISPLAY`.
    /// - Returns: The windows that the window manager lists, or else all that are shown, without their frames.
    /// - Throws: The same errors as `monitors(display:)`.
    public static func windows(display: String? = nil) throws(ScreenError) -> [ScreenWindow] {
        try ask(display) { directory throws(XFailure) in try directory.windows() }
    }

    private static func ask<Answer>(
        _ display: String?,
        _ question: (ScreenDirectory) throws(XFailure) -> Answer
    ) throws(ScreenError) -> Answer {
        let name = try SessionEnvironment.current.displayName(given: display)
        do throws(XFailure) {
            return try question(ScreenDirectory(connection: XConnection(display: name)))
        } catch {
            throw ScreenError(error, target: "display \(name)")
        }
    }
}
