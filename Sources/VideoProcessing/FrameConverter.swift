package import MediaCore
import Threading

/// Converts what cameras deliver to I420, BT.601 limited range, and transforms it on the way.
///
/// Takes YUYV, UYVY, NV12, NV21, YU12, YV12, GREY, RGB3, BGR3, MJPG and JPEG. Without a transform, with a crop alone, or
/// with a half turn and a mirroring, uncompressed pictures are read once, where they lie, straight into the buffer that
/// is handed on; scaling and turning take a further pass each, for planar formats one less, and so do colours that are
/// coded in another way than the result's (`CapturedLayout.colour`). Buffers are used again. Confine to one thread.
package final class FrameConverter: CapturedFrameConverter {
    /// What is done to each picture; may be changed between pictures.
    package var transform: FrameTransform
    /// The transform's `size`.
    package var requestedDimensions: Dimensions? {
        get { transform.size }
        set { transform.size = newValue }
    }

    private let pool = VideoBufferPool()
    /// For whole pictures on the way, and for scaled ones, so that each pool is of one size.
    private let wholePool = VideoBufferPool(limit: 4)
    private let scalingPool = VideoBufferPool(limit: 4)
    private var jpegDecoder: JPEGDecoder
    private var corrected: (kind: RawPictureKind, colour: CapturedColour?, correction: ColourCorrection)?

    /// A converter that does `transform`.
    package init(transform: FrameTransform = FrameTransform()) throws(VideoProcessingError) {
        self.transform = transform
        jpegDecoder = try JPEGDecoder()
    }

    /// JPEG pictures that had a harmless flaw: stray bytes between segments.
    package var harmlessJPEGWarnings: Int { jpegDecoder.harmlessWarnings }

    /// Whether pictures of `pixelFormat` can be converted.
    package func accepts(_ pixelFormat: PixelFormat) -> Bool {
        RawPictureKind(pixelFormat) != nil || pixelFormat.isCompressed
    }

    /// Converts one picture.
    ///
    /// - Throws: `short` if bytes are missing; `undecodable` for damaged JPEG data, JPEG pictures of another size than the
    ///   layout's, a format that is not accepted, and layouts that no picture can have.
    package func convert(
        _ bytes: RawSpan,
        layout: CapturedLayout,
        timestamp: MonotonicInstant
    ) throws(DamagedPicture) -> VideoFrame {
        let buffer: VideoBuffer
        if let kind = RawPictureKind(layout.pixelFormat) {
            buffer = try convert(bytes, CapturedPicture(kind, layout))
            correction(of: kind, layout.colour).apply(to: buffer)
        } else if layout.pixelFormat.isCompressed {
            buffer = try decode(bytes, dimensions: layout.dimensions)
        } else {
            throw .undecodable
        }
        return VideoFrame(buffer: buffer, timestamp: timestamp)
    }

    /// The correction of the colours, computed anew only when what it depends on changes.
    private func correction(of kind: RawPictureKind, _ colour: CapturedColour?) -> ColourCorrection {
        if let corrected, corrected.kind == kind, corrected.colour == colour { return corrected.correction }
        let correction = ColourCorrection(kind, colour)
        corrected = (kind, colour, correction)
        return correction
    }

    private func convert(_ bytes: RawSpan, _ picture: CapturedPicture) throws(DamagedPicture) -> VideoBuffer {
        guard bytes.byteCount >= picture.neededBytes else {
            throw .short(bytes: bytes.byteCount, needed: picture.neededBytes)
        }
        let steps = transform.steps(for: picture.dimensions)
        let finisher = PictureFinisher(transform: transform, pool: pool, scalingPool: scalingPool)
        let buffer = unsafe bytes.withUnsafeBytes { bytes -> VideoBuffer? in
            guard let start = unsafe bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return nil }
            if finisher.isFinished(steps) {
                let buffer = pool.take(steps.kept.dimensions)
                unsafe picture.convert(start, steps.kept, isFlipped: transform.isMirrored, into: buffer)
                return buffer
            }
            if let planes = unsafe picture.planes(at: start) { return unsafe finisher.finish(planes, steps) }
            if picture.turnsInPassing, steps.scaled == steps.kept.dimensions {
                let buffer = pool.take(transform.outputDimensions(for: picture.dimensions))
                unsafe picture.convert(start, steps.kept, finisher.turn, into: buffer)
                return buffer
            }
            let whole = wholePool.take(steps.kept.dimensions)
            unsafe picture.convert(start, steps.kept, isFlipped: false, into: whole)
            return unsafe whole.withPicture { unsafe finisher.finish($0, transform.steps(afterCropping: steps)) }
        }
        guard let buffer else { throw .short(bytes: 0, needed: picture.neededBytes) }
        return buffer
    }

    private func decode(_ bytes: RawSpan, dimensions: Dimensions) throws(DamagedPicture) -> VideoBuffer {
        let steps = transform.steps(for: dimensions)
        let finisher = PictureFinisher(transform: transform, pool: pool, scalingPool: scalingPool)
        let isWhole = steps.kept.dimensions == dimensions
        if isWhole, finisher.isFinished(steps), !transform.isMirrored {
            return try jpegDecoder.decode(bytes, dimensions: dimensions, pool: pool)
        }
        let whole = try jpegDecoder.decode(bytes, dimensions: dimensions, pool: wholePool)
        return unsafe whole.withPicture { unsafe finisher.finish($0, steps) }
    }
}

extension FrameTransform {
    /// The steps left for a picture that has been cropped already.
    fileprivate func steps(
        afterCropping steps: (kept: PictureRegion, scaled: Dimensions)
    ) -> (kept: PictureRegion, scaled: Dimensions) {
        (PictureRegion(centred: nil, in: steps.kept.dimensions), steps.scaled)
    }
}
