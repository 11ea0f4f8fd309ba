import MediaCore

/// The target that libvpx was given last; decides whether a change is large enough to pass it on.
///
/// Passing it on costs little, but the rate of an adaptive publisher changes a little with nearly every frame.
struct AppliedTarget: Hashable {
    /// A change of the bitrate by at most 5 % waits until the last one is this old.
    static let interval = Duration.milliseconds(100)
    /// The size that libvpx may aim at for a keyframe, in average frames of layer 0: at the track's bitrate, a
    /// keyframe's size is its delay.
    static let averageFramesInKeyframe = 3.0
    /// The most that a keyframe may come to, in the same unit; libvpx's aim can be wrong by several times, above all
    /// after a change of size.
    static let mostFramesInKeyframe = 4.0

    /// The target; its `largestFrame` does not matter here.
    var target: EncodingTarget
    /// The range of quantizers.
    var quantizers = QuantizerRange.usual
    /// Whether libvpx may leave frames out to hold the rate.
    var mayDropFrames = true
    /// When libvpx was told.
    var time: MonotonicInstant?

    /// Whether libvpx has to be given `new`.
    func differs(from new: AppliedTarget) -> Bool {
        if new.quantizers != quantizers || new.mayDropFrames != mayDropFrames { return true }
        if new.target.dimensions != target.dimensions { return true }
        if new.target.temporalLayerCount != target.temporalLayerCount { return true }
        let (oldRate, newRate) = (Double(target.bitrate.bitsPerSecond), Double(new.target.bitrate.bitsPerSecond))
        if newRate == oldRate { return false }
        if abs(newRate - oldRate) > abs(oldRate) / 20 { return true }
        guard let time, let newTime = new.time else { return true }
        // A time that goes back says nothing.
        return newTime < time || newTime.duration(since: time) >= Self.interval
    }

    /// Whether libvpx makes frames of quite another size for `new`.
    func isFar(from new: AppliedTarget) -> Bool {
        if new.target.dimensions != target.dimensions { return true }
        if new.target.temporalLayerCount != target.temporalLayerCount { return true }
        let (oldRate, newRate) = (Double(target.bitrate.bitsPerSecond), Double(new.target.bitrate.bitsPerSecond))
        return newRate < 0.8 * oldRate || newRate > 1.25 * oldRate
    }

    /// The most that a keyframe may take for the target, in percent of an average frame of layer 0; at least 1.
    static func largestKeyframe(_ target: EncodingTarget) -> Int32 {
        let most = averageFramesInKeyframe * 100
        guard let limit = target.largestFrame else { return Int32(most) }
        let average = max(TemporalLayerPattern.averageBaseFrame(target), 1)
        return Int32(min(max(Double(limit.bytes) * 8 * 100 / average, 1), most))
    }

    /// What the next frame should not exceed; `nil` for no limit.
    static func limit(_ target: EncodingTarget, isKeyframe: Bool) -> DataSize? {
        guard isKeyframe else { return target.largestFrame }
        let most = mostFramesInKeyframe * TemporalLayerPattern.averageBaseFrame(target) / 8
        // Beyond 1 GB there is no limit.
        let bytes = Int(min(max(most, 1), 1e9))
        return DataSize(bytes: min(bytes, target.largestFrame?.bytes ?? bytes))
    }
}
