import CV4L2
import Glibc
import Capture
import MediaCore
import Testing
import Threading

@testable import V4L2Capture

private let lost = CameraScript.Event.trouble([.failed, .gone], status: ENODEV)

@Suite("Set-up", .timeLimit(.minutes(1)))
struct NegotiationTests {
    @Test("The size, rows and rate that the driver returns are the ones that count")
    func readBack() async throws {
        var script = CameraScript(
            formats: [.init(pixelFormat: .grey, sizes: .discrete([(64, 48)]))],
            statedRate: (25, 2),
            events: CameraScript.steady(1) + [lost]
        )
        script.substitute = { pix in
            pix.width = 40
            pix.bytesperline = 48
            pix.sizeimage = 48 * 48
        }
        let sink = RecordingSink()
        let result = try await captureToTheEnd(script, sink: sink)
        #expect(result.format?.description == "40x48 12.5 fps GREY")
        #expect(sink.received.withLock { $0.dimensions } == Dimensions(width: 40, height: 48))
    }

    @Test("A pixel format that the driver puts in place is taken if we can read it and no other was demanded")
    func substitutedFormat() async throws {
        var script = CameraScript(
            formats: [.init(pixelFormat: .mjpeg, isCompressed: true)],
            events: CameraScript.steady(1) + [lost]
        )
        script.substitute = { $0.pixelformat = PixelFormat.grey.rawValue }
        let result = try await captureToTheEnd(script)
        #expect(result.format?.pixelFormat == .grey && result.statistics.framesDropped.total == 0)
        let demanding = makeSource(ScriptedSystem(script), request: VideoFormatRequest(pixelFormat: .mjpeg))
        let error = try await #require(throws: CameraError.self) { try await demanding.startCapture() }
        #expect(error.code == .unsupportedFormat && error.description.contains("GREY"))
        script.substitute = { $0.pixelformat = 0x3436_3248 }
        let unreadable = ScriptedSystem(script)
        let source = makeSource(unreadable)
        let second = try await #require(throws: CameraError.self) { try await source.startCapture() }
        #expect(second.code == .unsupportedFormat && second.description.contains("H264"))
        #expect(unreadable.isAllClosed)
    }

    @Test(
        "Impossible answers to a format are refused",
        arguments: [
            { $0.width = 0 }, { $0.height = 0 }, { $0.width = .max }, { $0.height = 16384 }, { $0.bytesperline = 1 },
            { $0.field = V4L2_FIELD_ALTERNATE.rawValue }, { $0.field = V4L2_FIELD_SEQ_TB.rawValue },
        ] as [@Sendable (inout v4l2_pix_format) -> Void]
    )
    func impossibleFormat(change: @escaping @Sendable (inout v4l2_pix_format) -> Void) async throws {
        let system = ScriptedSystem(CameraScript(substitute: change))
        let source = makeSource(system)
        let error = try await #require(throws: CameraError.self) { try await source.startCapture() }
        #expect(error.code == .unsupportedFormat)
        #expect(system.isAllClosed)
    }

    // Capture cards deliver one field for sizes of at most half the lines of a signal.
    @Test("Pictures of one field are taken", arguments: [V4L2_FIELD_TOP, V4L2_FIELD_BOTTOM].map(\.rawValue))
    func singleField(field: UInt32) async throws {
        let source = makeSource(ScriptedSystem(CameraScript(substitute: { $0.field = field })))
        try await source.startCapture()
        await source.stopCapture()
    }

    @Test("The rate that is asked of the driver is the chosen one")
    func rate() async throws {
        let system = ScriptedSystem(
            CameraScript(formats: [.init(pixelFormat: .yuyv, rates: .discrete([30, 15, 5]))])
        )
        let source = makeSource(system, request: VideoFormatRequest(frameRate: FrameRate(20)))
        try await source.startCapture()
        await source.stopCapture()
        let asked = system.record.withLock { $0.requestedRate }
        #expect(asked?.frames == 30 && asked?.seconds == 1)
    }

    @Test(
        "The converter gets the colours that the driver states, or V4L2's defaults if it states none",
        arguments: [
            (.yuyv, 0, 0, 0, CapturedColour(range: .limited, matrix: .bt601)),
            (.yuyv, V4L2_COLORSPACE_SRGB.rawValue, 0, 0, CapturedColour(range: .limited, matrix: .bt601)),
            (.yuyv, V4L2_COLORSPACE_JPEG.rawValue, 0, 0, CapturedColour(range: .full, matrix: .bt601)),
            (.yuyv, V4L2_COLORSPACE_REC709.rawValue, 0, 0, CapturedColour(range: .limited, matrix: .bt709)),
            (
                .yuyv, V4L2_COLORSPACE_SRGB.rawValue, 0, V4L2_QUANTIZATION_FULL_RANGE.rawValue,
                CapturedColour(range: .full, matrix: .bt601)
            ),
            (
                .yuyv, V4L2_COLORSPACE_SRGB.rawValue, V4L2_YCBCR_ENC_709.rawValue, 0,
                CapturedColour(range: .limited, matrix: .bt709)
            ),
            (.yuyv, V4L2_COLORSPACE_BT2020.rawValue, 0, 0, CapturedColour(range: .limited, matrix: .bt2020)),
            (.yuyv, V4L2_COLORSPACE_SMPTE240M.rawValue, 0, 0, CapturedColour(range: .limited, matrix: .smpte240M)),
            (.grey, V4L2_COLORSPACE_SRGB.rawValue, 0, 0, CapturedColour(range: .full, matrix: .bt601)),
            (
                .grey, V4L2_COLORSPACE_SRGB.rawValue, 0, V4L2_QUANTIZATION_LIM_RANGE.rawValue,
                CapturedColour(range: .limited, matrix: .bt601)
            ),
            (.yuyv, 4711, 4711, 4711, CapturedColour(range: .limited, matrix: .bt601)),
        ] as [(PixelFormat, UInt32, UInt32, UInt32, CapturedColour)]
    )
    func colours(
        format: PixelFormat,
        colorspace: UInt32,
        encoding: UInt32,
        quantization: UInt32,
        expected: CapturedColour
    ) async throws {
        for capability in [V4L2_CAP_VIDEO_CAPTURE, V4L2_CAP_VIDEO_CAPTURE_MPLANE] {
            var script = CameraScript(
                deviceCapabilities: UInt32(capability) | UInt32(V4L2_CAP_STREAMING),
                formats: [.init(pixelFormat: format)],
                events: CameraScript.steady(1) + [lost]
            )
            script.substitute = { pix in
                pix.colorspace = colorspace
                // The multi-planar calls have a byte for each.
                pix.ycbcr_enc = encoding & 255
                pix.quantization = quantization & 255
            }
            let layouts = Monitor<[CapturedLayout]>([])
            let source = CameraSource(
                device: testDevice,
                request: VideoFormatRequest(),
                system: ScriptedSystem(script),
                outageLimit: .zero
            ) { LumaConverter { layout in layouts.withLock { $0.append(layout) } } }
            let sink = RecordingSink()
            source.sink = sink
            var failures = source.failures().makeAsyncIterator()
            try await source.startCapture()
            _ = await failures.next()
            #expect(layouts.withLock { $0.first?.colour } == expected)
        }
    }

    @Test(
        "Pictures from libv4lconvert have the colours of their YUV format, of grey, or of BT.601",
        arguments: [
            ("YVYU", false, CapturedColour(range: .limited, matrix: .bt709)),
            ("Y16", false, CapturedColour(range: .full, matrix: .bt709)),
            ("Y10B", false, CapturedColour(range: .full, matrix: .bt709)), ("BA81", false, nil), ("H264", true, nil),
        ]
    )
    func coloursByLibV4L(code: String, isCompressed: Bool, expected: CapturedColour?) throws {
        let delivered = DeliveredFormat(
            pixelFormat: try #require(PixelFormat(fourCC: code)),
            dimensions: Dimensions(width: 64, height: 48),
            bytesPerRow: 128,
            imageSize: 128 * 48,
            field: V4L2_FIELD_NONE.rawValue,
            planeCount: 1,
            colour: StatedColour(colorspace: V4L2_COLORSPACE_REC709.rawValue)
        )
        let negotiated = NegotiatedFormat(
            delivered: delivered,
            frameRate: FrameRate(30),
            needsLibV4L: true,
            bytesPerRow: 0,
            isCompressed: isCompressed
        )
        #expect(negotiated.layout.colour == expected)
    }

    @Test("A driver that cannot set a rate captures all the same", arguments: [ENOTTY, EINVAL])
    func withoutRate(status: Int32) async throws {
        let script = CameraScript(failures: [cv4l2_S_PARM: status], events: CameraScript.steady(1) + [lost])
        let result = try await captureToTheEnd(script)
        #expect(result.format?.frameRate == FrameRate(30) && result.statistics.framesCaptured == 1)
    }

    @Test(
        "Too few buffers are an error, and more than were asked for are not",
        arguments: [(0, false), (1, false), (2, true), (32, true)]
    )
    func bufferCounts(count: UInt32, works: Bool) async throws {
        let system = ScriptedSystem(CameraScript(bufferCount: count, events: CameraScript.steady(20)))
        let source = makeSource(system)
        if works {
            let sink = RecordingSink()
            source.sink = sink
            try await source.startCapture()
            sink.waitForFrames(20)
            await source.stopCapture()
        } else {
            let error = try await #require(throws: CameraError.self) { try await source.startCapture() }
            #expect(error.description.contains("two buffers"))
        }
        #expect(system.isAllClosed)
    }

    @Test("Devices with the multi-planar calls alone capture in one plane, and more planes are refused")
    func multiplanar() async throws {
        var script = CameraScript(
            deviceCapabilities: UInt32(V4L2_CAP_VIDEO_CAPTURE_MPLANE) | UInt32(V4L2_CAP_STREAMING),
            events: CameraScript.steady(10) + [lost]
        )
        let sink = RecordingSink()
        let result = try await captureToTheEnd(script, sink: sink)
        #expect(sink.count == 10 && sink.lumas.allSatisfy { $0 == 100 } && result.closed)
        script.memoryPlanes = 3
        let source = makeSource(ScriptedSystem(script))
        let error = try await #require(throws: CameraError.self) { try await source.startCapture() }
        #expect(error.code == .unsupportedFormat && error.description.contains("3 separate planes"))
    }

    @Test("Formats that only libv4lconvert can read go through it")
    func throughLibV4L() async throws {
        let format = try #require(PixelFormat(fourCC: "NV61"))
        var script = CameraScript(
            formats: [.init(pixelFormat: format)],
            events: [.frames([.init(sequence: 0, fill: 77)]), .frames([.init(sequence: 1, bytesUsed: 90)]), lost]
        )
        script.substitute = { pix in pix.bytesperline = pix.width }
        let sink = RecordingSink()
        let result = try await captureToTheEnd(script, sink: sink)
        #expect(result.format?.pixelFormat == format)
        #expect(sink.lumas == [77])
        #expect(result.statistics.framesDropped[.corrupt] == 1)
    }

    @Test("libv4lconvert is given no picture that is shorter than its rows")
    func longRows() async throws {
        let format = try #require(PixelFormat(fourCC: "NV61"))
        var script = CameraScript(formats: [.init(pixelFormat: format)], events: CameraScript.steady(1) + [lost])
        script.substitute = { pix in
            pix.sizeimage = pix.width * 2 * pix.height
            pix.bytesperline = pix.width * 4
        }
        let result = try await captureToTheEnd(script)
        #expect(result.statistics.framesDropped[.corrupt] == 1)
    }

    @Test("A format that the converter does not accept is not chosen")
    func converterDecides() async throws {
        let script = CameraScript(
            formats: [.init(pixelFormat: .yuyv), .init(pixelFormat: .grey)],
            events: CameraScript.steady(1) + [lost]
        )
        let result = try await captureToTheEnd(script, accepted: [.grey])
        #expect(result.format?.pixelFormat == .grey)
    }

    @Test("Pictures of the other JPEG code reach the converter as MJPG")
    func jpegName() async throws {
        let script = CameraScript(
            formats: [.init(pixelFormat: .jpeg, isCompressed: true)],
            events: [.frames([.init(sequence: 0, fill: 0xFF)]), .frames([.init(sequence: 1, fill: 0)]), lost]
        )
        let sink = RecordingSink()
        let result = try await captureToTheEnd(script, sink: sink)
        #expect(sink.count == 1 && result.statistics.framesDropped[.corrupt] == 1)
        #expect(result.format?.pixelFormat == .jpeg)
    }

    @Test(
        "A demanded format that is missing or unreadable is refused with those there are",
        arguments: [("NV12", "noSuchFormat"), ("H264", "unsupportedFormat")]
    )
    func demandedFormat(code: String, expected: String) async throws {
        let h264 = try #require(PixelFormat(fourCC: "H264"))
        let script = CameraScript(formats: [.init(pixelFormat: .yuyv), .init(pixelFormat: h264, isCompressed: true)])
        let request = VideoFormatRequest(pixelFormat: PixelFormat(fourCC: code))
        let source = makeSource(ScriptedSystem(script), request: request)
        let error = try await #require(throws: CameraError.self) { try await source.startCapture() }
        #expect(error.code.name == expected && error.description.contains("YUYV"))
    }
}
