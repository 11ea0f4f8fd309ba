import CYUV
import MediaCore

/// The planes of an I420 picture in somebody else's memory, for the length of a call.
@unsafe struct PlanarPicture {
    var luma: UnsafePointer<UInt8>
    var chromaU: UnsafePointer<UInt8>
    var chromaV: UnsafePointer<UInt8>
    var lumaStride: Int32
    var chromaStride: Int32
    var dimensions: Dimensions

    /// A part of the picture.
    func region(_ region: PictureRegion) -> PlanarPicture {
        let chroma = region.row / 2 * Int(unsafe chromaStride) + region.column / 2
        var part = unsafe self
        unsafe part.luma += region.row * Int(lumaStride) + region.column
        unsafe part.chromaU += chroma
        unsafe part.chromaV += chroma
        unsafe part.dimensions = region.dimensions
        return unsafe part
    }
}

/// The planes of a buffer that is being written, for the length of a call.
@unsafe struct PlanarTarget {
    var luma: UnsafeMutablePointer<UInt8>
    var chromaU: UnsafeMutablePointer<UInt8>
    var chromaV: UnsafeMutablePointer<UInt8>
    var lumaStride: Int32
    var chromaStride: Int32
}

extension VideoBuffer {
    /// Lends the planes to C for reading.
    func withPicture<Result>(_ body: (PlanarPicture) -> Result) -> Result {
        withPlanes { luma, chromaU, chromaV in
            unsafe luma.withUnsafeBufferPointer { luma in
                unsafe chromaU.withUnsafeBufferPointer { chromaU in
                    unsafe chromaV.withUnsafeBufferPointer { chromaV in
                        guard let y = luma.baseAddress, let u = chromaU.baseAddress, let v = chromaV.baseAddress
                        else { preconditionFailure("a buffer of \(dimensions) without planes") }
                        return unsafe body(
                            PlanarPicture(
                                luma: y,
                                chromaU: u,
                                chromaV: v,
                                lumaStride: Int32(lumaStride),
                                chromaStride: Int32(chromaStride),
                                dimensions: dimensions
                            )
                        )
                    }
                }
            }
        }
    }

    /// Lends the planes to C for writing; only the buffer's one holder may call this.
    func withTarget<Result>(_ body: (PlanarTarget) -> Result) -> Result {
        withMutablePlanes { luma, chromaU, chromaV in
            unsafe luma.withUnsafeMutableBufferPointer { luma in
                unsafe chromaU.withUnsafeMutableBufferPointer { chromaU in
                    unsafe chromaV.withUnsafeMutableBufferPointer { chromaV in
                        guard let y = luma.baseAddress, let u = chromaU.baseAddress, let v = chromaV.baseAddress
                        else { preconditionFailure("a buffer of \(dimensions) without planes") }
                        return unsafe body(
                            PlanarTarget(
                                luma: y,
                                chromaU: u,
                                chromaV: v,
                                lumaStride: Int32(lumaStride),
                                chromaStride: Int32(chromaStride)
                            )
                        )
                    }
                }
            }
        }
    }
}

extension VideoBuffer {
    /// Fills this buffer with `source`, scaled to its size; each pixel is the mean of those it covers.
    func fill(scaling source: PlanarPicture) {
        let status = unsafe withTarget { target in
            unsafe I420Scale(
                source.luma,
                source.lumaStride,
                source.chromaU,
                source.chromaStride,
                source.chromaV,
                source.chromaStride,
                Int32(source.dimensions.width),
                Int32(source.dimensions.height),
                target.luma,
                target.lumaStride,
                target.chromaU,
                target.chromaStride,
                target.chromaV,
                target.chromaStride,
                Int32(dimensions.width),
                Int32(dimensions.height),
                kFilterBox
            )
        }
        precondition(status == 0, "scaling to \(dimensions): \(status)")
    }

    /// Fills this buffer with `source`, turned and then mirrored; the sizes must match.
    func fill(turning source: PlanarPicture, _ turn: Turn) {
        let status = unsafe withTarget { target in
            turn.isMirroringAlone ? unsafe mirror(source, into: target) : unsafe rotate(source, turn, into: target)
        }
        precondition(status == 0, "turning \(unsafe source.dimensions) to \(dimensions): \(status)")
    }

    private func rotate(_ source: PlanarPicture, _ turn: Turn, into target: PlanarTarget) -> Int32 {
        unsafe I420Rotate(
            source.luma,
            source.lumaStride,
            source.chromaU,
            source.chromaStride,
            source.chromaV,
            source.chromaStride,
            target.luma,
            target.lumaStride,
            target.chromaU,
            target.chromaStride,
            target.chromaV,
            target.chromaStride,
            Int32(source.dimensions.width),
            turn.signed(source.dimensions.height),
            turn.mode
        )
    }

    /// Does what `rotate` does for a flip and a half turn, but in one pass over each row.
    private func mirror(_ source: PlanarPicture, into target: PlanarTarget) -> Int32 {
        unsafe I420Mirror(
            source.luma,
            source.lumaStride,
            source.chromaU,
            source.chromaStride,
            source.chromaV,
            source.chromaStride,
            target.luma,
            target.lumaStride,
            target.chromaU,
            target.chromaStride,
            target.chromaV,
            target.chromaStride,
            Int32(source.dimensions.width),
            Int32(source.dimensions.height)
        )
    }
}

/// A rotation and a mirroring in libyuv's form: flipped upside down first, then turned.
struct Turn {
    let isFlipped: Bool
    let mode: RotationMode

    init(_ rotation: VideoRotation, isMirrored: Bool) {
        isFlipped = isMirrored
        // Mirroring after a turn by r equals turning by 180° - r after a flip.
        mode =
            switch (rotation, isMirrored) {
            case (.none, false), (.half, true): kRotate0
            case (.clockwise90, _): kRotate90
            case (.half, false), (.none, true): kRotate180
            case (.clockwise270, _): kRotate270
            }
    }

    /// Whether every row stays a row with its pixels in order, so that every conversion can do it on the way.
    var isFlipAlone: Bool { mode == kRotate0 }

    /// Whether every row stays in its place with its pixels in reverse order.
    var isMirroringAlone: Bool { isFlipped && mode == kRotate180 }

    /// The height, with the sign that tells libyuv whether to flip.
    func signed(_ height: Int) -> Int32 { Int32(isFlipped ? -height : height) }
}
