import Foundation
import Capture
import MediaCore
import TestTools
import Testing
import Threading
import VideoProcessing

@testable import V4L2Capture

extension Tag {
    /// Tests that need a real camera, or the kernel's pretended one.
    @Tag static var camera: Self
}

/// Whether this machine is set aside for tests with cameras: it has one, and `CAMERA_LAB` is 1.
private let isCameraLab =
    ProcessInfo.processInfo.environment["CAMERA_LAB"] == "1" && !KernelCameraSystem().nodePaths().isEmpty

/// Whether its camera is vivid, whose faults can be ordered.
let hasVivid = isCameraLab && CameraSource.devices().first?.driver == "vivid"

@Suite("Camera lab", .tags(.camera), .serialized, .enabled(if: isCameraLab), .timeLimit(.minutes(5)))
struct CameraLabTests {
    func device() throws -> CaptureDevice {
        try #require(CameraSource.devices().first, "no camera can be opened")
    }

    /// The smallest format that the test's converter reads, at its highest rate.
    private func smallestFormat(_ device: CaptureDevice) throws -> VideoFormat {
        let formats = try CameraSource.supportedFormats(captureDevice: device)
            .filter { [.yuyv, .mjpeg].contains($0.pixelFormat) }
        let smallest = try #require(formats.first?.dimensions)
        return try #require(formats.filter { $0.dimensions == smallest }.max { $0.frameRate < $1.frameRate })
    }

    private func makeSource(_ device: CaptureDevice, outageLimit: Duration? = .zero) throws -> CameraSource {
        let format = try smallestFormat(device)
        let request = VideoFormatRequest(dimensions: format.dimensions, pixelFormat: format.pixelFormat)
        return CameraSource(device: device, request: request, outageLimit: outageLimit) { LumaConverter() }
    }

    /// Sets one of vivid's controls.
    func control(_ setting: String, of device: CaptureDevice) throws {
        let child = try ChildProcess(["v4l2-ctl", "-d", device.path, "-c", setting])
        try #require(child.wait(), "v4l2-ctl -c \(setting)")
    }

    @Test("Cameras are listed with formats that can be captured")
    func discovery() throws {
        let device = try device()
        #expect(!device.name.isEmpty && !device.busInfo.isEmpty)
        #expect(try CameraSource.captureDevice(matching: device.path) == device)
        #expect(try CameraSource.captureDevice(matching: device.busInfo) == device)
        let formats = try CameraSource.supportedFormats(captureDevice: device)
        #expect(!formats.isEmpty && formats == formats.sortedByDimensions())
        #expect(!(try CameraSource.captureFormats(captureDevice: device)).isEmpty)
    }

    @Test("Thirty frames come, stamped in order and not in the future, and the camera can be opened again")
    func streaming() async throws {
        let device = try device()
        let source = try makeSource(device)
        var delivered = 0
        for _ in 0..<3 {
            let sink = RecordingSink()
            source.sink = sink
            try await source.startCapture()
            sink.waitForFrames(30)
            await source.stopCapture()
            let format = try #require(source.captureFormat)
            #expect(sink.received.withLock { $0.dimensions } == format.dimensions)
            let statistics = source.captureStatistics
            delivered += sink.count
            #expect(statistics.framesCaptured == delivered + statistics.framesDropped.total)
            let timestamps = sink.timestamps
            #expect(zip(timestamps, timestamps.dropFirst()).allSatisfy { $0 <= $1 })
            #expect(timestamps.allSatisfy { $0 <= MonotonicClock.now })
            #expect(statistics.captureDuration > .zero)
            #expect(source.failure == nil)
        }
    }

    @Test("A second source on the same camera is told who has it")
    func busy() async throws {
        let device = try device()
        let first = try makeSource(device)
        try await first.startCapture()
        let second = CameraSource(device: device) { LumaConverter() }
        let error = try await #require(throws: CameraError.self) { try await second.startCapture() }
        #expect(error.code == .busy && error.description.contains("pid \(getpid())"), "\(error)")
        await first.stopCapture()
    }

    @Test("Frames that the driver drops are counted as missed", .enabled(if: hasVivid))
    func droppedBuffers() async throws {
        let device = try device()
        try control("percentage_of_dropped_buffers=30", of: device)
        defer { try? control("percentage_of_dropped_buffers=0", of: device) }
        let source = try makeSource(device)
        let sink = RecordingSink()
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(60)
        await source.stopCapture()
        #expect(source.captureStatistics.framesMissed > 5)
    }

    @Test("A buffer that the driver marks is counted as corrupt, and the stream goes on", .enabled(if: hasVivid))
    func flaggedBuffer() async throws {
        let device = try device()
        let source = try makeSource(device)
        let sink = RecordingSink()
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(10)
        try control("inject_v4l2_buf_flag_error=1", of: device)
        sink.waitForFrames(sink.count + 20)
        await source.stopCapture()
        #expect(source.captureStatistics.framesDropped[.corrupt] == 1)
    }

    @Test("A buffer that the driver refuses once does not end the stream", .enabled(if: hasVivid))
    func refusedBuffer() async throws {
        let device = try device()
        let source = try makeSource(device)
        let sink = RecordingSink()
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(10)
        try control("inject_vidioc_qbuf_error=1", of: device)
        sink.waitForFrames(sink.count + 40)
        await source.stopCapture()
        #expect(source.failure == nil)
    }

    // vivid's counter begins 128 below its end, and its clock 16 seconds before it wraps.
    @Test(
        "Sequence numbers that begin again are no missed frames, and stamps that wrap are put right",
        .enabled(if: hasVivid),
        arguments: ["wrap_sequence_number=1", "wrap_timestamp=1", "wrap_timestamp=2"]
    )
    func wraps(setting: String) async throws {
        let device = try device()
        try control(setting, of: device)
        defer { try? control(setting.dropLast() + "0", of: device) }
        let source = try makeSource(device)
        let sink = RecordingSink()
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(160)
        await source.stopCapture()
        #expect(source.failure == nil && source.captureStatistics.framesMissed < 160)
        let timestamps = sink.timestamps
        #expect(zip(timestamps, timestamps.dropFirst()).allSatisfy { $0 <= $1 })
        #expect(timestamps.allSatisfy { $0 <= MonotonicClock.now })
    }

    @Test(
        "A refused call fails the start, and the next start works",
        .enabled(if: hasVivid),
        arguments: ["inject_vidioc_reqbufs_error=1", "inject_vidioc_streamon_error=1"]
    )
    func refusedStart(setting: String) async throws {
        let device = try device()
        let source = try makeSource(device)
        let sink = RecordingSink()
        source.sink = sink
        try control(setting, of: device)
        let error = try await #require(throws: CameraError.self) { try await source.startCapture() }
        #expect(error.code == .driverFailed)
        try await source.startCapture()
        sink.waitForFrames(5)
        await source.stopCapture()
    }

    @Test(
        "A fatal error and a disconnection end capturing, and the next start works",
        .enabled(if: hasVivid),
        arguments: [("inject_fatal_streaming_error=1", "driverFailed"), ("disconnect=1", "deviceLost")]
    )
    func fatal(setting: String, code: String) async throws {
        let device = try device()
        let source = try makeSource(device)
        let sink = RecordingSink()
        source.sink = sink
        var failures = source.failures().makeAsyncIterator()
        try await source.startCapture()
        sink.waitForFrames(10)
        try control(setting, of: device)
        #expect(await failures.next()?.code.name == code)
        #expect(source.captureStatistics.framesCaptured >= 10)
        try await source.startCapture()
        sink.waitForFrames(sink.count + 5)
        await source.stopCapture()
    }

    // The node's old number was opened, whatever had it.
    @Test("A camera that comes back under another node is found there", .enabled(if: hasVivid))
    func renumbered() async throws {
        let before = try device()
        let source = try makeSource(before)
        // The number stays taken while somebody has the old node open.
        let held = open(before.path, O_RDWR | O_CLOEXEC)
        try #require(held >= 0)
        defer { close(held) }
        for step in ["unbind", "bind"] {
            try "vivid.0".write(toFile: "/sys/bus/platform/drivers/vivid/\(step)", atomically: false, encoding: .utf8)
        }
        let after = try device()
        try #require(after.path != before.path && after.busInfo == before.busInfo)
        let sink = RecordingSink()
        source.sink = sink
        try await source.startCapture()
        try await eventually("frames come") { sink.count >= 5 }
        await source.stopCapture()
    }

    /// Takes vivid's device away, or gives it back.
    private func vivid(_ step: String) throws {
        try "vivid.0".write(toFile: "/sys/bus/platform/drivers/vivid/\(step)", atomically: false, encoding: .utf8)
    }

    @Test("Controls are listed and set, and set again when the camera comes back", .enabled(if: hasVivid))
    func controls() async throws {
        let source = try makeSource(device(), outageLimit: nil)
        let brightness = try #require(try source.controls.first { $0.name == "brightness" })
        #expect(brightness.range == 0...255 && brightness.defaultValue == 128)
        #expect(try source.controls.contains { $0.kind == .menu && !$0.menu.isEmpty })
        try source.setControl("brightness", to: 77)
        #expect(try source.controls.first { $0.name == "brightness" }?.value == 77)
        let error = try #require(throws: CameraError.self) { try source.setControl("brightness", to: 256) }
        #expect(error.code == .controlOutOfRange && error.description.contains("0 to 255"), "\(error)")
        let sink = RecordingSink()
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(5)
        try vivid("unbind")
        try await eventually("slates come") { sink.slates >= 2 }
        try vivid("bind")
        let before = sink.pictures
        try await eventually("pictures come again") { sink.pictures >= before + 5 }
        #expect(try source.controls.first { $0.name == "brightness" }?.value == 77)
        try source.setControl("brightness", to: brightness.defaultValue)
        await source.stopCapture()
    }

    @Test("A camera that is unbound and bound is announced, both times", .enabled(if: hasVivid))
    func announced() async throws {
        let device = try device()
        var changes = CameraSource.deviceChanges().makeAsyncIterator()
        #expect(await changes.next() == .added(device))
        try vivid("unbind")
        #expect(await changes.next() == .removed(device))
        try vivid("bind")
        guard case .added(let again) = await changes.next() else {
            Issue.record("it is announced again")
            return
        }
        #expect(again.busInfo == device.busInfo)
    }

    // Colours were taken for BT.601 of limited range, whatever the driver said.
    @Test(
        "The bars have their colours in every coding that the driver states",
        .enabled(if: hasVivid),
        arguments: [(0, 0), (1, 1), (2, 0), (2, 1), (6, 2), (8, 1), (0, 1), (0, 2)]
    )
    func colours(encoding: Int, quantization: Int) async throws {
        let device = try device()
        try control("y_cbcr_encoding=\(encoding)", of: device)
        try control("quantization=\(quantization)", of: device)
        // Text would cover the bars.
        try control("osd_text_mode=2", of: device)
        defer {
            try? control("osd_text_mode=0", of: device)
            try? control("y_cbcr_encoding=0", of: device)
            try? control("quantization=0", of: device)
        }
        let source = CameraSource(
            device: device,
            request: VideoFormatRequest(dimensions: Dimensions(width: 320, height: 180), pixelFormat: .yuyv)
        ) {
            do {
                return try FrameConverter()
            } catch {
                preconditionFailure("\(error)")
            }
        }
        let sink = LastFrameSink()
        source.sink = sink
        try await source.startCapture()
        try await eventually("frames come") { sink.count >= 3 }
        await source.stopCapture()
        let buffer = try #require(sink.last).buffer
        // 75 % of white, yellow, cyan, green, magenta, red, blue, and black (v4l2-tpg), in BT.601 of limited range.
        let bars = [
            (180, 128, 128), (162, 44, 142), (131, 156, 44), (112, 72, 58), (84, 184, 198), (65, 100, 212),
            (35, 212, 114),
            (16, 128, 128),
        ]
        for (index, bar) in bars.enumerated() {
            let column = (2 * index + 1) * buffer.dimensions.width / 16
            let row = buffer.dimensions.height * 3 / 4
            let pixel = buffer.withPlanes { luma, chromaU, chromaV in
                (
                    Int(luma[row * buffer.lumaStride + column]),
                    Int(chromaU[row / 2 * buffer.chromaStride + column / 2]),
                    Int(chromaV[row / 2 * buffer.chromaStride + column / 2])
                )
            }
            let difference = max(abs(pixel.0 - bar.0), abs(pixel.1 - bar.1), abs(pixel.2 - bar.2))
            #expect(difference <= 4, "bar \(index): \(pixel), not \(bar)")
        }
    }
}

/// Keeps the last frame.
private final class LastFrameSink: VideoSink {
    private let state = Monitor<(count: Int, last: VideoFrame?)>((0, nil))
    let sourceRequirements = VideoFormatRequest()

    func onVideoFrame(_ frame: VideoFrame) {
        state.withLock { state in
            state.count += 1
            state.last = frame
        }
    }

    func onVideoFormatRequest(_ request: VideoFormatRequest) {}

    var count: Int { state.withLock { $0.count } }
    var last: VideoFrame? { state.withLock { $0.last } }
}
