/// A setting of an `UplinkController`, by its name in logs.
struct SettingsField: Sendable {
    typealias Settings = UplinkController.Settings

    private enum Path: Sendable {
        case real(any WritableKeyPath<Settings, Double> & Sendable)
        case whole(any WritableKeyPath<Settings, Int64> & Sendable)
        case count(any WritableKeyPath<Settings, Int> & Sendable)
    }

    /// The setting's name.
    let name: String
    private let path: Path

    /// Larger numbers make no sense in any setting, and could overflow.
    private static let largest: Int64 = 1_000_000_000

    init(_ name: String, _ path: any WritableKeyPath<Settings, Double> & Sendable) {
        self.name = name
        self.path = .real(path)
    }

    init(_ name: String, _ path: any WritableKeyPath<Settings, Int64> & Sendable) {
        self.name = name
        self.path = .whole(path)
    }

    init(_ name: String, _ path: any WritableKeyPath<Settings, Int> & Sendable) {
        self.name = name
        self.path = .count(path)
    }

    /// The value in `settings`, exactly.
    func text(_ settings: Settings) -> String {
        switch path {
        case .real(let path): "\(settings[keyPath: path])"
        case .whole(let path): "\(settings[keyPath: path])"
        case .count(let path): "\(settings[keyPath: path])"
        }
    }

    /// Sets the value that `text` states; returns whether it is one.
    func read(_ text: some StringProtocol, into settings: inout Settings) -> Bool {
        switch path {
        case .real(let path):
            guard let value = Double(text), value >= 0, value <= Double(Self.largest) else { return false }
            settings[keyPath: path] = value
        case .whole(let path):
            guard let value = Int64(text), value >= 0, value <= Self.largest else { return false }
            settings[keyPath: path] = value
        case .count(let path):
            guard let value = Int(text), value >= 0, value <= Self.largest else { return false }
            settings[keyPath: path] = value
        }
        return true
    }
}

extension UplinkController.Settings {
    /// Sets the setting that logs call `name`; returns whether there is one and `text` is a value of it.
    package mutating func set(_ name: String, to text: String) -> Bool {
        guard let field = Self.fields.first(where: { $0.name == name }) else { return false }
        return field.read(text, into: &self)
    }

    /// All settings, in the order in which logs state them.
    static let fields: [SettingsField] =
        pathFields + rateFields + gateFields + layerFields + [
            SettingsField("keyframeInterval", \.keyframeInterval),
            SettingsField("unacknowledgedAfter", \.unacknowledgedAfter),
            SettingsField("outageAfter", \.outageAfter),
            SettingsField("outageProbe", \.outageProbe),
            SettingsField("keyframeTime", \.keyframeTime),
            SettingsField("frameOverhead", \.frameOverhead),
            SettingsField("lowestLayerPart", \.lowestLayerPart),
            SettingsField("layerMargin", \.layerMargin),
        ]

    private static let pathFields: [SettingsField] = [
        SettingsField("path.baseWindow", \.path.baseWindow),
        SettingsField("path.referenceWindow", \.path.referenceWindow),
        SettingsField("path.roundTripWindow", \.path.roundTripWindow),
        SettingsField("path.standingWindow", \.path.standingWindow),
        SettingsField("path.rateWindow", \.path.rateWindow),
        SettingsField("path.longestGap", \.path.longestGap),
        SettingsField("path.heldSilence", \.path.heldSilence),
        SettingsField("path.stall", \.path.stall),
        SettingsField("path.slowGap", \.path.slowGap),
        SettingsField("path.shortestGap", \.path.shortestGap),
        SettingsField("path.slowMargin", \.path.slowMargin),
        SettingsField("path.thinRate", \.path.thinRate),
        SettingsField("path.thinWindow", \.path.thinWindow),
        SettingsField("path.thinMargin", \.path.thinMargin),
        SettingsField("path.longestThinning", \.path.longestThinning),
        SettingsField("path.thinningQueue", \.path.thinningQueue),
        SettingsField("path.headQueue", \.path.headQueue),
        SettingsField("path.shortestThinning", \.path.shortestThinning),
        SettingsField("path.usualLateness", \.path.usualLateness),
        SettingsField("path.longestLateness", \.path.longestLateness),
        SettingsField("path.latenessWindow", \.path.latenessWindow),
        SettingsField("path.loneBytes", \.path.loneBytes),
        SettingsField("path.shortestTrain", \.path.shortestTrain),
    ]

    private static let rateFields: [SettingsField] = [
        SettingsField("rate.lowestRate", \.rate.lowestRate),
        SettingsField("rate.highestRate", \.rate.highestRate),
        SettingsField("rate.startRate", \.rate.startRate),
        SettingsField("rate.targetQueue", \.rate.targetQueue),
        SettingsField("rate.lowQueue", \.rate.lowQueue),
        SettingsField("rate.cutFactor", \.rate.cutFactor),
        SettingsField("rate.persistence", \.rate.persistence),
        SettingsField("rate.additiveIncrease", \.rate.additiveIncrease),
        SettingsField("rate.thinIncrease", \.rate.thinIncrease),
        SettingsField("rate.patience", \.rate.patience),
        SettingsField("rate.rampTime", \.rate.rampTime),
        SettingsField("rate.multiplicativeIncrease", \.rate.multiplicativeIncrease),
        SettingsField("rate.recoveryIncrease", \.rate.recoveryIncrease),
        SettingsField("rate.pacedRoundTrip", \.rate.pacedRoundTrip),
        SettingsField("rate.recoveryLimit", \.rate.recoveryLimit),
        SettingsField("rate.memoryDecay", \.rate.memoryDecay),
        SettingsField("rate.frameInterval", \.rate.frameInterval),
        SettingsField("rate.frameGain", \.rate.frameGain),
        SettingsField("rate.frameLimit", \.rate.frameLimit),
        SettingsField("rate.startIncrease", \.rate.startIncrease),
        SettingsField("rate.trainIncrease", \.rate.trainIncrease),
        SettingsField("rate.trainMargin", \.rate.trainMargin),
        SettingsField("rate.trainLimit", \.rate.trainLimit),
        SettingsField("rate.trainWindow", \.rate.trainWindow),
        SettingsField("rate.jitterGain", \.rate.jitterGain),
        SettingsField("rate.jitterFloor", \.rate.jitterFloor),
        SettingsField("rate.jitterLimit", \.rate.jitterLimit),
        SettingsField("rate.loneShare", \.rate.loneShare),
        SettingsField("rate.loneFactor", \.rate.loneFactor),
        SettingsField("rate.competing.standingQueue", \.rate.competing.standingQueue),
        SettingsField("rate.competing.longestQueue", \.rate.competing.longestQueue),
        SettingsField("rate.competing.patience", \.rate.competing.patience),
        SettingsField("rate.competing.firstDelivery", \.rate.competing.firstDelivery),
        SettingsField("rate.competing.lastDelivery", \.rate.competing.lastDelivery),
        SettingsField("rate.competing.yielded", \.rate.competing.yielded),
        SettingsField("rate.competing.collapsed", \.rate.competing.collapsed),
        SettingsField("rate.competing.deliveryMemory", \.rate.competing.deliveryMemory),
        SettingsField("rate.competing.part", \.rate.competing.part),
        SettingsField("rate.competing.increase", \.rate.competing.increase),
        SettingsField("rate.competing.growth", \.rate.competing.growth),
        SettingsField("rate.competing.growthPatience", \.rate.competing.growthPatience),
        SettingsField("rate.competing.leastSpread", \.rate.competing.leastSpread),
        SettingsField("rate.competing.pause", \.rate.competing.pause),
    ]

    private static let gateFields: [SettingsField] = [
        SettingsField("gate.longestSilence", \.gate.longestSilence),
        SettingsField("gate.slack", \.gate.slack),
        SettingsField("gate.agedPart", \.gate.agedPart),
        SettingsField("gate.agedClosing", \.gate.agedClosing),
        SettingsField("gate.recency", \.gate.recency),
        SettingsField("gate.silentBytes", \.gate.silentBytes),
        SettingsField("gate.smallestFrame", \.gate.smallestFrame),
        SettingsField("gate.mostSkips", \.gate.mostSkips),
        SettingsField("gate.assumedRoundTrip", \.gate.assumedRoundTrip),
    ]

    private static let layerFields: [SettingsField] = [
        SettingsField("layers.patience", \.layers.patience),
        SettingsField("layers.longestPatience", \.layers.longestPatience),
        SettingsField("layers.trialTime", \.layers.trialTime),
        SettingsField("layers.failureTime", \.layers.failureTime),
        SettingsField("layers.spare", \.layers.spare),
        SettingsField("layers.leastSpare", \.layers.leastSpare),
    ]
}
