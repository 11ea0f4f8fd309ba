import RelayServer
import RoomKit

// The Swift code of README.md and of the library's pages. It is compiled and not run; `DocumentTests` compares them.

private func use(_ value: some Any) {}
private func detectMotion(in frame: VideoFrame) {}

private func firstSteps(myRenderer: any VideoRenderer) async throws {
    let camera = CameraSource(device: try CameraSource.defaultDevice())  // without a camera: PatternSource()
    let track = LocalVideoTrack(source: camera)
    let room = try await RoomClient.connect(options: ConnectOptions(roomName: "my-room"))
    try await room.localParticipant.publish(track)

    for await event in room.events {
        if case .trackSubscribed(let video, let participant) = event {
            print("\(participant.identity) shows \(video.name)")
            video.addRenderer(myRenderer)  // VideoRenderer: render(_ frame: VideoFrame) throws
        }
    }
}

private func writing(pixels: [UInt8], captured: MonotonicInstant, myBytes: [UInt8]) throws {
    let track = LocalVideoTrack(writtenAs: "thermal")
    let converter = try VideoFrameConverter()  // ARGB, BGRA, RGBA, RGB, NV12, NV21, YUYV, UYVY, I420, MJPEG, …
    let layout = CapturedLayout(pixelFormat: .bgra32, dimensions: .vga, bytesPerRow: 640 * 4)
    var frame = try VideoFrame(converting: pixels.span.bytes, layout: layout, timestamp: captured, with: converter)
    frame.metadata = try FrameMetadata(myBytes)  // at most 900 bytes; each subscriber's renderer gets them
    if !track.write(frame) { /* dropped: do not write it again, the next one is fresher */  }
}

private func reading(camera: CameraSource) async {
    for await frame in camera.frames { detectMotion(in: frame) }
    if let failure = camera.failure { print(failure) }  // it is busy, absent, or was lost for good
}

private func testing() async throws {
    let server = try RelayServer.start()  // any free port of 127.0.0.1; from the product "RelayServer"
    var options = ConnectOptions(roomName: "test")
    options.url = server.url
    let room = try await RoomClient.connect(options: options)
    use(room)
}

private func overview(renderer: any VideoRenderer) async throws {
    var options = ConnectOptions(roomName: "my-room")
    options.url = "ws://127.0.0.1:8480"
    let room = try await RoomClient.connect(options: options)

    let device = try CameraSource.captureDevice(matching: "0")
    let track = LocalVideoTrack(source: CameraSource(device: device))
    try await room.localParticipant.publish(track)

    for await event in room.events {
        if case .trackSubscribed(let track, let participant) = event {
            print("\(participant.identity) shows \(track.name)")
            track.addRenderer(renderer)
        }
    }
}

func meanBrightness(_ buffer: VideoBuffer) -> Int {
    buffer.withPlanes { luma, _, _ in
        var sum = 0
        for row in 0..<buffer.dimensions.height {
            for column in 0..<buffer.dimensions.width { sum += Int(luma[row * buffer.lumaStride + column]) }
        }
        return sum / buffer.dimensions.area
    }
}
