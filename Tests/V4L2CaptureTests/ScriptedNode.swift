import CV4L2
import Glibc
import MediaCore
import TestTools
import Threading

@testable import V4L2Capture

/// A video node that behaves as its script says.
final class ScriptedNode: V4L2Node {
    let descriptor: Int32 = -1
    var isListening = false
    var script: CameraScript
    let record: Monitor<ScriptedSystem.Record>
    var current = v4l2_pix_format()
    var queued: [Int] = []
    var ready: [CameraScript.Frame] = []
    private(set) var memory: [Int: UnsafeMutableRawBufferPointer] = [:]
    private(set) var readError: Int32?
    private var next = 0
    /// When frames begin to come.
    private var firstFrame = MonotonicInstant(nanoseconds: 0)
    var random: SeededGenerator

    init(_ script: CameraScript, _ record: Monitor<ScriptedSystem.Record>) {
        self.script = script
        self.record = record
        self.random = SeededGenerator(seed: script.noise ?? 0)
        record.withLock { $0.openNodes += 1 }
    }

    deinit {
        record.change { $0.openNodes -= 1 }
    }

    var isMultiplanar: Bool { script.deviceCapabilities & UInt32(V4L2_CAP_VIDEO_CAPTURE) == 0 }

    func control(_ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32 {
        let count = record.change { record in
            record.calls[request, default: 0] += 1
            return record.calls[request] ?? 0
        }
        if let status = script.failures[request] { return status }
        if script.isExclusive, request == cv4l2_S_FMT, record.withLock({ $0.openNodes > 1 }) { return EBUSY }
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
        case cv4l2_STREAMON:
            firstFrame = MonotonicClock.now + script.firstFrameDelay
            return script.failuresOfFormat[PixelFormat(rawValue: current.pixelformat)] ?? 0
        case cv4l2_STREAMOFF:
            script.whileStopping()
            queued = []
            return 0
        case cv4l2_QUERY_DV_TIMINGS:
            return answerSignal(&argument.assumingMemoryBound(to: v4l2_dv_timings.self).pointee)
        case cv4l2_S_DV_TIMINGS, cv4l2_SUBSCRIBE_EVENT: return script.signal == nil ? ENOTTY : 0
        case cv4l2_DQEVENT: return tellOfSignal(&argument.assumingMemoryBound(to: v4l2_event.self).pointee)
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
        if script.firstFrameDelay > .zero, MonotonicClock.now < firstFrame {
            let left = min(deadline, firstFrame).duration(since: MonotonicClock.now).wholeMicroseconds
            var file = pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0)
            return poll(&file, 1, Int32(max(0, left + 999) / 1000)) > 0 ? .stopped : []
        }
        if script.intervalMilliseconds > 0 {
            var file = pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0)
            if poll(&file, 1, script.intervalMilliseconds) > 0 { return .stopped }
        }
        if script.isUnplugged.withLock({ $0 }) {
            readError = ENODEV
            return [.failed, .gone]
        }
        if isListening, script.signal?.withLock({ $0.changes > 0 }) == true { return .told }
        if script.isSilent.withLock({ $0 }) || !script.isReady() { return [] }
        if let width = script.silentWidth, width == current.width { return [] }
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

    private func answerSignal(_ timings: inout v4l2_dv_timings) -> Int32 {
        guard let signal = script.signal?.withLock({ $0 }) else { return ENOTTY }
        timings.bt.width = signal.width
        return signal.status
    }

    private func tellOfSignal(_ event: inout v4l2_event) -> Int32 {
        let isNew = script.signal?.withLock { signal in
            defer { signal.changes = max(0, signal.changes - 1) }
            return signal.changes > 0
        }
        guard isNew == true else { return ENOENT }
        event.type = UInt32(V4L2_EVENT_SOURCE_CHANGE)
        event.u.src_change.changes = UInt32(V4L2_EVENT_SRC_CH_RESOLUTION)
        return 0
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
