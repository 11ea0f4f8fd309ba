import MediaCore
import TestTools
import Threading

@testable import Capture

/// Keeps the stamps of the frames that it is given.
final class StampSink: VideoSink {
    struct Received: Sendable {
        var timestamps: [MonotonicInstant] = []
        var requests: [VideoFormatRequest] = []
    }

    let received = Monitor(Received())
    let sourceRequirements: VideoFormatRequest
    private let action = Monitor<(@Sendable () -> Void)?>(nil)

    init(_ requirements: VideoFormatRequest = VideoFormatRequest()) {
        sourceRequirements = requirements
    }

    /// Has `body` run by the next frame, on the source's thread.
    func atNextFrame(_ body: @escaping @Sendable () -> Void) { action.withLock { $0 = body } }

    func onVideoFrame(_ frame: VideoFrame) {
        received.withLock { $0.timestamps.append(frame.timestamp) }
        let body = action.withLock { action -> (@Sendable () -> Void)? in
            defer { action = nil }
            return action
        }
        body?()
    }

    func onVideoFormatRequest(_ request: VideoFormatRequest) {
        received.withLock { $0.requests.append(request) }
    }

    var count: Int { received.withLock { $0.timestamps.count } }
    var requests: [VideoFormatRequest] { received.withLock { $0.requests } }
}

func frame(atMilliseconds milliseconds: Int64) -> VideoFrame {
    VideoFrame(
        buffer: VideoBuffer(dimensions: Dimensions(width: 16, height: 16)),
        timestamp: MonotonicInstant(nanoseconds: milliseconds * 1_000_000)
    )
}

/// A source without a device: frames come when the test wants them, on the source's own thread.
final class HandCapturer: CoreCapturer {
    struct Trouble: Error, Equatable { var what: String }

    enum Step: Sendable {
        case frame(milliseconds: Int64)
        case failure
        case end
        case interruption
        case interruptionEnd
    }

    let core: CaptureCore
    let steps = Monitor<[Step]>([])
    let opened = Monitor(0)
    let isOpen = Monitor(false)
    let failsToOpen = Monitor(false)
    /// Runs on the source's thread before it has opened.
    let whileOpening = Monitor<@Sendable () -> Void>({})

    init() {
        let (steps, opened, isOpen, failsToOpen) = (steps, opened, isOpen, failsToOpen)
        let whileOpening = whileOpening
        core = CaptureCore(threadName: "hand", explainShortage: { CaptureError($0) }) { context in
            let prepare = whileOpening.withLock { $0 }
            prepare()
            if failsToOpen.withLock({ $0 }) { throw Trouble(what: "open") }
            opened.change { $0 += 1 }
            isOpen.change { $0 = true }
            defer { isOpen.change { $0 = false } }
            context.whenStopRequested { steps.change { _ in } }
            context.opened(
                VideoFormat(
                    dimensions: Dimensions(width: 16, height: 16),
                    frameRate: FrameRate(30),
                    pixelFormat: .i420
                )
            )
            while true {
                let step = steps.wait { queue -> Step? in
                    if context.isStopRequested { return .end }
                    return queue.isEmpty ? nil : queue.removeFirst()
                }
                guard let step, !context.isStopRequested else { return }
                switch step {
                case .frame(let milliseconds):
                    let frame = frame(atMilliseconds: milliseconds)
                    var captured = CaptureStatistics()
                    captured.countCaptured(at: frame.timestamp)
                    if context.admit(captured, newestAt: frame.timestamp) { context.deliver(frame) }
                case .failure: throw Trouble(what: "read")
                case .interruption: context.interrupted(by: Trouble(what: "pause"))
                case .interruptionEnd: context.interruptionEnded()
                case .end: return
                }
            }
        }
    }

    deinit {
        core.abandon(waiting: true)
    }

    func give(_ some: Step...) { steps.change { $0 += some } }

    var openings: Int { opened.withLock { $0 } }
    var isDeviceOpen: Bool { isOpen.withLock { $0 } }
}
