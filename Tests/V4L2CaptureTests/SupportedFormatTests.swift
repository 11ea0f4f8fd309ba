import MediaCore
import Testing

@testable import V4L2Capture

@Suite("Supported formats")
struct SupportedFormatTests {
    private func offer(
        _ pixelFormat: PixelFormat,
        _ sizes: [(width: Int, height: Int, rate: Int)],
        decoding: CaptureFormat.Decoding = .direct
    ) -> CaptureFormat {
        CaptureFormat(
            pixelFormat: pixelFormat,
            name: "",
            isCompressed: pixelFormat.isCompressed,
            decoding: decoding,
            sizes: [],
            formats: sizes.map {
                VideoFormat(
                    dimensions: Dimensions(width: $0.width, height: $0.height),
                    frameRate: FrameRate($0.rate),
                    pixelFormat: pixelFormat
                )
            }
        )
    }

    @Test("They are ordered by dimensions, then rate, whatever the driver's order, without those that cannot be read")
    func order() {
        let offered = [
            offer(.mjpeg, [(1280, 720, 30), (640, 480, 30), (640, 480, 15), (720, 400, 30)]),
            offer(PixelFormat(rawValue: 1), [(160, 120, 5)], decoding: .unsupported),
            offer(.yuyv, [(1920, 1080, 5), (640, 480, 30), (320, 240, 30), (640, 480, 30), (640, 480, 15)]),
        ]
        #expect(
            offered.supportedFormats.map(\.description) == [
                "320x240 30 fps YUYV", "720x400 30 fps MJPG", "640x480 15 fps MJPG", "640x480 15 fps YUYV",
                "640x480 30 fps MJPG", "640x480 30 fps YUYV", "1280x720 30 fps MJPG", "1920x1080 5 fps YUYV",
            ]
        )
        #expect([CaptureFormat]().supportedFormats.isEmpty)
    }
}
