import CV4L2
import Glibc
import MediaCore
import Threading

@testable import V4L2Capture

/// Controls and buffers.
extension ScriptedNode {
    func answerControl(_ answer: inout v4l2_query_ext_ctrl) -> Int32 {
        let wanted = answer.id & ~UInt32(V4L2_CTRL_FLAG_NEXT_CTRL)
        guard let control = script.controls.first(where: { $0.id > wanted }) else { return EINVAL }
        answer = v4l2_query_ext_ctrl()
        answer.id = control.id
        answer.type = control.type
        withUnsafeMutableBytes(of: &answer.name) { $0.copyBytes(from: control.label.utf8.prefix(31)) }
        answer.minimum = control.range.lowerBound
        answer.maximum = control.range.upperBound
        answer.step = 1
        answer.default_value = control.range.lowerBound
        answer.flags = control.flags | (isOverruled(control) ? UInt32(V4L2_CTRL_FLAG_INACTIVE) : 0)
        return 0
    }

    private func isOverruled(_ control: CameraScript.Control) -> Bool {
        guard let overruler = control.overruler else { return false }
        return script.settings.withLock { $0.last { $0.id == overruler.id } }?.value != overruler.unless
    }

    func answerMenu(_ argument: UnsafeMutableRawPointer) -> Int32 {
        let (id, index) = (argument.load(as: UInt32.self), argument.load(fromByteOffset: 4, as: UInt32.self))
        guard let name = script.controls.first(where: { $0.id == id })?.menu[Int(index)] else { return EINVAL }
        let bytes = UnsafeMutableRawBufferPointer(start: argument + 8, count: 32)
        bytes.copyBytes(from: name.utf8.prefix(31))
        bytes[name.utf8.count] = 0
        return 0
    }

    func exchangeControl(_ request: UInt, _ exchange: inout v4l2_control) -> Int32 {
        let id = exchange.id
        guard let control = script.controls.first(where: { $0.id == id }) else { return EINVAL }
        let asked = exchange.value
        let isInactive = control.flags & UInt32(V4L2_CTRL_FLAG_INACTIVE) != 0 || isOverruled(control)
        if request == cv4l2_S_CTRL, isInactive, !control.takesOverruledValues { return EACCES }
        exchange.value = script.settings.withLock { settings in
            if request == cv4l2_S_CTRL {
                settings.append((id, asked))
                for slave in script.controls where slave.takesOverruledValues && slave.overruler?.id == id {
                    settings.append((slave.id, Int32(slave.range.lowerBound)))
                }
            }
            return settings.last { $0.id == id }?.value ?? Int32(control.range.lowerBound)
        }
        return 0
    }

    func exchangeBuffer(_ request: UInt, _ exchange: inout v4l2_buffer) -> Int32 {
        switch request {
        case cv4l2_QUERYBUF:
            if isMultiplanar {
                exchange.m.planes[0].length = current.sizeimage
                exchange.m.planes[0].m.mem_offset = exchange.index * 4096
            } else {
                exchange.length = current.sizeimage
                exchange.m.offset = exchange.index * 4096
            }
            return 0
        case cv4l2_QBUF:
            queued.append(Int(exchange.index))
            return 0
        default:
            return fill(&exchange)
        }
    }

    private func fill(_ exchange: inout v4l2_buffer) -> Int32 {
        if let readError { return readError }
        guard !ready.isEmpty, !queued.isEmpty else { return EAGAIN }
        let frame = ready.removeFirst()
        let index = frame.index ?? queued[0]
        queued.removeAll { $0 == index }
        let full =
            script.formats.first { $0.pixelFormat.rawValue == current.pixelformat }?.isCompressed == true
            ? 100 : Int(current.sizeimage)
        let used = frame.bytesUsed ?? full
        if let bytes = memory[index] {
            for position in 0..<min(used, bytes.count) { bytes[position] = frame.fill }
        }
        exchange.index = UInt32(index)
        exchange.flags = frame.flags
        exchange.sequence = frame.sequence
        exchange.timestamp.tv_sec = Int(frame.nanoseconds / 1_000_000_000)
        exchange.timestamp.tv_usec = Int(frame.nanoseconds % 1_000_000_000 / 1000)
        if isMultiplanar {
            exchange.m.planes[0].bytesused = UInt32(used)
        } else {
            exchange.bytesused = UInt32(used)
        }
        return 0
    }
}
