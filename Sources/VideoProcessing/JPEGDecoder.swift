import CTurboJPEG
import CYUV
import Glibc
package import MediaCore
import Synchronization
package import Threading

/// Decodes the JPEG pictures of a camera into I420, BT.601 limited range.
///
/// It accepts 4:2:0, 4:2:2, 4:4:4, 4:4:0, 4:1:1 and grey, and converts JFIF's full range to limited range. Many USB
/// cameras send pictures without Huffman tables; these are decoded with the standard tables, which the library
/// supplies. Errors inside the library jump only within its own functions. It allocates memory only for a larger
/// picture and after a damaged one. Confine to one thread.
@safe package struct JPEGDecoder: ~Copyable {
    private var handle: tjhandle
    /// The destination and stride of each plane, for the length of a call.
    private let planes: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>
    private let strides: UnsafeMutablePointer<Int32>
    /// Memory for planes whose size differs from ours; kept from picture to picture.
    private var scratch = unsafe UnsafeMutableBufferPointer<UInt8>(start: nil, count: 0)

    /// The number of pictures decoded in spite of a harmless warning: a few stray bytes before a marker.
    package private(set) var harmlessWarnings = 0

    /// The number of the library's decoder that is in use: each one that is made in this process has its own.
    package private(set) var context = nextContext()

    private static let contexts = Atomic(0)

    private static func nextContext() -> Int { contexts.add(1, ordering: .relaxed).newValue }

    /// Creates a decoder with buffers of its own.
    package init() throws(VideoProcessingError) {
        guard let handle = unsafe tjInitDecompress() else {
            throw unsafe VideoProcessingError(code: .noDecoder, reason: String(cString: tjGetErrorStr2(nil)))
        }
        unsafe self.handle = handle
        unsafe planes = .allocate(capacity: 3)
        unsafe planes.initialize(repeating: nil, count: 3)
        unsafe strides = .allocate(capacity: 3)
        unsafe strides.initialize(repeating: 0, count: 3)
    }

    deinit {
        unsafe tjDestroy(handle)
        unsafe planes.deallocate()
        unsafe strides.deallocate()
        unsafe scratch.deallocate()
    }

    /// Decodes a picture of size `dimensions` into a buffer of `pool`.
    ///
    /// - Throws: `undecodable` if the picture is truncated, corrupt, or neither YCbCr nor grey; `otherSize` if its
    ///   header states another size.
    package mutating func decode(
        _ bytes: RawSpan,
        dimensions: Dimensions,
        pool: VideoBufferPool
    ) throws(DamagedPicture) -> VideoBuffer {
        var isFlawed = false
        guard let geometry = readHeader(bytes, isFlawed: &isFlawed) else {
            renewHandle()
            throw .undecodable
        }
        guard geometry.dimensions == dimensions else { throw .otherSize(geometry.dimensions) }
        let buffer = pool.take(dimensions)
        reserveScratch(geometry.scratchBytes)
        guard unsafe buffer.withTarget({ unsafe decode(bytes, geometry, into: $0, isFlawed: &isFlawed) }) else {
            renewHandle()
            throw .undecodable
        }
        if isFlawed { harmlessWarnings += 1 }
        if geometry.isGrey {
            buffer.withMutablePlanes { _, chromaU, chromaV in
                chromaU.update(repeating: 128)
                chromaV.update(repeating: 128)
            }
        }
        buffer.limitRange()
        return buffer
    }

    private mutating func reserveScratch(_ count: Int) {
        guard unsafe scratch.count < count else { return }
        unsafe scratch.deallocate()
        unsafe scratch = .allocate(capacity: count)
    }

    /// Replaces the decoder after a damaged picture.
    ///
    /// After an error in the header, version 2.1 keeps a half-read picture and fails with the next one, too. It also
    /// keeps the tables of damaged pictures.
    private mutating func renewHandle() {
        guard let fresh = unsafe tjInitDecompress() else { return }
        unsafe tjDestroy(handle)
        unsafe handle = fresh
        context = Self.nextContext()
    }

    /// Checks the picture's header; returns the sizes of its planes, or `nil` if the picture cannot be used.
    private func readHeader(_ bytes: RawSpan, isFlawed: inout Bool) -> JPEGGeometry? {
        var (width, height, subsampling, colourspace): (Int32, Int32, Int32, Int32) = (0, 0, -1, -1)
        let status = unsafe bytes.withUnsafeBytes { bytes -> Int32 in
            guard let start = bytes.baseAddress else { return -1 }
            return unsafe tjDecompressHeader3(
                handle,
                start.assumingMemoryBound(to: UInt8.self),
                UInt(bytes.count),
                &width,
                &height,
                &subsampling,
                &colourspace
            )
        }
        if status != 0 {
            guard hasExtraneousBytes, JPEGScanCheck.isWhole(bytes) else { return nil }
            isFlawed = true
        }
        // JPEG has sides of up to 65,500 pixels.
        let limit = Dimensions.largestCodable
        guard (1...limit.width).contains(Int(width)), (1...limit.height).contains(Int(height)) else { return nil }
        guard colourspace == TJCS_YCbCr.rawValue || colourspace == TJCS_GRAY.rawValue else { return nil }
        guard (0..<TJ_NUMSAMP).contains(subsampling) else { return nil }
        return JPEGGeometry(dimensions: Dimensions(width: Int(width), height: Int(height)), subsampling: subsampling)
    }

    /// Decodes into the target's planes, through the scratch memory if sizes differ.
    ///
    /// - Returns: Whether the picture is whole.
    private mutating func decode(
        _ bytes: RawSpan,
        _ geometry: JPEGGeometry,
        into target: PlanarTarget,
        isFlawed: inout Bool
    ) -> Bool {
        var used = 0
        for component in 0..<3 {
            if geometry.isDirect(component) {
                unsafe planes[component] = target.plane(component)
                unsafe strides[component] = target.stride(component)
            } else {
                unsafe planes[component] = scratch.baseAddress.map { unsafe $0 + used }
                unsafe strides[component] = Int32(geometry.written(component).width)
                used += geometry.written(component).area
            }
        }
        let status = unsafe bytes.withUnsafeBytes { bytes -> Int32 in
            guard let start = bytes.baseAddress else { return -1 }
            return unsafe tjDecompressToYUVPlanes(
                handle,
                start.assumingMemoryBound(to: UInt8.self),
                UInt(bytes.count),
                planes,
                Int32(geometry.dimensions.width),
                strides,
                Int32(geometry.dimensions.height),
                0
            )
        }
        if status != 0 {
            guard hasExtraneousBytes, isFlawed || JPEGScanCheck.isWhole(bytes) else { return false }
            isFlawed = true
        }
        for component in 0..<3 where !geometry.isDirect(component) {
            unsafe bringToSize(component, geometry, target)
        }
        return true
    }

    /// Copies a plane from the scratch memory into the target's, scaled or without its padding.
    private func bringToSize(_ component: Int, _ geometry: JPEGGeometry, _ target: PlanarTarget) {
        let used = geometry.usedPart(component)
        let wanted = geometry.wanted(component)
        unsafe ScalePlane(
            planes[component],
            strides[component],
            Int32(used.width),
            Int32(used.height),
            target.plane(component),
            target.stride(component),
            Int32(wanted.width),
            Int32(wanted.height),
            kFilterBox
        )
    }

    /// Whether all that the library reported is that it passed over bytes.
    ///
    /// The picture may be whole then, which `JPEGScanCheck` tells: the library keeps only its first warning, which is
    /// the same for a few stray bytes and for a scan that ends early. An error after a warning leaves the library's
    /// error code as it is, but not its text.
    private var hasExtraneousBytes: Bool {
        guard unsafe tjGetErrorCode(handle) == TJERR_WARNING.rawValue else { return false }
        return unsafe strstr(tjGetErrorStr2(handle), "extraneous bytes") != nil
    }
}

/// The sizes of a JPEG picture's planes: as the library writes them, and as we need them.
private struct JPEGGeometry {
    let dimensions: Dimensions
    let subsampling: Int32

    var isGrey: Bool { subsampling == TJSAMP_GRAY.rawValue }

    /// The bytes of all planes that are not written directly into ours.
    var scratchBytes: Int { (0..<3).reduce(0) { $0 + (isDirect($1) ? 0 : written($1).area) } }

    /// The size of the plane with the padding that the library adds to odd sizes.
    func written(_ component: Int) -> Dimensions {
        Dimensions(
            width: Int(tjPlaneWidth(Int32(component), Int32(dimensions.width), subsampling)),
            height: Int(tjPlaneHeight(Int32(component), Int32(dimensions.height), subsampling))
        )
    }

    /// The size of the plane without padding for luma; for chroma, the padding is part of the last byte.
    func usedPart(_ component: Int) -> Dimensions { component == 0 ? dimensions : written(component) }

    func wanted(_ component: Int) -> Dimensions {
        component == 0
            ? dimensions : Dimensions(width: (dimensions.width + 1) / 2, height: (dimensions.height + 1) / 2)
    }

    /// Whether the library writes the plane into ours, or has none to write.
    func isDirect(_ component: Int) -> Bool {
        (isGrey && component > 0) || written(component) == wanted(component)
    }
}

extension PlanarTarget {
    fileprivate func plane(_ component: Int) -> UnsafeMutablePointer<UInt8> {
        switch component {
        case 0: unsafe luma
        case 1: unsafe chromaU
        default: unsafe chromaV
        }
    }

    fileprivate func stride(_ component: Int) -> Int32 {
        unsafe component == 0 ? lumaStride : chromaStride
    }
}
