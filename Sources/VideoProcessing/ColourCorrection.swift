import MediaCore

/// The change that brings the colours of a converted picture to BT.601 with limited range.
///
/// libyuv converts the layout of YUV formats and keeps their values. The correction is therefore a further pass, in
/// place over the finished picture. There is none if the colours match already.
enum ColourCorrection {
    /// The colours match.
    case none
    /// Grey of full range.
    case limitLuma
    /// BT.601 of full range.
    case limitRange
    /// Anything else.
    case matrix(ColourMatrix)

    /// Creates the correction for pictures of `kind` with the stated colour coding.
    init(_ kind: RawPictureKind, _ colour: CapturedColour?) {
        switch kind {
        case .grey:
            self = colour?.range == .limited ? .none : .limitLuma
        case .rgb24, .bgr24, .argb32, .bgra32, .rgba32, .bgrx32, .rgbx32:
            // libyuv treats RGB as full range.
            self = colour?.range == .limited ? .matrix(ColourMatrix(from: .convertedRGB, .bt601)) : .none
        case .yuyv, .yvyu, .uyvy, .nv12, .nv21, .nv16, .i420, .yv12, .i422:
            guard let colour, colour != CapturedColour(range: .limited) else {
                self = .none
                return
            }
            self =
                colour.matrix == .bt601
                ? .limitRange
                : .matrix(ColourMatrix(from: colour.range == .full ? .full : .limited, colour.matrix))
        }
    }

    /// Corrects the picture in place; only the buffer's one holder may call this.
    func apply(to buffer: VideoBuffer) {
        switch self {
        case .none: break
        case .limitLuma: buffer.limitLuma()
        case .limitRange: buffer.limitRange()
        case .matrix(let matrix): buffer.apply(matrix)
        }
    }
}

/// The values that stand for black, white and the strongest colours.
struct ColourLevels {
    var black: Double
    var white: Double
    /// The largest distance of chroma from 128.
    var chroma: Double

    static let limited = ColourLevels(black: 16, white: 235, chroma: 112)
    static let full = ColourLevels(black: 0, white: 255, chroma: 127.5)
    /// RGB of limited range that was converted as if it had full range.
    static let convertedRGB = ColourLevels(
        black: 16 + 219 * 16.0 / 255,
        white: 16 + 219 * 235.0 / 255,
        chroma: 112 * 219.0 / 255
    )
}

/// The linear map from one coding of luma and chroma to BT.601 with limited range, in fixed point.
///
/// New luma is `luma` × y + `lumaOffset` plus shares of both chroma values. New chroma values are mixtures of both
/// chroma values. Grey stays grey, so chroma has no share of luma.
struct ColourMatrix {
    /// The bits after the point: coefficients are below 4 and sums of three are below 2^12, so 32 bits hold them.
    static let fraction = Int32(14)

    let luma: Int32
    let lumaOffset: Int32
    let lumaOfU: Int32
    let lumaOfV: Int32
    let uOfU: Int32
    let uOfV: Int32
    let vOfU: Int32
    let vOfV: Int32

    /// Creates the map from `levels` and `matrix`.
    init(from levels: ColourLevels, _ matrix: CapturedColour.Matrix) {
        let one = Double(1 << Self.fraction)
        let fixed = { (value: Double) in Int32((value * one).rounded()) }
        let gain = 219 / (levels.white - levels.black)
        luma = fixed(gain)
        lumaOffset = fixed(16 - levels.black * gain)
        // The value of one unit of each chroma in the target coding, computed through red, green and blue.
        let blue = Self.target(matrix.weights, u: 1, v: 0)
        let red = Self.target(matrix.weights, u: 0, v: 1)
        let toLuma = 219 / (2 * levels.chroma)
        let toChroma = 224 / (2 * levels.chroma)
        lumaOfU = fixed(blue.luma * toLuma)
        lumaOfV = fixed(red.luma * toLuma)
        uOfU = fixed(blue.u * toChroma)
        uOfV = fixed(red.u * toChroma)
        vOfU = fixed(blue.v * toChroma)
        vOfV = fixed(red.v * toChroma)
    }

    /// The BT.601 luma and chroma of a colour that has no luma by other `weights`; chroma from -0.5 to 0.5.
    private static func target(
        _ weights: (red: Double, blue: Double),
        u: Double,
        v: Double
    ) -> (luma: Double, u: Double, v: Double) {
        let red = 2 * (1 - weights.red) * v
        let blue = 2 * (1 - weights.blue) * u
        let green = -(weights.red * red + weights.blue * blue) / (1 - weights.red - weights.blue)
        let own = CapturedColour.Matrix.bt601.weights
        let luma = own.red * red + own.blue * blue + (1 - own.red - own.blue) * green
        return (luma, (blue - luma) / (2 * (1 - own.blue)), (red - luma) / (2 * (1 - own.red)))
    }
}

extension CapturedColour.Matrix {
    /// The shares of red and blue in luma (ITU-R BT.601, BT.709, BT.2020, SMPTE 240M).
    fileprivate var weights: (red: Double, blue: Double) {
        switch self {
        case .bt601: (0.299, 0.114)
        case .bt709: (0.2126, 0.0722)
        case .bt2020: (0.2627, 0.0593)
        case .smpte240M: (0.212, 0.087)
        }
    }
}

extension VideoBuffer {
    /// Maps each pixel; padding is mapped along with the rows, because its value is undefined anyway.
    fileprivate func apply(_ matrix: ColourMatrix) {
        let rows = dimensions.height
        let (lumaStride, chromaStride) = (lumaStride, chromaStride)
        // Map 16 chroma values at a time, and the 32 luma values beside them in each of two rows; the
        // strides are multiples of these numbers.
        precondition(chromaStride.isMultiple(of: 16) && lumaStride == 2 * chromaStride, "strides of \(dimensions)")
        withMutablePlanes { luma, chromaU, chromaV in
            unsafe luma.withUnsafeMutableBytes { luma in
                unsafe chromaU.withUnsafeMutableBytes { chromaU in
                    unsafe chromaV.withUnsafeMutableBytes { chromaV in
                        for position in stride(from: 0, to: chromaU.count, by: 16) {
                            let shares = unsafe matrix.mapChroma(chromaU, chromaV, at: position)
                            let (row, column) = position.quotientAndRemainder(dividingBy: chromaStride)
                            for row in 2 * row..<min(2 * row + 2, rows) {
                                unsafe matrix.mapLuma(luma, at: row * lumaStride + 2 * column, shares)
                            }
                        }
                    }
                }
            }
        }
    }
}

extension ColourMatrix {
    /// Maps 16 pairs of chroma values.
    ///
    /// - Returns: Their shares in luma, with rounding included.
    @inline(__always)
    fileprivate func mapChroma(
        _ chromaU: UnsafeMutableRawBufferPointer,
        _ chromaV: UnsafeMutableRawBufferPointer,
        at position: Int
    ) -> SIMD16<Int32> {
        let u = unsafe load(chromaU, at: position) &- 128
        let v = unsafe load(chromaV, at: position) &- 128
        let half = Int32(1) << (Self.fraction - 1)
        let middle = Int32(128) << Self.fraction + half
        let newU = (u &* uOfU &+ v &* uOfV &+ middle) &>> Self.fraction
        let newV = (u &* vOfU &+ v &* vOfV &+ middle) &>> Self.fraction
        unsafe store(newU, to: chromaU, at: position)
        unsafe store(newV, to: chromaV, at: position)
        return u &* lumaOfU &+ v &* lumaOfV &+ (lumaOffset &+ half)
    }

    /// Maps 32 luma values; every two of them share one chroma value.
    @inline(__always)
    fileprivate func mapLuma(
        _ luma: UnsafeMutableRawBufferPointer,
        at position: Int,
        _ shares: SIMD16<Int32>
    ) {
        for (offset, half) in [(0, shares.lowHalf), (16, shares.highHalf)] {
            var pairs = SIMD16<Int32>()
            pairs.evenHalf = half
            pairs.oddHalf = half
            let y = unsafe load(luma, at: position + offset)
            unsafe store((y &* self.luma &+ pairs) &>> Self.fraction, to: luma, at: position + offset)
        }
    }

    @inline(__always)
    private func load(_ plane: UnsafeMutableRawBufferPointer, at position: Int) -> SIMD16<Int32> {
        SIMD16<Int32>(
            truncatingIfNeeded: unsafe plane.loadUnaligned(fromByteOffset: position, as: SIMD16<UInt8>.self)
        )
    }

    @inline(__always)
    private func store(_ values: SIMD16<Int32>, to plane: UnsafeMutableRawBufferPointer, at position: Int) {
        let bytes = SIMD16<UInt8>(
            truncatingIfNeeded: values.clamped(lowerBound: SIMD16(repeating: 0), upperBound: SIMD16(repeating: 255))
        )
        unsafe plane.storeBytes(of: bytes, toByteOffset: position, as: SIMD16<UInt8>.self)
    }
}
