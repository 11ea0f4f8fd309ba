import MediaCore
import SyntheticSources

/// A generator whose numbers follow from its seed (Marsaglia's xorshift).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed &* 2_685_821_657_736_338_717 | 1
    }

    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state
    }
}

extension VideoBuffer {
    convenience init(_ width: Int, _ height: Int, luma value: UInt8 = 128) {
        self.init(dimensions: Dimensions(width: width, height: height))
        withMutablePlanes { luma, chromaU, chromaV in
            luma.update(repeating: value)
            chromaU.update(repeating: 128)
            chromaV.update(repeating: 128)
        }
    }

    func luma(_ column: Int, _ row: Int) -> UInt8 { withPlanes { luma, _, _ in luma[row * lumaStride + column] } }

    func chroma(_ column: Int, _ row: Int) -> (u: UInt8, v: UInt8) {
        withPlanes { _, chromaU, chromaV in
            (chromaU[row * chromaStride + column], chromaV[row * chromaStride + column])
        }
    }

    /// Luma without padding.
    var lumaRows: [UInt8] {
        withPlanes { luma, _, _ in
            (0..<dimensions.height).flatMap { row in (0..<dimensions.width).map { luma[row * lumaStride + $0] } }
        }
    }

    func setLuma(_ pixels: [UInt8]) {
        withMutablePlanes { luma, _, _ in
            for row in 0..<dimensions.height {
                for column in 0..<dimensions.width {
                    luma[row * lumaStride + column] = pixels[row * dimensions.width + column]
                }
            }
        }
    }

    /// Luma as a codec leaves it at a low rate: half of the detail within blocks of 8 × 8 lost, coarse levels, noise.
    func distort(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var pixels = lumaRows
        let (width, height) = (dimensions.width, dimensions.height)
        for top in stride(from: 0, to: height, by: 8) {
            for left in stride(from: 0, to: width, by: 8) {
                let rows = top..<min(top + 8, height)
                let columns = left..<min(left + 8, width)
                let sum = rows.reduce(0) { sum, row in columns.reduce(sum) { $0 + Int(pixels[row * width + $1]) } }
                let mean = sum / (rows.count * columns.count)
                for row in rows {
                    for column in columns {
                        let level = (Int(pixels[row * width + column]) + mean) / 2 / 24 * 24 + 12
                        let value = level + Int.random(in: -20...20, using: &generator)
                        pixels[row * width + column] = UInt8(clamping: value)
                    }
                }
            }
        }
        setLuma(pixels)
    }

    /// The picture at another size, each pixel the mean of those it covers.
    func scaled(to size: Dimensions) -> VideoBuffer {
        let source = lumaRows
        let result = VideoBuffer(size.width, size.height)
        result.setLuma(
            (0..<size.area).map { index in
                let (row, column) = (index / size.width, index % size.width)
                let rows = row * dimensions.height / size.height..<(row + 1) * dimensions.height / size.height
                let columns = column * dimensions.width / size.width..<(column + 1) * dimensions.width / size.width
                let sum = rows.reduce(0) { sum, y in columns.reduce(sum) { $0 + Int(source[y * dimensions.width + $1]) }
                }
                return UInt8(sum / (rows.count * columns.count))
            }
        )
        return result
    }
}
