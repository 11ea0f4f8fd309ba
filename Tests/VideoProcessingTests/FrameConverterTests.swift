import MediaCore
import Testing
import VideoProcessing

@Suite("Frame converter", .timeLimit(.minutes(2)))
struct FrameConverterTests {
    static let planarAndPacked: [PixelFormat] = [.yuyv, .yvyu, .uyvy, .nv12, .nv21, .nv16, .i420, .yv12, .i422]
    static let sizes = [(2, 2), (16, 16), (64, 48), (63, 47), (37, 2), (1, 1), (1, 5), (5, 1), (130, 66)]
    static let transforms: [FrameTransform] = [
        FrameTransform(), FrameTransform(isMirrored: true),
        FrameTransform(crop: Dimensions(width: 20, height: 12)),
        FrameTransform(crop: Dimensions(width: 31, height: 4000), isMirrored: true),
    ]
    static let turned = VideoRotation.allCases.flatMap { rotation in
        transforms.map { transform in
            var transform = transform
            transform.rotation = rotation
            return transform
        }
    }

    private let timestamp = MonotonicInstant(nanoseconds: 12_345)

    private func convert(
        _ captured: (bytes: [UInt8], layout: CapturedLayout),
        _ transform: FrameTransform = FrameTransform()
    ) throws -> ReferencePicture {
        let frame = try FrameConverter(transform: transform)
            .convert(captured.bytes.span.bytes, layout: captured.layout, timestamp: timestamp)
        #expect(frame.timestamp == timestamp && frame.rotation == .none)
        #expect(frame.dimensions == transform.outputDimensions(for: captured.layout.dimensions))
        return ReferencePicture(frame.buffer)
    }

    @Test("Every format comes out as it went in, at even and odd sizes", arguments: planarAndPacked, sizes)
    func formats(format: PixelFormat, size: (Int, Int)) throws {
        let picture = ReferencePicture(size.0, size.1)
        for padding in [0, 2, 30] {
            let isSame = try convert(picture.captured(as: format, padding: padding)) == picture
            #expect(isSame, "padding \(padding)")
        }
    }

    @Test("Crop, turn and mirror do what plain loops do", arguments: planarAndPacked, turned)
    func geometry(format: PixelFormat, transform: FrameTransform) throws {
        for (width, height) in [(64, 48), (48, 64), (66, 50)] {
            let picture = ReferencePicture(width, height)
            var expected = picture
            if let crop = transform.crop {
                let (cropWidth, cropHeight) = (min(crop.width, width) & ~1, min(crop.height, height) & ~1)
                expected = picture.cropped(
                    (width - cropWidth) / 2 & ~1,
                    (height - cropHeight) / 2 & ~1,
                    cropWidth,
                    cropHeight
                )
            }
            expected = expected.map { $0.rotated(transform.rotation) }
            if transform.isMirrored { expected = expected.map { $0.mirrored } }
            let isSame = try convert(picture.captured(as: format, padding: 4), transform) == expected
            #expect(isSame)
        }
    }

    @Test("Odd sizes turn, plane by plane", arguments: planarAndPacked, VideoRotation.allCases)
    func oddTurns(format: PixelFormat, rotation: VideoRotation) throws {
        // From an odd number of packed rows, libyuv takes other pairs for chroma when it flips.
        let picture = ReferencePicture(35, [.yuyv, .yvyu, .uyvy].contains(format) ? 22 : 21)
        for isMirrored in [false, true] {
            let expected = picture.map { isMirrored ? $0.rotated(rotation).mirrored : $0.rotated(rotation) }
            let transform = FrameTransform(rotation: rotation, isMirrored: isMirrored)
            let isSame = try convert(picture.captured(as: format), transform) == expected
            #expect(isSame)
        }
    }

    @Test("A size is cut out and scaled to before the crop, which is taken before turning", arguments: planarAndPacked)
    func scaling(format: PixelFormat) throws {
        let picture = ReferencePicture(160, 64)
        for rotation in VideoRotation.allCases {
            let transform = FrameTransform(
                size: Dimensions(width: 64, height: 32),
                crop: Dimensions(width: 32, height: 16),
                rotation: rotation,
                isMirrored: true
            )
            let expected = picture.cropped(48, 16, 64, 32).scaled(to: 32, 16).map { $0.rotated(rotation).mirrored }
            let difference = try convert(picture.captured(as: format), transform).largestDifference(from: expected)
            #expect(difference <= 1)
        }
    }

    @Test(
        "An upright picture is turned back, so that its tag makes it upright again",
        arguments: VideoRotation.allCases
    )
    func turnedBack(rotation: VideoRotation) throws {
        let picture = ReferencePicture(64, 48)
        let layout = picture.captured(as: .i420)
        let upright = try FrameConverter().convert(layout.bytes.span.bytes, layout: layout.layout, timestamp: timestamp)
        for isMirrored in [false, true] {
            let transform = FrameTransform(rotation: rotation, isMirrored: isMirrored)
            let frame = try FrameConverter(transform: transform, tagsOrientation: true)
                .frame(ofUpright: upright.buffer, timestamp: timestamp)
            #expect(frame.rotation == rotation && frame.isMirrored == isMirrored && frame.timestamp == timestamp)
            let turned = ReferencePicture(frame.buffer).map { $0.rotated(rotation) }
            let isSame = (isMirrored ? turned.map(\.mirrored) : turned) == picture
            #expect(isSame)
        }
    }

    @Test(
        "The size that comes out is the one asked for, even, or less, with its aspect ratio",
        arguments: [
            (1280, 720, 700, 500, 700, 500), (640, 480, 480, 480, 480, 480), (640, 480, 322, 242, 322, 242),
            (640, 480, 640, 480, 640, 480), (641, 481, 641, 481, 641, 481), (640, 480, 321, 181, 320, 180),
            (640, 480, 1280, 720, 640, 360), (640, 480, 100, 1000, 48, 480), (1000, 10, 100, 100, 10, 10),
            (640, 480, 0, 0, 2, 2), (640, 480, .max, .max, 480, 480), (640, 480, .max, 1, 640, 2),
            (1, 1, 640, 480, 1, 1), (640, 480, -4, 9, 2, 8),
        ]
    )
    func requestedSizes(width: Int, height: Int, wantedWidth: Int, wantedHeight: Int, outWidth: Int, outHeight: Int) {
        let transform = FrameTransform(size: Dimensions(width: wantedWidth, height: wantedHeight))
        let result = transform.outputDimensions(for: Dimensions(width: width, height: height))
        #expect(result == Dimensions(width: outWidth, height: outHeight))
    }

    @Test(
        "A fitted picture is whole, and no larger than the size on either side",
        arguments: [
            (800, 600, 1920, 1080, 800, 600), (800, 600, 640, 360, 480, 360), (1920, 1080, 1280, 720, 1280, 720),
            (1280, 720, 640, 480, 640, 360), (100, 1000, 640, 480, 48, 480), (641, 481, 641, 481, 641, 481),
            (640, 480, 0, 0, 2, 2), (640, 480, .max, 1, 2, 2), (1, 1, 640, 480, 1, 1),
        ]
    )
    func fitted(width: Int, height: Int, wantedWidth: Int, wantedHeight: Int, outWidth: Int, outHeight: Int) {
        let picture = Dimensions(width: width, height: height)
        let wanted = Dimensions(width: wantedWidth, height: wantedHeight)
        let transform = FrameTransform(size: wanted, isFitted: true)
        #expect(transform.outputDimensions(for: picture) == Dimensions(width: outWidth, height: outHeight))
    }

    @Test("Grey is of full range, and has neutral chroma", arguments: sizes)
    func grey(width: Int, height: Int) throws {
        var picture = ReferencePicture(width, height)
        let result = try convert(picture.captured(as: .grey, padding: 3))
        picture.luma.bytes = picture.luma.bytes.map { UInt8((16 + Double($0) * 219 / 255).rounded()) }
        picture.chromaU.bytes = picture.chromaU.bytes.map { _ in 128 }
        picture.chromaV.bytes = picture.chromaV.bytes.map { _ in 128 }
        let isSame = result == picture
        #expect(isSame)
    }

    @Test(
        "RGB3 is bytes R G B and BGR3 is bytes B G R, to BT.601",
        arguments: [
            (255, 0, 0, 81, 90, 240), (0, 255, 0, 145, 54, 34), (0, 0, 255, 41, 240, 110),
            (255, 255, 255, 235, 128, 128),
            (0, 0, 0, 16, 128, 128), (255, 255, 0, 210, 16, 146), (0, 255, 255, 170, 166, 16),
            (191, 191, 191, 180, 128, 128),
        ] as [(UInt8, UInt8, UInt8, Int, Int, Int)]
    )
    func colours(red: UInt8, green: UInt8, blue: UInt8, luma: Int, chromaU: Int, chromaV: Int) throws {
        for (format, pixel) in [
            (PixelFormat.rgb24, [red, green, blue]), (.bgr24, [blue, green, red]),
        ] as [(PixelFormat, [UInt8])] {
            for (width, height) in [(16, 8), (17, 5), (1, 1)] {
                let row = Array(Array(repeating: pixel, count: width).joined()) + [9, 9, 9]
                let bytes = Array(Array(repeating: row, count: height).joined())
                let size = Dimensions(width: width, height: height)
                let layout = CapturedLayout(pixelFormat: format, dimensions: size, bytesPerRow: width * 3 + 3)
                let result = try convert((bytes, layout))
                #expect(result.luma.bytes.allSatisfy { abs(Int($0) - luma) <= 1 })
                #expect(result.chromaU.bytes.allSatisfy { abs(Int($0) - chromaU) <= 1 })
                #expect(result.chromaV.bytes.allSatisfy { abs(Int($0) - chromaV) <= 1 })
            }
        }
    }

    @Test(
        "Short pictures are refused at every length, and padding after the last row is not needed",
        arguments: planarAndPacked
    )
    func short(format: PixelFormat) throws {
        let picture = ReferencePicture(15, 9)
        let (bytes, layout) = picture.captured(as: format)
        let needed = bytes.count
        let converter = try FrameConverter()
        for count in 0..<needed {
            let part = Array(bytes[..<count])
            #expect(throws: DamagedPicture.short(bytes: count, needed: needed)) {
                try converter.convert(part.span.bytes, layout: layout, timestamp: timestamp)
            }
        }
        let padded = picture.captured(as: format, padding: 16)
        let unpadded = Array(padded.bytes.dropLast([.i420, .yv12, .i422].contains(format) ? 8 : 16))
        let isSame = try convert((unpadded, padded.layout)) == picture
        #expect(isSame)
    }

    @Test(
        "Layouts that no picture can have are refused",
        arguments: [
            (0, 10, 20), (10, -1, 20), (20_000, 10, 20), (10, 10, Int.max), (10, 10, 1 << 40),
        ]
    )
    func absurdLayouts(width: Int, height: Int, bytesPerRow: Int) throws {
        let bytes = [UInt8](repeating: 0, count: 1000)
        let converter = try FrameConverter()
        for format in Self.planarAndPacked + [.rgb24, .grey, .mjpeg] {
            let size = Dimensions(width: width, height: height)
            let layout = CapturedLayout(pixelFormat: format, dimensions: size, bytesPerRow: bytesPerRow)
            #expect(throws: DamagedPicture.self) {
                try converter.convert(bytes.span.bytes, layout: layout, timestamp: timestamp)
            }
        }
    }

    @Test("A stride that is missing or too small means rows without padding", arguments: [0, -5, 3])
    func missingStride(bytesPerRow: Int) throws {
        let picture = ReferencePicture(16, 8)
        var captured = picture.captured(as: .yuyv)
        captured.layout.bytesPerRow = bytesPerRow
        let isSame = try convert(captured) == picture
        #expect(isSame)
    }

    @Test("Accepted formats are converted, and no others")
    func acceptance() throws {
        let converter = try FrameConverter()
        for code in [
            "YUYV", "YVYU", "UYVY", "NV12", "NV21", "NV16", "YU12", "YV12", "422P", "MJPG", "JPEG", "GREY", "RGB3",
            "BGR3",
            "BA24", "AR24", "AB24", "XR24", "XB24",
        ] {
            #expect(converter.accepts(try #require(PixelFormat(fourCC: code))))
        }
        let unknown = try #require(PixelFormat(fourCC: "H264"))
        #expect(!converter.accepts(unknown))
        let bytes = [UInt8](repeating: 0, count: 1000)
        let layout = CapturedLayout(pixelFormat: unknown, dimensions: Dimensions(width: 4, height: 4), bytesPerRow: 0)
        #expect(throws: DamagedPicture.undecodable) {
            try converter.convert(bytes.span.bytes, layout: layout, timestamp: timestamp)
        }
    }

    @Test("Buffers are used again once frames are given up")
    func pooling() throws {
        let converter = try FrameConverter(transform: FrameTransform(rotation: .half))
        let (bytes, layout) = ReferencePicture(64, 48).captured(as: .yuyv)
        // A new buffer may have the address of one that was freed.
        weak var kept: VideoBuffer?
        for round in 0..<20 {
            let frame = try converter.convert(bytes.span.bytes, layout: layout, timestamp: timestamp)
            #expect(round == 0 || frame.buffer === kept)
            kept = frame.buffer
        }
    }

    @Test("One decoder of the JPEG library decodes all whole pictures; a damaged one costs one more")
    func jpegContexts() throws {
        let converter = try FrameConverter(transform: FrameTransform(rotation: .clockwise90))
        let bytes = try JPEGMaker.make(64, 48).bytes
        let size = Dimensions(width: 64, height: 48)
        let layout = CapturedLayout(pixelFormat: .mjpeg, dimensions: size, bytesPerRow: 0)
        var contexts: [Int] = [converter.jpegContext]
        func convert(_ bytes: [UInt8]) throws {
            defer { if contexts.last != converter.jpegContext { contexts.append(converter.jpegContext) } }
            _ = try converter.convert(bytes.span.bytes, layout: layout, timestamp: timestamp)
        }
        for _ in 0..<300 { try convert(bytes) }
        #expect(contexts.count == 1)
        #expect(throws: DamagedPicture.self) { try convert(Array(bytes.prefix(100))) }
        for _ in 0..<300 { try convert(bytes) }
        #expect(contexts.count == 2)
        #expect(try FrameConverter().jpegContext != contexts.last, "another converter has another")
    }
}

@Suite("Frame scaler", .timeLimit(.minutes(1)))
struct FrameScalerTests {
    private func frame(_ picture: ReferencePicture) -> VideoFrame {
        VideoFrame(buffer: picture.buffer, timestamp: MonotonicInstant(nanoseconds: 5), rotation: .clockwise90)
    }

    @Test("Whole factors give the means of the pixels", arguments: [(64, 32), (32, 16), (128, 64), (32, 32), (64, 16)])
    func means(width: Int, height: Int) {
        let picture = ReferencePicture(128, 64)
        let result = FrameScaler().scale(frame(picture), to: Dimensions(width: width, height: height))
        // Cropped to the aspect ratio, from the middle.
        let (cropWidth, cropHeight) = (min(128, 64 * width / height), min(64, 128 * height / width))
        let expected = picture.cropped((128 - cropWidth) / 2, (64 - cropHeight) / 2, cropWidth, cropHeight)
            .scaled(to: width, height)
        #expect(ReferencePicture(result.buffer).largestDifference(from: expected) <= 1)
        #expect(result.rotation == .clockwise90 && result.timestamp == MonotonicInstant(nanoseconds: 5))
    }

    @Test(
        "Any target has the size that was asked for, brought down to even sides",
        arguments: [
            (426, 240), (2, 2), (1, 1), (333, 77), (100, 2), (2, 100), (0, -7), (1280, 720),
        ]
    )
    func anyTarget(width: Int, height: Int) {
        let result = FrameScaler().scale(
            frame(ReferencePicture(641, 359)),
            to: Dimensions(width: width, height: height)
        )
        #expect(result.dimensions == Dimensions(width: max(2, width & ~1), height: max(2, height & ~1)))
    }

    @Test("A flat colour stays what it is at any size", arguments: [(426, 240), (200, 200), (18, 10)])
    func flat(width: Int, height: Int) {
        let picture = ReferencePicture(641, 359).map { plane in ReferencePlane(plane.width, plane.height) { _, _ in 77 }
        }
        let result = FrameScaler().scale(frame(picture), to: Dimensions(width: width, height: height))
        let isFlat = ReferencePicture(result.buffer).luma.bytes.allSatisfy { abs(Int($0) - 77) <= 1 }
        #expect(isFlat)
    }

    @Test("Nothing is copied when nothing is to be done")
    func nothing() {
        let frame = frame(ReferencePicture(64, 48))
        #expect(FrameScaler().scale(frame, to: frame.dimensions).buffer === frame.buffer)
        #expect(FrameScaler().apply(FrameTransform(), to: frame).buffer === frame.buffer)
    }

    @Test("A frame is stood upright by its own rotation", arguments: VideoRotation.allCases)
    func upright(rotation: VideoRotation) {
        let picture = ReferencePicture(33, 17)
        let frame = VideoFrame(buffer: picture.buffer, timestamp: MonotonicInstant(nanoseconds: 0), rotation: rotation)
        let result = FrameScaler().upright(frame)
        #expect(result.rotation == .none)
        let isSame = ReferencePicture(result.buffer) == picture.map { $0.rotated(rotation) }
        #expect(isSame)
    }
}
