import MediaCore
import TestTools
import Testing
import VideoProcessing

@Suite("Pictures of custom sources", .timeLimit(.minutes(1)))
struct CustomPictureTests {
    private let timestamp = MonotonicInstant(nanoseconds: 12_345)

    private func convert(_ bytes: [UInt8], _ layout: CapturedLayout) throws -> ReferencePicture {
        let frame = try FrameConverter().convert(bytes.span.bytes, checking: layout, timestamp: timestamp)
        #expect(frame.timestamp == timestamp)
        return ReferencePicture(frame.buffer)
    }

    private func convert(
        planes: [[UInt8]],
        _ layout: CapturedLayout,
        _ transform: FrameTransform = FrameTransform()
    ) throws -> ReferencePicture {
        let buffers = planes.map { plane in
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: plane.count, alignment: 1)
            buffer.copyBytes(from: plane)
            return buffer
        }
        defer { for buffer in buffers { buffer.deallocate() } }
        let frame = try FrameConverter(transform: transform)
            .convert(planes: buffers.map { UnsafeRawBufferPointer($0) }, checking: layout, timestamp: timestamp)
        return ReferencePicture(frame.buffer)
    }

    /// The rows of a plane, with `padding` bytes after each but the last.
    private func rows(_ plane: ReferencePlane, padding: Int) -> [UInt8] {
        let rows = (0..<plane.height).map { row in (0..<plane.width).map { plane[$0, row] } }
        return Array(rows.joined(separator: [UInt8](repeating: 0xEE, count: padding)))
    }

    @Test(
        "The bytes of packed RGB are taken in the order of the format's name",
        arguments: [
            (PixelFormat.argb32, [7, 255, 0, 0] as [UInt8]), (.bgra32, [0, 0, 255, 7]), (.rgba32, [255, 0, 0, 7]),
            (.bgrx32, [0, 0, 255, 7]), (.rgbx32, [255, 0, 0, 7]),
            (.rgb24, [255, 0, 0]), (.bgr24, [0, 0, 255]),
        ]
    )
    func byteOrder(format: PixelFormat, red: [UInt8]) throws {
        let (width, height, padding) = (6, 4, 5)
        let row = Array([[UInt8]](repeating: red, count: width).joined()) + [UInt8](repeating: 0x55, count: padding)
        let bytes = Array([[UInt8]](repeating: row, count: height).joined())
        let size = Dimensions(width: width, height: height)
        let picture = try convert(
            bytes,
            CapturedLayout(pixelFormat: format, dimensions: size, bytesPerRow: row.count)
        )
        // Red by BT.601 with limited range.
        #expect(picture.luma.bytes.allSatisfy { abs(Int($0) - 82) <= 1 })
        #expect(picture.chromaU.bytes.allSatisfy { abs(Int($0) - 90) <= 1 })
        #expect(picture.chromaV.bytes.allSatisfy { abs(Int($0) - 240) <= 1 })
    }

    @Test("Each plane has a place and a stride of its own", arguments: [(16, 16), (63, 47), (1, 1), (2, 5)])
    func ownStrides(width: Int, height: Int) throws {
        let picture = ReferencePicture(width, height)
        let strides = (luma: width + 3, first: (width + 1) / 2 + 5, second: (width + 1) / 2 + 1)
        for (format, first, second) in [
            (PixelFormat.i420, picture.chromaU, picture.chromaV), (.yv12, picture.chromaV, picture.chromaU),
        ] {
            let layout = CapturedLayout(
                pixelFormat: format,
                dimensions: picture.dimensions,
                bytesPerRow: strides.luma,
                chromaBytesPerRow: [strides.first, strides.second]
            )
            let planes = [rows(picture.luma, padding: 3), rows(first, padding: 5), rows(second, padding: 1)]
            #expect(try convert(planes: planes, layout) == picture)
            let turned = try convert(planes: planes, layout, FrameTransform(rotation: .clockwise90))
            #expect(turned == picture.map { $0.rotated(.clockwise90) })
        }
        for (format, isSwapped) in [(PixelFormat.nv12, false), (.nv21, true)] {
            let (first, second) = isSwapped ? (picture.chromaV, picture.chromaU) : (picture.chromaU, picture.chromaV)
            let pairs = ReferencePlane(2 * first.width, first.height) {
                $0 % 2 == 0 ? first[$0 / 2, $1] : second[$0 / 2, $1]
            }
            let layout = CapturedLayout(
                pixelFormat: format,
                dimensions: picture.dimensions,
                bytesPerRow: strides.luma,
                chromaBytesPerRow: [pairs.width + 9]
            )
            let planes = [rows(picture.luma, padding: 3), rows(pairs, padding: 9)]
            #expect(try convert(planes: planes, layout) == picture)
        }
    }

    @Test(
        "Of two rows of chroma in 4:2:2, the mean is taken",
        arguments: [PixelFormat.yuyv, .yvyu, .uyvy, .nv16, .i422]
    )
    func meanOfChroma(format: PixelFormat) throws {
        var picture = ReferencePicture(64, 48)
        let (bytes, layout) = picture.captured(as: format, padding: 4) { plane, column, row in
            // The two rows differ from their mean by 3.
            UInt8(max(3, min(252, Int(plane[column, row / 2])))) &+ (row % 2 == 0 ? 3 : UInt8(bitPattern: -3))
        }
        let limited = { (plane: ReferencePlane) in
            ReferencePlane(plane.width, plane.height) { UInt8(max(3, min(252, Int(plane[$0, $1])))) }
        }
        (picture.chromaU, picture.chromaV) = (limited(picture.chromaU), limited(picture.chromaV))
        #expect(try convert(bytes, layout).largestDifference(from: picture) <= 1)
    }

    @Test("Planes that follow each other have strides of their own too")
    func ownStridesInOneRun() throws {
        let picture = ReferencePicture(20, 6)
        let bytes =
            rows(picture.luma, padding: 4) + [0, 0, 0, 0] + rows(picture.chromaU, padding: 7)
            + [UInt8](repeating: 0, count: 7) + rows(picture.chromaV, padding: 2)
        let layout = CapturedLayout(
            pixelFormat: .i420,
            dimensions: picture.dimensions,
            bytesPerRow: 24,
            chromaBytesPerRow: [17, 12]
        )
        #expect(try convert(bytes, layout) == picture)
    }

    @Test(
        "A picture that does not fit its layout is refused by a sentence that says what does",
        arguments: [
            ("H264", 64, 48, 64, [], InvalidPicture.Code.unsupportedFormat),
            ("NV12", 0, 48, 64, [], .dimensions), ("NV12", 64, -1, 64, [], .dimensions),
            ("NV12", 20_000, 48, 20_000, [], .dimensions), ("NV12", 64, 48, 63, [], .stride),
            ("NV12", 64, 48, -64, [], .stride), ("NV12", 64, 48, .max, [], .stride),
            ("NV12", 64, 48, 64, [62], .stride), ("YU12", 64, 48, 64, [32, 31], .stride),
            ("YU12", 64, 48, 64, [32, .min], .stride), ("NV12", 64, 48, 64, [64, 64], .planeCount),
            ("YUYV", 64, 48, 128, [64], .planeCount), ("NV12", 63, 48, 63, [], .stride),
            ("AR24", 64, 48, 255, [], .stride), ("NV12", 64, 48, 64, [], .short), ("MJPG", 64, 48, 0, [], .undecodable),
        ]
    )
    func refusals(
        code: String,
        width: Int,
        height: Int,
        bytesPerRow: Int,
        chroma: [Int],
        expected: InvalidPicture.Code
    ) throws {
        let layout = CapturedLayout(
            pixelFormat: try #require(PixelFormat(fourCC: code)),
            dimensions: Dimensions(width: width, height: height),
            bytesPerRow: bytesPerRow,
            chromaBytesPerRow: chroma
        )
        let error = #expect(throws: InvalidPicture.self) { try convert([1, 2, 3], layout) }
        #expect(error?.code == expected, "\(error?.description ?? "")")
        #expect(error?.description.hasSuffix(".") == true)
    }

    @Test("Planes that are missing, too many or too short are refused")
    func wrongPlanes() throws {
        let layout = CapturedLayout(
            pixelFormat: .i420,
            dimensions: Dimensions(width: 8, height: 8),
            bytesPerRow: 8
        )
        let (luma, chroma) = ([UInt8](repeating: 1, count: 64), [UInt8](repeating: 2, count: 16))
        func code(_ planes: [[UInt8]]) -> InvalidPicture.Code? {
            #expect(throws: InvalidPicture.self) { try convert(planes: planes, layout) }?.code
        }
        #expect(code([]) == .planeCount)
        #expect(code([luma, chroma]) == .planeCount)
        #expect(code([luma, chroma, chroma, chroma]) == .planeCount)
        #expect(code([luma, chroma, Array(chroma.dropLast())]) == .short)
        #expect(code([[], chroma, chroma]) == .short)
        #expect(try convert(planes: [luma, chroma, chroma], layout).luma.bytes == luma)
    }

    @Test("No layout reaches beyond the bytes", arguments: 0..<20 as Range<UInt64>)
    func anyLayout(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let formats: [PixelFormat] = [
            .yuyv, .uyvy, .nv12, .nv21, .i420, .yv12, .grey, .rgb24, .bgr24, .argb32, .bgra32, .rgba32,
            .yvyu, .nv16, .i422, .bgrx32, .rgbx32,
        ]
        var converted = 0
        for _ in 0..<200 {
            let (width, height) = (Int.random(in: 0...40, using: &random), Int.random(in: 0...20, using: &random))
            let layout = CapturedLayout(
                pixelFormat: formats.randomElement(using: &random) ?? .i420,
                dimensions: Dimensions(width: width, height: height),
                bytesPerRow: .random(in: -1...200, using: &random),
                chromaBytesPerRow: (0..<Int.random(in: 0...2, using: &random)).map { _ in
                    .random(in: -1...100, using: &random)
                }
            )
            let bytes = [UInt8](repeating: 9, count: .random(in: 0...8000, using: &random))
            do {
                _ = try convert(bytes, layout)
                converted += 1
            } catch is InvalidPicture {}
        }
        #expect(converted > 5)
    }
}
