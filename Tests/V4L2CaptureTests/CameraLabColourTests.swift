import CV4L2
import Capture
import MediaCore
import Testing
import Threading
import VideoProcessing

@testable import V4L2Capture

/// A coding of colours in floating-point numbers, independent of the code under test.
private struct ReferenceCoding {
    /// The weights of red and blue in luma.
    var red: Double
    var blue: Double

    static let bt601 = ReferenceCoding(red: 0.299, blue: 0.114)
    static let bt709 = ReferenceCoding(red: 0.2126, blue: 0.0722)
    static let bt2020 = ReferenceCoding(red: 0.2627, blue: 0.0593)
    static let smpte240M = ReferenceCoding(red: 0.212, blue: 0.087)

    /// By the names of vivid's menus: the encodings, then the colorspaces, which have default encodings (videodev2.h,
    /// `V4L2_MAP_YCBCR_ENC_DEFAULT`).
    static let byName: [String: ReferenceCoding] = [
        "ITU-R 601": .bt601, "xvYCC 601": .bt601, "Rec. 709": .bt709, "xvYCC 709": .bt709, "BT.2020": .bt2020,
        // Constant luminance is linear in light only, and transfer functions are not converted.
        "BT.2020 Constant Luminance": .bt2020, "SMPTE 240M": .smpte240M,
        "SMPTE 170M": .bt601, "sRGB": .bt601, "opRGB": .bt601, "DCI-P3": .bt709, "470 System M": .bt601,
        "470 System BG": .bt601,
    ]

    /// Red, green and blue, from 0 to 1, of luma from 0 to 1 and chroma from -0.5 to 0.5.
    func colour(_ luma: Double, _ chromaBlue: Double, _ chromaRed: Double) -> SIMD3<Double> {
        let (r, b) = (luma + 2 * (1 - red) * chromaRed, luma + 2 * (1 - blue) * chromaBlue)
        return [r, (luma - red * r - blue * b) / (1 - red - blue), b]
    }

    /// Luma and chroma in eight bits and limited range.
    func limited(_ colour: SIMD3<Double>) -> SIMD3<Double> {
        let luma = red * colour[0] + (1 - red - blue) * colour[1] + blue * colour[2]
        return [
            16 + 219 * luma, 128 + 112 * (colour[2] - luma) / (1 - blue), 128 + 112 * (colour[0] - luma) / (1 - red),
        ]
    }
}

/// One picture of a camera: as the driver gave it, and as it was converted.
private struct Capture {
    var raw: [UInt8]
    var bytesPerRow: Int
    var converted: VideoBuffer

    /// The converted luma and chroma at a pixel.
    func convertedPixel(_ column: Int, _ row: Int) -> SIMD3<Double> {
        converted.withPlanes { luma, chromaU, chromaV in
            let chroma = row / 2 * converted.chromaStride + column / 2
            return [
                Double(luma[row * converted.lumaStride + column]), Double(chromaU[chroma]), Double(chromaV[chroma]),
            ]
        }
    }
}

extension CameraLabTests {
    private static let size = Dimensions(width: 320, height: 180)
    /// How far a level may be from the reference.
    private static let tolerance = 2.0

    /// Captures one picture in `format`, with controls set.
    private func capture(_ format: PixelFormat, _ settings: [(String, String)]) throws -> Capture {
        let (device, path) = try CameraDirectory(system: KernelCameraSystem()).open(try device())
        let controls = CameraControls(device: device, path: path) { nil }
        for (name, value) in settings { try controls.set(name, to: value) }
        let delivered = try #require(try device.setFormat(format, Self.size))
        try #require(delivered.pixelFormat == format && delivered.dimensions == Self.size)
        let negotiated = NegotiatedFormat(
            delivered: delivered,
            frameRate: FrameRate(30),
            needsLibV4L: false,
            bytesPerRow: delivered.bytesPerRow,
            isCompressed: false
        )
        let ring = try BufferRing(device)
        try ring.start()
        let stop = try StopSignal()
        var statistics = CaptureStatistics()
        var stamps = TimestampCheck(interval: .milliseconds(33), start: MonotonicClock.now)
        let converter = try FrameConverter()
        while true {
            let events = device.node.wait(until: MonotonicClock.now + .seconds(20), or: stop)
            try #require(events.contains(.readable), "no picture comes")
            guard
                let filled = try ring.takeNewest(counting: &statistics, stamps: &stamps, clock: { MonotonicClock.now })
            else { continue }
            let frame = try ring.withBytes(of: filled) { bytes in
                try converter.convert(bytes, layout: negotiated.layout, timestamp: MonotonicClock.now)
            }
            let raw = ring.withBytes(of: filled) { bytes in bytes.withUnsafeBytes { Array($0) } }
            return Capture(raw: raw, bytesPerRow: delivered.bytesPerRow, converted: frame.buffer)
        }
    }

    /// The names of a menu of the camera.
    private func menu(_ name: String) throws -> [String] {
        let controls = try CameraSource.controls(captureDevice: device())
        let menu = try #require(controls.first { $0.name == name }, "vivid has no control \(name)").menu
        return menu.map(\.name).filter { !$0.isEmpty }
    }

    /// Restores what the other tests rely on.
    private func resetColours() throws {
        let restored = ["colorspace=2", "y_cbcr_encoding=0", "quantization=0", "test_pattern=0", "osd_text_mode=0"]
        for setting in restored { try control(setting, of: device()) }
    }

    /// The pixels in the middles of the bars.
    private var samples: [(column: Int, row: Int)] {
        (0..<8).map { ((2 * $0 + 1) * Self.size.width / 16 & ~1, Self.size.height * 3 / 4 & ~1) }
    }

    // Primaries and transfer functions are not converted: the reference takes the driver's numbers as they are.
    @Test(
        "Every colorspace, encoding and range of vivid comes out within 2 levels of a floating-point reference",
        .enabled(if: hasVivid)
    )
    func matrices() throws {
        defer { try? resetColours() }
        var (count, worst) = (0, 0.0)
        for colorspace in try menu("colorspace") {
            for encoding in try menu("y_cbcr_encoding") {
                for range in try menu("quantization") {
                    let name = encoding == "Default" ? colorspace : encoding
                    let coding = try #require(ReferenceCoding.byName[name], "\(name) is not known")
                    let picture = try capture(
                        .yuyv,
                        [
                            ("osd_text_mode", "2"), ("test_pattern", "1"), ("colorspace", colorspace),
                            ("y_cbcr_encoding", encoding), ("quantization", range),
                        ]
                    )
                    let isFull = range == "Full Range"
                    for (column, row) in samples {
                        let place = row * picture.bytesPerRow + 2 * column
                        let (luma, chromaU, chromaV) = (
                            Double(picture.raw[place]), Double(picture.raw[place + 1]), Double(picture.raw[place + 3])
                        )
                        let colour = coding.colour(
                            isFull ? luma / 255 : (luma - 16) / 219,
                            (chromaU - 128) / (isFull ? 255 : 224),
                            (chromaV - 128) / (isFull ? 255 : 224)
                        )
                        let difference = difference(picture.convertedPixel(column, row), colour)
                        worst = max(worst, difference)
                        #expect(difference <= Self.tolerance, "\(colorspace), \(encoding), \(range) at \(column)")
                    }
                    count += 1
                }
            }
        }
        #expect(count >= 9 * 8 * 3)
        print("\(count) codings, at most \(worst) levels off")
    }

    @Test("RGB of either range comes out within 2 levels of a floating-point reference", .enabled(if: hasVivid))
    func rgbRanges() throws {
        defer { try? resetColours() }
        for (code, order) in [("RGB3", [0, 1, 2]), ("BGR3", [2, 1, 0])] {
            for range in try menu("quantization") {
                let picture = try capture(
                    try #require(PixelFormat(fourCC: code)),
                    [("osd_text_mode", "2"), ("test_pattern", "1"), ("colorspace", "sRGB"), ("quantization", range)]
                )
                for (column, row) in samples {
                    let place = row * picture.bytesPerRow + 3 * column
                    let colour = SIMD3(order.map { Double(picture.raw[place + $0]) })
                    let scaled = range == "Limited Range" ? (colour - 16) / 219 : colour / 255
                    let difference = difference(picture.convertedPixel(column, row), scaled)
                    #expect(difference <= Self.tolerance, "\(code), \(range) at \(column)")
                }
            }
        }
    }

    /// The largest difference of a converted pixel from `colour` in BT.601 of limited range, which is what we deliver.
    private func difference(_ pixel: SIMD3<Double>, _ colour: SIMD3<Double>) -> Double {
        let expected = ReferenceCoding.bt601.limited(colour).clamped(
            lowerBound: SIMD3(repeating: 0),
            upperBound: SIMD3(repeating: 255)
        )
        let differences = pixel - expected
        return max(abs(differences[0]), abs(differences[1]), abs(differences[2]))
    }
}
