import MediaCore
import Testing

@testable import Capture

@Suite("Slates")
struct SlatePainterTests {
    /// The inked pixels of a slate, one in `scale`, row by row.
    private func rows(_ buffer: VideoBuffer, scale: Int = 1) -> [String] {
        buffer.withPlanes { luma, _, _ in
            stride(from: 0, to: buffer.dimensions.height, by: scale).map { row in
                String(
                    stride(from: 0, to: buffer.dimensions.width, by: scale).map { column in
                        luma[row * buffer.lumaStride + column] > 128 ? "#" : "."
                    } as [Character]
                )
            }
        }
    }

    @Test("A letter is painted in the middle, pixel by pixel, as a capital")
    func letter() {
        let buffer = SlatePainter().paint(["t"], dimensions: Dimensions(width: 10, height: 12))
        let inked = rows(buffer).filter { $0.contains("#") }
        #expect(inked == ["..#####..."] + Array(repeating: "....#.....", count: 6))
    }

    @Test(
        "Larger pictures have larger letters; every size has a picture",
        arguments: [
            (1, 1), (2, 2), (17, 3), (320, 180), (641, 481), (1920, 1080),
        ]
    )
    func sizes(width: Int, height: Int) {
        let size = Dimensions(width: width, height: height)
        let buffer = SlatePainter().paint(["No picture", "Integrated Camera: é", "for 12345 s"], dimensions: size)
        #expect(buffer.dimensions == size)
        let inked = rows(buffer).joined().count { $0 == "#" }
        #expect(width < 100 || inked > width * height / 100)
        #expect(inked < width * height / 2 || width < 100)
    }
}
