public import MediaCore

/// A size that a camera offers, as its driver states it.
public enum CaptureFrameSize: Hashable, Sendable {
    /// One size, and the frame intervals that it allows.
    case discrete(Dimensions, intervals: [CaptureFrameInterval])
    /// All sizes from `smallest` to `largest` in steps of `step`; a step of 1x1 means any size between.
    case range(smallest: Dimensions, largest: Dimensions, step: Dimensions)
}

/// A frame interval that a camera offers, as its driver states it, expressed as a rate.
public enum CaptureFrameInterval: Hashable, Sendable {
    /// One interval.
    case discrete(FrameRate)
    /// All intervals between those of two rates.
    ///
    /// `step` is the step from one interval to the next, as a rate (a step of 1/100 s is 100 frames per second). `nil`
    /// means any interval between.
    case range(slowest: FrameRate, fastest: FrameRate, step: FrameRate?)
}

/// A pixel format that a camera offers, with its sizes and rates as the driver states them.
public struct CaptureFormat: Hashable, Sendable {
    /// How pictures of a format are converted into ours.
    public enum Decoding: Hashable, Sendable {
        /// They are read directly from the driver's buffer.
        case direct
        /// libv4lconvert decodes them first, at a higher cost.
        case libv4l
        /// They cannot be converted.
        case unsupported
    }

    /// The pixel format.
    public var pixelFormat: PixelFormat
    /// The driver's name for it.
    public var name: String
    /// Whether the driver calls it compressed.
    public var isCompressed: Bool
    /// How pictures in this format are converted into ours.
    public var decoding: Decoding
    /// The sizes, in the driver's order, with ranges kept; empty if the driver lists none.
    public var sizes: [CaptureFrameSize]
    /// Sizes and rates one by one; a range is listed as the standard values within it and both its ends.
    ///
    /// A driver that lists no sizes is asked for the standard ones with `VIDIOC_TRY_FMT`. If a driver lists no rates,
    /// the rate that it is set to counts as offered, or else 30.
    public var formats: [VideoFormat]
}

extension [CaptureFormat] {
    /// The formats that we can read, as `sortedByDimensions` orders them.
    var supportedFormats: [VideoFormat] {
        flatMap { offer in
            offer.formats.filter { offer.decoding.canDecode($0.dimensions) }
        }.sortedByDimensions()
    }
}

extension [VideoFormat] {
    /// The formats without repetitions, by increasing area, then width, rate and name.
    func sortedByDimensions() -> [VideoFormat] {
        Set(self).sorted { lhs, rhs in
            if lhs.dimensions.area != rhs.dimensions.area { return lhs.dimensions.area < rhs.dimensions.area }
            if lhs.dimensions.width != rhs.dimensions.width { return lhs.dimensions.width < rhs.dimensions.width }
            if lhs.frameRate != rhs.frameRate { return lhs.frameRate < rhs.frameRate }
            return lhs.pixelFormat.description < rhs.pixelFormat.description
        }
    }
}
