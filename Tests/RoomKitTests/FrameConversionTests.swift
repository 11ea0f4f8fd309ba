import MediaCore
import Testing

@testable import RoomKit

@Suite("Conversion by the library's public type", .timeLimit(.minutes(1)))
struct FrameConversionTests {
    private static let size = Dimensions(width: 64, height: 48)

    /// A picture in NV12 whose pixels all differ from their neighbours, as its two planes.
    private let planes: [[UInt8]]

    init() {
        var (luma, chroma): ([UInt8], [UInt8]) = ([], [])
        for index in 0..<64 * 48 { luma.append(UInt8(16 + index * 7 % 199)) }
        for index in 0..<32 * 24 { chroma += [UInt8(30 + index % 90), UInt8(130 + index % 90)] }
        planes = [luma, chroma]
    }

    private func check(_ frame: VideoFrame) {
        #expect(frame.dimensions == Self.size && frame.timestamp == timestamp(at: 3))
        let (buffer, planes) = (frame.buffer, planes)
        let isSame = buffer.withPlanes { luma, chromaU, chromaV in
            for row in 0..<48 {
                for column in 0..<64 where luma[row * buffer.lumaStride + column] != planes[0][row * 64 + column] {
                    return false
                }
            }
            for row in 0..<24 {
                for column in 0..<32 {
                    let (pair, offset) = (row * 64 + 2 * column, row * buffer.chromaStride + column)
                    guard chromaU[offset] == planes[1][pair], chromaV[offset] == planes[1][pair + 1] else {
                        return false
                    }
                }
            }
            return true
        }
        #expect(isSame)
    }

    @Test("A picture is converted with all its pixels, and the converter's buffers are used again")
    func converting() throws {
        let converter = try VideoFrameConverter()
        #expect(converter.accepts(.nv12) && !converter.accepts(PixelFormat(rawValue: 0)))
        let layout = CapturedLayout(pixelFormat: .nv12, dimensions: Self.size, bytesPerRow: 64)
        let bytes = planes[0] + planes[1]
        // A new buffer may have the address of one that was freed.
        weak var kept: VideoBuffer?
        for round in 0..<20 {
            let frame = try VideoFrame(
                converting: bytes.span.bytes,
                layout: layout,
                timestamp: timestamp(at: 3),
                with: converter
            )
            #expect(round == 0 || frame.buffer === kept)
            kept = frame.buffer
            check(frame)
        }
        for _ in 0..<20 {
            let frame = try planes[0].withUnsafeBytes { luma in
                try planes[1].withUnsafeBytes { chroma in
                    try VideoFrame(
                        converting: [luma, chroma],
                        layout: layout,
                        timestamp: timestamp(at: 3),
                        with: converter
                    )
                }
            }
            #expect(frame.buffer === kept)
            check(frame)
        }
    }

    @Test("A picture that is too short is refused")
    func short() throws {
        let converter = try VideoFrameConverter()
        let layout = CapturedLayout(pixelFormat: .nv12, dimensions: Self.size, bytesPerRow: 64)
        func convert(_ bytes: [UInt8]) throws -> VideoFrame {
            try VideoFrame(
                converting: bytes.span.bytes,
                layout: layout,
                timestamp: timestamp(at: 3),
                with: converter
            )
        }
        #expect(throws: InvalidPicture.self) { try convert(planes[0]) }
    }
}
