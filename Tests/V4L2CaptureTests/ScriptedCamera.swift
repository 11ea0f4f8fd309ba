import CV4L2
import Glibc
import MediaCore
import TestTools
import Threading

@testable import V4L2Capture

/// A machine with scripted cameras, and what has been done to them.
final class ScriptedSystem: CameraSystem {
    struct Record {
        var openNodes = 0
        var mappedBuffers = 0
        var calls: [UInt: Int] = [:]
        var requestedRate: (frames: UInt32, seconds: UInt32)?
        /// The time on this machine, which passes as frames come; nanoseconds.
        var clock: Int64 = 0
    }

    private struct Plugged {
        var scripts: [String: CameraScript]
        var openFailures: [String: Int32]
        var links: [StableLink]
        var hardware: [String: CameraHardware] = [:]
        var inodes: [String: UInt64] = [:]
    }

    let record = Monitor(Record())
    /// What is plugged in, to be changed by the test.
    private let plugged: Monitor<Plugged>
    private let usesRealClock: Bool

    init(
        _ scripts: [String: CameraScript],
        openFailures: [String: Int32] = [:],
        links: [StableLink] = [],
        usesRealClock: Bool = false
    ) {
        self.usesRealClock = usesRealClock
        plugged = Monitor(Plugged(scripts: scripts, openFailures: openFailures, links: links))
    }

    convenience init(_ script: CameraScript, usesRealClock: Bool = false) {
        self.init(["/dev/video0": script], usesRealClock: usesRealClock)
    }

    /// Unplugs everything, and plugs these cameras in.
    func plug(
        _ scripts: [String: CameraScript],
        links: [StableLink] = [],
        hardware: [String: CameraHardware] = [:],
        openFailures: [String: Int32] = [:],
        inodes: [String: UInt64] = [:]
    ) {
        plugged.withLock {
            $0 = Plugged(
                scripts: scripts,
                openFailures: openFailures,
                links: links,
                hardware: hardware,
                inodes: inodes
            )
        }
    }

    func inode(of path: String) -> UInt64? {
        plugged.withLock { plugged in
            plugged.scripts[path] == nil && plugged.openFailures[path] == nil ? nil : plugged.inodes[path] ?? 1
        }
    }

    func makeNodeNotifier() -> NodeNotifier? { nil }

    func hardware(of path: String) -> CameraHardware? { plugged.withLock { $0.hardware[path] } }

    func sleep(until deadline: MonotonicInstant, or stop: StopSignal) {
        if usesRealClock { return stop.wait(until: deadline) }
        record.withLock { $0.clock = max($0.clock, deadline.nanoseconds) }
        // Time passes fast, yet not so fast that slates fill the memory.
        stop.wait(until: MonotonicClock.now + .milliseconds(1))
    }

    var now: MonotonicInstant {
        usesRealClock ? MonotonicClock.now : MonotonicInstant(nanoseconds: record.withLock { $0.clock })
    }

    private var scripts: [String: CameraScript] { plugged.withLock { $0.scripts } }
    private var openFailures: [String: Int32] { plugged.withLock { $0.openFailures } }
    private var links: [StableLink] { plugged.withLock { $0.links } }
    func nodePaths() -> [String] { (Array(scripts.keys) + Array(openFailures.keys)).sorted() }
    func stableLinks() -> [StableLink] { links }
    func resolve(_ path: String) -> String? {
        links.first { $0.path == path }?.node ?? (nodePaths().contains(path) ? path : nil)
    }
    func holder(of path: String) -> String? { "somebody (pid 42)" }

    func open(_ path: String) throws(SystemCallFailure) -> any V4L2Node {
        if let status = openFailures[path] { throw SystemCallFailure(attempt: "open", status: status) }
        guard let script = scripts[path] else { throw SystemCallFailure(attempt: "open", status: ENOENT) }
        return ScriptedNode(script, record)
    }

    var isAllClosed: Bool { record.withLock { $0.openNodes == 0 && $0.mappedBuffers == 0 } }
    func calls(_ request: UInt) -> Int { record.withLock { $0.calls[request] ?? 0 } }
}

/// A video node that behaves as its script says.
final class ScriptedNode: V4L2Node {
    let descriptor: Int32 = -1
    private var script: CameraScript
    private let record: Monitor<ScriptedSystem.Record>
    private var current = v4l2_pix_format()
    private var queued: [Int] = []
    private var ready: [CameraScript.Frame] = []
    private var memory: [Int: UnsafeMutableRawBufferPointer] = [:]
    private var readError: Int32?
    private var next = 0
    private var random: SeededGenerator

    init(_ script: CameraScript, _ record: Monitor<ScriptedSystem.Record>) {
        self.script = script
        self.record = record
        self.random = SeededGenerator(seed: script.noise ?? 0)
        record.withLock { $0.openNodes += 1 }
    }

    deinit {
        record.change { $0.openNodes -= 1 }
    }

    private var isMultiplanar: Bool { script.deviceCapabilities & UInt32(V4L2_CAP_VIDEO_CAPTURE) == 0 }

    func control(_ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32 {
        let count = record.withLock { record in
            record.calls[request, default: 0] += 1
            return record.calls[request] ?? 0
        }
        if let status = script.failures[request] { return status }
        if let failure = script.passingFailures[request], count > failure.after {
            script.passingFailures[request] = nil
            return failure.status
        }
        if let failure = script.periodicFailures[request], count % failure.every == 0 { return failure.status }
        if script.noise != nil { return makeNoise(request, argument) }
        switch request {
        case cv4l2_QUERYCAP: return answerCapability(&argument.assumingMemoryBound(to: v4l2_capability.self).pointee)
        case cv4l2_ENUM_FMT: return answerFormat(&argument.assumingMemoryBound(to: v4l2_fmtdesc.self).pointee)
        case cv4l2_ENUM_FRAMESIZES: return answerSize(&argument.assumingMemoryBound(to: v4l2_frmsizeenum.self).pointee)
        case cv4l2_ENUM_FRAMEINTERVALS:
            return answerRate(&argument.assumingMemoryBound(to: v4l2_frmivalenum.self).pointee)
        case cv4l2_G_FMT, cv4l2_TRY_FMT, cv4l2_S_FMT:
            return exchangeFormat(request, &argument.assumingMemoryBound(to: v4l2_format.self).pointee)
        case cv4l2_G_PARM, cv4l2_S_PARM:
            return exchangeRate(request, &argument.assumingMemoryBound(to: v4l2_streamparm.self).pointee)
        case cv4l2_REQBUFS:
            let exchange = argument.assumingMemoryBound(to: v4l2_requestbuffers.self)
            if exchange.pointee.count > 0, let count = script.bufferCount { exchange.pointee.count = count }
            return 0
        case cv4l2_QUERYBUF, cv4l2_QBUF, cv4l2_DQBUF:
            return exchangeBuffer(request, &argument.assumingMemoryBound(to: v4l2_buffer.self).pointee)
        case cv4l2_STREAMON: return script.failuresOfFormat[PixelFormat(rawValue: current.pixelformat)] ?? 0
        case cv4l2_STREAMOFF:
            queued = []
            return 0
        case cv4l2_QUERY_EXT_CTRL:
            return answerControl(&argument.assumingMemoryBound(to: v4l2_query_ext_ctrl.self).pointee)
        case cv4l2_QUERYMENU: return answerMenu(argument)
        case cv4l2_G_CTRL, cv4l2_S_CTRL:
            return exchangeControl(request, &argument.assumingMemoryBound(to: v4l2_control.self).pointee)
        default: return ENOTTY
        }
    }

    func wait(until deadline: MonotonicInstant, or stop: StopSignal) -> NodeEvents {
        if !ready.isEmpty { return .readable }
        if script.intervalMilliseconds > 0 {
            var file = pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0)
            poll(&file, 1, script.intervalMilliseconds)
            if stop.isRequested { return .stopped }
        }
        if script.isUnplugged.withLock({ $0 }) {
            readError = ENODEV
            return [.failed, .gone]
        }
        guard next < script.events.count else {
            if script.isAlwaysReadable {
                pass(1_000_000)
                return stop.isRequested ? .stopped : .readable
            }
            var file = pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0)
            while poll(&file, 1, -1) < 0 {}
            return .stopped
        }
        defer { next += 1 }
        switch script.events[next] {
        case .frames(let frames):
            ready = frames
            arrive(frames)
            return .readable
        case .pause(let seconds):
            pass(Int64(seconds * 1e9))
            return .readable
        case .silence:
            // It lasts.
            next -= 1
            record.withLock { $0.clock = max($0.clock, deadline.nanoseconds) }
            return []
        case .trouble(let events, let status):
            readError = status
            return events
        }
    }

    /// Lets time go on to the stamps of `frames`, or by a thirtieth of a second where they are out of place.
    private func arrive(_ frames: [CameraScript.Frame]) {
        record.withLock { record in
            let stamps = frames.map(\.nanoseconds).filter { $0 >= record.clock && $0 - record.clock < 10_000_000_000 }
            record.clock = stamps.max() ?? record.clock + 33_333_333
        }
    }

    private func pass(_ nanoseconds: Int64) {
        record.withLock { $0.clock += nanoseconds }
    }

    func map(length: Int, offset: Int) throws(SystemCallFailure) -> UnsafeMutableRawBufferPointer {
        guard length <= 1 << 24 else { throw SystemCallFailure(attempt: "map", status: ENOMEM) }
        record.withLock { $0.mappedBuffers += 1 }
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: length, alignment: 64)
        memory[offset / 4096] = bytes
        return bytes
    }

    func unmap(_ memory: UnsafeMutableRawBufferPointer) {
        record.change { $0.mappedBuffers -= 1 }
        memory.deallocate()
    }
}

// MARK: - Answers

extension ScriptedNode {
    private func makeNoise(_ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32 {
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

    private func answerCapability(_ answer: inout v4l2_capability) -> Int32 {
        withUnsafeMutableBytes(of: &answer.driver) { $0.copyBytes(from: "scripted".utf8) }
        withUnsafeMutableBytes(of: &answer.card) { $0.copyBytes(from: script.card.utf8.prefix(32)) }
        withUnsafeMutableBytes(of: &answer.bus_info) { $0.copyBytes(from: script.busInfo.utf8.prefix(32)) }
        answer.capabilities = script.capabilities
        answer.device_caps = script.deviceCapabilities
        return 0
    }

    private func answerFormat(_ answer: inout v4l2_fmtdesc) -> Int32 {
        guard answer.index < script.formats.count else { return EINVAL }
        let format = script.formats[Int(answer.index)]
        answer.pixelformat = format.pixelFormat.rawValue
        answer.flags = format.isCompressed ? UInt32(V4L2_FMT_FLAG_COMPRESSED) : 0
        withUnsafeMutableBytes(of: &answer.description) { $0.copyBytes(from: "Pictures".utf8) }
        return 0
    }

    private func answerSize(_ answer: inout v4l2_frmsizeenum) -> Int32 {
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

    private func answerRate(_ answer: inout v4l2_frmivalenum) -> Int32 {
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
            answer.stepwise.min = v4l2_fract(numerator: 1, denominator: UInt32(fastest))
            answer.stepwise.max = v4l2_fract(numerator: 1, denominator: UInt32(slowest))
            answer.stepwise.step = v4l2_fract(numerator: 1, denominator: 1)
        case .stepwise(let slowest, let fastest, let step):
            guard answer.index == 0 else { return EINVAL }
            answer.type = V4L2_FRMIVAL_TYPE_STEPWISE.rawValue
            answer.stepwise.min = v4l2_fract(numerator: 1, denominator: UInt32(fastest))
            answer.stepwise.max = v4l2_fract(numerator: 1, denominator: UInt32(slowest))
            answer.stepwise.step = v4l2_fract(numerator: 1, denominator: UInt32(step))
        case .endless(let rate):
            answer.type = V4L2_FRMIVAL_TYPE_DISCRETE.rawValue
            answer.discrete = v4l2_fract(numerator: 1, denominator: UInt32(rate) + answer.index)
        }
        return 0
    }

    private func exchangeFormat(_ request: UInt, _ exchange: inout v4l2_format) -> Int32 {
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

    private func exchangeRate(_ request: UInt, _ exchange: inout v4l2_streamparm) -> Int32 {
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

    private func answerControl(_ answer: inout v4l2_query_ext_ctrl) -> Int32 {
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
        answer.flags = control.flags
        return 0
    }

    private func answerMenu(_ argument: UnsafeMutableRawPointer) -> Int32 {
        let (id, index) = (argument.load(as: UInt32.self), argument.load(fromByteOffset: 4, as: UInt32.self))
        guard let name = script.controls.first(where: { $0.id == id })?.menu[Int(index)] else { return EINVAL }
        let bytes = UnsafeMutableRawBufferPointer(start: argument + 8, count: 32)
        bytes.copyBytes(from: name.utf8.prefix(31))
        bytes[name.utf8.count] = 0
        return 0
    }

    private func exchangeControl(_ request: UInt, _ exchange: inout v4l2_control) -> Int32 {
        let id = exchange.id
        guard let control = script.controls.first(where: { $0.id == id }) else { return EINVAL }
        let asked = exchange.value
        let isInactive = control.flags & UInt32(V4L2_CTRL_FLAG_INACTIVE) != 0
        if request == cv4l2_S_CTRL, isInactive { return EACCES }
        exchange.value = script.settings.withLock { settings in
            if request == cv4l2_S_CTRL { settings.append((id, asked)) }
            return settings.last { $0.id == id }?.value ?? Int32(control.range.lowerBound)
        }
        return 0
    }

    private func exchangeBuffer(_ request: UInt, _ exchange: inout v4l2_buffer) -> Int32 {
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
