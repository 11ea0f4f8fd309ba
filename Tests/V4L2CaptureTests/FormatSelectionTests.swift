import MediaCore
import Testing

@testable import V4L2Capture

private func offer(
    _ format: PixelFormat,
    _ sizes: [(Int, Int, [Int])],
    decoding: CaptureFormat.Decoding = .direct
) -> CaptureFormat {
    CaptureFormat(
        pixelFormat: format,
        name: "",
        isCompressed: format.isCompressed,
        decoding: decoding,
        sizes: [],
        formats: sizes.flatMap { width, height, rates in
            rates.map {
                VideoFormat(
                    dimensions: Dimensions(width: width, height: height),
                    frameRate: FrameRate($0),
                    pixelFormat: format
                )
            }
        }
    )
}

/// A common USB camera.
private let webcam = [
    offer(.mjpeg, [(640, 480, [30]), (1280, 720, [30]), (1920, 1080, [30])]),
    offer(.yuyv, [(320, 240, [30]), (640, 480, [30, 15]), (1280, 720, [10, 5]), (1920, 1080, [5])]),
]

/// The kernel's test driver.
private let vivid = [
    offer(.yuyv, [(320, 180, [15, 30, 60]), (640, 360, [15, 30, 40]), (640, 480, [15, 25]), (1280, 720, [5, 12])]),
    offer(.nv12, [(320, 180, [15, 30, 60]), (640, 360, [15, 30, 40]), (640, 480, [15, 25]), (1280, 720, [5, 12])]),
    offer(.grey, [(320, 180, [90]), (640, 360, [90]), (640, 480, [25]), (1280, 720, [12])]),
]

@Suite("Format selection", .timeLimit(.minutes(1)))
struct FormatSelectionTests {
    struct Case: Sendable {
        var claim: String
        var offered: [CaptureFormat]
        var size: (Int, Int)?
        var rate: FrameRate?
        var pixelFormat: PixelFormat?
        var expected: String
    }

    static let cases: [Case] = [
        Case(claim: "640x480 at 30 by default", offered: webcam, expected: "640x480 30 fps YUYV"),
        Case(
            claim: "rate beats being uncompressed",
            offered: webcam,
            size: (1280, 720),
            expected: "1280x720 30 fps MJPG"
        ),
        Case(
            claim: "uncompressed where both reach the rate",
            offered: webcam,
            size: (1280, 720),
            rate: FrameRate(10),
            expected: "1280x720 10 fps YUYV"
        ),
        Case(
            claim: "a rate between two takes the one above, of the format that costs least",
            offered: webcam,
            size: (640, 480),
            rate: FrameRate(20),
            expected: "640x480 30 fps YUYV"
        ),
        Case(
            claim: "the lowest rate that reaches the wanted one",
            offered: webcam,
            size: (640, 480),
            rate: FrameRate(12),
            expected: "640x480 15 fps YUYV"
        ),
        Case(
            claim: "the nearest where none reaches it",
            offered: webcam,
            size: (1280, 720),
            rate: FrameRate(60),
            expected: "1280x720 30 fps MJPG"
        ),
        Case(
            claim: "a forced format alone, whatever its rate",
            offered: webcam,
            size: (1280, 720),
            pixelFormat: .yuyv,
            expected: "1280x720 10 fps YUYV"
        ),
        Case(
            claim: "the smallest size that holds the wanted one",
            offered: webcam,
            size: (480, 480),
            expected: "640x480 30 fps YUYV"
        ),
        Case(
            claim: "the largest where none is large enough",
            offered: webcam,
            size: (3840, 2160),
            expected: "1920x1080 30 fps MJPG"
        ),
        Case(claim: "the exact default size before a higher rate", offered: vivid, expected: "640x480 25 fps NV12"),
        Case(
            claim: "the lowest rate where all are too high",
            offered: vivid,
            size: (320, 180),
            rate: FrameRate(5),
            expected: "320x180 15 fps NV12"
        ),
        Case(
            claim: "the nearest area where the default size is missing",
            offered: [offer(.yuyv, [(160, 120, [30]), (800, 600, [30]), (640, 360, [30]), (1920, 1080, [30])])],
            expected: "640x360 30 fps YUYV"
        ),
        Case(
            claim: "29.97 reaches 30",
            offered: [
                offer(.mjpeg, [(640, 480, [30])]),
                CaptureFormat(
                    pixelFormat: .yuyv,
                    name: "",
                    isCompressed: false,
                    decoding: .direct,
                    sizes: [],
                    formats: [
                        VideoFormat(
                            dimensions: Dimensions(width: 640, height: 480),
                            frameRate: FrameRate(numerator: 30000, denominator: 1001),
                            pixelFormat: .yuyv
                        )
                    ]
                ),
            ],
            expected: "640x480 29.97 fps YUYV"
        ),
        Case(
            claim: "30 stated as 10000000/333333 is not above 30",
            offered: [
                CaptureFormat(
                    pixelFormat: .yuyv,
                    name: "",
                    isCompressed: false,
                    decoding: .direct,
                    sizes: [],
                    formats: [(10_000_000, 333_333), (15, 1)].map {
                        VideoFormat(
                            dimensions: Dimensions(width: 640, height: 480),
                            frameRate: FrameRate(numerator: $0.0, denominator: $0.1),
                            pixelFormat: .yuyv
                        )
                    }
                )
            ],
            expected: "640x480 30 fps YUYV"
        ),
        Case(
            claim: "JPEG before libv4lconvert, which comes before grey",
            offered: [
                offer(.grey, [(640, 480, [30])]),
                offer(PixelFormat(rawValue: 1), [(640, 480, [30])], decoding: .libv4l),
                offer(.mjpeg, [(640, 480, [30])]),
            ],
            expected: "640x480 30 fps MJPG"
        ),
        Case(
            claim: "what cannot be decoded is not there",
            offered: [
                offer(PixelFormat(rawValue: 1), [(640, 480, [30])], decoding: .unsupported),
                offer(.grey, [(320, 240, [5])]),
            ],
            expected: "320x240 5 fps GREY"
        ),
        Case(
            claim: "libv4lconvert takes no odd sizes",
            offered: [
                offer(PixelFormat(rawValue: 0x5559_5659), [(641, 480, [30]), (320, 240, [30])], decoding: .libv4l)
            ],
            size: (640, 480),
            expected: "320x240 30 fps YVYU"
        ),
        Case(
            claim: "an absurd rate is the highest",
            offered: webcam,
            size: (640, 480),
            rate: FrameRate(.max),
            expected: "640x480 30 fps YUYV"
        ),
    ]

    @Test("The camera is set to the best of what it offers", arguments: cases)
    func choice(_ example: Case) throws {
        let request = VideoFormatRequest(
            dimensions: example.size.map { Dimensions(width: $0.0, height: $0.1) },
            frameRate: example.rate,
            pixelFormat: example.pixelFormat
        )
        let chosen = try FormatSelection.choose(from: example.offered, for: request)
        #expect(chosen.description == example.expected, "\(example.claim)")
    }

    @Test("A pixel format that is missing, and one that cannot be read, are told apart")
    func refusals() {
        let odd = offer(PixelFormat(rawValue: 1), [(640, 480, [30])], decoding: .unsupported)
        let missing = VideoFormatRequest(pixelFormat: .nv12)
        #expect(throws: FormatSelection.Refusal.notOffered(.nv12)) {
            try FormatSelection.choose(from: webcam, for: missing)
        }
        #expect(throws: FormatSelection.Refusal.undecodable(odd.pixelFormat)) {
            try FormatSelection.choose(from: [odd], for: VideoFormatRequest(pixelFormat: odd.pixelFormat))
        }
        #expect(throws: FormatSelection.Refusal.nothingDecodable) {
            try FormatSelection.choose(from: [odd], for: VideoFormatRequest())
        }
        #expect(throws: FormatSelection.Refusal.nothingDecodable) {
            try FormatSelection.choose(from: [], for: VideoFormatRequest())
        }
    }
}
