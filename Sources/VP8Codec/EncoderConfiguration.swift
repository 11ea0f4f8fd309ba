import CVPX
import MediaCore

extension VP8Encoder {
    /// The controls that are set once, besides the configuration.
    static let controls: [(vp8e_enc_control_id, Int32)] = [
        // A fixed effort. Positive values adapt to the measured time, which makes the output depend on the machine's
        // load.
        (VP8E_SET_CPUUSED, -6),
        // Off: denoising costs 18 to 34 % of CPU time (measured at 640x480 to 1920x1080), and cameras denoise
        // themselves.
        (VP8E_SET_NOISE_SENSITIVITY, 0),
        // Skips early the blocks that hardly changed; the value is libwebrtc's for cameras.
        (VP8E_SET_STATIC_THRESHOLD, 1),
        (VP8E_SET_TOKEN_PARTITIONS, Int32(VP8_ONE_TOKENPARTITION.rawValue)),
    ]
}

extension vpx_codec_enc_cfg_t {
    /// Sets the fields that stay the same as long as the encoder is open.
    mutating func setConstants() {
        unsafe g_timebase = vpx_rational(num: 1, den: 1_000_000)
        // libvpx spins between rows when it has several threads.
        unsafe g_threads = 1
        unsafe g_lag_in_frames = 0
        unsafe g_pass = VPX_RC_ONE_PASS
        // The entropy tables of a keyframe hold until the next one, so that it does not matter if frames are left out
        // between.
        unsafe g_error_resilient = UInt32(VPX_ERROR_RESILIENT_DEFAULT)
        unsafe kf_mode = VPX_KF_DISABLED
        unsafe rc_end_usage = VPX_CBR
        unsafe rc_resize_allowed = 0
        unsafe rc_undershoot_pct = 100
        unsafe rc_overshoot_pct = 15
        // In ms of the target rate: how far the encoder may run ahead of it. With libwebrtc's 1000, 500 and 600, 1 s of
        // delay builds up after a steep fall of the rate; with these values, 375 ms.
        unsafe rc_buf_sz = 300
        unsafe rc_buf_initial_sz = 150
        unsafe rc_buf_optimal_sz = 200
    }

    private mutating func setLayers(_ count: Int) {
        unsafe ts_number_layers = UInt32(count)
        switch count {
        case 3:
            unsafe ts_periodicity = 4
            unsafe (ts_layer_id.0, ts_layer_id.1, ts_layer_id.2, ts_layer_id.3) = (0, 2, 1, 2)
            unsafe (ts_rate_decimator.0, ts_rate_decimator.1, ts_rate_decimator.2) = (4, 2, 1)
        case 2:
            unsafe ts_periodicity = 2
            unsafe (ts_layer_id.0, ts_layer_id.1) = (0, 1)
            unsafe (ts_rate_decimator.0, ts_rate_decimator.1) = (2, 1)
        default:
            unsafe ts_periodicity = 0
        }
    }

    /// Sets the size, the temporal layers, and the bit rate of each layer together with those below it.
    mutating func set(_ target: EncodingTarget) {
        let supported = VP8EncoderSettings.supportedBitrates
        let bitrate = min(max(target.bitrate, supported.lowerBound), supported.upperBound)
        let kilobits = UInt32(bitrate.kilobitsPerSecond)
        unsafe g_w = UInt32(target.dimensions.width)
        unsafe g_h = UInt32(target.dimensions.height)
        unsafe rc_target_bitrate = kilobits
        unsafe setLayers(target.temporalLayerCount)
        let shares = TemporalLayerPattern.cumulativeShares(layerCount: target.temporalLayerCount)
        unsafe ts_target_bitrate.0 = kilobits * shares[0] / 10
        if shares.count > 1 { unsafe ts_target_bitrate.1 = kilobits * shares[1] / 10 }
        if shares.count > 2 { unsafe ts_target_bitrate.2 = kilobits * shares[2] / 10 }
    }

    /// Sets the range of quantizers, and whether libvpx may leave frames out.
    mutating func set(_ range: QuantizerRange, mayDropFrames: Bool) {
        unsafe rc_min_quantizer = UInt32(range.lowest)
        unsafe rc_max_quantizer = UInt32(range.highest)
        // In percent of the optimal buffer level; frames are left out below it.
        unsafe rc_dropframe_thresh = mayDropFrames ? 30 : 0
    }
}

extension TemporalLayerPattern {
    /// The share of the bit rate for each layer together with those below it, in tenths.
    ///
    /// The shares are libwebrtc's (`simulcast_rate_allocator.cc`).
    static func cumulativeShares(layerCount: Int) -> [UInt32] {
        switch layerCount {
        case 3: [4, 6, 10]
        case 2: [6, 10]
        default: [10]
        }
    }

    /// The size of an average frame of layer 0, in bits.
    static func averageBaseFrame(_ target: EncodingTarget) -> Double {
        let share = Double(cumulativeShares(layerCount: target.temporalLayerCount)[0]) / 10
        let decimation = Double(1 << (target.temporalLayerCount - 1))
        return Double(target.bitrate.bitsPerSecond) * share * decimation / target.frameRate.framesPerSecond
    }
}

extension vpx_image_t {
    /// Describes the pixels of `buffer` in place, with the given planes; libvpx only reads them.
    init(
        _ buffer: VideoBuffer,
        _ luma: UnsafeBufferPointer<UInt8>,
        _ chromaU: UnsafeBufferPointer<UInt8>,
        _ chromaV: UnsafeBufferPointer<UInt8>
    ) {
        unsafe self.init()
        unsafe fmt = VPX_IMG_FMT_I420
        unsafe cs = VPX_CS_BT_601
        unsafe range = VPX_CR_STUDIO_RANGE
        unsafe bit_depth = 8
        unsafe bps = 12
        unsafe x_chroma_shift = 1
        unsafe y_chroma_shift = 1
        unsafe w = UInt32(buffer.dimensions.width)
        unsafe h = UInt32(buffer.dimensions.height)
        unsafe d_w = w
        unsafe d_h = h
        unsafe planes.0 = UnsafeMutablePointer(mutating: luma.baseAddress)
        unsafe planes.1 = UnsafeMutablePointer(mutating: chromaU.baseAddress)
        unsafe planes.2 = UnsafeMutablePointer(mutating: chromaV.baseAddress)
        unsafe stride.0 = Int32(buffer.lumaStride)
        unsafe stride.1 = Int32(buffer.chromaStride)
        unsafe stride.2 = Int32(buffer.chromaStride)
    }
}

extension ReferenceBuffers.Use {
    /// The use as libvpx's flags.
    var libraryFlags: vpx_enc_frame_flags_t {
        var flags = 0
        if !refersTo.contains(.last) { flags |= Int(VP8_EFLAG_NO_REF_LAST) }
        if !refersTo.contains(.golden) { flags |= Int(VP8_EFLAG_NO_REF_GF) }
        if !refersTo.contains(.alternate) { flags |= Int(VP8_EFLAG_NO_REF_ARF) }
        if !updates.contains(.last) { flags |= Int(VP8_EFLAG_NO_UPD_LAST) }
        if !updates.contains(.golden) { flags |= Int(VP8_EFLAG_NO_UPD_GF) }
        if !updates.contains(.alternate) { flags |= Int(VP8_EFLAG_NO_UPD_ARF) }
        return vpx_enc_frame_flags_t(flags)
    }
}
