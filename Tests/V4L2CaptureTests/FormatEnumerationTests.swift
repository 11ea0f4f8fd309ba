import CV4L2
import Glibc
import MediaCore
import Testing

@testable import V4L2Capture

private func read(
    _ script: CameraScript,
    wanted: Dimensions? = nil,
    rate: FrameRate? = nil
) throws -> [CaptureFormat] {
    try FormatEnumeration.read(
        V4L2Device(node: ScriptedSystem(script).open("/dev/video0")),
        wanted: VideoFormatRequest(dimensions: wanted, frameRate: rate)
    )
}

@Suite("Format enumeration", .timeLimit(.minutes(1)))
struct FormatEnumerationTests {
    @Test("Discrete sizes and rates are listed as the driver lists them")
    func discrete() throws {
        let script = CameraScript(formats: [
            .init(
                pixelFormat: .mjpeg,
                isCompressed: true,
                sizes: .discrete([(640, 480), (320, 240)]),
                rates: .discrete([30, 15])
            ),
            .init(pixelFormat: PixelFormat(rawValue: 0x3132_5A5A)),
        ])
        let formats = try read(script)
        try #require(formats.count == 2)
        #expect(formats[0].isCompressed && formats[0].decoding == .direct && formats[0].name == "Pictures")
        let rates = [FrameRate(30), FrameRate(15)].map { CaptureFrameInterval.discrete($0) }
        #expect(
            formats[0].sizes == [
                .discrete(Dimensions(width: 640, height: 480), intervals: rates),
                .discrete(Dimensions(width: 320, height: 240), intervals: rates),
            ]
        )
        #expect(
            formats[0].formats.map(\.description) == [
                "320x240 15 fps MJPG", "320x240 30 fps MJPG", "640x480 15 fps MJPG", "640x480 30 fps MJPG",
            ]
        )
        #expect(formats[1].decoding == .unsupported)
    }

    @Test("The usual sizes within a range are tried, and so are the wanted one and both ends")
    func stepwise() throws {
        let script = CameraScript(formats: [
            .init(
                pixelFormat: .yuyv,
                sizes: .stepwise(smallest: (32, 32), largest: (1280, 720), step: (2, 2)),
                rates: .continuous(slowest: 3, fastest: 40)
            )
        ])
        let wanted = Dimensions(width: 500, height: 400)
        let formats = try read(script, wanted: wanted)
        let (small, large) = (Dimensions(width: 32, height: 32), Dimensions(width: 1280, height: 720))
        #expect(formats[0].sizes == [.range(smallest: small, largest: large, step: Dimensions(width: 2, height: 2))])
        let sizes = Set(formats[0].formats.map(\.dimensions))
        #expect(sizes.isSuperset(of: [small, large, wanted, Dimensions(width: 640, height: 480)]))
        #expect(!sizes.contains(Dimensions(width: 1920, height: 1080)))
        let rates = formats[0].formats.filter { $0.dimensions == large }.map(\.frameRate.description)
        #expect(rates == ["3", "5", "10", "15", "20", "24", "25", "30", "40"])
        let odd = try read(script, wanted: Dimensions(width: 501, height: 400))
        #expect(!odd[0].formats.contains { $0.dimensions.width == 501 })
    }

    // A size that is not a whole number of steps was passed over: 1280x720 was scaled up to 1920x1080, or the largest.
    @Test(
        "The smallest size of a stepped range that covers the wanted one is offered and chosen",
        arguments: [((1920, 1080), (1920, 1088)), ((700, 500), (704, 512)), ((640, 480), (640, 480))]
    )
    func covering(wanted: (Int, Int), expected: (Int, Int)) throws {
        let script = CameraScript(formats: [
            .init(pixelFormat: .yuyv, sizes: .stepwise(smallest: (32, 32), largest: (2592, 1952), step: (16, 16)))
        ])
        let size = Dimensions(width: wanted.0, height: wanted.1)
        let choice = try FormatSelection.choose(
            from: read(script, wanted: size),
            for: VideoFormatRequest(dimensions: size)
        )
        #expect(choice.dimensions == Dimensions(width: expected.0, height: expected.1))
    }

    // 12 gave 10, and 45 gave 30.
    @Test("The wanted rate itself is offered and chosen from a continuous range", arguments: [12, 45, 60, 7])
    func wantedRate(rate: Int) throws {
        let script = CameraScript(formats: [.init(pixelFormat: .yuyv, rates: .continuous(slowest: 3, fastest: 60))])
        let request = VideoFormatRequest(frameRate: FrameRate(rate))
        let choice = try FormatSelection.choose(from: read(script, rate: FrameRate(rate)), for: request)
        #expect(choice.frameRate == FrameRate(rate))
    }

    @Test(
        "The next rate of a stepped range that reaches the wanted one is offered and chosen",
        arguments: [(30, "33.33"), (12, "12.5"), (50, "50"), (1000, "100"), (1, "2")]
    )
    func steppedRate(wanted: Int, expected: String) throws {
        // Intervals of 10, 20, 30 ms and so on.
        let script = CameraScript(formats: [
            .init(pixelFormat: .yuyv, rates: .stepwise(slowest: 2, fastest: 100, step: 100))
        ])
        let request = VideoFormatRequest(frameRate: FrameRate(wanted))
        let choice = try FormatSelection.choose(from: read(script, rate: FrameRate(wanted)), for: request)
        #expect(choice.frameRate.description == expected)
    }

    @Test("Lists without end are read to a limit", .timeLimit(.minutes(1)))
    func endless() throws {
        let formats = (0..<2000).map { number in
            CameraScript.Format(
                pixelFormat: PixelFormat(rawValue: UInt32(number + 1)),
                sizes: .endless(16, 16),
                rates: .endless(1)
            )
        }
        let system = ScriptedSystem(CameraScript(formats: formats))
        let listed = try FormatEnumeration.read(V4L2Device(node: system.open("/dev/video0")))
        #expect(listed.count == FormatEnumeration.longestList)
        let questions = [cv4l2_ENUM_FMT, cv4l2_ENUM_FRAMESIZES, cv4l2_ENUM_FRAMEINTERVALS].map(system.calls)
        #expect(questions.reduce(0, +) <= FormatEnumeration.mostQuestions)
    }

    @Test("Sizes that no picture can have are left out")
    func impossibleSizes() throws {
        let script = CameraScript(formats: [
            .init(pixelFormat: .yuyv, sizes: .discrete([(0, 0), (-1, -1), (64, 0), (20000, 20000), (64, 48)]))
        ])
        #expect(try read(script)[0].formats.map(\.dimensions) == [Dimensions(width: 64, height: 48)])
    }

    @Test("A driver without lists of sizes and rates is asked for the usual ones")
    func withoutLists() throws {
        var script = CameraScript(failures: [cv4l2_ENUM_FRAMESIZES: ENOTTY, cv4l2_ENUM_FRAMEINTERVALS: ENOTTY])
        script.substitute = { pix in
            pix.width = min(pix.width, 800)
            pix.height = min(pix.height, 600)
        }
        script.statedRate = (25, 1)
        let formats = try read(script)
        #expect(formats[0].sizes.isEmpty)
        #expect(formats[0].formats.last?.description == "800x600 25 fps YUYV")
        script.statedRate = nil
        #expect(try read(script)[0].formats.last?.frameRate == FormatEnumeration.assumedRate)
    }

    @Test("A device that is lost while it is asked is an error, and not a short list")
    func lost() {
        #expect(throws: SystemCallFailure(attempt: "list the sizes of", status: ENODEV)) {
            try read(CameraScript(failures: [cv4l2_ENUM_FRAMESIZES: ENODEV]))
        }
    }

    @Test("Random answers do no harm", arguments: 0..<300)
    func randomAnswers(seed: Int) {
        for capability in [V4L2_CAP_VIDEO_CAPTURE, V4L2_CAP_VIDEO_CAPTURE_MPLANE] {
            let script = CameraScript(
                deviceCapabilities: UInt32(capability) | UInt32(V4L2_CAP_STREAMING),
                noise: UInt64(seed)
            )
            let rate = FrameRate(numerator: 1 + seed * 7919, denominator: 1 + seed % 1001)
            let formats = (try? read(script, wanted: Dimensions(width: 640, height: 480), rate: rate)) ?? []
            _ = try? FormatSelection.choose(from: formats, for: VideoFormatRequest(frameRate: FrameRate(.max)))
            for format in formats.flatMap(\.formats) {
                #expect(format.dimensions.area > 0 && format.frameRate.framesPerSecond > 0)
            }
        }
    }
}
