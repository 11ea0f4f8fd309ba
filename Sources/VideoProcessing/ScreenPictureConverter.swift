import CYUV
package import MediaCore
import Threading

/// Converts parts of a screen to I420, BT.601 limited range; confine to one thread.
///
/// A picture begins as a copy of the one before it, and only the parts that changed are converted. Buffers are reused.
package final class ScreenPictureConverter: ScreenConverter {
    private let pool = VideoBufferPool()

    /// Creates a converter that has no buffers yet.
    package init() {}

    /// Takes a picture that nobody else holds; see `ScreenConverter`.
    package func makePicture(_ dimensions: Dimensions, from previous: VideoBuffer?) -> VideoBuffer {
        let picture = pool.take(dimensions)
        guard let previous else { return picture }
        precondition(previous.dimensions == dimensions, "a picture of \(dimensions) from \(previous.dimensions)")
        unsafe previous.withPicture { unsafe picture.fill(turning: $0, Turn(.none, isMirrored: false)) }
        return picture
    }

    /// Converts pixels into a part of a picture; see `ScreenConverter`.
    package func convert(_ pixels: RawSpan, of area: PixelArea, into picture: VideoBuffer) {
        let bytesPerRow = area.dimensions.width * 4
        precondition(
            pixels.byteCount >= bytesPerRow * area.dimensions.height
                && PixelArea(whole: picture.dimensions).intersection(area) == area
                && area.column & 1 == 0 && area.row & 1 == 0,
            "\(pixels.byteCount) bytes for \(area) of \(picture.dimensions)"
        )
        let luma = area.row * picture.lumaStride + area.column
        let chroma = area.row / 2 * picture.chromaStride + area.column / 2
        unsafe pixels.withUnsafeBytes { bytes in
            guard let start = unsafe bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
            // libyuv names formats by the order in a little-endian word: ARGB is bytes B G R A.
            let status = unsafe picture.withTarget { target in
                unsafe ARGBToI420(
                    start,
                    Int32(bytesPerRow),
                    target.luma + luma,
                    target.lumaStride,
                    target.chromaU + chroma,
                    target.chromaStride,
                    target.chromaV + chroma,
                    target.chromaStride,
                    Int32(area.dimensions.width),
                    Int32(area.dimensions.height)
                )
            }
            precondition(status == 0, "converting \(area) of a screen: \(status)")
        }
    }
}
