import CVPX
package import MediaCore

/// Encodes pictures as VP8, for one track: constant bit rate, real time, keyframes on request only.
///
/// Confine to one thread. The settings are libwebrtc's (`libvpx_vp8_encoder.cc`), except for the buffers and the size
/// of keyframes. These are kept small because everything above the rate becomes delay.
@safe package struct VP8Encoder: ~Copyable {
    private let context = CodecContext()
    private let largestDimensions: Dimensions
    private var configuration: vpx_codec_enc_cfg_t
    private var settings: VP8EncoderSettings
    private var pattern: TemporalLayerPattern
    private var timeline = EncodingTimeline()
    private var keyframeIsDue = true
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
        unsafe configuration.setTargets(settings)
        try context.check(unsafe cvpx_encoder_open(context.pointer, &configuration), attempt)
        for (control, value) in Self.controls { try context.set(control, to: value) }
        self.largestDimensions = settings.dimensions
        unsafe self.configuration = configuration
        self.settings = settings
        self.pattern = TemporalLayerPattern(layerCount: settings.temporalLayerCount)
    }

    /// The size that frames must have.
    package var dimensions: Dimensions { settings.dimensions }

    /// The encoder's target bit rate, for all temporal layers together.
    package var targetBitrate: Bitrate { settings.targetBitrate }

    /// Encodes a frame and lends the packet, which lies in libvpx's memory, to `body`.
    ///
    /// `number` counts the frames that `body` took, from 0; `baseLayerIndex` counts those of layer 0. `isLayerSync` is
    /// true for frames above layer 0 that refer only to the latest frame of layer 0 (bit Y of RFC 7741). It is false
    /// for every frame of layer 0. No other frame refers to a frame of the highest layer.
    ///
    /// - Parameters:
    ///   - frame: A picture of the encoder's size. Timestamps should increase; one that does not counts as one frame
    ///     interval after the one before.
    ///   - forceKeyframe: Whether the frame must be a keyframe.
    ///   - body: Called once, on the calling thread, if there is a packet; must not keep the bytes. It returns `nil` if
    ///     the packet will not be sent: its number is then used again, and the next frame becomes a keyframe.
    /// - Returns: The result of `body`; `nil` also if the encoder left the frame out to keep to its rate. A keyframe
    ///   that was left out stays due.
    /// - Throws: `wrongFrameSize`, or `libraryFailure`, after which the next frame becomes a keyframe.
    package mutating func encode<Result>(
        _ frame: VideoFrame,
        forceKeyframe: Bool,
        _ body: (EncodedFrameInfo, RawSpan) -> Result?
    ) throws(VP8Error) -> Result? {
        guard frame.dimensions == settings.dimensions else {
            let detail = "the encoder is set to \(settings.dimensions)"
            throw VP8Error(.wrongFrameSize, attempt: "encode a frame of \(frame.dimensions)", detail: detail)
        }
        if forceKeyframe { keyframeIsDue = true }
        let slot = timeline.slot(
            at: frame.timestamp,
            interval: settings.frameRate.interval,
            isKeyframe: keyframeIsDue
        )
        let role = pattern.nextRole
        do throws(VP8Error) {
            try submit(frame.buffer, slot, role)
        } catch {
            keyframeIsDue = true
            pattern.advance(.dropped)
            throw error
        }
        guard let packet = unsafe takePacket() else {
            pattern.advance(.dropped)
            return nil
        }
        let coded = unsafe packet.pointee.data.frame
        let isKeyframe = unsafe coded.flags & UInt32(VPX_FRAME_IS_KEY) != 0
        let quantizer = UInt8(clamping: try context.value(of: VP8E_GET_LAST_QUANTIZER))
        let info = describe(role, isKeyframe: isKeyframe, quantizer: quantizer, timestamp: frame.timestamp)
        guard let result = body(info, unsafe RawSpan(_unsafeStart: coded.buf, byteCount: coded.sz)) else {
            // The encoder refers to this frame from now on, but no receiver has it.
            keyframeIsDue = true
            pattern.advance(.dropped)
            return nil
        }
        frameTaken(info)
        return result
    }

    /// Changes the given settings, from the next frame on.
    ///
    /// A change of size makes the next frame a keyframe; other changes do not.
    ///
    /// - Parameters:
    ///   - targetBitrate: As in `VP8EncoderSettings`.
    ///   - frameRate: As in `VP8EncoderSettings`.
    ///   - dimensions: Neither side may be longer than when the encoder was opened.
    ///   - temporalLayerCount: As in `VP8EncoderSettings`; the next frame begins the new layers' pattern.
    /// - Throws: `sizeIncrease`, `unsupportedSettings` or `libraryFailure`; nothing has changed then.
    package mutating func reconfigure(
        targetBitrate: Bitrate? = nil,
        frameRate: FrameRate? = nil,
        dimensions: Dimensions? = nil,
        temporalLayerCount: Int? = nil
    ) throws(VP8Error) {
        var changed = settings
        if let targetBitrate { changed.targetBitrate = targetBitrate }
        if let frameRate { changed.frameRate = frameRate }
        if let dimensions { changed.dimensions = dimensions }
        if let temporalLayerCount { changed.temporalLayerCount = temporalLayerCount }
        try changed.validate("reconfigure an encoder")
        let size = changed.dimensions
        guard size.width <= largestDimensions.width, size.height <= largestDimensions.height else {
            let detail = "opened at \(largestDimensions)"
            throw VP8Error(.sizeIncrease, attempt: "change the encoder's size to \(size)", detail: detail)
        }
        let layersChange = changed.temporalLayerCount != settings.temporalLayerCount
        if changed.dimensions != settings.dimensions || changed.targetBitrate != settings.targetBitrate || layersChange
        {
            var target = unsafe configuration
            unsafe target.setTargets(changed)
            try context.check(
                unsafe vpx_codec_enc_config_set(context.pointer, &target),
                "change the encoder to \(size) at \(changed.targetBitrate)"
            )
            unsafe configuration = target
        }
        if changed.dimensions != settings.dimensions { keyframeIsDue = true }
        if layersChange { pattern = TemporalLayerPattern(layerCount: changed.temporalLayerCount) }
        settings = changed
    }

    /// Passes a picture to libvpx, which copies it.
    private borrowing func submit(
        _ buffer: VideoBuffer,
        _ slot: EncodingTimeline.Slot,
        _ role: TemporalLayerPattern.Role
    ) throws(VP8Error) {
        if pattern.layerCount > 1 {
            try context.set(VP8E_SET_TEMPORAL_LAYER_ID, to: keyframeIsDue ? 0 : Int32(role.temporalLayer))
        }
        let flags = keyframeIsDue ? Int(VPX_EFLAG_FORCE_KF) : role.libraryFlags(layerCount: pattern.layerCount)
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
            dimensions: settings.dimensions
        )
    }

    private mutating func frameTaken(_ info: EncodedFrameInfo) {
        if info.isKeyframe { keyframeIsDue = false }
        pattern.advance(info.isKeyframe ? .keyframe : .encoded)
        nextNumber &+= 1
        baseLayerIndex = info.baseLayerIndex
    }
}
