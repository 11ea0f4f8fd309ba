package import MediaCore

/// The settings for opening an encoder.
package struct VP8EncoderSettings: Hashable, Sendable {
    /// The size of the first frames, and the largest that a later target may have.
    ///
    /// From 1x1 to 16383x16383, and at most as many pixels as `VP8Decoder.maximumDimensions` has.
    package var dimensions: Dimensions
    /// The bit rate of all temporal layers together; the encoder uses the nearest rate in `supportedBitrates`.
    package var targetBitrate: Bitrate
    /// The approximate rate of the frames.
    ///
    /// It is used if timestamps give no rate: for the first frame, and for frames that are not later than the one
    /// before. Otherwise the encoder measures the rate by the timestamps.
    package var frameRate: FrameRate
    /// The number of temporal layers: 1, 2 or 3; with three, a receiver can use only half or a quarter of the frames.
    package var temporalLayerCount: Int

    /// Creates settings for the given size, rate and layers; the default `targetBitrate` is the usual one of the size.
    package init(
        dimensions: Dimensions,
        targetBitrate: Bitrate? = nil,
        frameRate: FrameRate = FrameRate(30),
        temporalLayerCount: Int = 1
    ) {
        self.dimensions = dimensions
        self.targetBitrate = targetBitrate ?? Self.defaultBitrate(for: dimensions)
        self.frameRate = frameRate
        self.temporalLayerCount = temporalLayerCount
    }

    /// The rates for which libvpx can separate the layers, in whole kbit/s, without overflow in its sums of bits.
    package static let supportedBitrates = Bitrate.kilobitsPerSecond(10)...Bitrate.kilobitsPerSecond(1_000_000)

    /// The rate above which pictures of this size hardly improve.
    ///
    /// Source: libwebrtc, `GetMaxDefaultVideoBitrateKbps` in `video/config/encoder_stream_factory.cc`.
    package static func defaultBitrate(for dimensions: Dimensions) -> Bitrate {
        switch dimensions.area {
        case ...(320 * 240): .kilobitsPerSecond(600)
        case ...(640 * 480): .kilobitsPerSecond(1700)
        case ...(960 * 540): .kilobitsPerSecond(2000)
        default: .kilobitsPerSecond(2500)
        }
    }

    /// The target of the first frames.
    package var target: EncodingTarget {
        EncodingTarget(
            dimensions: dimensions,
            bitrate: targetBitrate,
            frameRate: frameRate,
            temporalLayerCount: temporalLayerCount
        )
    }

    /// Throws an error unless an encoder can use these settings.
    func validate(_ attempt: String) throws(VP8Error) {
        try Self.validate(dimensions, temporalLayerCount, attempt)
    }

    /// Throws an error unless an encoder can make frames of this size in so many temporal layers.
    static func validate(_ dimensions: Dimensions, _ temporalLayerCount: Int, _ attempt: String) throws(VP8Error) {
        guard canBeCoded(dimensions) else {
            throw VP8Error(.unsupportedSettings, attempt: attempt, detail: "a size of \(dimensions)")
        }
        guard TemporalLayerPattern.supportedLayerCounts.contains(temporalLayerCount) else {
            throw VP8Error(.unsupportedSettings, attempt: attempt, detail: "\(temporalLayerCount) temporal layers")
        }
    }

    /// Whether VP8 can code pictures of this size and our decoder accepts them.
    private static func canBeCoded(_ dimensions: Dimensions) -> Bool {
        dimensions.isCodable && dimensions.area <= VP8Decoder.maximumDimensions.area
    }
}
