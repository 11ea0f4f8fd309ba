import CPNG
import Glibc
package import MediaCore

/// Writes single pictures as PNG files; confine to one thread.
///
/// A file appears under its name only when it is complete. The memory for colours and for compressed data is reused.
package final class PNGWriter {
    private var colours: [UInt8] = []
    private var compressed: [UInt8] = []

    /// Creates a writer without buffers.
    package init() {}

    /// Writes a picture, turned and mirrored upright, in sRGB.
    ///
    /// - Parameters:
    ///   - frame: The picture, in BT.601 limited range like all frames.
    ///   - path: The file's path.
    ///   - replacing: Whether to replace a regular file with that name; nothing else is ever replaced.
    /// - Throws: `fileExists` unless `replacing`, `notRegular` if so; `notFound`, `notPermitted`, `storageFull`,
    ///   `systemFailure`.
    package func write(_ frame: VideoFrame, to path: String, replacing: Bool = false) throws(MediaFileError) {
        if replacing {
            try CompleteFile.checkReplaceable(path)
        } else if unsafe access(path, F_OK) == 0 {
            // Check early, so that nothing is compressed needlessly; the renaming decides in the end.
            throw MediaFileError(.create, path, status: EEXIST)
        }
        let size = frame.uprightDimensions
        let length = 3 * size.area
        if colours.count != length { colours = [UInt8](repeating: 0, count: length) }
        Self.convert(frame, into: &colours)
        let count = try compress(size, path: path)
        let bytes = compressed
        try CompleteFile.write(bytes.span.extracting(0..<count), to: path, replacing: replacing)
    }

    private static func convert(_ frame: VideoFrame, into colours: inout [UInt8]) {
        let buffer = frame.buffer
        let width = buffer.dimensions.width
        let walk = UprightWalk(of: frame.dimensions, turned: frame.rotation, isMirrored: frame.isMirrored)
        var pixels = colours.mutableSpan
        buffer.withPlanes { luma, chromaU, chromaV in
            for row in 0..<buffer.dimensions.height {
                let lumaRow = luma.extracting(row * buffer.lumaStride..<row * buffer.lumaStride + width)
                var target = walk.start + row * walk.rowStep
                for column in 0..<width {
                    let chroma = row / 2 * buffer.chromaStride + column / 2
                    let colour = BT601.colour(luma: lumaRow[column], chromaU: chromaU[chroma], chromaV: chromaV[chroma])
                    pixels[target] = colour.red
                    pixels[target + 1] = colour.green
                    pixels[target + 2] = colour.blue
                    target += walk.columnStep
                }
            }
        }
    }

    /// Compresses `colours` into `compressed`.
    ///
    /// - Returns: The compressed picture's length, in bytes.
    private func compress(_ size: Dimensions, path: String) throws(MediaFileError) -> Int {
        var image = unsafe png_image()
        unsafe image.version = UInt32(PNG_IMAGE_VERSION)
        unsafe (image.width, image.height) = (UInt32(size.width), UInt32(size.height))
        unsafe image.format = UInt32(PNG_FORMAT_RGB)
        let limit = unsafe cpng_image_size_max(image)
        if compressed.count < limit { compressed = [UInt8](repeating: 0, count: limit) }
        var count = compressed.count
        let status = unsafe compressed.withUnsafeMutableBytes { target in
            unsafe colours.withUnsafeBytes { source in
                unsafe png_image_write_to_memory(&image, target.baseAddress, &count, 0, source.baseAddress, 0, nil)
            }
        }
        defer { unsafe png_image_free(&image) }
        guard status != 0 else {
            let message = unsafe withUnsafeBytes(of: &image.message) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            throw MediaFileError(.systemFailure, .write, path, "libpng reports: \(message)")
        }
        return count
    }
}

/// The path of a turned or mirrored picture's rows and columns through an upright picture of three bytes a pixel.
struct UprightWalk {
    /// The position of the first pixel, in bytes.
    var start: Int
    /// The step from one pixel of a row to the next, in bytes.
    var columnStep: Int
    /// The step from one row to the next, in bytes.
    var rowStep: Int

    /// The walk for pictures of `size` that must be turned by `rotation` and then, if they are mirrored, have left and
    /// right exchanged.
    init(of size: Dimensions, turned rotation: VideoRotation, isMirrored: Bool) {
        let (width, height) = (size.width, size.height)
        (start, columnStep, rowStep) =
            switch (rotation, isMirrored) {
            case (.none, false): (0, 3, 3 * width)
            case (.none, true): (3 * (width - 1), -3, 3 * width)
            case (.clockwise90, false): (3 * (height - 1), 3 * height, -3)
            case (.clockwise90, true): (0, 3 * height, 3)
            case (.half, false): (3 * (width * height - 1), -3, -3 * width)
            case (.half, true): (3 * width * (height - 1), 3, -3 * width)
            case (.clockwise270, false): (3 * height * (width - 1), -3 * height, 3)
            case (.clockwise270, true): (3 * (width * height - 1), -3 * height, -3)
            }
    }
}

/// The colours of BT.601 limited range (ITU-R BT.601-7, sections 2.5.1 to 2.5.3), in units of 1/65,536.
package enum BT601 {
    private static let luma: Int32 = 76_309  // 255 / 219
    private static let redFromV: Int32 = 104_597  // 255 / 224 × 1.402
    private static let greenFromU: Int32 = 25_675  // 255 / 224 × 1.772 × 0.114 / 0.587
    private static let greenFromV: Int32 = 53_279  // 255 / 224 × 1.402 × 0.299 / 0.587
    private static let blueFromU: Int32 = 132_201  // 255 / 224 × 1.772

    /// The red, green and blue of one pixel, each rounded and clamped.
    package static func colour(
        luma value: UInt8,
        chromaU: UInt8,
        chromaV: UInt8
    ) -> (red: UInt8, green: UInt8, blue: UInt8) {
        let base = luma &* (Int32(value) &- 16) &+ 32_768
        let (chromaU, chromaV) = (Int32(chromaU) &- 128, Int32(chromaV) &- 128)
        return (
            clamp(base &+ redFromV &* chromaV),
            clamp(base &- greenFromU &* chromaU &- greenFromV &* chromaV),
            clamp(base &+ blueFromU &* chromaU)
        )
    }

    private static func clamp(_ value: Int32) -> UInt8 {
        UInt8(min(max(value >> 16, 0), 255))
    }
}
