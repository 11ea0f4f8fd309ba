import CV4L2
import Glibc
import MediaCore

/// The V4L2 calls of one node, with Swift's types; checks values from the driver that could cause a trap.
///
/// Confine to the node's thread.
@safe final class V4L2Device {
    let node: any V4L2Node
    let capability: DeviceCapability
    /// The signal that a receiver was set to; `nil` of a camera.
    private var signal: Signal?
    /// The memory in which the driver reads and writes the planes of a buffer.
    private let planes: UnsafeMutablePointer<v4l2_plane>

    /// Asks `node` for its capabilities.
    init(node: any V4L2Node) throws(SystemCallFailure) {
        var answer = v4l2_capability()
        let status = unsafe node.control(cv4l2_QUERYCAP, &answer)
        guard status == 0 else { throw SystemCallFailure(attempt: "ask the abilities of", status: status) }
        let ofNode = answer.capabilities & UInt32(V4L2_CAP_DEVICE_CAPS) != 0
        capability = DeviceCapability(
            driver: unsafe withUnsafeBytes(of: &answer.driver) { unsafe driverText($0) },
            card: unsafe withUnsafeBytes(of: &answer.card) { unsafe driverText($0) },
            busInfo: unsafe withUnsafeBytes(of: &answer.bus_info) { unsafe driverText($0) },
            bits: ofNode ? answer.device_caps : answer.capabilities
        )
        self.node = node
        unsafe planes = .allocate(capacity: Int(VIDEO_MAX_PLANES))
        unsafe planes.initialize(repeating: v4l2_plane(), count: Int(VIDEO_MAX_PLANES))
    }

    deinit {
        unsafe planes.deallocate()
    }

    private var bufferType: UInt32 {
        capability.isMultiplanar
            ? V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE.rawValue
            : V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    }

    /// Makes a call whose argument is `argument`.
    func call<Argument>(
        _ request: UInt,
        _ argument: inout Argument,
        to attempt: @autoclosure () -> String
    ) throws(SystemCallFailure) {
        let status = unsafe withUnsafeMutableBytes(of: &argument) { bytes -> Int32 in
            guard let address = bytes.baseAddress else { return EFAULT }
            return unsafe node.control(request, address)
        }
        guard status == 0 else { throw SystemCallFailure(attempt: attempt(), status: status) }
    }
}

// MARK: - What the camera offers

extension V4L2Device {
    /// The pixel format at `index` of the driver's list; throws `EINVAL` after the last.
    func pixelFormat(
        at index: Int
    ) throws(SystemCallFailure) -> (pixelFormat: PixelFormat, name: String, isCompressed: Bool) {
        var answer = v4l2_fmtdesc()
        answer.index = UInt32(index)
        answer.type = bufferType
        try call(cv4l2_ENUM_FMT, &answer, to: "list the formats of")
        let name = unsafe withUnsafeBytes(of: &answer.description) { unsafe driverText($0) }
        let isCompressed = answer.flags & UInt32(V4L2_FMT_FLAG_COMPRESSED) != 0
        return (PixelFormat(rawValue: answer.pixelformat), name, isCompressed)
    }

    /// The frame size at `index` of the driver's list for `format`, without intervals; throws `EINVAL` after the last.
    ///
    /// - Returns: `nil` for a size that is impossible for a picture.
    func frameSize(at index: Int, of format: PixelFormat) throws(SystemCallFailure) -> CaptureFrameSize? {
        var answer = v4l2_frmsizeenum()
        answer.index = UInt32(index)
        answer.pixel_format = format.rawValue
        try call(cv4l2_ENUM_FRAMESIZES, &answer, to: "list the sizes of")
        if answer.type == V4L2_FRMSIZE_TYPE_DISCRETE.rawValue {
            let size = answer.discrete
            return pictureSize(size.width, size.height).map { .discrete($0, intervals: []) }
        }
        let range = answer.stepwise
        guard let smallest = pictureSize(max(range.min_width, 1), max(range.min_height, 1)),
            let largest = pictureSize(
                min(range.max_width, UInt32(Dimensions.largestCodable.width)),
                min(range.max_height, UInt32(Dimensions.largestCodable.height))
            ),
            smallest.width <= largest.width, smallest.height <= largest.height
        else { return nil }
        let isContinuous = answer.type == V4L2_FRMSIZE_TYPE_CONTINUOUS.rawValue
        let step = isContinuous ? nil : pictureSize(range.step_width, range.step_height)
        return .range(smallest: smallest, largest: largest, step: step ?? Dimensions(width: 1, height: 1))
    }

    /// The frame interval at `index` of the driver's list; throws `EINVAL` after the last.
    ///
    /// - Returns: `nil` for an invalid interval.
    func frameInterval(
        at index: Int,
        of format: PixelFormat,
        _ size: Dimensions
    ) throws(SystemCallFailure) -> CaptureFrameInterval? {
        var answer = v4l2_frmivalenum()
        answer.index = UInt32(index)
        answer.pixel_format = format.rawValue
        answer.width = UInt32(size.width)
        answer.height = UInt32(size.height)
        try call(cv4l2_ENUM_FRAMEINTERVALS, &answer, to: "list the frame rates of")
        if answer.type == V4L2_FRMIVAL_TYPE_DISCRETE.rawValue {
            return frameRate(interval: answer.discrete).map { .discrete($0) }
        }
        let range = answer.stepwise
        guard let fastest = frameRate(interval: range.min), let slowest = frameRate(interval: range.max),
            slowest <= fastest
        else { return nil }
        let isContinuous = answer.type == V4L2_FRMIVAL_TYPE_CONTINUOUS.rawValue
        return .range(slowest: slowest, fastest: fastest, step: isContinuous ? nil : frameRate(interval: range.step))
    }
}

// MARK: - Signal

extension V4L2Device {
    /// What tells one signal of a receiver from another.
    struct Signal: Equatable {
        var width: UInt32
        var height: UInt32
        var pixelClock: UInt64
        var isInterlaced: Bool
    }

    /// More than a driver keeps of what it has to tell: one that tells without end is not listened to for ever.
    private static let mostNews = 64

    /// Sets a receiver, as of HDMI, to the signal that it gets, and listens for another one.
    ///
    /// A receiver keeps the size that it was set to until a program sets it. Cameras have no signal.
    ///
    /// - Throws: `ENOLINK` without a signal, `ENOLCK` with an unsteady one, `ERANGE` with one that it cannot take.
    func followSignal() throws(SystemCallFailure) {
        var subscription = v4l2_event_subscription()
        subscription.type = UInt32(V4L2_EVENT_SOURCE_CHANGE)
        guard var timings = try receivedTimings() else { return }
        node.isListening = (try? call(cv4l2_SUBSCRIBE_EVENT, &subscription, to: "listen to")) != nil
        signal = Self.signal(of: timings)
        // A receiver that refuses it, as some do if it is interlaced, may deliver pictures all the same.
        try? call(cv4l2_S_DV_TIMINGS, &timings, to: "set the signal of")
    }

    /// Whether the signal is another one than `followSignal` found; takes what the driver has to tell.
    ///
    /// Drivers tell of changes that are none, for example right after the subscription.
    ///
    /// - Throws: As `followSignal`.
    func tellsOfOtherSignal() throws(SystemCallFailure) -> Bool {
        var isNews = false
        for _ in 0..<Self.mostNews {
            var event = v4l2_event()
            guard (try? call(cv4l2_DQEVENT, &event, to: "listen to")) != nil else { break }
            if event.type == UInt32(V4L2_EVENT_SOURCE_CHANGE) { isNews = true }
        }
        guard isNews else { return false }
        let timings = try receivedTimings()
        return timings.map { Self.signal(of: $0) } != signal
    }

    /// The timings of the signal at the input; `nil` of a camera.
    private func receivedTimings() throws(SystemCallFailure) -> v4l2_dv_timings? {
        var timings = v4l2_dv_timings()
        do {
            try call(cv4l2_QUERY_DV_TIMINGS, &timings, to: "find the signal of")
        } catch {
            guard [ENOLINK, ENOLCK, ERANGE].contains(error.status) else { return nil }
            throw error
        }
        return timings
    }

    private static func signal(of timings: v4l2_dv_timings) -> Signal {
        let bt = timings.bt
        return Signal(width: bt.width, height: bt.height, pixelClock: bt.pixelclock, isInterlaced: bt.interlaced != 0)
    }
}

// MARK: - Format and rate

extension V4L2Device {
    /// Sets the format, or the nearest that the driver has.
    func setFormat(_ format: PixelFormat, _ size: Dimensions) throws(SystemCallFailure) -> DeliveredFormat? {
        try exchangeFormat(cv4l2_S_FMT, format, size, to: "set the format of")
    }

    /// The format that `setFormat` would set; nothing is changed.
    func tryFormat(_ format: PixelFormat, _ size: Dimensions) throws(SystemCallFailure) -> DeliveredFormat? {
        try exchangeFormat(cv4l2_TRY_FMT, format, size, to: "try a format of")
    }

    /// The format that the driver is set to.
    func currentFormat() throws(SystemCallFailure) -> DeliveredFormat? {
        try exchangeFormat(
            cv4l2_G_FMT,
            PixelFormat(rawValue: 0),
            Dimensions(width: 0, height: 0),
            to: "ask the format of"
        )
    }

    private func exchangeFormat(
        _ request: UInt,
        _ format: PixelFormat,
        _ size: Dimensions,
        to attempt: @autoclosure () -> String
    ) throws(SystemCallFailure) -> DeliveredFormat? {
        var exchange = unsafe v4l2_format()
        unsafe exchange.type = bufferType
        if capability.isMultiplanar {
            unsafe exchange.fmt.pix_mp.width = UInt32(size.width)
            unsafe exchange.fmt.pix_mp.height = UInt32(size.height)
            unsafe exchange.fmt.pix_mp.pixelformat = format.rawValue
            unsafe exchange.fmt.pix_mp.field = V4L2_FIELD_NONE.rawValue
            unsafe exchange.fmt.pix_mp.num_planes = 1
        } else {
            unsafe exchange.fmt.pix = pixFormat(format, size)
        }
        unsafe try call(request, &exchange, to: attempt())
        guard capability.isMultiplanar else { return delivered(unsafe exchange.fmt.pix) }
        let given = unsafe exchange.fmt.pix_mp
        var single = v4l2_pix_format()
        single.width = given.width
        single.height = given.height
        single.pixelformat = given.pixelformat
        single.field = given.field
        single.bytesperline = given.plane_fmt.0.bytesperline
        single.sizeimage = given.plane_fmt.0.sizeimage
        single.colorspace = given.colorspace
        single.priv = UInt32(bitPattern: Int32(truncatingIfNeeded: V4L2_PIX_FMT_PRIV_MAGIC))
        single.ycbcr_enc = UInt32(given.ycbcr_enc)
        single.quantization = UInt32(given.quantization)
        return delivered(single, planeCount: Int(given.num_planes))
    }

    /// Sets the frame rate, or the nearest that the driver has.
    ///
    /// - Returns: The rate that the driver states; `nil` if it states none.
    func setFrameRate(_ rate: FrameRate) throws(SystemCallFailure) -> FrameRate? {
        var exchange = v4l2_streamparm()
        exchange.type = bufferType
        unsafe exchange.parm.capture.timeperframe.numerator = UInt32(clamping: rate.denominator)
        unsafe exchange.parm.capture.timeperframe.denominator = UInt32(clamping: rate.numerator)
        try call(cv4l2_S_PARM, &exchange, to: "set the frame rate of")
        return statedRate(exchange)
    }

    /// The rate that the driver is set to; `nil` if it states none.
    func currentFrameRate() throws(SystemCallFailure) -> FrameRate? {
        var exchange = v4l2_streamparm()
        exchange.type = bufferType
        try call(cv4l2_G_PARM, &exchange, to: "ask the frame rate of")
        return statedRate(exchange)
    }

    private func statedRate(_ exchange: v4l2_streamparm) -> FrameRate? {
        guard unsafe exchange.parm.capture.capability & UInt32(V4L2_CAP_TIMEPERFRAME) != 0 else { return nil }
        return frameRate(interval: unsafe exchange.parm.capture.timeperframe)
    }
}

// MARK: - Streaming

extension V4L2Device {
    /// Requests `count` buffers to map; 0 frees them.
    ///
    /// - Returns: The number of buffers that there are.
    func requestBuffers(_ count: Int) throws(SystemCallFailure) -> Int {
        var exchange = v4l2_requestbuffers()
        exchange.count = UInt32(count)
        exchange.type = bufferType
        exchange.memory = V4L2_MEMORY_MMAP.rawValue
        try call(cv4l2_REQBUFS, &exchange, to: "get buffers of")
        return Int(exchange.count)
    }

    /// Maps the buffer at `index`.
    func mapBuffer(at index: Int) throws(SystemCallFailure) -> UnsafeMutableRawBufferPointer {
        var exchange = unsafe buffer(at: index)
        unsafe try call(cv4l2_QUERYBUF, &exchange, to: "ask for the buffers of")
        let (length, offset) =
            unsafe capability.isMultiplanar
            ? (planes[0].length, planes[0].m.mem_offset) : (exchange.length, exchange.m.offset)
        guard length > 0 else { throw SystemCallFailure(attempt: "map the empty buffers of", status: EINVAL) }
        return unsafe try node.map(length: Int(length), offset: Int(offset))
    }

    /// Gives the buffer at `index` to the driver for filling.
    func queueBuffer(at index: Int) throws(SystemCallFailure) {
        var exchange = unsafe buffer(at: index)
        unsafe try call(cv4l2_QBUF, &exchange, to: "give a buffer to")
    }

    /// Takes the oldest filled buffer.
    ///
    /// - Returns: `nil` if there is none yet.
    func dequeueBuffer() throws(SystemCallFailure) -> FilledBuffer? {
        var exchange = unsafe buffer(at: 0)
        do {
            unsafe try call(cv4l2_DQBUF, &exchange, to: "read from")
        } catch {
            guard error.status == EAGAIN else { throw error }
            return nil
        }
        let flags = unsafe exchange.flags
        let isMonotonic =
            flags & UInt32(V4L2_BUF_FLAG_TIMESTAMP_MASK) == UInt32(V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC)
        let seconds = unsafe Int64(exchange.timestamp.tv_sec)
        let stamp = unsafe seconds &* 1_000_000_000 &+ Int64(exchange.timestamp.tv_usec) &* 1000
        return unsafe FilledBuffer(
            index: Int(exchange.index),
            start: capability.isMultiplanar ? Int(planes[0].data_offset) : 0,
            end: Int(capability.isMultiplanar ? planes[0].bytesused : exchange.bytesused),
            isDamaged: flags & UInt32(V4L2_BUF_FLAG_ERROR) != 0,
            sequence: exchange.sequence,
            timestamp: isMonotonic && stamp > 0 ? MonotonicInstant(nanoseconds: stamp) : nil
        )
    }

    /// Starts streaming.
    func startStreaming() throws(SystemCallFailure) {
        var type = bufferType
        try call(cv4l2_STREAMON, &type, to: "start streaming from")
    }

    /// Stops streaming; the driver returns every buffer.
    func stopStreaming() throws(SystemCallFailure) {
        var type = bufferType
        try call(cv4l2_STREAMOFF, &type, to: "stop streaming from")
    }

    private func buffer(at index: Int) -> v4l2_buffer {
        var exchange = unsafe v4l2_buffer()
        unsafe exchange.index = UInt32(index)
        unsafe exchange.type = bufferType
        unsafe exchange.memory = V4L2_MEMORY_MMAP.rawValue
        if capability.isMultiplanar {
            unsafe planes[0] = v4l2_plane()
            unsafe exchange.m.planes = planes
            unsafe exchange.length = UInt32(VIDEO_MAX_PLANES)
        }
        return unsafe exchange
    }
}
