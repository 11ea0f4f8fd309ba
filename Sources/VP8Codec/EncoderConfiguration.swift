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
        // A keyframe may take the bits of three average frames at most: at the track's bit rate, its size is its delay.
        (VP8E_SET_MAX_INTRA_BITRATE_PCT, 300),
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
        unsafe rc_min_quantizer = 2
        unsafe rc_max_quantizer = 56
        unsafe rc_undershoot_pct = 100
        unsafe rc_overshoot_pct = 15
        // In percent of the optimal buffer level; frames are left out below it.
        unsafe rc_dropframe_thresh = 30
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
    ///
    /// The shares are libwebrtc's (`simulcast_rate_allocator.cc`).
    mutating func setTargets(_ settings: VP8EncoderSettings) {
        let supported = VP8EncoderSettings.supportedBitrates
        let bitrate = min(max(settings.targetBitrate, supported.lowerBound), supported.upperBound)
        let kilobits = UInt32(bitrate.kilobitsPerSecond)
        unsafe g_w = UInt32(settings.dimensions.width)
        unsafe g_h = UInt32(settings.dimensions.height)
        unsafe rc_target_bitrate = kilobits
        unsafe setLayers(settings.temporalLayerCount)
        switch settings.temporalLayerCount {
        case 3:
            let (lowest, middle) = (kilobits * 4 / 10, kilobits * 6 / 10)
            unsafe (ts_target_bitrate.0, ts_target_bitrate.1, ts_target_bitrate.2) = (lowest, middle, kilobits)
        case 2:
            unsafe (ts_target_bitrate.0, ts_target_bitrate.1) = (kilobits * 6 / 10, kilobits)
        default:
            unsafe ts_target_bitrate.0 = kilobits
        }
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

extension TemporalLayerPattern.Role {
    /// The role as libvpx's flags: LAST is the latest frame of layer 0, GOLDEN the latest of the middle layer.
    ///
    /// The third buffer, ARF, is not used: it would stay the keyframe, and searching it costs time.
    func libraryFlags(layerCount: Int) -> vpx_enc_frame_flags_t {
        // With one layer, libvpx may refer to any buffer.
        guard layerCount > 1 else { return 0 }
        let isMiddleLayer = temporalLayer > 0 && isReference
        var flags = VP8_EFLAG_NO_REF_ARF | VP8_EFLAG_NO_UPD_ARF
        if !refersToMiddleLayer { flags |= VP8_EFLAG_NO_REF_GF }
        if !isMiddleLayer { flags |= VP8_EFLAG_NO_UPD_GF }
        if temporalLayer > 0 { flags |= VP8_EFLAG_NO_UPD_LAST }
        if !isReference { flags |= VP8_EFLAG_NO_UPD_ENTROPY }
        return vpx_enc_frame_flags_t(flags)
    }
}
