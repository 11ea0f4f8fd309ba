package import MediaCore
package import RoomProtocol

/// The highest rate and size of an encoding that any subscriber can use; what is `nil` has no limit.
package struct LayerBounds: Hashable, Sendable {
    /// The highest useful bitrate.
    package var bitrate: Bitrate?
    /// The largest size at which the picture is shown; one that covers it is large enough (`Dimensions.covers`).
    package var dimensions: Dimensions?
    /// The highest useful frame rate.
    package var frameRate: FrameRate?
    /// The number of temporal layers, 1 to 3, that subscribers make use of.
    package var temporalLayers: Int?

    /// Bounds with the given values.
    package init(
        bitrate: Bitrate? = nil,
        dimensions: Dimensions? = nil,
        frameRate: FrameRate? = nil,
        temporalLayers: Int? = nil
    ) {
        self.bitrate = bitrate
        self.dimensions = dimensions
        self.frameRate = frameRate
        self.temporalLayers = temporalLayers
    }

    /// The bounds that the server states in `layer`, which may have any content; a value that makes no sense is no
    /// bound.
    package init(_ layer: WantedLayer) {
        bitrate = layer.bitrate.flatMap { $0 > 0 ? Bitrate(bitsPerSecond: min($0, Self.highestBitrate)) : nil }
        let largest = Dimensions.largestCodable
        let width = layer.width.flatMap { $0 > 0 ? min($0, largest.width) : nil }
        let height = layer.height.flatMap { $0 > 0 ? min($0, largest.height) : nil }
        if width != nil || height != nil {
            dimensions = Dimensions(width: width ?? largest.width, height: height ?? largest.height)
        }
        if let rate = layer.frameRate, rate.isFinite, rate > 0 {
            let milliframes = min(max(rate, Self.lowestFrameRate), Self.highestFrameRate) * 1000
            frameRate = FrameRate(numerator: Int(milliframes.rounded()), denominator: 1000)
        }
        temporalLayers = layer.temporalLayers.flatMap { $0 > 0 ? min($0, Self.mostTemporalLayers) : nil }
    }

    /// The bounds of the same pictures, turned by a quarter.
    package var transposed: LayerBounds {
        var bounds = self
        bounds.dimensions = dimensions?.transposed
        return bounds
    }

    /// Higher bounds than 10 Gbit/s limit nothing.
    private static let highestBitrate = 10_000_000_000
    private static let lowestFrameRate = 0.1
    private static let highestFrameRate = 1000.0
    /// What the encoder can make.
    private static let mostTemporalLayers = 3
}
