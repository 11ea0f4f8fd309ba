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

    @Test("A side of one pixel is refused", arguments: ["1x1", "16383x1", "1x2"])
    func thinPicture(size: String) {
        #expect(throws: (any Error).self) { try SourceOptions.parse(["--source", "pattern", "--size", size]) }
    }
}
