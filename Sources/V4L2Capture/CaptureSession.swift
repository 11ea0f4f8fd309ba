import MediaCore
import Threading

/// A camera that is set up and streams; one thread at a time may use it.
///
/// It may be opened and released on other threads than the one that captures (`SideThread`).
/// Pictures are read directly in the driver's buffer: it is lent to the converter and given back right afterwards.
@safe final class CaptureSession {
    /// The format that the camera was set to.
    let negotiated: NegotiatedFormat

    private let device: V4L2Device
    private let ring: BufferRing
    private let conversion: LibV4LConversion?
    /// The memory that libv4lconvert writes to; empty without it.
    private let picture: UnsafeMutableRawBufferPointer
    /// The path of the camera's node.
    let path: String
    /// The controls that could not be set again.
    let refusedSettings: [CameraError]
    /// Why a receiver's signal is not the one any more to which it was set; `nil` while it is.
    private var signalChange: CameraError?
    private let clock: () -> MonotonicInstant
    private let holder: () -> String?

    /// Opens the selected camera at its current node, sets it up for `request`, and starts streaming.
    ///
    /// The selection keeps the node's path.
    ///
    /// - Parameters:
    ///   - selection: The camera and its controls.
    ///   - system: The machine.
    ///   - request: The wanted format.
    ///   - readable: The pixel formats that can be read in the driver's buffers.
    /// - Throws: Why the camera cannot be opened or set up.
    init(
        _ selection: CameraSelection,
        _ system: any CameraSystem,
        request: VideoFormatRequest,
        readable: Set<PixelFormat>
    ) throws(CameraError) {
        let camera = selection.device
        let directory = CameraDirectory(system: system)
        let (device, path) = try directory.open(camera)
        let settings = selection.found(camera, as: directory.sighted(camera, at: path))
        let holder = { system.holder(of: path) }
        do {
            try device.followSignal()
        } catch {
            throw CameraError(error, device: path, isOpen: true, holder: holder)
        }
        refusedSettings = CameraControls(device: device, path: path, holder: holder).set(settings)
        let negotiation = Negotiation(
            device: device,
            path: path,
            accepts: readable.contains,
            holder: holder
        )
        let negotiated = try negotiation.settle(request)
        let conversion = negotiated.needsLibV4L ? LibV4LConversion(node: device.node) : nil
        if negotiated.needsLibV4L && conversion == nil {
            throw CameraError(
                .unsupportedFormat,
                device: path,
                attempt: "convert pictures of",
                explanation: "libv4lconvert cannot be set up for it; ask for another pixel format"
            )
        }
        let ring: BufferRing
        do {
            ring = try BufferRing(device)
            try ring.start()
        } catch {
            let isPipelineEnd = device.capability.isPipelineEnd
            if isPipelineEnd, let reason = CameraError(ofPipeline: error, device: path) { throw reason }
            throw CameraError(error, device: path, isOpen: true, holder: holder)
        }
        self.device = device
        self.negotiated = negotiated
        self.conversion = conversion
        self.ring = ring
        self.path = path
        self.holder = holder
        clock = { system.now }
        let size = conversion == nil ? 0 : negotiated.delivered.dimensions.area * 3 / 2
        unsafe picture = .allocate(byteCount: size, alignment: 64)
    }

    deinit {
        unsafe picture.deallocate()
    }

    /// Waits for an event of the driver.
    func wait(until deadline: MonotonicInstant, or stop: StopSignal) -> NodeEvents {
        if ring.hasFailed || signalChange != nil { return .failed }
        var events = device.node.wait(until: deadline, or: stop)
        if events.remove(.told) != nil { lookAtSignal() }
        if signalChange != nil { events.insert(.failed) }
        return events
    }

    private func lookAtSignal() {
        do throws(SystemCallFailure) {
            guard try device.tellsOfOtherSignal() else { return }
            signalChange = CameraError(
                .noSignal,
                device: path,
                attempt: "read from",
                explanation: "the signal at its input changed; it goes on with the new one"
            )
        } catch {
            signalChange = CameraError(error, device: path, isOpen: true, holder: holder)
        }
    }

    /// Takes the newest whole frame; `nil` if there is none.
    func takeNewest(
        counting statistics: inout CaptureStatistics,
        stamps: inout TimestampCheck
    ) throws(CameraError) -> FilledBuffer? {
        do {
            return try ring.takeNewest(counting: &statistics, stamps: &stamps, clock: clock)
        } catch {
            throw CameraError(error, device: path, isOpen: true, holder: holder)
        }
    }

    /// Gives a taken buffer back to the driver.
    func giveBack(_ filled: FilledBuffer) throws(CameraError) {
        do {
            try ring.giveBack(filled)
        } catch {
            throw CameraError(error, device: path, isOpen: true, holder: holder)
        }
    }

    /// Converts a taken picture into a frame of our own.
    func frame(
        of filled: FilledBuffer,
        at timestamp: MonotonicInstant,
        by converter: any CapturedFrameConverter
    ) throws(DamagedPicture) -> VideoFrame {
        let layout = negotiated.layout
        guard let conversion else {
            return try ring.withBytes(of: filled) { bytes throws(DamagedPicture) in
                try converter.convert(bytes, layout: layout, timestamp: timestamp)
            }
        }
        let source = negotiated.delivered
        // libv4lconvert relies on the stated row length, so an uncompressed picture must have all its rows.
        let needed = negotiated.isCompressed ? 1 : source.bytesPerRow * source.dimensions.height
        guard filled.end - filled.start >= needed else {
            throw .short(bytes: filled.end - filled.start, needed: needed)
        }
        unsafe try conversion.convert(ring.content(of: filled), source: source, into: picture)
        return try converter.convert(
            unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(picture)),
            layout: layout,
            timestamp: timestamp
        )
    }

    /// The error that explains why a wait that ended with `events` gave no picture.
    func reasonForSilence(_ events: NodeEvents) -> CameraError? {
        if events.contains(.gone) {
            return CameraError(
                .deviceLost,
                device: path,
                attempt: "read from",
                explanation: "the camera went away; plug it in again and look at its cable and power"
            )
        }
        if let signalChange { return signalChange }
        if events.contains(.failed) {
            return CameraError(
                .driverFailed,
                device: path,
                attempt: "read from",
                explanation: "the driver reports an error; start capturing again, or plug the camera in again"
            )
        }
        return nil
    }
}
