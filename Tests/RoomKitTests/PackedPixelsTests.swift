import MediaCore
import RoomKit
import TestTools
import Testing

@Suite("Frames in red, green and blue")
struct PackedPixelsTests {
    /// Smooth in chroma, so that no pixel depends on how chroma is spread over pixels.
    private func frame(
        _ width: Int,
        _ height: Int,
        rotation: VideoRotation = .none,
        isMirrored: Bool = false
    ) -> VideoFrame {
        let buffer = VideoBuffer(dimensions: Dimensions(width: width, height: height))
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            for row in 0..<height {
                for column in 0..<width {
                    luma[row * buffer.lumaStride + column] = UInt8(16 + (column * 7 + row * 13) % 220)
                }
            }
            for row in 0..<(height + 1) / 2 {
                for column in 0..<(width + 1) / 2 {
                    chromaU[row * buffer.chromaStride + column] = UInt8(90 + column % 80)
                    chromaV[row * buffer.chromaStride + column] = UInt8(170 - row % 80)
                }
            }
        }
        return VideoFrame(
            buffer: buffer,
            timestamp: MonotonicInstant(nanoseconds: 0),
            rotation: rotation,
            isMirrored: isMirrored
        )
    }

    /// The colour of a pixel by the formula of BT.601 with limited range.
    private func colour(of frame: VideoFrame, _ column: Int, _ row: Int) -> (red: Double, green: Double, blue: Double) {
        let buffer = frame.buffer
        return buffer.withPlanes { luma, chromaU, chromaV in
            let y = 1.164 * (Double(luma[row * buffer.lumaStride + column]) - 16)
            let u = Double(chromaU[row / 2 * buffer.chromaStride + column / 2]) - 128
            let v = Double(chromaV[row / 2 * buffer.chromaStride + column / 2]) - 128
            return (y + 1.596 * v, y - 0.391 * u - 0.813 * v, y + 2.018 * u)
        }
    }

    /// The colour of a pixel in a copy.
    private func colour(
        in bytes: [UInt8],
        at offset: Int,
        _ format: PackedPixels
    ) -> (red: Double, green: Double, blue: Double) {
        let values = (0..<3).map { Double(bytes[offset + $0]) }
        return switch format {
        case .rgba, .rgb24: (values[0], values[1], values[2])
        case .bgra, .bgr24: (values[2], values[1], values[0])
        }
    }

    private func isNear(_ value: Double, _ computed: Double) -> Bool { abs(value - min(255, max(0, computed))) <= 3 }

    @Test("Each pixel has the colour of the formula, in pictures of every shape", arguments: PackedPixels.allCases)
    func colours(format: PackedPixels) {
        for (width, height) in [(16, 8), (33, 17), (1, 1), (7, 1), (2, 9), (640, 3)] {
            let frame = frame(width, height)
            let bytes = frame.copy(as: format)
            #expect(bytes.count == width * height * format.bytesPerPixel)
            for row in 0..<height {
                for column in 0..<width {
                    let offset = (row * width + column) * format.bytesPerPixel
                    let (found, computed) = (colour(in: bytes, at: offset, format), colour(of: frame, column, row))
                    let isRight =
                        isNear(found.red, computed.red) && isNear(found.green, computed.green)
                        && isNear(found.blue, computed.blue)
                    #expect(isRight, "\(width)x\(height) at \(column), \(row): \(found), not \(computed)")
                    if format.bytesPerPixel == 4 { #expect(bytes[offset + 3] == 255) }
                }
            }
        }
    }

    @Test("A frame that is to be turned or mirrored comes upright", arguments: VideoRotation.allCases, [false, true])
    func upright(rotation: VideoRotation, isMirrored: Bool) {
        let (width, height) = (6, 4)
        let frame = frame(width, height, rotation: rotation, isMirrored: isMirrored)
        let size = frame.uprightDimensions
        let bytes = frame.copy(as: .rgb24)
        for row in 0..<height {
            for column in 0..<width {
                var (x, y) = (column, row)
                (x, y) =
                    switch rotation {
                    case .none: (column, row)
                    case .clockwise90: (height - 1 - row, column)
                    case .half: (width - 1 - column, height - 1 - row)
                    case .clockwise270: (row, width - 1 - column)
                    }
                if isMirrored { x = size.width - 1 - x }
                let found = colour(in: bytes, at: (y * size.width + x) * 3, .rgb24)
                let computed = colour(of: frame, column, row)
                #expect(isNear(found.red, computed.red) && isNear(found.blue, computed.blue), "\(column), \(row)")
            }
        }
    }

    @Test("Rows may have padding, which stays as it is", arguments: PackedPixels.allCases)
    func padding(format: PackedPixels) throws {
        let frame = frame(10, 6)
        let (row, stride) = (10 * format.bytesPerPixel, 10 * format.bytesPerPixel + 5)
        var memory = [UInt8](repeating: 0x5A, count: stride * 6 + 9)
        var span = memory.mutableSpan
        var bytes = span.mutableBytes
        try frame.copy(to: &bytes, bytesPerRow: stride, format: format)
        let packed = frame.copy(as: format)
        for index in memory.indices {
            let (line, place) = (index / stride, index % stride)
            let expected = line < 6 && place < row ? packed[line * row + place] : 0x5A
            #expect(memory[index] == expected, "byte \(index)")
        }
    }

    @Test("Memory that is too small, and rows that are too short, are refused, and nothing is written")
    func bounds() throws {
        for format in PackedPixels.allCases {
            let frame = frame(5, 3)
            let row = 5 * format.bytesPerPixel
            for count in 0..<row * 3 {
                var memory = [UInt8](repeating: 0x5A, count: count)
                let error = #expect(throws: InvalidPicture.self) {
                    try memory.withUnsafeMutableBytes { try frame.copy(to: $0, format: format) }
                }
                #expect(error?.code == .short && memory.allSatisfy { $0 == 0x5A })
            }
            for stride in [row - 1, 0, -1, .min, .max] {
                var memory = [UInt8](repeating: 0x5A, count: row * 3)
                let error = #expect(throws: InvalidPicture.self) {
                    try memory.withUnsafeMutableBytes { try frame.copy(to: $0, bytesPerRow: stride, format: format) }
                }
                #expect(error?.code == .stride && memory.allSatisfy { $0 == 0x5A })
            }
            // The padding behind the last row need not be there.
            var memory = [UInt8](repeating: 0, count: (row + 7) * 2 + row)
            try memory.withUnsafeMutableBytes { try frame.copy(to: $0, bytesPerRow: row + 7, format: format) }
        }
    }
}
