import MediaCore
import Testing

@testable import Capture
@testable import RoomKit

@Suite("Presets")
struct PresetTests {
    @Test(
        "Each name has its size",
        arguments: [
            (VideoPreset.cif, 352, 288), (.vga, 640, 480), (.hd720, 1280, 720), (.hd1080, 1920, 1080),
            (.low, 320, 240), (.medium, 640, 480), (.high, 1280, 720),
        ]
    )
    func sizes(preset: VideoPreset, width: Int, height: Int) {
        #expect(preset.dimensions == Dimensions(width: width, height: height))
        #expect(VideoPreset(rawValue: "\(preset)") == preset)
    }

    @Test("A camera made with a preset is asked for that size, and for a rate if one is given")
    func request() {
        let device = CaptureDevice(path: "/dev/video0", name: "None", busInfo: "none", driver: "none")
        let camera = CameraSource(device: device, preset: .cif, frameRate: FrameRate(15))
        #expect(camera.sinks.request == VideoFormatRequest(dimensions: .cif, frameRate: FrameRate(15)))
        let other = CameraSource(device: device, preset: .hd720)
        #expect(other.sinks.request == VideoFormatRequest(dimensions: .hd720))
    }
}
