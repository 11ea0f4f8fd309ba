import MediaCore
import SyntheticSources
import TestTools

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
            luma.withUnsafeBufferPointer { luma in
                (0..<dimensions.height).reduce(into: []) { rows, row in
                    rows += luma[row * lumaStride..<row * lumaStride + dimensions.width]
                }
            }
        }
    }

    func setLuma(_ pixels: [UInt8]) {
        withLumaRows { row, bytes in
            pixels[row * dimensions.width..<(row + 1) * dimensions.width].withUnsafeBufferPointer { source in
                _ = bytes.update(fromContentsOf: source)
            }
        }
    }

    /// Lends each row of luma, without padding, for writing.
    private func withLumaRows(_ body: (_ row: Int, _ bytes: UnsafeMutableBufferPointer<UInt8>) -> Void) {
        withMutablePlanes { luma, _, _ in
            luma.withUnsafeMutableBufferPointer { luma in
                for row in 0..<dimensions.height {
                    body(
                        row,
                        UnsafeMutableBufferPointer(
                            rebasing: luma[row * lumaStride..<row * lumaStride + dimensions.width]
                        )
                    )
                }
            }
        }
    }

    /// Luma as a codec leaves it at a low rate: half of the detail within blocks of 8 × 8 lost, coarse levels, noise.
    ///
    /// Only the `edge` rows at the top and at the bottom, and the blocks they touch, so that debug builds are quick.
    func distort(seed: UInt64, edge: Int) {
        var generator = SeededGenerator(seed: seed)
        var pixels = lumaRows
        let (width, height) = (dimensions.width, dimensions.height)
        pixels.withUnsafeMutableBufferPointer { pixels in
            for top in stride(from: 0, to: height, by: 8) where top < edge || top + 8 > height - edge {
                for left in stride(from: 0, to: width, by: 8) {
                    distortBlock(&pixels, top..<min(top + 8, height), left..<min(left + 8, width), &generator)
                }
            }
        }
        setLuma(pixels)
    }

    private func distortBlock(
        _ pixels: inout UnsafeMutableBufferPointer<UInt8>,
        _ rows: Range<Int>,
        _ columns: Range<Int>,
        _ generator: inout SeededGenerator
    ) {
        let width = dimensions.width
        var sum = 0
        for row in rows { for column in columns { sum += Int(pixels[row * width + column]) } }
        let mean = sum / (rows.count * columns.count)
        for row in rows {
            for column in columns {
                let level = (Int(pixels[row * width + column]) + mean) / 2 / 24 * 24 + 12
                let noise = Int(truncatingIfNeeded: generator.next() >> 32) % 41 - 20
                pixels[row * width + column] = UInt8(clamping: level + noise)
            }
        }
    }

    /// The picture at another size, each pixel the mean of those it covers; the middle third is left out.
    func scaled(to size: Dimensions) -> VideoBuffer {
        let source = lumaRows
        let (width, height) = (dimensions.width, dimensions.height)
        let result = VideoBuffer(size.width, size.height)
        source.withUnsafeBufferPointer { source in
            result.withLumaRows { row, bytes in
                guard !(size.height / 3..<size.height * 2 / 3).contains(row) else { return }
                let rows = row * height / size.height..<(row + 1) * height / size.height
                for column in 0..<size.width {
                    let columns = column * width / size.width..<(column + 1) * width / size.width
                    var sum = 0
                    for y in rows { for x in columns { sum += Int(source[y * width + x]) } }
                    bytes[column] = UInt8(sum / (rows.count * columns.count))
                }
            }
        }
        return result
    }
}
