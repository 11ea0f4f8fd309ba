import RoomKit

// The Swift code of docs/migration.md. It is compiled and not run; `DocumentTests` compares them.

private func use(_ value: some Any) {}

private func joining(token: String) async throws {
    let camera = CameraSource(device: try CameraSource.defaultDevice())
    let track = LocalVideoTrack(source: camera, name: "front")
    let options = ConnectOptions(token: token) { builder in
        builder.roomName = "my-room"
        builder.videoTracks = [track]
        // It publishes only; without this line it receives what the others publish, too.
        builder.isAutomaticSubscriptionEnabled = false
    }
    let room = try await RoomClient.connect(options: options)
    use(room)
}

private func detect(_ pixels: [UInt8], _ size: Dimensions) {}
private func look(at frame: VideoFrame) {}

private func watching(_ track: RemoteVideoTrack) async {
    let registration = track.addRenderer { frame in print(frame.timestamp) }
    for await frame in track.frames {
        let pixels = frame.copy(as: .bgr24)
        detect(pixels, frame.uprightDimensions)
    }
    registration.remove()
}

private func failing(_ camera: CameraSource) async throws {
    for try await frame in camera.frames.throwing() { look(at: frame) }
}

private func choosingFormats(device: CaptureDevice) async throws {
    let formats = try CameraSource.supportedFormats(captureDevice: device)
    let camera = CameraSource(device: device, format: formats.first)
    try await camera.startCapture()
    try await camera.selectCaptureDevice(device, format: formats.last)
}

private func publishing(room: Room, track: LocalVideoTrack) async throws {
    var options = VideoPublishOptions()
    options.maxBitrate = .kilobitsPerSecond(800)
    options.degradationPreference = .maintainFramerate
    try await room.localParticipant.publish(track, options: options)
}

private func changing(_ track: LocalVideoTrack) throws {
    if var parameters = track.encodingParameters {
        parameters.maxBitrate = .kilobitsPerSecond(300)
        parameters.priority = .low
        try track.setEncodingParameters(parameters)
    }
    track.transform.rotation = .clockwise90
}

private func receiving(room: Room, renderer: any VideoRenderer) async {
    for await event in room.events {
        switch event {
        case .trackSubscribed(let track, let participant):
            print("\(participant.identity) shows \(track.name)")
            track.addRenderer(renderer)
        case .trackUnsubscribed(let track, _):
            track.removeRenderer(renderer)
        case .localTrackFailed(let track, let error):
            print("\(track.name) delivers nothing: \(error)")
        case .disconnected(let error?):
            print("The session is over: \(error)")
        default: break
        }
    }
}

private func leaving(room: Room, track: LocalVideoTrack) async {
    await room.localParticipant.unpublish(track)
    await room.disconnect()
}

/// A device that the reader imagines.
protocol Sensor: AnyObject, Sendable {
    func open() throws
    func start(_ body: @escaping @Sendable (RawSpan, MonotonicInstant) throws -> Void) throws
    func stop()
    func close()
}

final class ThermalCapturer: CustomCapturer {
    private let sensor: any Sensor
    // Only the sensor's thread uses it.
    private nonisolated(unsafe) let converter: VideoFrameConverter

    init(_ sensor: any Sensor) throws {
        self.sensor = sensor
        converter = try VideoFrameConverter()
    }

    func initCapture() throws { try sensor.open() }
    func startCapture(_ consumer: VideoCaptureConsumer) throws {
        let layout = CapturedLayout(pixelFormat: .bgra32, dimensions: .vga, bytesPerRow: 640 * 4)
        try sensor.start { pixels, captured in
            let frame = try VideoFrame(converting: pixels, layout: layout, timestamp: captured, with: self.converter)
            consumer.consume(frame)
        }
    }
    func stopCapture() { sensor.stop() }
    func releaseCapture() { sensor.close() }
}

private func capturing(capturer: ThermalCapturer) {
    let track = LocalVideoTrack(source: CapturerSource(capturer), name: "thermal")
    use(track)
}

private func writing(frame: VideoFrame) {
    let track = LocalVideoTrack(writtenAs: "thermal")
    if !track.write(frame) { print("dropped: the next one is fresher") }
}

final class BrightnessMeter: VideoRenderer {
    func render(_ frame: VideoFrame) throws {
        frame.buffer.withPlanes { luma, _, _ in
            // Step from row to row by `frame.buffer.lumaStride`, never by the width.
            print(frame.dimensions, luma[0])
        }
    }
}

private func extracting(camera: CameraSource, isMoving: (VideoFrame) -> Bool) async {
    for await frame in camera.frames where isMoving(frame) { print("motion at \(frame.timestamp)") }
    if let failure = camera.failure { print(failure) }
}
