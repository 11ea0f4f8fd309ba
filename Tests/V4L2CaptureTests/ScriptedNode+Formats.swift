import CV4L2
import Glibc
import MediaCore
import TestTools
import Threading

@testable import V4L2Capture

/// What the driver says of itself, its formats and its rates.
extension ScriptedNode {
    func makeNoise(_ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32 {
        // The size of what a request exchanges stands in its bits 16 to 29 (asm-generic/ioctl.h).
        let bytes = UnsafeMutableRawBufferPointer(start: argument, count: Int(request >> 16) & 0x3FFF)
        if random.next() % 8 == 0 { return Int32(random.next() % 40) }
        let multiplanar = isMultiplanar
        for index in bytes.indices where random.next() % 3 > 0 {
            // A pointer to memory is not the driver's to change.
            if [cv4l2_QUERYBUF, cv4l2_QBUF, cv4l2_DQBUF].contains(request), multiplanar, index >= 64 { break }
            bytes[index] = random.next() % 2 == 0 ? UInt8(truncatingIfNeeded: random.next()) : 0
        }
        if request == cv4l2_QUERYCAP {
            argument.assumingMemoryBound(to: v4l2_capability.self).pointee.capabilities = script.deviceCapabilities
        }
        return 0
    }

    func answerCapability(_ answer: inout v4l2_capability) -> Int32 {
        withUnsafeMutableBytes(of: &answer.driver) { $0.copyBytes(from: script.driver.utf8.prefix(16)) }
        withUnsafeMutableBytes(of: &answer.card) { $0.copyBytes(from: script.card.utf8.prefix(32)) }
        withUnsafeMutableBytes(of: &answer.bus_info) { $0.copyBytes(from: script.busInfo.utf8.prefix(32)) }
        answer.capabilities = script.capabilities
        answer.device_caps = script.deviceCapabilities
        return 0
    }

    func answerFormat(_ answer: inout v4l2_fmtdesc) -> Int32 {
        guard answer.index < script.formats.count else { return EINVAL }
        let format = script.formats[Int(answer.index)]
        answer.pixelformat = format.pixelFormat.rawValue
        answer.flags = format.isCompressed ? UInt32(V4L2_FMT_FLAG_COMPRESSED) : 0
        withUnsafeMutableBytes(of: &answer.description) { $0.copyBytes(from: "Pictures".utf8) }
        return 0
    }

    func answerSize(_ answer: inout v4l2_frmsizeenum) -> Int32 {
        guard let format = script.formats.first(where: { $0.pixelFormat.rawValue == answer.pixel_format }) else {
            return EINVAL
        }
        switch format.sizes {
        case .discrete(let sizes):
            guard answer.index < sizes.count else { return EINVAL }
            answer.type = V4L2_FRMSIZE_TYPE_DISCRETE.rawValue
            answer.discrete.width = UInt32(truncatingIfNeeded: sizes[Int(answer.index)].0)
            answer.discrete.height = UInt32(truncatingIfNeeded: sizes[Int(answer.index)].1)
        case .stepwise(let smallest, let largest, let step):
            guard answer.index == 0 else { return EINVAL }
            answer.type = V4L2_FRMSIZE_TYPE_STEPWISE.rawValue
            answer.stepwise.min_width = UInt32(smallest.0)
            answer.stepwise.min_height = UInt32(smallest.1)
            answer.stepwise.max_width = UInt32(largest.0)
            answer.stepwise.max_height = UInt32(largest.1)
            answer.stepwise.step_width = UInt32(step.0)
            answer.stepwise.step_height = UInt32(step.1)
        case .endless(let width, let height):
            answer.type = V4L2_FRMSIZE_TYPE_DISCRETE.rawValue
            answer.discrete.width = UInt32(width) + answer.index
            answer.discrete.height = UInt32(height)
        }
        return 0
    }

    func answerRate(_ answer: inout v4l2_frmivalenum) -> Int32 {
        guard let format = script.formats.first(where: { $0.pixelFormat.rawValue == answer.pixel_format }) else {
            return EINVAL
        }
        switch format.rates {
        case .discrete(let rates):
            guard answer.index < rates.count else { return EINVAL }
            answer.type = V4L2_FRMIVAL_TYPE_DISCRETE.rawValue
            answer.discrete = v4l2_fract(numerator: 1, denominator: UInt32(rates[Int(answer.index)]))
        case .continuous(let slowest, let fastest):
            guard answer.index == 0 else { return EINVAL }
            answer.type = V4L2_FRMIVAL_TYPE_CONTINUOUS.rawValue
            answer.stepwise = Self.range(slowest, fastest, step: 1)
        case .stepwise(let slowest, let fastest, let step):
            guard answer.index == 0 else { return EINVAL }
            answer.type = V4L2_FRMIVAL_TYPE_STEPWISE.rawValue
            answer.stepwise = Self.range(slowest, fastest, step: step)
        case .endless(let rate):
            answer.type = V4L2_FRMIVAL_TYPE_DISCRETE.rawValue
            answer.discrete = v4l2_fract(numerator: 1, denominator: UInt32(rate) + answer.index)
        }
        return 0
    }

    /// The frame intervals between two rates: the shortest is that of the fastest.
    private static func range(_ slowest: Int, _ fastest: Int, step: Int) -> v4l2_frmival_stepwise {
        v4l2_frmival_stepwise(
            min: v4l2_fract(numerator: 1, denominator: UInt32(fastest)),
            max: v4l2_fract(numerator: 1, denominator: UInt32(slowest)),
            step: v4l2_fract(numerator: 1, denominator: UInt32(step))
        )
    }

    func exchangeFormat(_ request: UInt, _ exchange: inout v4l2_format) -> Int32 {
        var pix = current
        if request != cv4l2_G_FMT {
            pix.width = isMultiplanar ? exchange.fmt.pix_mp.width : exchange.fmt.pix.width
            pix.height = isMultiplanar ? exchange.fmt.pix_mp.height : exchange.fmt.pix.height
            pix.pixelformat = isMultiplanar ? exchange.fmt.pix_mp.pixelformat : exchange.fmt.pix.pixelformat
            pix.field = V4L2_FIELD_NONE.rawValue
            pix.priv = UInt32(V4L2_PIX_FMT_PRIV_MAGIC)
            let row = PixelFormat(rawValue: pix.pixelformat).leastBytesPerRow(Int(pix.width))
            pix.bytesperline = UInt32(row)
            // Enough for the chroma planes of any format.
            pix.sizeimage = max(UInt32(row), pix.width * 4) * pix.height
            script.substitute?(&pix)
            if request == cv4l2_S_FMT { current = pix }
        }
        guard isMultiplanar else {
            exchange.fmt.pix = pix
            return 0
        }
        exchange.fmt.pix_mp.width = pix.width
        exchange.fmt.pix_mp.height = pix.height
        exchange.fmt.pix_mp.pixelformat = pix.pixelformat
        exchange.fmt.pix_mp.field = pix.field
        exchange.fmt.pix_mp.colorspace = pix.colorspace
        exchange.fmt.pix_mp.ycbcr_enc = UInt8(truncatingIfNeeded: pix.ycbcr_enc)
        exchange.fmt.pix_mp.quantization = UInt8(truncatingIfNeeded: pix.quantization)
        exchange.fmt.pix_mp.num_planes = script.memoryPlanes
        exchange.fmt.pix_mp.plane_fmt.0.bytesperline = pix.bytesperline
        exchange.fmt.pix_mp.plane_fmt.0.sizeimage = pix.sizeimage
        return 0
    }

    func exchangeRate(_ request: UInt, _ exchange: inout v4l2_streamparm) -> Int32 {
        let asked = exchange.parm.capture.timeperframe
        if request == cv4l2_S_PARM {
            record.withLock { $0.requestedRate = (asked.denominator, asked.numerator) }
        }
        guard request == cv4l2_S_PARM || script.statedRate != nil else { return ENOTTY }
        exchange.parm.capture.capability = UInt32(V4L2_CAP_TIMEPERFRAME)
        if let stated = script.statedRate {
            exchange.parm.capture.timeperframe = v4l2_fract(numerator: stated.seconds, denominator: stated.frames)
        }
        return 0
    }
}
