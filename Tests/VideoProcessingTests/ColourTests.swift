import MediaCore
import Testing
import VideoProcessing

/// Colours by plain arithmetic.
private struct ReferenceCoding {
    let range: CapturedColour.Range
    let weights: (red: Double, blue: Double)

    init(_ colour: CapturedColour) {
        range = colour.range
        weights =
            switch colour.matrix {
            case .bt601: (0.299, 0.114)
            case .bt709: (0.2126, 0.0722)
            case .bt2020: (0.2627, 0.0593)
            case .smpte240M: (0.212, 0.087)
            }
    }

    /// Luma and chroma of a colour from 0 to 1, as bytes.
    func code(_ red: Double, _ green: Double, _ blue: Double) -> (luma: UInt8, u: UInt8, v: UInt8) {
        let luma = weights.red * red + weights.blue * blue + (1 - weights.red - weights.blue) * green
        let u = (blue - luma) / (2 * (1 - weights.blue))
        let v = (red - luma) / (2 * (1 - weights.red))
        let byte = { (value: Double) in UInt8(min(max(value.rounded(), 0), 255)) }
        return range == .full
            ? (byte(255 * luma), byte(128 + 255 * u), byte(128 + 255 * v))
            : (byte(16 + 219 * luma), byte(128 + 224 * u), byte(128 + 224 * v))
    }
}

/// What a driver states of colours was not looked at: full range was crushed, BT.709 shifted.
@Suite("Colours", .timeLimit(.minutes(1)))
struct ColourTests {
    static let matrices: [CapturedColour.Matrix] = [.bt601, .bt709, .bt2020, .smpte240M]
    static let formats: [PixelFormat] = [.yuyv, .yvyu, .uyvy, .nv12, .nv21, .nv16, .i420, .yv12, .i422]

    /// The corners of the colour cube, greys, and colours between.
    private static let colours: [(Double, Double, Double)] =
        [0.0, 0.25, 0.6, 1].flatMap { red in
            [0.0, 0.3, 0.75, 1].flatMap { green in [0.0, 0.5, 1].map { (red, green, $0) } }
        }

    /// A picture of one colour.
    private func picture(_ value: (luma: UInt8, u: UInt8, v: UInt8), _ width: Int, _ height: Int) -> ReferencePicture {
        var picture = ReferencePicture(width, height)
        picture.luma.bytes = picture.luma.bytes.map { _ in value.luma }
        picture.chromaU.bytes = picture.chromaU.bytes.map { _ in value.u }
        picture.chromaV.bytes = picture.chromaV.bytes.map { _ in value.v }
        return picture
    }

    @Test("Whatever the range and matrix of a camera, BT.601 of limited range comes out", arguments: formats, matrices)
    func yuv(format: PixelFormat, matrix: CapturedColour.Matrix) throws {
        let target = ReferenceCoding(CapturedColour(range: .limited))
        for range in [CapturedColour.Range.limited, .full] {
            let colour = CapturedColour(range: range, matrix: matrix)
            let converter = try FrameConverter()
            for (red, green, blue) in Self.colours {
                let source = picture(ReferenceCoding(colour).code(red, green, blue), 37, 21)
                var (bytes, layout) = source.captured(as: format)
                layout.colour = colour
                let frame = try converter.convert(
                    bytes.span.bytes,
                    layout: layout,
                    timestamp: MonotonicInstant(nanoseconds: 1)
                )
                let expected = picture(target.code(red, green, blue), 37, 21)
                // Rounded twice, and once more in the coefficients.
                let difference = ReferencePicture(frame.buffer).largestDifference(from: expected)
                #expect(difference <= 2, "\(red) \(green) \(blue), \(range)")
            }
        }
    }

    @Test("Each pixel is mapped with its own chroma, cropped, scaled and turned")
    func places() throws {
        let colour = CapturedColour(range: .full, matrix: .bt709)
        let source = ReferencePicture(64, 48)
        for rotation in VideoRotation.allCases {
            let transform = FrameTransform(
                crop: Dimensions(width: 40, height: 32),
                rotation: rotation,
                isMirrored: true
            )
            let converter = try FrameConverter(transform: transform)
            for format in Self.formats {
                var (bytes, layout) = source.captured(as: format)
                layout.colour = colour
                let stamp = MonotonicInstant(nanoseconds: 1)
                let mapped = try converter.convert(bytes.span.bytes, layout: layout, timestamp: stamp)
                layout.colour = CapturedColour(range: .limited)
                let plain = try converter.convert(bytes.span.bytes, layout: layout, timestamp: stamp)
                let expected = ReferencePicture(plain.buffer).mapped709Full
                #expect(ReferencePicture(mapped.buffer).largestDifference(from: expected) <= 1)
            }
        }
    }

    @Test("Colours that are as usual are left as they are", arguments: formats)
    func usual(format: PixelFormat) throws {
        let source = ReferencePicture(36, 20)
        var (bytes, layout) = source.captured(as: format)
        let converter = try FrameConverter()
        for colour in [nil, CapturedColour(range: .limited)] {
            layout.colour = colour
            let stamp = MonotonicInstant(nanoseconds: 1)
            let frame = try converter.convert(bytes.span.bytes, layout: layout, timestamp: stamp)
            let isSame = ReferencePicture(frame.buffer) == source
            #expect(isSame)
        }
    }

    @Test("RGB and grey of limited range are not made paler")
    func limitedRGB() throws {
        let size = Dimensions(width: 16, height: 8)
        let stamp = MonotonicInstant(nanoseconds: 1)
        let target = ReferenceCoding(CapturedColour(range: .limited))
        for (red, green, blue) in Self.colours {
            let pixel = [red, green, blue].map { UInt8((16 + 219 * $0).rounded()) }
            let bytes = (0..<size.area).flatMap { _ in pixel }
            let layout = CapturedLayout(
                pixelFormat: .rgb24,
                dimensions: size,
                bytesPerRow: 48,
                colour: CapturedColour(range: .limited)
            )
            let frame = try FrameConverter().convert(bytes.span.bytes, layout: layout, timestamp: stamp)
            let expected = picture(target.code(red, green, blue), 16, 8)
            #expect(ReferencePicture(frame.buffer).largestDifference(from: expected) <= 3)
        }
        let grey = [UInt8](repeating: 77, count: size.area)
        let layout = CapturedLayout(
            pixelFormat: .grey,
            dimensions: size,
            bytesPerRow: 16,
            colour: CapturedColour(range: .limited)
        )
        let frame = try FrameConverter().convert(grey.span.bytes, layout: layout, timestamp: stamp)
        #expect(ReferencePicture(frame.buffer).luma.bytes.allSatisfy { $0 == 77 })
    }
}

extension ReferencePicture {
    /// This picture, read as BT.709 of full range, in BT.601 of limited range.
    fileprivate var mapped709Full: ReferencePicture {
        var result = self
        let target = { (luma: Double, u: Double, v: Double) -> (Double, Double, Double) in
            let red = luma + 2 * (1 - 0.2126) * v
            let blue = luma + 2 * (1 - 0.0722) * u
            let green = (luma - 0.2126 * red - 0.0722 * blue) / (1 - 0.2126 - 0.0722)
            let own = 0.299 * red + 0.587 * green + 0.114 * blue
            return (16 + 219 * own, 128 + 224 * (blue - own) / 1.772, 128 + 224 * (red - own) / 1.402)
        }
        let byte = { (value: Double) in UInt8(min(max(value.rounded(), 0), 255)) }
        result.luma = ReferencePlane(luma.width, luma.height) { column, row in
            let u = (Double(chromaU[column / 2, row / 2]) - 128) / 255
            let v = (Double(chromaV[column / 2, row / 2]) - 128) / 255
            return byte(target(Double(luma[column, row]) / 255, u, v).0)
        }
        let mixed = { (pick: (Double, Double, Double) -> Double) in
            ReferencePlane(chromaU.width, chromaU.height) { column, row in
                let u = (Double(chromaU[column, row]) - 128) / 255
                let v = (Double(chromaV[column, row]) - 128) / 255
                let (luma, newU, newV) = target(0.5, u, v)
                return byte(pick(luma, newU, newV))
            }
        }
        result.chromaU = mixed { _, newU, _ in newU }
        result.chromaV = mixed { _, _, newV in newV }
        return result
    }
}
