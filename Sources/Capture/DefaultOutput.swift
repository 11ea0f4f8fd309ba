package import MediaCore

/// The largest frames that a camera or a screen delivers unless more is requested.
///
/// 1920x1080 at 30 frames a second is what Twilio's Video SDK recommends as the maximum. A source that has nothing
/// smaller would otherwise take most of a small machine's CPU for frames that no encoding uses. Clips,
/// and frames that an application makes, are not limited: somebody has chosen their size and rate.
package enum DefaultOutput {
    /// The largest size; upright or on its side.
    package static let largest = Dimensions(width: 1920, height: 1080)
    /// The highest rate.
    package static let fastest = FrameRate(30)

    /// A rate that is higher by this fraction is no other one: what cameras call 30 is not always 30.
    private static let rateTolerance = 0.01

    /// The limits for a source that captures in `format`; `nil` in a field that was requested, or that needs no limit.
    package static func limit(_ format: VideoFormat, wanted: VideoFormatRequest) -> VideoFormatRequest {
        var limits = VideoFormatRequest()
        if wanted.dimensions == nil { limits.dimensions = fitted(format.dimensions) }
        let tolerated = fastest.framesPerSecond * (1 + rateTolerance)
        if wanted.frameRate == nil, format.frameRate.framesPerSecond > tolerated { limits.frameRate = fastest }
        return limits
    }

    /// What is wrong, and what to do about it, for a source that captures in `format` and delivers less.
    package static func explanation(of limits: VideoFormatRequest, _ format: VideoFormat) -> String {
        let size = limits.dimensions ?? format.dimensions
        let rate = limits.frameRate ?? format.frameRate
        return "it captures \(format), of which \(size) at \(rate) frames per second are delivered; request a size and "
            + "a rate to have more"
    }

    /// The largest size of the same shape within the limit; `nil` if `size` is within it.
    private static func fitted(_ size: Dimensions) -> Dimensions? {
        let isUpright = size.height > size.width
        let bounds = isUpright ? Dimensions(width: largest.height, height: largest.width) : largest
        guard size.width > bounds.width || size.height > bounds.height else { return nil }
        let scale = min(Double(bounds.width) / Double(size.width), Double(bounds.height) / Double(size.height))
        // Sides are even, so that chroma has whole bytes; the tolerance is for sides that come out whole.
        let even = { (side: Int) in max(2, Int(Double(side) * scale + 0.001) & ~1) }
        return Dimensions(width: even(size.width), height: even(size.height))
    }
}
