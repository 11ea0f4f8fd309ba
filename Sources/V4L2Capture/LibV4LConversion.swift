import CV4L2
import Glibc
import MediaCore

/// Converts formats that we cannot read into I420 with libv4lconvert; confine to the node's thread.
///
/// libv4lconvert knows what some devices need repaired (pictures upside down, damaged headers) and asks the node
/// itself. It must therefore not outlive the node, which this owner keeps alive.
@safe final class LibV4LConversion {
    private let handle: OpaquePointer
    private let calls: UnsafeMutablePointer<libv4l_dev_ops>
    private let asked: NodeQuestions

    /// Formats that libv4lconvert claims to convert but does not.
    ///
    /// Tested with version 1.22 and the pictures of the kernel's `vivid`: RGB565 comes with red and blue swapped, and
    /// HSV ends the program.
    private static let misconverted = Set(["RGBP", "HSV3", "HSV4"].compactMap { PixelFormat(fourCC: $0) })

    /// The rows of formats whose padding libv4lconvert 1.22 does not know of (`bayer.c`, `rgbyuv.c`): their bits per
    /// pixel, and how many of them a row of the picture has.
    private static let packedRows: [PixelFormat: (bits: Int, count: Int)] = {
        var rows: [PixelFormat: (bits: Int, count: Int)] = [:]
        for (codes, bits, count) in [
            ("pBAA pGAA pgAA pRAA Y10B", 10, 1), ("BG10 GB10 BA10 RG10 BYR2 GB16 GR16 RG16", 16, 1), ("NV61", 8, 2),
        ] {
            for format in codes.split(separator: " ").compactMap({ PixelFormat(fourCC: String($0)) }) {
                rows[format] = (bits, count)
            }
        }
        return rows
    }()

    /// Which of `formats` libv4lconvert can turn into I420.
    ///
    /// It has no list of its own. So we show it a pretended device that lists all of `formats` and can be set to only
    /// one of them at a time.
    static func convertible(_ formats: [PixelFormat], descriptor: Int32) -> Set<PixelFormat> {
        let pretended = PretendedNode(formats: formats)
        guard let conversion = LibV4LConversion(pretended, descriptor: descriptor) else { return [] }
        return Set(formats.filter { !misconverted.contains($0) && conversion.wouldConvert($0, on: pretended) })
    }

    /// Creates libv4lconvert for pictures of `node`; `nil` if it has no memory or does not accept the node.
    convenience init?(node: any V4L2Node) {
        self.init(ForwardedNode(node: node), descriptor: node.descriptor)
    }

    private init?(_ asked: NodeQuestions, descriptor: Int32) {
        unsafe calls = .allocate(capacity: 1)
        unsafe calls.initialize(to: libv4l_dev_ops())
        unsafe calls.pointee.ioctl = { target, _, request, argument in
            guard let target = unsafe target, let argument = unsafe argument else { return -1 }
            let asked = unsafe Unmanaged<NodeQuestions>.fromOpaque(target).takeUnretainedValue()
            let status = unsafe asked.control(request, argument)
            if status != 0 { errno = status }
            return status == 0 ? 0 : -1
        }
        let target = unsafe Unmanaged.passUnretained(asked).toOpaque()
        guard let handle = unsafe v4lconvert_create_with_dev_ops(descriptor, target, calls) else {
            unsafe calls.deallocate()
            return nil
        }
        unsafe self.handle = handle
        self.asked = asked
    }

    deinit {
        unsafe v4lconvert_destroy(handle)
        unsafe calls.deallocate()
    }

    private func wouldConvert(_ format: PixelFormat, on pretended: PretendedNode) -> Bool {
        pretended.settable = format
        var destination = unsafe i420Format(FormatSelection.defaultDimensions)
        var source = unsafe v4l2_format()
        let status = unsafe v4lconvert_try_format(handle, &destination, &source)
        return unsafe status == 0 && source.fmt.pix.pixelformat == format.rawValue
            && destination.fmt.pix.pixelformat == PixelFormat.i420.rawValue
    }

    /// Converts one picture of `source`, an even size, into `picture`, I420 without padding.
    ///
    /// The padding of rows is removed in `bytes` itself where libv4lconvert would read it as pixels.
    func convert(
        _ bytes: UnsafeMutableRawBufferPointer,
        source: DeliveredFormat,
        into picture: UnsafeMutableRawBufferPointer
    ) throws(DamagedPicture) {
        var (bytes, source) = unsafe (bytes, source)
        if let row = Self.packedRows[source.pixelFormat] {
            let length = (source.dimensions.width * row.bits + 7) / 8
            if source.bytesPerRow > length {
                let count = source.dimensions.height * row.count
                unsafe bytes = try Self.removePadding(bytes, rows: count, each: source.bytesPerRow, of: length)
                (source.bytesPerRow, source.imageSize) = (length, bytes.count)
            }
        }
        var sourceFormat = unsafe v4l2_format()
        unsafe sourceFormat.type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
        unsafe sourceFormat.fmt.pix = pixFormat(source.pixelFormat, source.dimensions)
        unsafe sourceFormat.fmt.pix.bytesperline = UInt32(source.bytesPerRow)
        unsafe sourceFormat.fmt.pix.sizeimage = UInt32(source.imageSize)
        var destination = unsafe i420Format(source.dimensions)
        let written = unsafe v4lconvert_convert(
            handle,
            &sourceFormat,
            &destination,
            bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
            Int32(clamping: bytes.count),
            picture.baseAddress?.assumingMemoryBound(to: UInt8.self),
            Int32(clamping: picture.count)
        )
        guard written == source.dimensions.area * 3 / 2 else { throw .undecodable }
    }

    /// Moves rows together.
    ///
    /// - Parameters:
    ///   - bytes: The rows, in order.
    ///   - rows: Their number.
    ///   - stride: The bytes from one row to the next.
    ///   - length: The bytes of a row that are kept.
    /// - Returns: The rows without what was between them.
    /// - Throws: `short` if there are fewer rows.
    static func removePadding(
        _ bytes: UnsafeMutableRawBufferPointer,
        rows: Int,
        each stride: Int,
        of length: Int
    ) throws(DamagedPicture) -> UnsafeMutableRawBufferPointer {
        let needed = (rows - 1) * stride + length
        guard let start = bytes.baseAddress, bytes.count >= needed else {
            throw .short(bytes: bytes.count, needed: needed)
        }
        for row in 1..<max(1, rows) { unsafe memmove(start + row * length, start + row * stride, length) }
        return unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[..<(rows * length)])
    }

    private func i420Format(_ size: Dimensions) -> v4l2_format {
        var format = unsafe v4l2_format()
        unsafe format.type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
        unsafe format.fmt.pix = pixFormat(.i420, size)
        unsafe format.fmt.pix.bytesperline = UInt32(size.width)
        unsafe format.fmt.pix.sizeimage = UInt32(size.area * 3 / 2)
        return unsafe format
    }
}

/// Answers libv4lconvert's questions about a device.
private class NodeQuestions {
    func control(_ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32 { ENOTTY }
}

/// Passes the questions on to a node.
private final class ForwardedNode: NodeQuestions {
    let node: any V4L2Node

    init(node: any V4L2Node) {
        self.node = node
    }

    override func control(_ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32 {
        unsafe node.control(request, argument)
    }
}

/// Pretends to be a device that lists `formats` and can be set to one of them.
private final class PretendedNode: NodeQuestions {
    let formats: [PixelFormat]
    var settable: PixelFormat?

    init(formats: [PixelFormat]) {
        self.formats = formats
    }

    override func control(_ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32 {
        switch request {
        case cv4l2_QUERYCAP:
            unsafe argument.assumingMemoryBound(to: v4l2_capability.self).pointee = v4l2_capability()
            return 0
        case cv4l2_ENUM_FMT:
            let answer = unsafe argument.assumingMemoryBound(to: v4l2_fmtdesc.self)
            guard unsafe Int(answer.pointee.index) < formats.count else { return EINVAL }
            unsafe answer.pointee.pixelformat = formats[Int(answer.pointee.index)].rawValue
            return 0
        case cv4l2_TRY_FMT:
            let answer = unsafe argument.assumingMemoryBound(to: v4l2_format.self)
            return unsafe answer.pointee.fmt.pix.pixelformat == settable?.rawValue ? 0 : EINVAL
        default:
            return EINVAL
        }
    }
}
