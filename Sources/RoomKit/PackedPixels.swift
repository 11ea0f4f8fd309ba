public import MediaCore
import VideoProcessing

/// How the red, green and blue of a pixel lie in memory, for `VideoFrame.copy(as:)`.
public enum PackedPixels: CaseIterable, Hashable, Sendable {
    /// Bytes B G R A, as most screens have it; alpha is 255.
    case bgra
    /// Bytes R G B A; alpha is 255.
    case rgba
    /// Bytes R G B.
    case rgb24
    /// Bytes B G R, as OpenCV has it.
    case bgr24

    /// Bytes of one pixel.
    public var bytesPerPixel: Int { layout.bytesPerPixel }

    fileprivate var layout: PackedLayout {
        switch self {
        case .bgra: .bgra
        case .rgba: .rgba
        case .rgb24: .rgb24
        case .bgr24: .bgr24
        }
    }
}

extension VideoFrame {
    /// The picture in red, green and blue, upright: turned by `rotation`, and mirrored if `isMirrored`.
    ///
    /// Rows follow each other without padding, so that a row has `uprightDimensions.width * format.bytesPerPixel` bytes.
    public func copy(as format: PackedPixels) -> [UInt8] {
        let bytesPerRow = uprightDimensions.width * format.bytesPerPixel
        return unsafe [UInt8](unsafeUninitializedCapacity: bytesPerRow * uprightDimensions.height) { memory, count in
            do {
                let bytes = UnsafeMutableRawBufferPointer(memory)
                unsafe try copy(to: bytes, bytesPerRow: bytesPerRow, as: format.layout)
            } catch {
                preconditionFailure("\(error)")
            }
            count = bytesPerRow * uprightDimensions.height
        }
    }

    /// Copies the picture in red, green and blue into memory of the caller, upright as in `copy(as:)`.
    ///
    /// Only the pixels are written: padding between the rows, and what follows the last pixel, stay as they are.
    ///
    /// - Parameters:
    ///   - target: The memory; its first bytes are used.
    ///   - bytesPerRow: Bytes from one row of `target` to the next; `nil` for rows without padding.
    ///   - format: The order of the bytes.
    /// - Throws: `InvalidPicture` of code `stride` if a row does not fit into `bytesPerRow`, and `short` if the picture
    ///   does not fit into `target`; nothing is written then.
    public func copy(
        to target: inout MutableRawSpan,
        bytesPerRow: Int? = nil,
        format: PackedPixels
    ) throws(InvalidPicture) {
        let bytesPerRow = bytesPerRow ?? uprightDimensions.width * format.bytesPerPixel
        // The error is made outside the closure, which therefore need not throw.
        var failure: InvalidPicture?
        unsafe target.withUnsafeMutableBytes { memory in
            do throws(InvalidPicture) {
                unsafe try copy(to: memory, bytesPerRow: bytesPerRow, as: format.layout)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
    }

    /// Copies the picture in red, green and blue into memory of the caller, such as that of an image library.
    ///
    /// It is `copy(to:bytesPerRow:format:)` for memory to which there is a pointer only.
    ///
    /// - Throws: As the other one; nothing is written then.
    @unsafe public func copy(
        to target: UnsafeMutableRawBufferPointer,
        bytesPerRow: Int? = nil,
        format: PackedPixels
    ) throws(InvalidPicture) {
        let bytesPerRow = bytesPerRow ?? uprightDimensions.width * format.bytesPerPixel
        unsafe try copy(to: target, bytesPerRow: bytesPerRow, as: format.layout)
    }
}
