import Capture
import MediaCore
import Synchronization
import TestTools
import Testing
import Threading

@testable import V4L2Capture

/// Converts the luma of a few formats; of JPEG it looks at the first bytes alone.
final class LumaConverter: CapturedFrameConverter {
    static let formats: Set<PixelFormat> = [.yuyv, .grey, .i420, .mjpeg]
    var requestedDimensions: Dimensions?
    private let accepted: Set<PixelFormat>
    private let pool = VideoBufferPool()
    private let note: (CapturedLayout) -> Void

    init(accepted: Set<PixelFormat> = formats, note: @escaping (CapturedLayout) -> Void = { _ in }) {
        self.accepted = accepted
        self.note = note
    }

    func outputDimensions(for dimensions: Dimensions) -> Dimensions { dimensions }

    func accepts(_ pixelFormat: PixelFormat) -> Bool { accepted.contains(pixelFormat) }

    func convert(
        _ bytes: RawSpan,
        layout: CapturedLayout,
        timestamp: MonotonicInstant
    ) throws(DamagedPicture) -> VideoFrame {
        note(layout)
        let buffer = pool.take(layout.dimensions)
        if layout.pixelFormat == .mjpeg {
            guard bytes.byteCount > 2, bytes.unsafeLoad(as: UInt8.self) == 0xFF else { throw .undecodable }
            return VideoFrame(buffer: buffer, timestamp: timestamp)
        }
        let step = layout.pixelFormat == .yuyv ? 2 : 1
        let needed = layout.bytesPerRow * layout.dimensions.height
        guard bytes.byteCount >= needed else { throw .short(bytes: bytes.byteCount, needed: needed) }
        buffer.withMutablePlanes { luma, _, _ in
            for row in 0..<layout.dimensions.height {
                for column in 0..<layout.dimensions.width {
                    let offset = row * layout.bytesPerRow + column * step
                    luma[row * buffer.lumaStride + column] = bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
                }
            }
        }
        return VideoFrame(buffer: buffer, timestamp: timestamp)
    }
}

/// Keeps what it is given.
final class RecordingSink: VideoSink {
    struct Received: Sendable {
        var timestamps: [MonotonicInstant] = []
        var lumas: [UInt8] = []
        var requests: [VideoFormatRequest] = []
        var dimensions: Dimensions?
        /// How many were slates.
        var substitutes = 0
        /// The last frame that was no slate.
        var lastPicture: VideoFrame?
        var lastSlate: VideoFrame?
    }

    let received = Monitor(Received())
    let sourceRequirements: VideoFormatRequest

    init(_ sourceRequirements: VideoFormatRequest = VideoFormatRequest()) {
        self.sourceRequirements = sourceRequirements
    }

    func onVideoFrame(_ frame: VideoFrame) {
        let luma = frame.buffer.withPlanes { luma, _, _ in luma[0] }
        received.change { received in
            received.timestamps.append(frame.timestamp)
            received.lumas.append(luma)
            received.dimensions = frame.dimensions
            if frame.isSubstitute {
                received.substitutes += 1
                received.lastSlate = frame
            } else {
                received.lastPicture = frame
            }
        }
    }

    func onVideoFormatRequest(_ request: VideoFormatRequest) {
        received.change { $0.requests.append(request) }
    }

    /// Waits for `count` frames in all.
    func waitForFrames(_ count: Int) {
        _ = received.waitPatiently { $0.timestamps.count >= count ? true : nil }
    }

    /// Waits for `count` slates in all.
    func waitForSlates(_ count: Int) {
        _ = received.waitPatiently { $0.substitutes >= count ? true : nil }
    }

    /// The frames that were no slates.
    var pictures: Int { received.withLock { $0.timestamps.count - $0.substitutes } }
    var slates: Int { received.withLock { $0.substitutes } }
    var count: Int { received.withLock { $0.timestamps.count } }
    var lumas: [UInt8] { received.withLock { $0.lumas } }
    var timestamps: [MonotonicInstant] { received.withLock { $0.timestamps } }
}

let testDevice = CaptureDevice(path: "/dev/video0", name: "Scripted", busInfo: "test-1", driver: "scripted")

/// A source over a scripted camera, which is not waited for unless `outageLimit` says so.
func makeSource(
    _ system: ScriptedSystem,
    device: CaptureDevice = testDevice,
    request: VideoFormatRequest = VideoFormatRequest(),
    accepted: Set<PixelFormat> = LumaConverter.formats,
    outageLimit: Duration? = .zero
) -> CameraSource {
    CameraSource(device: device, request: request, system: system, outageLimit: outageLimit) {
        LumaConverter(accepted: accepted)
    }
}

extension CameraSource {
    /// The failures to come.
    func failures() -> AsyncStream<CameraError> {
        let events = captureEvents()
        let (stream, continuation) = AsyncStream.makeStream(of: CameraError.self)
        Task {
            for await case .failed(let error as CameraError) in events { continuation.yield(error) }
            continuation.finish()
        }
        return stream
    }

    var cameraFailure: CameraError? { failure as? CameraError }
}

/// Captures until the script's camera fails; what came of it.
func captureToTheEnd(
    _ script: CameraScript,
    request: VideoFormatRequest = VideoFormatRequest(),
    sink: RecordingSink? = RecordingSink(),
    accepted: Set<PixelFormat> = LumaConverter.formats,
    usesRealClock: Bool = false
) async throws -> (failure: CameraError?, statistics: CaptureStatistics, format: VideoFormat?, closed: Bool) {
    let system = ScriptedSystem(script, usesRealClock: usesRealClock)
    let source = makeSource(system, request: request, accepted: accepted)
    source.sink = sink
    let failures = source.failures()
    try await source.startCapture()
    var failure: CameraError?
    for await one in failures {
        failure = one
        break
    }
    return (failure, source.captureStatistics, source.captureFormat, system.isAllClosed)
}
