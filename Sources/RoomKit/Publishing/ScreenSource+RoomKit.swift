public import MediaCore
public import ScreenCapture
import VideoProcessing

extension ScreenSource {
    /// Creates a source of pictures of an X11 display; the first start connects to it.
    ///
    /// - Parameters:
    ///   - target: The whole screen, a monitor, a region or a window.
    ///   - display: The X display, as in `:0`; `nil` for that of the environment's `DISPLAY`.
    ///   - showsCursor: Whether the cursor is drawn.
    ///   - request: The highest frame rate, 15 by default, and a size, into which published tracks fit the picture.
    public convenience init(
        target: ScreenTarget = .screen,
        display: String? = nil,
        showsCursor: Bool = true,
        request: VideoFormatRequest = VideoFormatRequest()
    ) {
        self.init(target: target, display: display, showsCursor: showsCursor, request: request) {
            ScreenPictureConverter()
        }
    }
}
