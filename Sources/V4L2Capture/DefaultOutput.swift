import MediaCore

/// The largest frames that a camera delivers unless more is requested.
///
/// 1920x1080 at 30 frames a second is what Twilio's Video SDK recommends as the maximum. A camera that has nothing
/// smaller would otherwise take most of a small machine's CPU for frames that no encoding uses.
enum DefaultOutput {
    /// The largest size; upright or on its side.
    static let largest = Dimensions(width: 1920, height: 1080)
    /// The highest rate.
    static let fastest = FrameRate(30)

    /// The limits for a camera that captures in `format`; `nil` in a field that was requested, or that needs no limit.
    static func limit(_ format: VideoFormat, wanted: VideoFormatRequest) -> VideoFormatRequest {
        var limits = VideoFormatRequest()
        if wanted.dimensions == nil { limits.dimensions = fitted(format.dimensions) }
        let tolerated = fastest.framesPerSecond * (1 + FormatSelection.rateTolerance)
        if wanted.frameRate == nil, format.frameRate.framesPerSecond > tolerated { limits.frameRate = fastest }
        return limits
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
