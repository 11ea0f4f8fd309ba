import CVPX
package import MediaCore

/// Encodes pictures as VP8, for one track: constant bit rate, real time, keyframes on request only.
///
/// Confine to one thread. The settings are libwebrtc's (`libvpx_vp8_encoder.cc`), except for the buffers and the size
/// of keyframes. These are kept small because everything above the rate becomes delay.
@safe package struct VP8Encoder: ~Copyable {
    private let context = CodecContext()
    private let largestDimensions: Dimensions
    /// The target of the latest frame.
    package private(set) var target: EncodingTarget
    private var configuration: vpx_codec_enc_cfg_t
    private var applied: AppliedTarget
    private var largestKeyframe: Int32
    private var targetIsNew = false
    private var pattern: TemporalLayerPattern
    private var references = ReferenceBuffers()
    private var limiter = FrameSizeLimiter()
    private var refinement = StillPictureRefinement()
    private var active = ActiveBlocks()
    private var timeline = EncodingTimeline()
    private var keyframeIsDue = true
    /// Whether the latest frame that was sent is a repeat.
    private var isStill = false
    /// How often a frame was encoded again because it came out too large.
    private(set) var repeatedEncodings = 0
    private var nextNumber: UInt32 = 0
    private var baseLayerIndex = UInt16.max

    /// Creates an encoder that begins with a keyframe.
    ///
    /// - Throws: `unsupportedSettings`, or `libraryFailure` when libvpx cannot be opened.
    package init(_ settings: VP8EncoderSettings) throws(VP8Error) {
        try settings.validate("open an encoder")
        let attempt = "open an encoder for \(settings.dimensions)"
        var configuration = unsafe vpx_codec_enc_cfg_t()
        try context.check(unsafe cvpx_encoder_defaults(&configuration), attempt)
        unsafe configuration.setConstants()
        unsafe configuration.set(settings.target)
        unsafe configuration.set(.usual, mayDropFrames: true)
        try context.check(unsafe cvpx_encoder_open(context.pointer, &configuration), attempt)
        for (control, value) in Self.controls { try context.set(control, to: value) }
        let largestKeyframe = AppliedTarget.largestKeyframe(settings.target)
        try context.set(VP8E_SET_MAX_INTRA_BITRATE_PCT, to: largestKeyframe)
        self.largestKeyframe = largestKeyframe
        unsafe self.configuration = configuration
        applied = AppliedTarget(target: settings.target)
        largestDimensions = settings.dimensions
        target = settings.target
        pattern = TemporalLayerPattern(layerCount: settings.temporalLayerCount)
    }

    /// Creates an encoder that begins with a keyframe, and numbers its frames as if `former` had gone on.
    ///
    /// - Throws: As `init(_:)`.
    package init(_ settings: VP8EncoderSettings, following former: borrowing VP8Encoder) throws(VP8Error) {
        try self.init(settings)
        nextNumber = former.nextNumber
        baseLayerIndex = former.baseLayerIndex
    }

    /// The size of the latest frame.
    package var dimensions: Dimensions { target.dimensions }

    /// Whether a repeat of the latest picture would make it no sharper.
    package var isSharp: Bool { refinement.isDone }

    /// Encodes a frame and lends the packet, which lies in libvpx's memory, to `body`.
    ///
    /// A change of size makes the frame a keyframe; other changes of the target do not. If the frame comes out larger
    /// than the target allows, it is encoded again more coarsely, up to twice. If it is still larger, or rate control
    /// has no coarser quantizer left, `body` gets the larger frame.
    ///
    /// A frame that is a repeat (`VideoFrame.isRepeat`) shows the picture of the frame before. If that frame was sent,
    /// the repeat is never left out, and makes a part of the picture sharper, as large as the target's `largestFrame`
    /// and bitrate allow.
    ///
    /// `number` counts the frames that `body` took, from 0; `baseLayerIndex` counts those of layer 0. `isLayerSync` is
    /// true for frames above layer 0 that refer only to the latest frame of layer 0 (bit Y of RFC 7741). It is false
    /// for every frame of layer 0. With more than one layer, no other frame refers to a frame of the highest layer.
    ///
    /// - Parameters:
    ///   - frame: A picture of the target's size. Timestamps should increase; one that does not counts as one frame
    ///     interval after the one before.
    ///   - newTarget: What to encode for; `nil` for the target of the frame before. No side may be longer than the
    ///     encoder was opened with.
    ///   - forceKeyframe: Whether the frame must be a keyframe.
    ///   - body: Called once, on the calling thread, if there is a packet; must not keep the bytes. It returns `nil` if
    ///     the packet will not be sent. Its number is then used again, and the next frame does not refer to it; if that
    ///     is not possible, the next frame becomes a keyframe.
    /// - Returns: The result of `body`; `nil` also if the encoder left the frame out to keep to its rate. A keyframe
    ///   that was left out stays due.
    /// - Throws: `wrongFrameSize`, `sizeIncrease` or `unsupportedSettings`, which change nothing; or `libraryFailure`,
    ///   after which the next frame becomes a keyframe.
    package mutating func encode<Result>(
        _ frame: VideoFrame,
        target newTarget: EncodingTarget? = nil,
        forceKeyframe: Bool,
        _ body: (EncodedFrameInfo, RawSpan) -> Result?
    ) throws(VP8Error) -> Result? {
        try begin(frame, newTarget ?? target, forceKeyframe: forceKeyframe)
        let interval = target.frameRate.interval
        var slot = timeline.slot(
            at: frame.timestamp,
            interval: interval,
            isKeyframe: keyframeIsDue,
            isRepeat: frame.isRepeat,
            largestFrame: longestFrameTime,
            bitrate: target.bitrate
        )
        if !frame.isRepeat || keyframeIsDue { refinement.beginNewPicture() }
        // What is shown for long is what later frames refer to, and what everybody gets.
        if frame.isRepeat || isStill { pattern.restart() }
        var attempt = firstAttempt(slot)
        var triesLeft = Self.extraTries
        while true {
            do throws(VP8Error) {
                let mayDropFrames = triesLeft == Self.extraTries && attempt.part == nil
                try configure(attempt.quantizers, mayDropFrames: mayDropFrames, at: frame.timestamp)
                try active.set(attempt.part?.blocks, of: target.dimensions, in: context)
                guard let coded = try encodeOnce(frame, slot) else {
                    pattern.advance(.dropped)
                    return nil
                }
                if triesLeft > 0, let another = anotherAttempt(after: coded, attempt, isLast: triesLeft == 1) {
                    takeBack(coded)
                    attempt = another
                    triesLeft -= 1
                    repeatedEncodings += 1
                    slot = timeline.slotForAnotherTry(
                        afterResultOf: coded.size,
                        bitrate: target.bitrate,
                        interval: interval
                    )
                    continue
                }
                let data = unsafe coded.packet.pointee.data.frame
                let bytes = unsafe RawSpan(_unsafeStart: data.buf, byteCount: data.sz)
                let result = finish(coded, attempt.part, body(coded.info, bytes))
                if result != nil { isStill = frame.isRepeat }
                return result
            } catch {
                keyframeIsDue = true
                throw error
            }
        }
    }

    /// The time that a frame of the largest allowed size takes at the target's bitrate, in µs, at most a second.
    private var longestFrameTime: Int64 {
        guard let limit = target.largestFrame else { return 1_000_000 }
        let seconds = Double(limit.bytes) * 8 / Double(max(target.bitrate.bitsPerSecond, 1))
        return Int64(max(0, min(seconds, 1)) * 1e6)
    }

    /// How often a frame that came out too large is encoded again, at most.
    private static let extraTries = 2

    /// Checks and takes over the target of the next frame.
    private mutating func begin(
        _ frame: VideoFrame,
        _ newTarget: EncodingTarget,
        forceKeyframe: Bool
    ) throws(VP8Error) {
        let size = newTarget.dimensions
        guard frame.dimensions == size else {
            let detail = "the encoder's target is \(size)"
            throw VP8Error(.wrongFrameSize, attempt: "encode a frame of \(frame.dimensions)", detail: detail)
        }
        if newTarget != target {
            try VP8EncoderSettings.validate(size, newTarget.temporalLayerCount, "encode a frame of \(size)")
            guard size.width <= largestDimensions.width, size.height <= largestDimensions.height else {
                let detail = "opened at \(largestDimensions)"
                throw VP8Error(.sizeIncrease, attempt: "change the encoder's size to \(size)", detail: detail)
            }
        }
        if size != target.dimensions || forceKeyframe { keyframeIsDue = true }
        target = newTarget
        // Three layers need the newest frame of layer 0 in LAST.
        if target.temporalLayerCount != pattern.layerCount, keyframeIsDue || references.newestIsSent {
            pattern = TemporalLayerPattern(layerCount: target.temporalLayerCount)
        }
    }

    /// Encodes a frame in the next role of the pattern; returns `nil` if libvpx left it out.
    private mutating func encodeOnce(_ frame: VideoFrame, _ slot: EncodingTimeline.Slot) throws(VP8Error) -> CodedFrame?
    {
        let role = pattern.nextRole
        let use = references.use(for: role, layerCount: pattern.layerCount, targetIsNew: targetIsNew)
        if pattern.layerCount > 1 {
            try context.set(VP8E_SET_TEMPORAL_LAYER_ID, to: keyframeIsDue ? 0 : Int32(role.temporalLayer))
        }
        try submit(frame.buffer, slot, keyframeIsDue ? vpx_enc_frame_flags_t(VPX_EFLAG_FORCE_KF) : use.libraryFlags)
        guard let packet = unsafe takePacket() else { return nil }
        let isKeyframe = unsafe packet.pointee.data.frame.flags & UInt32(VPX_FRAME_IS_KEY) != 0
        let quantizer = UInt8(clamping: try context.value(of: VP8E_GET_LAST_QUANTIZER))
        let info = describe(role, isKeyframe: isKeyframe, quantizer: quantizer, timestamp: frame.timestamp)
        let coded = unsafe CodedFrame(info: info, role: role, use: use, packet: packet)
        // A repeat says nothing of what a change would come to.
        if isKeyframe || !frame.isRepeat {
            limiter.encoded(coded.size, quantizer: quantizer, dimensions: info.dimensions, isKeyframe: isKeyframe)
        }
        return coded
    }

    /// Forgets a frame that will not be sent.
    private mutating func takeBack(_ coded: CodedFrame) {
        if coded.info.isKeyframe || !ReferenceBuffers.canTakeBack(coded.role, layerCount: pattern.layerCount) {
            keyframeIsDue = true
        } else {
            references.encoded(coded.use, isSent: false)
            if !references.newestIsHeld { refinement.beginNewPicture() }
            pattern.takeBack()
        }
    }

    /// Counts a frame that was encoded and is sent if there is a `result`.
    private mutating func finish<Result>(
        _ coded: CodedFrame,
        _ part: StillPictureRefinement.Part?,
        _ result: Result?
    ) -> Result? {
        guard let result else {
            takeBack(coded)
            pattern.advance(.dropped)
            return nil
        }
        if coded.info.isKeyframe {
            keyframeIsDue = false
            references.keyframeSent()
            pattern.advance(.keyframe)
        } else {
            references.encoded(coded.use, isSent: true)
            pattern.advance(.encoded)
        }
        if coded.info.temporalLayer == 0 {
            limiter.sent(isRepeat: part != nil)
            let blocks = ActiveBlocks.count(of: target.dimensions)
            refinement.sent(part, of: blocks, quantizer: coded.info.quantizer, size: coded.size)
        }
        nextNumber &+= 1
        baseLayerIndex = coded.info.baseLayerIndex
        return result
    }

    /// Describes the encoded frame from libvpx.
    private borrowing func describe(
        _ role: TemporalLayerPattern.Role,
        isKeyframe: Bool,
        quantizer: UInt8,
        timestamp: MonotonicInstant
    ) -> EncodedFrameInfo {
        let temporalLayer = isKeyframe ? 0 : role.temporalLayer
        return EncodedFrameInfo(
            number: nextNumber,
            timestamp: timestamp,
            isKeyframe: isKeyframe,
            temporalLayer: temporalLayer,
            isLayerSync: !isKeyframe && role.isLayerSync,
            isDiscardable: !isKeyframe && !role.isReference,
            baseLayerIndex: temporalLayer == 0 ? baseLayerIndex &+ 1 : baseLayerIndex,
            quantizer: quantizer,
            dimensions: target.dimensions
        )
    }
}

/// The size that one frame should not exceed.
extension VP8Encoder {
    /// How a frame is to be encoded.
    private struct Attempt {
        var quantizers: QuantizerRange
        /// The part of a picture that stands still; `nil` for all of the picture.
        var part: StillPictureRefinement.Part?
        /// The size that the part should not exceed.
        var partLimit = DataSize(bytes: 0)
    }

    /// How to encode the next frame first.
    private func firstAttempt(_ slot: EncodingTimeline.Slot) -> Attempt {
        let size = target.dimensions
        // What the bitrate allows until the next repeat, so that a motion that begins does not wait behind this one.
        let bits = Double(target.bitrate.bitsPerSecond) * Double(slot.duration) / 1e6
        let allowed = shareOfRepeats * bits / 8
        let limit = DataSize(bytes: min(Int(allowed), target.largestFrame?.bytes ?? .max))
        let part = refinement.part(
            of: ActiveBlocks.count(of: size),
            isKept: pattern.layerCount == 3 || references.outlivesLast,
            limit: limit
        ) { limiter.keyframeBytes(with: $0, dimensions: size) }
        guard let part else {
            return Attempt(quantizers: limiter.firstQuantizers(for: target, isKeyframe: keyframeIsDue))
        }
        return Attempt(quantizers: QuantizerRange(exactly: part.quantizer), part: part, partLimit: limit)
    }

    /// The share of the bitrate that repeats may use.
    ///
    /// They are of layer 0, and there are subscribers whose path carries that layer and no more. So it is the share of
    /// layer 0, except until the picture is legible: with three layers that takes 0.9 s instead of 1.3 s then (a page of
    /// text at 1280x720 and 2.5 Mbit/s), and those subscribers lag by at most half of the time.
    private var shareOfRepeats: Double {
        let layer = refinement.isLegible ? 0 : max(0, pattern.layerCount - 2)
        return Double(TemporalLayerPattern.cumulativeShares(layerCount: pattern.layerCount)[layer]) / 10
    }

    /// How `coded` would fit; `nil` if it fits already, or encoding it again cannot help.
    private mutating func anotherAttempt(after coded: CodedFrame, _ attempt: Attempt, isLast: Bool) -> Attempt? {
        let isKeyframe = coded.info.isKeyframe
        guard isKeyframe || ReferenceBuffers.canTakeBack(coded.role, layerCount: pattern.layerCount) else { return nil }
        guard let part = attempt.part else {
            let (size, quantizer) = (coded.size, coded.info.quantizer)
            return limiter.quantizers(after: size, quantizer, for: target, isKeyframe: isKeyframe)
                .map { Attempt(quantizers: $0) }
        }
        guard FrameSizeLimiter.exceeds(coded.size, attempt.partLimit) else { return nil }
        let (size, limit) = (coded.size, attempt.partLimit)
        let smaller = refinement.part(insteadOf: part, of: size, limit: limit, isLastTry: isLast)
        return smaller.map { Attempt(quantizers: attempt.quantizers, part: $0, partLimit: limit) }
    }
}

/// Calls into libvpx.
extension VP8Encoder {
    /// A frame that libvpx has encoded.
    @safe private struct CodedFrame {
        var info: EncodedFrameInfo
        var role: TemporalLayerPattern.Role
        var use: ReferenceBuffers.Use
        /// Valid until the next call into libvpx.
        var packet: UnsafePointer<vpx_codec_cx_pkt_t>

        var size: DataSize { DataSize(bytes: unsafe packet.pointee.data.frame.sz) }
    }

    /// Passes the target and the quantizers to libvpx if they differ from those it has.
    private mutating func configure(
        _ quantizers: QuantizerRange,
        mayDropFrames: Bool,
        at time: MonotonicInstant
    ) throws(VP8Error) {
        var wanted = AppliedTarget(
            target: target,
            quantizers: quantizers,
            mayDropFrames: mayDropFrames,
            time: time
        )
        wanted.target.temporalLayerCount = pattern.layerCount
        targetIsNew = applied.isFar(from: wanted)
        if applied.differs(from: wanted) {
            var changed = unsafe configuration
            unsafe changed.set(wanted.target)
            unsafe changed.set(quantizers, mayDropFrames: mayDropFrames)
            try context.check(
                unsafe vpx_codec_enc_config_set(context.pointer, &changed),
                "change the encoder to \(target.dimensions) at \(target.bitrate)"
            )
            unsafe configuration = changed
            applied = wanted
        }
        guard keyframeIsDue else { return }
        let largest = AppliedTarget.largestKeyframe(wanted.target)
        if largest != largestKeyframe { try context.set(VP8E_SET_MAX_INTRA_BITRATE_PCT, to: largest) }
        largestKeyframe = largest
    }

    /// Passes a picture to libvpx, which copies it.
    private borrowing func submit(
        _ buffer: VideoBuffer,
        _ slot: EncodingTimeline.Slot,
        _ flags: vpx_enc_frame_flags_t
    ) throws(VP8Error) {
        let status = buffer.withPlanes { luma, chromaU, chromaV in
            unsafe luma.withUnsafeBufferPointer { luma in
                unsafe chromaU.withUnsafeBufferPointer { chromaU in
                    unsafe chromaV.withUnsafeBufferPointer { chromaV in
                        var image = unsafe vpx_image_t(buffer, luma, chromaU, chromaV)
                        return unsafe vpx_codec_encode(
                            context.pointer,
                            &image,
                            slot.start,
                            UInt(slot.duration),
                            flags,
                            UInt(VPX_DL_REALTIME)
                        )
                    }
                }
            }
        }
        try context.check(status, "encode a frame of \(buffer.dimensions)")
    }

    /// The encoded frame from libvpx, valid until the next call into libvpx; `nil` if libvpx left the picture out.
    private borrowing func takePacket() -> UnsafePointer<vpx_codec_cx_pkt_t>? {
        var iterator: vpx_codec_iter_t?
        while let packet = unsafe vpx_codec_get_cx_data(context.pointer, &iterator) {
            if unsafe packet.pointee.kind == VPX_CODEC_CX_FRAME_PKT { return unsafe packet }
        }
        return nil
    }
}
