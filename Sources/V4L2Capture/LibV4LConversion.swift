import CV4L2
import Glibc
import MediaCore

/// Turns formats that we cannot read into I420 by libv4lconvert; confine to the node's thread.
///
/// libv4lconvert knows what needs repair in some devices (pictures upside down, damaged headers) and asks the node
/// itself, so that it lives no longer than this owner keeps the node alive.
@safe final class LibV4LConversion {
    private let handle: OpaquePointer
    private let calls: UnsafeMutablePointer<libv4l_dev_ops>
    private let asked: NodeQuestions

    /// What libv4lconvert claims to convert and does not.
    ///
    /// Tried with the pictures of the kernel's `vivid` and version 1.22: RGB565 comes with red and blue changed over, and
    /// HSV ends the program.
    private static let misconverted = Set(["RGBP", "HSV3", "HSV4"].compactMap { PixelFormat(fourCC: $0) })

    /// Which of `formats` libv4lconvert can turn into I420.
    ///
    /// It tells no list of its own; it is given a device that has all of `formats`, and of which each time one alone can
    /// be set.
    static func convertible(_ formats: [PixelFormat], descriptor: Int32) -> Set<PixelFormat> {
        let pretended = PretendedNode(formats: formats)
        guard let conversion = LibV4LConversion(pretended, descriptor: descriptor) else { return [] }
        return Set(formats.filter { !misconverted.contains($0) && conversion.wouldConvert($0, on: pretended) })
    }

    /// libv4lconvert for pictures of `node`; `nil` if it has no memory or does not take to the node.
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
    func convert(
        _ bytes: UnsafeMutableRawBufferPointer,
        source: DeliveredFormat,
        into picture: UnsafeMutableRawBufferPointer
    ) throws(DamagedPicture) {
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

    private func i420Format(_ size: Dimensions) -> v4l2_format {
        var format = unsafe v4l2_format()
        unsafe format.type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
        unsafe format.fmt.pix = pixFormat(.i420, size)
        unsafe format.fmt.pix.bytesperline = UInt32(size.width)
        unsafe format.fmt.pix.sizeimage = UInt32(size.area * 3 / 2)
        return unsafe format
    }
}

/// Answers what libv4lconvert asks of a device.
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
