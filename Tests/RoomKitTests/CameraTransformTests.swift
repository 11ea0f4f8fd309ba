import MediaCore
import Testing

@testable import RoomKit

@Suite("The transform of a camera")
struct CameraTransformTests {
    /// A picture of 32x16 whose luma tells each place.
    private func convert(by converter: any CapturedFrameConverter) throws -> VideoFrame {
        let size = Dimensions(width: 32, height: 16)
        let luma = (0..<size.area).map { (place: Int) -> UInt8 in
            let (row, column) = place.quotientAndRemainder(dividingBy: size.width)
            return UInt8(16 + 2 * column + 8 * row)
        }
        let bytes = luma + [UInt8](repeating: 128, count: size.area / 2)
        let layout = CapturedLayout(pixelFormat: .i420, dimensions: size, bytesPerRow: 32)
        return try converter.convert(bytes.span.bytes, layout: layout, timestamp: MonotonicInstant(nanoseconds: 1))
    }

    /// The luma of the corners: top left, top right, bottom left, bottom right.
    private func corners(_ frame: VideoFrame) -> [UInt8] {
        let (width, height, stride) = (frame.dimensions.width, frame.dimensions.height, frame.buffer.lumaStride)
        return frame.buffer.withPlanes { luma, _, _ in
            [luma[0], luma[width - 1], luma[(height - 1) * stride], luma[(height - 1) * stride + width - 1]]
        }
    }

    private var transform: CameraTransform {
        var transform = CameraTransform()
        transform.crop = Dimensions(width: 16, height: 8)
        transform.rotation = .clockwise90
        transform.isMirrored = true
        return transform
    }

    @Test("Without one, frames are as captured")
    func none() throws {
        let frame = try convert(by: CameraSource.makeConverter(CameraTransform(), nil))
        #expect(frame.dimensions == Dimensions(width: 32, height: 16) && frame.isUpright)
        #expect(corners(frame) == [16, 78, 136, 198])
    }

    @Test("Frames are cropped in the middle, turned, then mirrored")
    func applied() throws {
        let frame = try convert(by: CameraSource.makeConverter(transform, nil))
        #expect(frame.dimensions == Dimensions(width: 8, height: 16) && frame.isUpright)
        #expect(corners(frame) == [64, 120, 94, 150])
    }

    @Test("With a tag, frames are cropped, and say how they must be turned and mirrored")
    func tagged() throws {
        var transform = transform
        transform.tagsOrientation = true
        let frame = try convert(by: CameraSource.makeConverter(transform, nil))
        #expect(frame.dimensions == Dimensions(width: 16, height: 8))
        #expect(frame.rotation == .clockwise90 && frame.isMirrored)
        #expect(corners(frame) == [64, 94, 120, 150])
    }

    @Test("The turn of a tracker is added, and followed from frame to frame")
    func tracked() throws {
        let tracker = ManualOrientationTracker(.clockwise270)
        let converter = CameraSource.makeConverter(transform, tracker)
        let mirrored = try convert(by: converter)
        #expect(mirrored.dimensions == Dimensions(width: 16, height: 8))
        #expect(corners(mirrored) == [94, 64, 150, 120])
        tracker.rotation = .none
        #expect(corners(try convert(by: converter)) == [64, 120, 94, 150])
    }
}
