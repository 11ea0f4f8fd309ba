import MediaCore
import RoomProtocol

/// How much a track matters to a subscriber beside its other tracks.
enum SubscriptionPriority: Sendable {
    case low, standard, high

    /// Reads the value of `priority` in `subscribe`; an unknown one counts as standard.
    init(reading text: String?) {
        switch text {
        case "low": self = .low
        case "high": self = .high
        default: self = .standard
        }
    }
}

/// What a subscriber wishes of a track.
struct SubscriptionWish: Hashable, Sendable {
    var width: Int?
    var height: Int?
    var frameRate: Double?
    var priority = SubscriptionPriority.standard

    /// The track's part of the subscriber's rate, compared with its other tracks.
    ///
    /// Even a track of low priority gets a fair part: a fifth beside one of high priority.
    var weight: Double {
        switch priority {
        case .low: 1
        case .standard: 2
        case .high: 4
        }
    }

    /// The wishes of a `subscribe`, which `problem(with:)` has found right.
    ///
    /// A side beyond the largest that can be coded is no bound: it is passed on as that, which every reader can read.
    init(reading request: Subscribe) {
        let largest = Dimensions.largestCodable
        width = request.width.map { min($0, largest.width) }
        height = request.height.map { min($0, largest.height) }
        frameRate = request.frameRate
        priority = SubscriptionPriority(reading: request.priority)
    }

    /// No wish.
    init() {}

    /// What is wrong with the wishes of a `subscribe`; `nil` if nothing is.
    static func problem(with request: Subscribe) -> String? {
        for side in [request.width, request.height].compactMap(\.self) where side < 1 { return "a size of \(side)" }
        guard let rate = request.frameRate, !(rate > 0 && rate <= 1000) else { return nil }
        return "a rate of \(rate); allowed are more than 0 to 1000 fps"
    }
}

/// The most that any subscriber of a track can use, collected from all of them.
struct WantedBounds {
    /// A path whose share is below this part of the best one's is so much worse that it needs temporal layers.
    private static let similarShare = 0.85
    /// With at least this part of the track's rate, two temporal layers are enough: the lower one has 60 % of the bits.
    private static let shareForTwoLayers = 0.65
    /// A wished frame rate that is at least this part of the track's is not worth temporal layers.
    private static let similarFrameRate = 0.75
    /// With at least this part of the track's frame rate, two temporal layers are enough: the lower one has half of the
    /// frames.
    private static let frameRateForTwoLayers = 0.48
    /// The steps of the rate that publishers are told, in bits per second.
    private static let rateStep = 10_000.0

    /// Whether any subscriber's path is not known yet.
    private(set) var hasNewcomer = false
    private var best: Double?
    private var isUnlimited = false
    private var least: Double?
    private var isUnknownLagging = false
    private var width: Int?
    private var height: Int?
    private var frameRate: Double?
    private var leastFrameRate: Double?
    private var isAnySize = false
    private var isAnyRate = false

    /// Adds a subscriber.
    ///
    /// - Parameters:
    ///   - wish: What it wishes.
    ///   - share: Its part of its path's rate, in bits per second; `nil` if no limit is known.
    ///   - isNew: Whether too little was sent to it for a limit to show. It lifts no bound that others need.
    ///   - isLagging: Whether temporal layers would help.
    mutating func add(_ wish: SubscriptionWish, share: Double?, isNew: Bool, isLagging: Bool) {
        if let share {
            best = max(best ?? 0, share)
            if isLagging { least = min(least ?? share, share) }
        } else if isNew {
            hasNewcomer = true
        } else {
            isUnlimited = true
            if isLagging { isUnknownLagging = true }
        }
        if let wished = wish.width, let rows = wish.height {
            width = max(width ?? 0, wished)
            height = max(height ?? 0, rows)
        } else {
            isAnySize = true
        }
        if let wished = wish.frameRate {
            frameRate = max(frameRate ?? 0, wished)
            leastFrameRate = min(leastFrameRate ?? wished, wished)
        } else {
            isAnyRate = true
        }
    }

    /// The bounds of encoding `number`, which comes at `rate` bits per second at present.
    ///
    /// `announced` is the track's frame rate without a bound.
    func layer(_ number: Int, rate: Double, announced: Double?) -> WantedLayer {
        WantedLayer(
            simulcastLayer: number,
            bitrate: isUnlimited ? nil : best.map { Int(max(1, ($0 / Self.rateStep).rounded(.down)) * Self.rateStep) },
            width: isAnySize ? nil : width,
            height: isAnySize ? nil : height,
            frameRate: isAnyRate ? nil : frameRate,
            temporalLayers: max(temporalLayers(rate: rate), temporalLayers(announced: announced))
        )
    }

    /// One layer while everybody takes everything, or the bound alone helps everybody who does not.
    private func temporalLayers(rate: Double) -> Int {
        if isUnknownLagging { return 3 }
        guard let least, isUnlimited || least < Self.similarShare * (best ?? 0) else { return 1 }
        return least >= Self.shareForTwoLayers * rate ? 2 : 3
    }

    /// One layer while the bound of the frame rate suits everybody.
    private func temporalLayers(announced: Double?) -> Int {
        guard let leastFrameRate, let announced else { return 1 }
        let highest = isAnyRate ? announced : min(announced, frameRate ?? announced)
        if leastFrameRate >= Self.similarFrameRate * highest { return 1 }
        return leastFrameRate >= Self.frameRateForTwoLayers * highest ? 2 : 3
    }
}
