import MediaCore

/// Chooses the format that a camera is set to.
enum FormatSelection {
    /// The size if none is requested: Twilio's default, which nearly every camera has.
    static let defaultDimensions = Dimensions(width: 640, height: 480)

    /// The rate if none is requested.
    static let defaultFrameRate = FrameRate(30)

    /// How far two rates may differ and still count as the same.
    ///
    /// Drivers state 30 frames per second as 30000/1001 and as 10000000/333333.
    static let rateTolerance = 0.01

    /// Why no format can be chosen.
    enum Refusal: Error, Equatable {
        /// The camera does not have the pixel format.
        case notOffered(PixelFormat)
        /// The camera has the pixel format, but we cannot read it.
        case undecodable(PixelFormat)
        /// The camera has no format that we can read.
        case nothingDecodable
    }

    private struct Candidate {
        var format: VideoFormat
        var rank: Int
    }

    /// Chooses the best of the offered formats.
    ///
    /// 1. The size is the requested one. If the camera lacks it, the smallest size that covers it is chosen (frames are
    ///    cropped and scaled down as they are converted), or else the largest size. If no size is requested, the size
    ///    nearest in area to 640x480 is chosen.
    /// 2. The rate of each pixel format is the lowest that reaches the wanted one; frames are left out of it evenly. If
    ///    none reaches it, the highest rate is chosen.
    /// 3. The pixel format is one that reaches the wanted rate, or else comes nearest to it. Among equals, the one that
    ///    costs least to convert wins. Compressed formats are therefore used only if the others are slower.
    static func choose(
        from offered: [CaptureFormat],
        for request: VideoFormatRequest
    ) throws(Refusal) -> VideoFormat {
        let candidates = try candidates(from: offered, pixelFormat: request.pixelFormat)
        guard let size = bestSize(among: candidates.map(\.format.dimensions), for: request.dimensions) else {
            throw .nothingDecodable
        }
        let wantedRate = (request.frameRate ?? defaultFrameRate).framesPerSecond
        var best: Candidate?
        for (_, sameFormat) in Dictionary(
            grouping: candidates.filter { $0.format.dimensions == size },
            by: \.format.pixelFormat
        ) {
            guard let candidate = bestRate(among: sameFormat, wanted: wantedRate) else { continue }
            if best.map({ isBetter(candidate, than: $0, wanted: wantedRate) }) ?? true { best = candidate }
        }
        guard let best else { throw .nothingDecodable }
        return best.format
    }

    private static func candidates(
        from offered: [CaptureFormat],
        pixelFormat: PixelFormat?
    ) throws(Refusal) -> [Candidate] {
        var fitting = offered
        if let pixelFormat {
            fitting = offered.filter { $0.pixelFormat == pixelFormat }
            guard !fitting.isEmpty else { throw .notOffered(pixelFormat) }
        }
        let candidates = fitting.flatMap { offer in
            offer.formats.filter { offer.decoding.canDecode($0.dimensions) }
                .map { Candidate(format: $0, rank: rank(of: offer)) }
        }
        guard candidates.isEmpty else { return candidates }
        throw pixelFormat.map { .undecodable($0) } ?? .nothingDecodable
    }

    private static func bestSize(among sizes: [Dimensions], for wanted: Dimensions?) -> Dimensions? {
        guard let wanted else {
            let target = defaultDimensions.area
            return sizes.min { lhs, rhs in
                let (left, right) = (abs(lhs.area - target), abs(rhs.area - target))
                if left != right { return left < right }
                if lhs == defaultDimensions || rhs == defaultDimensions { return lhs == defaultDimensions }
                return (lhs.area, lhs.width) < (rhs.area, rhs.width)
            }
        }
        let holding = sizes.filter { $0.width >= wanted.width && $0.height >= wanted.height }
        return holding.min { ($0.area, $0.width) < ($1.area, $1.width) }
            ?? sizes.max { ($0.area, $0.width) < ($1.area, $1.width) }
    }

    private static func bestRate(among candidates: [Candidate], wanted: Double) -> Candidate? {
        let reaching = candidates.filter { $0.format.frameRate.framesPerSecond >= wanted * (1 - rateTolerance) }
        return reaching.min { $0.format.frameRate < $1.format.frameRate }
            ?? candidates.max { $0.format.frameRate < $1.format.frameRate }
    }

    private static func isBetter(_ candidate: Candidate, than other: Candidate, wanted: Double) -> Bool {
        let rate = candidate.format.frameRate.framesPerSecond
        let otherRate = other.format.frameRate.framesPerSecond
        // Frames above the wanted rate are left out again, so a higher rate counts as no more than the wanted one.
        let (served, otherServed) = (min(rate, wanted), min(otherRate, wanted))
        if abs(served - otherServed) > wanted * rateTolerance { return served > otherServed }
        if candidate.rank != other.rank { return candidate.rank < other.rank }
        return candidate.format.pixelFormat.rawValue < other.format.pixelFormat.rawValue
    }

    /// Ranks a format by the cost of its conversion into I420.
    ///
    /// The ranks are: a copy, a reordering, a colour conversion, a JPEG decoder, libv4lconvert. Grey comes last,
    /// because colours matter more than time.
    private static func rank(of offer: CaptureFormat) -> Int {
        if offer.decoding == .libv4l { return ranking.count }
        return ranking.firstIndex(of: offer.pixelFormat) ?? ranking.count + 1
    }

    private static let ranking: [PixelFormat] = [
        .i420, .yv12, .nv12, .nv21, .i422, .nv16, .yuyv, .uyvy, .yvyu, .bgr24, .rgb24, .mjpeg, .jpeg,
    ]
}

extension CaptureFormat.Decoding {
    /// Whether a picture of `dimensions` can be converted.
    ///
    /// libv4lconvert computes the size of a chroma plane as a quarter of the picture's, so it produces garbage for odd
    /// sizes.
    func canDecode(_ dimensions: Dimensions) -> Bool {
        switch self {
        case .direct: true
        case .libv4l: dimensions.width % 2 == 0 && dimensions.height % 2 == 0
        case .unsupported: false
        }
    }
}

extension PixelFormat {
    /// V4L2's other name for JPEG pictures.
    static let jpeg = PixelFormat(rawValue: 0x4745_504A)

    /// The formats that the converter reads directly from the driver's buffer.
    static let readDirectly: Set<PixelFormat> = [
        .i420, .yv12, .nv12, .nv21, .i422, .nv16, .yuyv, .uyvy, .yvyu, .mjpeg, .jpeg, .grey, .rgb24, .bgr24,
    ]

    /// The converter's name for the format: `MJPG` for both names of JPEG pictures.
    var converterFormat: PixelFormat { self == .jpeg ? .mjpeg : self }
}
