import ArgumentParser
import RoomKit
import Testing

@testable import room_client

@Suite("Options of the source")
struct SourceOptionsTests {
    @Test("The options of a camera's orientation make its transform")
    func cameraTransform() throws {
        #expect(try SourceOptions.parse([]).cameraTransform == CameraTransform())
        let arguments = ["--rotate", "90", "--mirror", "--crop", "320x200", "--orientation", "tagged"]
        var expected = CameraTransform()
        expected.rotation = .clockwise90
        expected.isMirrored = true
        expected.crop = Dimensions(width: 320, height: 200)
        expected.tagsOrientation = true
        let options = try SourceOptions.parse(arguments)
        #expect(options.cameraTransform == expected)
        let transform = options.transform
        #expect(transform.rotation == .clockwise90 && transform.isMirrored && transform.crop == expected.crop)
    }

    // They were refused for every source but a camera, although commands from standard input changed the same.
    @Test(
        "Every source is cropped, turned and mirrored, by its track unless it is a camera",
        arguments: ["pattern", "noise", "screen", "file:clip.y4m", "camera"]
    )
    func everySource(source: String) throws {
        let arguments = ["--rotate", "90", "--mirror", "--crop", "320x200", "--orientation", "tagged"]
        let options = try SourceOptions.parse(["--source", source] + arguments)
        var expected = VideoTransform()
        expected.rotation = .clockwise90
        expected.isMirrored = true
        expected.crop = Dimensions(width: 320, height: 200)
        #expect(options.trackTransform(isCameraTransformed: false) == expected)
        let isCamera = source == "camera"
        #expect(options.trackTransform(isCameraTransformed: true) == (isCamera ? VideoTransform() : expected))
    }

    @Test("Frames that are VP8 already are turned and mirrored, and not cropped")
    func compressed() throws {
        let options = try SourceOptions.parse(["--source", "vp8:clip.ivf", "--rotate", "90", "--mirror"])
        #expect(options.trackTransform(isCameraTransformed: true).rotation == .clockwise90)
        #expect(throws: (any Error).self) { try SourceOptions.parse(["--source", "vp8:clip.ivf", "--crop", "8x8"]) }
    }

    @Test(
        "A size has sides, or a name in capital or small letters",
        arguments: [
            ("720p", 1280, 720), ("1080P", 1920, 1080), ("480p", 640, 480), ("360p", 640, 360), ("HD720", 1280, 720),
            ("cif", 352, 288), ("640X480", 640, 480),
        ]
    )
    func sizes(text: String, width: Int, height: Int) throws {
        #expect(try SourceOptions.parse(["--size", text]).size == Dimensions(width: width, height: height))
    }

    @Test("The error about another size lists the names", arguments: ["721p", "hd", "p", "720"])
    func otherSize(text: String) {
        let error = #expect(throws: (any Error).self) { try Dimensions.read(text) }
        let words = error.map { "\($0)" } ?? ""
        #expect(["360p", "480p", "720p", "1080p", "hd720", "medium"].allSatisfy { words.contains($0) }, "\(words)")
    }

    @Test(
        "A pixel format has four characters in capital or small letters, or a name that ffmpeg has for it",
        arguments: [
            ("yuyv", PixelFormat.yuyv), ("YUYV", .yuyv), ("mjpg", .mjpeg), ("MJPEG", .mjpeg), ("yuyv422", .yuyv),
            ("nv12", .nv12), ("yuv420p", .i420), ("grey", .grey),
        ]
    )
    func pixelFormats(text: String, format: PixelFormat) throws {
        #expect(try SourceOptions.parse(["--pixel-format", text]).pixelFormat == format)
    }

    @Test("A code with capital and small letters is kept as it is")
    func mixedCode() throws {
        #expect(try SourceOptions.parse(["--pixel-format", "pBAA"]).pixelFormat == PixelFormat(fourCC: "pBAA"))
    }

    @Test(
        "Controls are separated by commas; a comma without a name behind it is part of the value",
        arguments: [
            (["a=1,b=2"], ["a=1", "b=2"]), (["a=1", "b=0x2"], ["a=1", "b=0x2"]),
            (["mode=Slow, steady"], ["mode=Slow, steady"]), (["a=1, b=2"], ["a=1", "b=2"]), (["a="], ["a="]),
        ]
    )
    func controls(arguments: [String], expected: [String]) throws {
        let options = try SourceOptions.parse(arguments.flatMap { ["--control", $0] })
        #expect(options.controls.flatMap(\.settings).map { "\($0.name)=\($0.value)" } == expected)
    }

    @Test("What is no control is refused", arguments: ["", "a", "=1", ",a=1"])
    func noControls(text: String) {
        #expect(throws: (any Error).self) { try SourceOptions.parse(["--control", text]) }
    }

    @Test(
        "A region of the screen has a size and a place",
        arguments: [
            ("640x480+100+50", "640x480+100+50"), ("720p+0+10", "1280x720+0+10"), ("64x48", "64x48+0+0"),
            ("64x48+1", nil), ("64x48+1+", nil), ("64x48+-1+2", nil), ("+1+2", nil), ("64x48+1+2+3", nil),
            ("64x48+1+40000", nil), ("0x0+1+1", nil),
        ]
    )
    func regions(text: String, region: String?) {
        let options = try? SourceOptions.parse(["--source", "screen", "--region", text])
        #expect(options?.screen.region?.description == region)
    }

    @Test("A region is of the whole screen, and of a screen only")
    func regionAlone() {
        for other in [["--window", "Slides"], ["--monitor", "0"]] {
            let arguments = ["--source", "screen", "--region", "64x48+1+2"] + other
            #expect(throws: (any Error).self) { try SourceOptions.parse(arguments) }
        }
        #expect(throws: (any Error).self) { try SourceOptions.parse(["--region", "64x48+1+2"]) }
    }

    @Test("A side of one pixel is refused", arguments: ["1x1", "16383x1", "1x2"])
    func thinPicture(size: String) {
        #expect(throws: (any Error).self) { try SourceOptions.parse(["--source", "pattern", "--size", size]) }
    }
}
