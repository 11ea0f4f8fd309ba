package import MediaCore
import Threading

/// Converts the pictures of cameras to I420, BT.601 limited range, and transforms them on the way.
///
/// It accepts YUYV, YVYU, UYVY, NV12, NV21, NV16, YU12, YV12, 422P, GREY, RGB3, BGR3, BA24, AR24, AB24, XR24, XB24, MJPG
/// and JPEG. Uncompressed
/// pictures are read once, in place, and converted directly into the delivered buffer, if there is no transform, only a
/// crop, or a half turn with a mirroring. Scaling and turning take a further pass each, or one pass less for planar
/// formats. Colours that are coded differently from the result's (`CapturedLayout.colour`) also take a pass. Buffers
/// are reused. Confine to one thread.
package final class FrameConverter: CapturedFrameConverter {
    /// The transform of each picture; may be changed between pictures.
    package var transform: FrameTransform {
        didSet { applied = Self.applied(of: transform, tagsOrientation: tagsOrientation) }
    }
    /// The transform's `size`.
    package var requestedDimensions: Dimensions? {
        get { transform.size }
        set { transform.size = newValue }
    }

    /// Whether frames are tagged with turn and mirroring, for their receivers to apply, instead of being turned here.
    package var tagsOrientation: Bool {
        didSet { applied = Self.applied(of: transform, tagsOrientation: tagsOrientation) }
    }

    /// The number of the JPEG library's decoder in use, which changes whenever another one is made.
    package var jpegContext: Int { jpegDecoder.context }

    /// The steps that are applied here.
    private var applied: FrameTransform
    private let pool = VideoBufferPool()
    /// Buffers for whole pictures on the way and for scaled ones, so that each pool has buffers of one size.
    private let wholePool = VideoBufferPool(limit: 4)
    private let scalingPool = VideoBufferPool(limit: 4)
    private var jpegDecoder: JPEGDecoder
    private var jpegSize = JPEGSize()
    private var corrected: (kind: RawPictureKind, colour: CapturedColour?, correction: ColourCorrection)?

    /// Creates a converter that applies `transform`, or tags the frames with its turn and mirroring.
    package init(
        transform: FrameTransform = FrameTransform(),
        tagsOrientation: Bool = false
    ) throws(VideoProcessingError) {
        self.transform = transform
        self.tagsOrientation = tagsOrientation
        applied = Self.applied(of: transform, tagsOrientation: tagsOrientation)
        jpegDecoder = try JPEGDecoder()
    }

    private static func applied(of transform: FrameTransform, tagsOrientation: Bool) -> FrameTransform {
        var applied = transform
        if tagsOrientation { (applied.rotation, applied.isMirrored) = (.none, false) }
        return applied
    }

    /// Whether pictures of `pixelFormat` can be converted.
    package func accepts(_ pixelFormat: PixelFormat) -> Bool {
        RawPictureKind(pixelFormat) != nil || pixelFormat.isCompressed
    }

    /// The size of the frame that a captured picture of `dimensions` is converted into.
    package func outputDimensions(for dimensions: Dimensions) -> Dimensions {
        transform.outputDimensions(for: jpegSize.expected(stated: dimensions))
    }

    /// Converts one picture.
    ///
    /// A JPEG picture may have another size than the layout's, if those before it had the same size.
    ///
    /// - Throws: `short` if bytes are missing; `undecodable` for damaged JPEG data, a format that is not accepted, and
    ///   layouts that no picture can have; `otherSize` for the first JPEG pictures that are not of the layout's size.
    package func convert(
        _ bytes: RawSpan,
        layout: CapturedLayout,
        timestamp: MonotonicInstant
    ) throws(DamagedPicture) -> VideoFrame {
        let buffer: VideoBuffer
        if let kind = RawPictureKind(layout.pixelFormat) {
            buffer = try convert(bytes, CapturedPicture(kind, layout), layout.colour)
        } else if layout.pixelFormat.isCompressed {
            buffer = try decode(bytes, stated: layout.dimensions)
        } else {
            throw .undecodable
        }
        return frame(buffer, timestamp)
    }

    private func decode(_ bytes: RawSpan, stated: Dimensions) throws(DamagedPicture) -> VideoBuffer {
        do throws(DamagedPicture) {
            let buffer = try decode(bytes, dimensions: jpegSize.expected(stated: stated))
            jpegSize.noteExpected()
            return buffer
        } catch .otherSize(let dimensions) where jpegSize.accepts(dimensions, stated: stated) {
            return try decode(bytes, dimensions: dimensions)
        } catch {
            throw error
        }
    }

    /// A frame of `buffer` that says how it must be turned, if that is left to others.
    private func frame(_ buffer: VideoBuffer, _ timestamp: MonotonicInstant) -> VideoFrame {
        var frame = VideoFrame(buffer: buffer, timestamp: timestamp)
        if tagsOrientation { (frame.rotation, frame.isMirrored) = (transform.rotation, transform.isMirrored) }
        return frame
    }

    /// Makes a frame of an upright picture; a converter that tags its frames turns it back, and tags it likewise.
    package func frame(ofUpright upright: VideoBuffer, timestamp: MonotonicInstant) -> VideoFrame {
        let isTurned = transform.rotation != .none || transform.isMirrored
        guard tagsOrientation, isTurned else { return VideoFrame(buffer: upright, timestamp: timestamp) }
        let isSwapped = transform.rotation.swapsDimensions
        let buffer = pool.take(isSwapped ? upright.dimensions.transposed : upright.dimensions)
        // A turn with a mirroring undoes itself.
        let back = transform.isMirrored ? transform.rotation : transform.rotation.opposite
        unsafe upright.withPicture {
            unsafe buffer.fill(turning: $0, Turn(back, isMirrored: transform.isMirrored))
        }
        return frame(buffer, timestamp)
    }

    /// The colour correction, which is computed again only when its inputs change.
    private func correction(of kind: RawPictureKind, _ colour: CapturedColour?) -> ColourCorrection {
        if let corrected, corrected.kind == kind, corrected.colour == colour { return corrected.correction }
        let correction = ColourCorrection(kind, colour)
        corrected = (kind, colour, correction)
        return correction
    }

    private func convert(
        _ bytes: RawSpan,
        _ picture: CapturedPicture,
        _ colour: CapturedColour?
    ) throws(DamagedPicture) -> VideoBuffer {
        guard bytes.byteCount >= picture.neededBytes else {
            throw .short(bytes: bytes.byteCount, needed: picture.neededBytes)
        }
        let buffer = unsafe bytes.withUnsafeBytes { bytes -> VideoBuffer? in
            guard let start = unsafe bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return nil }
            return unsafe convert(picture.planes(at: start), picture)
        }
        guard let buffer else { throw .short(bytes: 0, needed: picture.neededBytes) }
        correction(of: picture.kind, colour).apply(to: buffer)
        return buffer
    }

    private func convert(_ planes: CapturedPlanes, _ picture: CapturedPicture) -> VideoBuffer {
        let steps = applied.steps(for: picture.dimensions)
        let finisher = PictureFinisher(transform: applied, pool: pool, scalingPool: scalingPool)
        if finisher.isFinished(steps) {
            let buffer = pool.take(steps.kept.dimensions)
            unsafe picture.convert(planes, steps.kept, isFlipped: applied.isMirrored, into: buffer)
            return buffer
        }
        if let planar = unsafe picture.planar(planes) { return unsafe finisher.finish(planar, steps) }
        if picture.turnsInPassing, steps.scaled == steps.kept.dimensions {
            let buffer = pool.take(applied.outputDimensions(for: picture.dimensions))
            unsafe picture.convert(planes, steps.kept, finisher.turn, into: buffer)
            return buffer
        }
        let whole = wholePool.take(steps.kept.dimensions)
        unsafe picture.convert(planes, steps.kept, isFlipped: false, into: whole)
        return unsafe whole.withPicture { unsafe finisher.finish($0, applied.steps(afterCropping: steps)) }
    }

    private func decode(_ bytes: RawSpan, dimensions: Dimensions) throws(DamagedPicture) -> VideoBuffer {
        let steps = applied.steps(for: dimensions)
        let finisher = PictureFinisher(transform: applied, pool: pool, scalingPool: scalingPool)
        let isWhole = steps.kept.dimensions == dimensions
        if isWhole, finisher.isFinished(steps), !applied.isMirrored {
            return try jpegDecoder.decode(bytes, dimensions: dimensions, pool: pool)
        }
        let whole = try jpegDecoder.decode(bytes, dimensions: dimensions, pool: wholePool)
        return unsafe whole.withPicture { unsafe finisher.finish($0, steps) }
    }
}

// MARK: - Pictures of custom sources

extension FrameConverter {
    /// Converts a picture of a custom source whose planes follow each other in `bytes`; layout and bytes may have any
    /// content.
    ///
    /// - Throws: `InvalidPicture`, which says what is wrong with the layout or the number of bytes.
    package func convert(
        _ bytes: RawSpan,
        checking layout: CapturedLayout,
        timestamp: MonotonicInstant
    ) throws(InvalidPicture) -> VideoFrame {
        let picture = layout.pixelFormat.isCompressed ? nil : try CapturedPicture(checking: layout)
        do throws(DamagedPicture) {
            guard let picture else { return frame(try decode(bytes, dimensions: layout.dimensions), timestamp) }
            return frame(try convert(bytes, picture, layout.colour), timestamp)
        } catch {
            switch error {
            case .short(let count, let needed):
                throw InvalidPicture(.short, "\(layout.name) needs \(needed) bytes; there are \(count).")
            case .undecodable:
                let name = "\(layout.pixelFormat) picture of \(layout.dimensions)"
                throw InvalidPicture(.undecodable, "The bytes are no \(name).")
            case .otherSize(let dimensions):
                let name = "\(layout.pixelFormat) picture of \(dimensions)"
                throw InvalidPicture(.undecodable, "The bytes are a \(name); the layout says \(layout.dimensions).")
            }
        }
    }

    /// Converts an uncompressed picture of a custom source whose planes lie anywhere in memory; layout and sizes may
    /// have any content.
    ///
    /// - Throws: `InvalidPicture`, which says what is wrong with the layout, or with the number or length of the
    ///   planes.
    package func convert(
        planes: [UnsafeRawBufferPointer],
        checking layout: CapturedLayout,
        timestamp: MonotonicInstant
    ) throws(InvalidPicture) -> VideoFrame {
        let picture = try CapturedPicture(checking: layout)
        guard unsafe planes.count == picture.kind.planeCount else {
            let counts = unsafe "\(picture.kind.planeCount) planes; there are \(planes.count)"
            throw InvalidPicture(.planeCount, "\(layout.name) has \(counts).")
        }
        for plane in unsafe planes.indices {
            let (count, needed) = unsafe (planes[plane].count, picture.neededBytes(plane: plane))
            guard count >= needed else {
                let counts = "\(needed) bytes; there are \(count)"
                throw InvalidPicture(.short, "\(layout.name) needs in plane \(plane) \(counts).")
            }
        }
        let first = unsafe planes[0].baseAddress
        let second = unsafe planes[min(1, planes.count - 1)].baseAddress
        let third = unsafe planes[planes.count - 1].baseAddress
        guard let first = unsafe first, let second = unsafe second, let third = unsafe third else {
            throw InvalidPicture(.short, "A plane of \(layout.name) has no bytes.")
        }
        let buffer = unsafe convert(
            CapturedPlanes(
                first: first.assumingMemoryBound(to: UInt8.self),
                second: second.assumingMemoryBound(to: UInt8.self),
                third: third.assumingMemoryBound(to: UInt8.self)
            ),
            picture
        )
        correction(of: picture.kind, layout.colour).apply(to: buffer)
        return VideoFrame(buffer: buffer, timestamp: timestamp)
    }
}

extension CapturedLayout {
    fileprivate var name: String { "A \(pixelFormat) picture of \(dimensions)" }
}

extension FrameTransform {
    /// The remaining steps for a picture that has already been cropped.
    fileprivate func steps(
        afterCropping steps: (kept: PictureRegion, scaled: Dimensions)
    ) -> (kept: PictureRegion, scaled: Dimensions) {
        (PictureRegion(centred: nil, in: steps.kept.dimensions), steps.scaled)
    }
}
