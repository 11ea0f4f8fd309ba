import MediaCore

/// Chooses the format that a camera is set to.
enum FormatSelection {
    /// What is chosen where nothing is asked for: Twilio's default, and nearly every camera's.
    static let defaultDimensions = Dimensions(width: 640, height: 480)

    /// The rate that is chosen where none is asked for.
    static let defaultFrameRate = FrameRate(30)

    /// By how much a rate may differ from another and still count as the same.
    ///
    /// Drivers state 30 frames per second as 30000/1001 and as 10000000/333333.
    static let rateTolerance = 0.01

    /// Why there is nothing to choose.
    enum Refusal: Error, Equatable {
        /// The camera does not have the pixel format.
        case notOffered(PixelFormat)
        /// The camera has the pixel format and we cannot read it.
        case undecodable(PixelFormat)
        /// The camera has nothing that we can read.
        case nothingDecodable
    }

    private struct Candidate {
        var format: VideoFormat
        var rank: Int
    }

    /// The best of what is offered.
    ///
    /// 1. The size: the wanted one; else, where a size is asked for, the smallest that covers it (frames are cropped and
    ///    scaled down as they are converted), or the largest there is; where none is asked for, the nearest in area to
    ///    640x480.
    /// 2. The rate, of each pixel format: the lowest that reaches the wanted one, from which frames are left out evenly;
    ///    else its highest.
    /// 3. The pixel format: one that reaches the wanted rate, or else comes nearest to it; among equals the one that
    ///    costs least to convert, so that compressed ones are taken only where the others are slower.
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
        // What a rate beyond the wanted one brings is left out again, so it counts no more than the wanted one.
        let (served, otherServed) = (min(rate, wanted), min(otherRate, wanted))
        if abs(served - otherServed) > wanted * rateTolerance { return served > otherServed }
        if candidate.rank != other.rank { return candidate.rank < other.rank }
        return candidate.format.pixelFormat.rawValue < other.format.pixelFormat.rawValue
    }

    /// What a format costs to turn into I420 (a copy, a reordering, a colour conversion, a JPEG decoder, libv4lconvert).
    ///
    /// Grey comes last, because colours are worth more than time.
    private static func rank(of offer: CaptureFormat) -> Int {
        if offer.decoding == .libv4l { return ranking.count }
        return ranking.firstIndex(of: offer.pixelFormat) ?? ranking.count + 1
    }

    private static let ranking: [PixelFormat] = [
        .i420, .yv12, .nv12, .nv21, .yuyv, .uyvy, .bgr24, .rgb24, .mjpeg, .jpeg,
    ]
}

extension CaptureFormat.Decoding {
    /// Whether a picture of `dimensions` can become ours.
    ///
    /// libv4lconvert computes the size of a chroma plane as a quarter of the picture's: of odd sizes it makes rubbish.
    func canDecode(_ dimensions: Dimensions) -> Bool {
        switch self {
        case .direct: true
        case .libv4l: dimensions.width % 2 == 0 && dimensions.height % 2 == 0
        case .unsupported: false
        }
    }
}

extension PixelFormat {
    /// JPEG pictures by V4L2's other name.
    static let jpeg = PixelFormat(rawValue: 0x4745_504A)

    /// What is handed to the converter as it lies in the driver's buffer.
    static let readDirectly: Set<PixelFormat> = [
        .i420, .yv12, .nv12, .nv21, .yuyv, .uyvy, .mjpeg, .jpeg, .grey, .rgb24, .bgr24,
    ]

    /// The name under which a converter knows the format: `MJPG` for both names of JPEG pictures.
    var converterFormat: PixelFormat { self == .jpeg ? .mjpeg : self }
}
