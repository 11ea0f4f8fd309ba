import FoundationEssentials
import RoomKit
import TestSupport

@testable import room_client

/// What the client writes about cameras and screens, which the machine need not have.
enum DeviceEvents {
    /// The events of `devices`.
    static func cameras() throws -> [JSONObject] {
        let camera = CaptureDevice(path: "/dev/video0", name: "camera", busInfo: "usb", driver: "uvcvideo")
        var device = DeviceEvent(camera, formats: [], controls: [])
        device.formats = [
            DeviceEvent.Format(
                pixelFormat: "YUYV",
                description: "YUYV 4:2:2",
                decoding: "direct",
                supported: true,
                width: 640,
                height: 480,
                frameRates: [30]
            )
        ]
        device.controls = [
            DeviceEvent.Control(
                name: "power_line_frequency",
                description: "Power Line Frequency",
                type: "menu",
                minimum: 0,
                maximum: 1,
                step: 1,
                default: 0,
                value: Nullable(wrappedValue: 1),
                readOnly: false,
                inactive: false,
                menu: [DeviceEvent.MenuEntry(value: 1, name: "50 Hz")]
            )
        ]
        (device.error, device.code) = ("busy", "busy")
        let refusal = RefusedDeviceEvent(try refusedDevice())
        let changes = ["deviceAdded", "deviceRemoved"].map { name in
            var change = DeviceEvent(camera)
            change.event = name
            return change
        }
        let events = try ([device] + changes).map { try object($0) }
        return try events + [object(refusal), object(DevicesSummary(cameras: 1, nil))]
    }

    /// The error of a node that does not exist, which stands for one that is refused.
    private static func refusedDevice() throws -> CameraError {
        do throws(CameraError) {
            _ = try CameraSource.captureDevice(matching: "/dev/video-there-is-none")
        } catch {
            return error
        }
        throw TestFailure("there is such a camera")
    }

    /// The events of `devices --screens`.
    static func screens() throws -> [JSONObject] {
        let size = Dimensions(width: 640, height: 480)
        let monitor = ScreenMonitor(index: 0, name: "HDMI-1", isPrimary: true, column: 0, row: 0, dimensions: size)
        let window = ScreenWindow(identifier: 1, title: "Slides", dimensions: size)
        return [try object(MonitorEvent(monitor)), try object(WindowEvent(window))]
    }

    /// The events of `connect` about its source.
    static func ofSources() throws -> [JSONObject] {
        let track = LocalVideoTrack(source: PatternSource())
        let events = try ["interrupted", "interruptionEnded", "warning"].map { try object(SourceEvent($0, of: track)) }
        return events + [try object(CommandEvent(command: "rotate 90"))]
    }

    /// The events of both ends about the sizes of pictures.
    static func ofSizes() throws -> [JSONObject] {
        let track = LocalVideoTrack(source: PatternSource())
        return [try object(DimensionsEvent(track, Dimensions(width: 640, height: 480)))]
    }

    private static func object(_ event: some Encodable) throws -> JSONObject {
        let line = try JSONEncoder().encode(TimedEvent(event: event))
        return try JSONObject(reading: String(decoding: line, as: UTF8.self))
    }
}
