import CV4L2
import Glibc
import Capture
import MediaCore
import TestTools
import Testing

@testable import V4L2Capture

private let lost = CameraScript.Event.trouble([.failed, .gone], status: ENODEV)

private let requests: [(name: String, request: UInt)] = [
    ("QUERYCAP", cv4l2_QUERYCAP), ("ENUM_FMT", cv4l2_ENUM_FMT), ("ENUM_FRAMESIZES", cv4l2_ENUM_FRAMESIZES),
    ("ENUM_FRAMEINTERVALS", cv4l2_ENUM_FRAMEINTERVALS), ("G_FMT", cv4l2_G_FMT), ("S_FMT", cv4l2_S_FMT),
    ("TRY_FMT", cv4l2_TRY_FMT), ("G_PARM", cv4l2_G_PARM), ("S_PARM", cv4l2_S_PARM), ("REQBUFS", cv4l2_REQBUFS),
    ("QUERYBUF", cv4l2_QUERYBUF), ("QBUF", cv4l2_QBUF), ("DQBUF", cv4l2_DQBUF), ("STREAMON", cv4l2_STREAMON),
    ("STREAMOFF", cv4l2_STREAMOFF),
]

private let statuses = [EINVAL, EBUSY, EIO, ENODEV, ENOMEM, ENOSPC, ENOTTY, EACCES, EPIPE]

@Suite("Faults", .timeLimit(.minutes(2)))
struct CameraFaultTests {
    @Test("Whatever call fails, and how, nothing stays open", arguments: requests.indices, statuses)
    func everyCallFails(index: Int, status: Int32) async throws {
        for calls in [0, 1, 5] {
            let system = ScriptedSystem(
                CameraScript(
                    passingFailures: [requests[index].request: (after: calls, status: status)],
                    events: CameraScript.steady(3) + [lost]
                )
            )
            let source = makeSource(system)
            source.sink = nil
            var failures = source.failures().makeAsyncIterator()
            do {
                try await source.startCapture()
                let failure = await failures.next()
                #expect(failure != nil, "\(requests[index].name)")
            } catch let error as CameraError {
                #expect(!error.description.isEmpty)
            }
            #expect(system.isAllClosed, "\(requests[index].name) failing with \(errnoText(status))")
        }
    }

    @Test(
        "Each failure has its code and says what to do",
        arguments: [
            (cv4l2_S_FMT, EBUSY, "busy", "somebody (pid 42)"),
            (cv4l2_REQBUFS, EBUSY, "busy", "somebody (pid 42)"),
            (cv4l2_STREAMON, ENOSPC, "noBandwidth", "smaller size"),
            (cv4l2_STREAMON, EIO, "driverFailed", "start streaming from /dev/video0"),
            (cv4l2_S_FMT, EACCES, "permissionDenied", "add this user to the group"),
            (cv4l2_REQBUFS, ENODEV, "deviceLost", "plug it in again"),
            (cv4l2_REQBUFS, ENOMEM, "driverFailed", "smaller size"),
            (cv4l2_QUERYCAP, ENOTTY, "notACamera", "no video device"),
        ] as [(UInt, Int32, String, String)]
    )
    func sentences(request: UInt, status: Int32, code: String, says: String) async throws {
        let source = makeSource(ScriptedSystem(CameraScript(failures: [request: status])))
        let error = try await #require(throws: CameraError.self) { try await source.startCapture() }
        #expect(error.code.name == code && error.description.contains(says), "\(error)")
        #expect((source.failure as? CameraError)?.code == error.code)
        await source.stopCapture()
    }

    @Test(
        "Trouble while streaming ends capturing with its code and the counts kept",
        arguments: [
            ([.failed], EIO, "driverFailed"), ([.failed, .gone], ENODEV, "deviceLost"), ([.gone], EAGAIN, "deviceLost"),
            ([.failed], EAGAIN, "driverFailed"), ([.readable], EPIPE, "driverFailed"), ([], EIO, "noFrames"),
        ] as [(NodeEvents, Int32, String)]
    )
    func trouble(events: NodeEvents, status: Int32, code: String) async throws {
        let script = CameraScript(events: CameraScript.steady(7) + [.trouble(events, status: status), .silence])
        let result = try await captureToTheEnd(script)
        #expect(result.failure?.code.name == code)
        #expect(result.statistics.framesCaptured == 7 && result.closed)
    }

    /// A camera that is unplugged between the taking of a picture and the return of its buffer: the picture was counted
    /// as captured, and neither delivered nor counted as dropped.
    @Test(
        "A picture that was taken is delivered, even if the camera is gone when its buffer goes back",
        arguments: [
            (CameraScript.steady(5), 2, 3),
            ([.frames((0..<3).map { CameraScript.Frame(sequence: UInt32($0)) })], 0, 1),
        ]
    )
    func lostWithPicture(events: [CameraScript.Event], returned: Int, delivered: Int) async throws {
        var script = CameraScript(events: events + [.silence])
        script.passingFailures = [cv4l2_QBUF: (after: BufferRing.wantedCount + returned, status: ENODEV)]
        let sink = RecordingSink()
        let result = try await captureToTheEnd(script, sink: sink)
        #expect(result.failure?.code == .deviceLost && sink.count == delivered)
        #expect(result.statistics.framesCaptured == sink.count + result.statistics.framesDropped.total)
    }

    @Test("A buffer that we did not hand over is not touched", arguments: [4, 99])
    func wrongIndex(index: Int) async throws {
        let frames: [CameraScript.Frame] = [.init(sequence: 0, index: 0), .init(sequence: 1, index: index)]
        let result = try await captureToTheEnd(CameraScript(events: [.frames(frames), lost]))
        #expect(result.failure?.code == .driverFailed && result.failure?.status == EPROTO)
        #expect(result.closed)
    }

    // v4l2loopback's writer may stream into one buffer. A reader that was late for a picture was an outage.
    @Test("A buffer that comes again before it was given back has newer content, and is given back once")
    func filledAgain() async throws {
        let sink = RecordingSink()
        let twice = [CameraScript.Frame(sequence: 0, index: 0), .init(sequence: 1, index: 0)]
        let damaged = [CameraScript.Frame(sequence: 2, index: 0), .init(sequence: 3, bytesUsed: 0, index: 0)]
        let script = CameraScript(events: [.frames(twice), .frames(damaged), .frames([.init(sequence: 4)]), lost])
        let result = try await captureToTheEnd(script, sink: sink)
        #expect(result.failure?.code == .deviceLost && result.closed)
        #expect(result.statistics.framesCaptured == 5 && sink.count == 2)
        #expect(result.statistics.framesDropped[.late] == 2 && result.statistics.framesDropped[.corrupt] == 1)
    }

    @Test("A driver that takes no buffer back any more is a failure, and no endless loop")
    func noBufferTaken() async throws {
        let sink = RecordingSink()
        let script = CameraScript(bufferCount: 2, events: CameraScript.steady(10) + [.silence])
        var refusing = script
        refusing.passingFailures = [:]
        refusing.failures = [cv4l2_QBUF: EINVAL]
        let source = makeSource(ScriptedSystem(refusing))
        source.sink = sink
        let error = try await #require(throws: CameraError.self) { try await source.startCapture() }
        #expect(error.status == EINVAL)
    }

    @Test("Random answers and frames do no harm", arguments: 0..<100)
    func randomFrames(seed: Int) async throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let events = (0..<50).map { _ -> CameraScript.Event in
            .frames(
                (0...Int.random(in: 0...3, using: &random)).map { _ in
                    CameraScript.Frame(
                        sequence: UInt32.random(in: 0...UInt32.max, using: &random),
                        flags: UInt32.random(in: 0...UInt32.max, using: &random),
                        nanoseconds: Int64.random(in: Int64.min...Int64.max, using: &random),
                        bytesUsed: Bool.random(using: &random) ? Int.random(in: 0...20000, using: &random) : nil,
                        fill: UInt8.random(in: 0...255, using: &random)
                    )
                }
            )
        }
        let formats: [PixelFormat] = [.yuyv, .mjpeg, .grey, PixelFormat(rawValue: 0x5559_5659)]
        let format = CameraScript.Format(pixelFormat: formats[seed % 4], isCompressed: seed % 4 == 1)
        let sink = RecordingSink()
        let result = try await captureToTheEnd(CameraScript(formats: [format], events: events + [lost]), sink: sink)
        #expect(result.statistics.framesCaptured == sink.count + result.statistics.framesDropped.total)
        #expect(result.closed)
    }
}
