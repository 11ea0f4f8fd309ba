package import MediaCore

/// Chooses the size and the frame rate of one encoding from its bitrate, its quantizer, the CPU and what receivers
/// want.
///
/// It has three opinions on the size. The bitrate has the first one, by libwebrtc's table of sizes (`SizeBitrates`).
/// The quantizer has the second: a picture that is fine (at most 29 of 127) need not shrink, and one that stays coarse
/// (above 95) must shrink although the table allows the size. The CPU has the third. A new size costs a keyframe, so
/// they are rare: one in 2 seconds, except after a cut of the bitrate by 40 % or more, and never more than 6 in a
/// minute.
///
/// A pure value. All arithmetic is IEEE addition, multiplication, division and square root, which every machine rounds
/// alike.
package struct DegradationLadder: Hashable, Sendable {
    /// Why the size and the frame rate are what they are: what changed them last.
    package enum Reason: String, Hashable, Sendable, CaseIterable {
        /// Nothing yet: they suit the bitrate at the start.
        case start
        /// The bitrate fell by 40 % or more at once.
        case bitrateCut
        /// The bitrate has been too low for the size before.
        case bitrateLow
        /// The bitrate has been high enough for a larger size.
        case bitrateHigh
        /// The pictures were too coarse.
        case quantizerHigh
        /// The pictures were fine, and larger ones will be.
        case quantizerLow
        /// Encoding took too long.
        case cpuOverused
        /// Encoding left time.
        case cpuUnderused
        /// The receivers' bounds changed.
        case bounds
        /// The application changed the preference.
        case preference
    }

    /// The size and the frame rate to encode.
    package struct Step: Hashable, Sendable {
        /// The size; both sides even, and none longer than the captured one.
        package var dimensions: Dimensions
        /// The frame rate.
        package var frameRate: FrameRate
        /// The reason why they are lower than those of the captured pictures.
        package var limitation: QualityLimitation.Reason
        /// The reason for their last change.
        package var reason: Reason
        /// The part of the bitrate that is expected to be left; less than 1 for the first frame after a cut alone.
        package var fallsTo = 1.0
    }

    /// The settings; times in microseconds.
    package struct Settings: Hashable, Sendable {
        /// A larger size needs this many times the bitrate of the table.
        package var marginUp = 1.2
        /// A size is given up below this part of the bitrate of the table; so ±15 % of noise never changes the size.
        package var marginDown = 0.85
        /// The part of an encoding's highest bitrate that suffices for its full size; packet headers take some of the
        /// rest.
        package var capShare = 0.9
        /// A low highest bitrate scales the table's bitrates down to this part of them at most.
        package var leastTableShare = 0.3
        /// At the start, when nothing is known of the path, a size may need this many times the bitrate.
        package var startMargin = 1.6
        /// A fall to this part of the highest bitrate of the last `cutWindow` is answered at once.
        package var cut = 0.6
        /// After a cut, the size is chosen for the bitrate times what is left of it, but at least times this.
        package var deepestCut = 0.5
        /// See `cut`.
        package var cutWindow: Int64 = 2_000_000
        /// How long the bitrate must be too low for a size.
        package var timeDown: Int64 = 1_000_000
        /// How long the bitrate must be high enough for a larger size; half of it if it is twice as high as needed.
        package var timeUp: Int64 = 5_000_000
        /// The same after steps up that had to be taken back, each of which doubles it.
        package var longestTimeUp: Int64 = 60_000_000
        /// A step up waits, for half of `timeUp` at most, while a still larger size has been justified for this time.
        package var risingTime: Int64 = 100_000
        /// A step up has failed if one down follows within this time.
        package var trialTime: Int64 = 20_000_000
        /// After a step up that failed, the wait becomes at most this many times as long as what justified it had
        /// lasted.
        package var failureMargin = 1.1
        /// After this time without a step down, one failure is forgotten.
        package var forgivingTime: Int64 = 120_000_000
        /// `timeUp` at the start, until the first step down.
        package var startTimeUp: Int64 = 500_000
        /// How long the start lasts.
        package var startTime: Int64 = 10_000_000
        /// The shortest time between two changes of the size, except after a cut.
        package var changeInterval: Int64 = 2_000_000
        /// The quantizer up to which a picture is fine (libwebrtc's low threshold for VP8).
        package var fineQuantizer: UInt8 = 29
        /// The quantizer above which a picture is too coarse (libwebrtc's high threshold for VP8).
        package var coarseQuantizer: UInt8 = 95
        /// A larger size is justified by the quantizer alone if its step size may be expected to be this part of a fine
        /// one; so ±15 % of noise in the bitrate does not change the size.
        package var fineShare = 0.7
        /// The part of the table's bitrate that such a size needs all the same: its keyframe must be of use.
        package var marginFine = 0.5
        /// The quantizer that a larger picture may be expected to have.
        package var expectedQuantizer: UInt8 = 80
        /// The time constant of the quantizer's average (libwebrtc's for a high one: 2 s).
        package var quantizerTime = 2_000_000.0

        package init() {}
    }

    let settings: Settings
    let largest: Dimensions
    let frameRate: FrameRate
    private(set) var preference: DegradationPreference
    /// The rung without any limitation.
    let full: LadderRungs.Rung

    /// The part of the table's bitrates that suffices.
    private var tableShare = 1.0
    /// The highest bitrate of the encoding in the table's bitrates.
    private(set) var highestRate = 0.0

    /// The rungs within the bounds.
    var rungs: LadderRungs
    var bounds = Bounds()
    /// Whether `rungs` is not yet made for `bounds`, because the size may not change now.
    var boundsAreNew = false
    /// Whether `rungs` is not yet made for `preference`, for the same reason.
    var preferenceIsNew = false
    /// The index of the rung that the bitrate and the quantizer allow.
    var bandwidthRung = 0
    /// The rung that is justified while the size may not change yet; `nil` if there is none.
    ///
    /// Its frame rate comes at once, because that takes no keyframe.
    var awaitedRung: LadderRungs.Rung?
    /// The pixels in a second that the CPU allows after each step that was taken because of it; the last one holds.
    var cpuLimits: [Double] = []
    /// How many such steps there are to be.
    var wantedCPUSteps = 0
    var reason = Reason.start
    /// The part of the bitrate that the cut which the present update answers is expected to leave; 1 without one.
    var fallsTo = 1.0

    private var isStarted = false
    /// How many times the bitrate a size may need at the start.
    private(set) var startMargin: Double
    var startedAt: Int64 = 0
    private var lastUpdate: Int64 = 0
    var lastChange: Int64?
    var lastDown: Int64?
    var lastUp: Int64?
    /// What justified the last step up.
    var upEvidence = RateHistory.Evidence()
    /// When the last failed step up was forgotten.
    var lastForgiven: Int64 = 0
    /// How long the bitrate must be high enough for a larger size now.
    var timeUp: Int64
    var sizeChanges = ChangeBudget()
    /// Since when a larger size has been justified; `nil` if none is.
    var justifiedSince: Int64?

    var history: RateHistory
    var quantizer: QuantizerAverage

    struct Bounds: Hashable, Sendable {
        var dimensions: Dimensions?
        var frameRate: FrameRate?
    }

    /// A ladder for captured pictures of size `largest` at `frameRate`.
    ///
    /// `highestBitrate` is the bitrate that the encoding never exceeds; `nil` if it has no limit. A low one for a large
    /// size means that the caller wants that size at that bitrate, so it then takes the place of the table's bitrate.
    package init(
        largest: Dimensions,
        frameRate: FrameRate,
        preference: DegradationPreference,
        highestBitrate: Bitrate? = nil,
        settings: Settings = Settings()
    ) {
        self.settings = settings
        self.largest = largest
        self.frameRate = frameRate
        self.preference = preference
        rungs = LadderRungs(largest: largest, frameRate: frameRate, preference: preference)
        full = rungs[0]
        timeUp = settings.startTimeUp
        startMargin = settings.startMargin
        history = RateHistory(settings)
        quantizer = QuantizerAverage(settings)
        setTable(highestBitrate)
    }

    private mutating func setTable(_ highestBitrate: Bitrate?) {
        let enough = full.needed * settings.marginUp / settings.capShare
        let highest = highestBitrate.map { Double(max(1, $0.bitsPerSecond)) } ?? enough
        tableShare = min(1, max(settings.leastTableShare, highest / enough))
        highestRate = highest / tableShare
    }

    /// Goes on with another highest bitrate and preference, because the application chose them for the same pictures.
    ///
    /// A lower bitrate is no sign of the path, so it is no cut. If it is too low for the size, the size changes a
    /// second later.
    mutating func setLimits(_ highestBitrate: Bitrate, _ preference: DegradationPreference) {
        let former = tableShare
        setTable(highestBitrate)
        quantizer.scaleRates(by: former / tableShare)
        history.scaleRates(by: former / tableShare, upTo: highestRate)
        guard preference != self.preference else { return }
        self.preference = preference
        preferenceIsNew = true
    }

    /// Notes that the encoding has `part` of its bitrate from now on because other encodings get the rest.
    ///
    /// That is no sign of the path, so it is no cut.
    mutating func leaveRate(_ part: Double) { history.scaleRates(by: part, upTo: highestRate) }

    /// This ladder in place of `former`, whose captured pictures had another size: what that one learnt of the path and
    /// the CPU, and the number of its changes, stay.
    func continuing(_ former: DegradationLadder) -> DegradationLadder {
        guard former.isStarted else { return self }
        var ladder = self
        ladder.startMargin = 1
        (ladder.cpuLimits, ladder.wantedCPUSteps) = (former.cpuLimits, former.wantedCPUSteps)
        (ladder.timeUp, ladder.lastForgiven) = (former.timeUp, former.lastForgiven)
        (ladder.lastChange, ladder.lastDown, ladder.lastUp) = (former.lastChange, former.lastDown, former.lastUp)
        ladder.sizeChanges = former.sizeChanges
        return ladder
    }

    /// Takes in what is known before a frame is encoded, and chooses what to encode.
    ///
    /// - Parameters:
    ///   - bitrate: The bitrate that the encoding has now.
    ///   - quantizer: The quantizer of the last encoded frame (VP8: 0 to 127); `nil` if unknown.
    ///   - used: The bitrate of frames as large as that one; `nil` for `bitrate`. A picture that is as fine as it can
    ///     be takes less.
    ///   - cpuSteps: How many steps down there are to be because of the CPU. It is a number and no change of one, so
    ///     that none is lost while the size may not change yet.
    ///   - bounds: The largest size and the highest frame rate that any receiver wants; `nil` for no bound.
    ///   - now: The time; one that goes back counts as the last one.
    /// - Returns: What to encode.
    package mutating func update(
        bitrate: Bitrate,
        quantizer: UInt8?,
        used: Bitrate? = nil,
        cpuSteps: Int,
        bounds: (dimensions: Dimensions?, frameRate: FrameRate?),
        at now: MonotonicInstant
    ) -> Step {
        let rate = Double(max(1, bitrate.bitsPerSecond)) / tableShare
        let bounds = Bounds(dimensions: bounds.dimensions, frameRate: bounds.frameRate)
        wantedCPUSteps = max(0, cpuSteps)
        guard isStarted else {
            isStarted = true
            lastUpdate = now.microseconds
            self.bounds = bounds
            start(rate, at: now.microseconds)
            return step
        }
        let time = max(now.microseconds, lastUpdate)
        let before = history.observe(rate, rungs, bandwidthRung, elapsed: time - lastUpdate, at: time)
        let usedRate = used.map { Double(max(1, $0.bitsPerSecond)) / tableShare } ?? rate
        self.quantizer.observe(quantizer, usedRate, encoded.weight, elapsed: time - lastUpdate)
        history.observe(self.quantizer, rate, rungs, elapsed: time - lastUpdate, at: time)
        lastUpdate = time
        fallsTo = 1
        if bounds != self.bounds {
            self.bounds = bounds
            boundsAreNew = true
        }
        change(rate, before: before, at: time)
        return step
    }
}

extension DegradationLadder {
    /// The pixels in a second that the CPU allows; `nil` for any number.
    var pixelRateLimit: Double? { cpuLimits.last }

    /// The index of the rung that the CPU allows.
    var cpuRung: Int { Self.cpuRung(rungs, pixelRateLimit) }

    /// The index of the rung that is encoded.
    var rung: Int { max(bandwidthRung, cpuRung) }

    /// What is encoded: the rung, but perhaps at the frame rate of the one that must wait.
    var encoded: LadderRungs.Rung {
        let current = rungs[rung]
        guard let awaitedRung, awaitedRung.frameRate > current.frameRate else { return current }
        let faster = LadderRungs.Rung(current.dimensions, awaitedRung.frameRate)
        return faster.pixelRate <= pixelRateLimit ?? .infinity ? faster : current
    }

    /// How many rungs are below the one that is encoded.
    var stepsLeft: Int { rungs.count - 1 - rung }

    /// The rung that is so many below the one that is encoded, or the last.
    func rung(after steps: Int) -> LadderRungs.Rung { rungs[min(rung + steps, rungs.count - 1)] }

    static func cpuRung(_ rungs: LadderRungs, _ limit: Double?) -> Int {
        guard let limit else { return 0 }
        return rungs.best { $0.pixelRate <= limit }
    }

    private var step: Step {
        let current = encoded
        return Step(
            dimensions: current.dimensions,
            frameRate: min(current.frameRate, bounds.frameRate ?? current.frameRate),
            limitation: limitation,
            reason: reason,
            fallsTo: fallsTo
        )
    }

    private var limitation: QualityLimitation.Reason {
        let cpuRung = cpuRung
        if cpuRung > 0, cpuRung >= bandwidthRung { return .cpu }
        if bandwidthRung > 0 { return .bandwidth }
        let isWhole =
            rungs[0].dimensions == full.dimensions
            && min(rungs[0].frameRate, bounds.frameRate ?? frameRate) >= full.frameRate
        return isWhole ? .none : .other
    }
}
