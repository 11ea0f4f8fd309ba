public import MediaCore

/// A size that a camera offers, as its driver states it.
public enum CaptureFrameSize: Hashable, Sendable {
    /// One size, and the intervals between frames at it.
    case discrete(Dimensions, intervals: [CaptureFrameInterval])
    /// All sizes from `smallest` to `largest` in steps of `step`; a step of 1x1 for any size between.
    case range(smallest: Dimensions, largest: Dimensions, step: Dimensions)
}

/// An interval between frames that a camera offers, as its driver states it, given as the rate that it makes.
public enum CaptureFrameInterval: Hashable, Sendable {
    /// One interval.
    case discrete(FrameRate)
    /// All intervals between those of two rates.
    ///
    /// `step` is the step from one interval to the next, as a rate (a step of 1/100 s is 100 frames per second); `nil`
    /// for any interval between.
    case range(slowest: FrameRate, fastest: FrameRate, step: FrameRate?)
}

/// A pixel format that a camera offers, with its sizes and rates as the driver states them.
public struct CaptureFormat: Hashable, Sendable {
    /// How pictures of a format become ours.
    public enum Decoding: Hashable, Sendable {
        /// Read where they lie.
        case direct
        /// By libv4lconvert first, at a higher cost.
        case libv4l
        /// Not at all.
        case unsupported
    }

    /// The pixel format.
    public var pixelFormat: PixelFormat
    /// The driver's words for it.
    public var name: String
    /// Whether the driver calls it compressed.
    public var isCompressed: Bool
    /// How pictures in it become ours.
    public var decoding: Decoding
    /// The sizes, in the driver's order, with ranges kept; empty if the driver lists none.
    public var sizes: [CaptureFrameSize]
    /// Sizes and rates one by one: of ranges, the standard ones within, and both ends.
    ///
    /// A driver that lists no sizes is asked for the standard ones by `VIDIOC_TRY_FMT`; one that lists no rates is taken
    /// to do the rate that it is set to, or 30.
    public var formats: [VideoFormat]
}

extension [VideoFormat] {
    /// The formats, each once, by increasing area, then width, rate and name.
    func sortedByDimensions() -> [VideoFormat] {
        Set(self).sorted { lhs, rhs in
            if lhs.dimensions.area != rhs.dimensions.area { return lhs.dimensions.area < rhs.dimensions.area }
            if lhs.dimensions.width != rhs.dimensions.width { return lhs.dimensions.width < rhs.dimensions.width }
            if lhs.frameRate != rhs.frameRate { return lhs.frameRate < rhs.frameRate }
            return lhs.pixelFormat.description < rhs.pixelFormat.description
        }
    }
}
