package import MediaCore

/// How an encoder is opened.
package struct VP8EncoderSettings: Hashable, Sendable {
    /// The size of the frames, and the largest that the encoder can be reconfigured to.
    ///
    /// From 1x1 to 16383x16383, and at most as many pixels as `VP8Decoder.maximumDimensions` has.
    package var dimensions: Dimensions
    /// What all temporal layers together come to; taken as the nearest rate in `supportedBitrates`.
    package var targetBitrate: Bitrate
    /// The rate at which frames will about come.
    ///
    /// Stands in where timestamps tell nothing: for the first frame, and for frames that are not later than the one
    /// before. Otherwise the encoder measures the rate by the timestamps.
    package var frameRate: FrameRate
    /// 1, 2 or 3; three let a receiver do with half or a quarter of the frames.
    package var temporalLayerCount: Int

    /// Settings for the given size, rate and layers; without a `targetBitrate`, the size's usual one.
    package init(
        dimensions: Dimensions,
        targetBitrate: Bitrate? = nil,
        frameRate: FrameRate = FrameRate(30),
        temporalLayerCount: Int = 3
    ) {
        self.dimensions = dimensions
        self.targetBitrate = targetBitrate ?? Self.defaultBitrate(for: dimensions)
        self.frameRate = frameRate
        self.temporalLayerCount = temporalLayerCount
    }

    /// Rates that libvpx holds apart by layer, in whole kbit/s, and that do not overflow its sums of bits.
    package static let supportedBitrates = Bitrate.kilobitsPerSecond(10)...Bitrate.kilobitsPerSecond(1_000_000)

    /// The rate beyond which pictures of this size hardly get better.
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

    /// Throws unless an encoder can have these settings.
    func validate(_ attempt: String) throws(VP8Error) {
        guard Self.canBeCoded(dimensions) else {
            throw VP8Error(.unsupportedSettings, attempt: attempt, detail: "a size of \(dimensions)")
        }
        guard TemporalLayerPattern.supportedLayerCounts.contains(temporalLayerCount) else {
            throw VP8Error(.unsupportedSettings, attempt: attempt, detail: "\(temporalLayerCount) temporal layers")
        }
    }

    /// Whether VP8 can code pictures of this size, and our decoder shows them.
    package static func canBeCoded(_ dimensions: Dimensions) -> Bool {
        (1...Dimensions.largestCodable.width).contains(dimensions.width)
            && (1...Dimensions.largestCodable.height).contains(dimensions.height)
            && dimensions.area <= VP8Decoder.maximumDimensions.area
    }
}
