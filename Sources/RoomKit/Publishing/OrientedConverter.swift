import MediaCore
import V4L2Capture
import VideoProcessing

/// Turns a camera's pictures as an orientation tracker says; confine to the capture thread.
final class OrientedConverter: CapturedFrameConverter {
    private let converter: FrameConverter
    private let tracker: any OrientationTracker
    /// The turn of a camera that is held upright.
    private let mounting: VideoRotation

    init(_ converter: FrameConverter, _ tracker: any OrientationTracker) {
        self.converter = converter
        self.tracker = tracker
        mounting = converter.transform.rotation
        follow()
    }

    private func follow() {
        let rotation = mounting + tracker.rotation
        if converter.transform.rotation != rotation { converter.transform.rotation = rotation }
    }

    var requestedDimensions: Dimensions? {
        get { converter.requestedDimensions }
        set { converter.requestedDimensions = newValue }
    }

    func accepts(_ pixelFormat: PixelFormat) -> Bool { converter.accepts(pixelFormat) }

    func outputDimensions(for dimensions: Dimensions) -> Dimensions {
        follow()
        return converter.outputDimensions(for: dimensions)
    }

    func convert(
        _ bytes: RawSpan,
        layout: CapturedLayout,
        timestamp: MonotonicInstant
    ) throws(DamagedPicture) -> VideoFrame {
        follow()
        return try converter.convert(bytes, layout: layout, timestamp: timestamp)
    }

    func frame(ofUpright upright: VideoBuffer, timestamp: MonotonicInstant) -> VideoFrame {
        converter.frame(ofUpright: upright, timestamp: timestamp)
    }
}
