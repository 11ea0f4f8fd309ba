import RoomKit

// The Swift examples of docs/parity.md, line by line. They are compiled and not run; `DocumentTests` compares them.

private func use(_ value: some Any) {}
private func look(at frame: VideoFrame) {}
private func save(_ bytes: [UInt8]) {}

private func customCapturers(
    room: Room,
    device: CaptureDevice,
    capturer: any CustomCapturer,
    consumer: VideoCaptureConsumer,
    buffer: VideoBuffer,
    bytes: [UInt8]
) async throws {
    let source = CapturerSource(capturer, kind: .camera)
    try await room.localParticipant.publish(LocalVideoTrack(source: source))
    let layout = CapturedLayout(pixelFormat: .nv12, dimensions: .vga, bytesPerRow: 704, chromaBytesPerRow: [704])
    use(layout)
    // swift-format-ignore
    let frame = VideoFrame(buffer: buffer, timestamp: .now, rotation: .clockwise90, metadata: try FrameMetadata(bytes))
    var dropped = 0
    if !consumer.consume(frame) { dropped += 1 }
    use(dropped)
}

private func camerasByName(device: CaptureDevice) async throws {
    let camera = CameraSource(device: device, preset: .cif, frameRate: FrameRate(30))
    try await camera.startCapture()
    let late = camera.captureStatistics.framesDropped[.late]
    use(late)
    let delay = camera.captureStatistics.captureDelay
    use(delay)
    for await event in camera.captureEvents() { print(event) }
}

private func cameraAsAWhole(device: CaptureDevice, track: LocalVideoTrack) throws {
    // swift-format-ignore
    let camera = CameraSource(device: device, request: VideoFormatRequest(dimensions: .hd720, frameRate: FrameRate(25), pixelFormat: .mjpeg))
    use(camera)
    let dropped = track.statistics.framesDropped
    use(dropped)
    let parameters = VideoEncodingParameters()
    try track.setEncodingParameters(parameters)
    track.transform.isMirrored = true
}

private func screens(frame: VideoFrame) async {
    let track = LocalVideoTrack(source: ScreenSource(target: .window("Slides")))
    let screen = ScreenSource(request: VideoFormatRequest(frameRate: ScreenSource.defaultFrameRate))
    let age = MonotonicInstant.now.duration(since: frame.timestamp)
    use(age)
    let format = screen.captureFormat
    use(format)
    var options = VideoPublishOptions()
    if screen.contentHint == .detail { options.degradationPreference = .maintainResolution }
    let announced = track.dimensions
    use(announced)
    await screen.stopCapture()
}

private func sources(
    source: any VideoSource,
    mySink: any VideoSink,
    token: String,
    track: LocalVideoTrack
) async throws {
    source.sinks.add(mySink)
    let device = try CameraSource.captureDevice(matching: "HD Webcam")
    let formats = try CameraSource.supportedFormats(captureDevice: device)
    let largest = formats.last?.dimensions
    use(largest)
    let camera = CameraSource(device: try CameraSource.defaultDevice())
    camera.sink = mySink
    do { try await camera.startCapture() } catch { print(error) }
    camera.requestOutputFormat(VideoFormatRequest(dimensions: Dimensions(width: 480, height: 480)))
    // swift-format-ignore
    let room = try await RoomClient.connect(options: ConnectOptions(token: token) { $0.roomName = "my-room" })
    await room.localParticipant.unpublish(track)
    let reason = track.statistics.layers.last?.qualityLimitation
    use(reason)
}

private func changes(camera: CameraSource, device: CaptureDevice) async throws {
    let gap = try await camera.selectCaptureDevice(device)
    use(gap)
}

private func orientation(device: CaptureDevice, tracker: any OrientationTracker) {
    let camera = CameraSource(device: device, orientationTracker: tracker)
    use(camera)
}

private func troubles(event: RoomEvent) throws {
    if case .localTrackInterrupted(let track, let error) = event { print(track.name, error) }
    do throws(CameraError) {
        let device = try CameraSource.defaultDevice()
        use(device)
    } catch {
        guard error.code == .permissionDenied else { throw error }
    }
}

private func renderers(track: LocalVideoTrack, remoteTrack: RemoteVideoTrack, myRenderer: any VideoRenderer) {
    remoteTrack.addRenderer(myRenderer)
    remoteTrack.addRenderer(GrayscaleRenderer { picture in save(picture.pgm) })
    let missed = remoteTrack.rendererStatistics(of: myRenderer)?.framesDropped
    use(missed)
    let failed = remoteTrack.rendererStatistics(of: myRenderer)?.framesFailed
    use(failed)
    track.addRenderer(myRenderer)
}

private func extraction(
    device: CaptureDevice,
    transform: CameraTransform,
    myActor: any FrameExtractorDelegate
) async throws {
    let camera = CameraSource(device: device, transform: transform)
    for await frame in camera.frames { look(at: frame) }
    for await frame in camera.frames(atMost: FrameRate(5)) { look(at: frame) }
    let converter = try VideoFrameConverter()
    use(converter)
    let extractor = FrameExtractor(source: camera, frameRate: FrameRate(10), delegate: myActor)
    try await extractor.start()
    await extractor.stop()
}
