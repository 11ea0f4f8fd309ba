import Adaptation
import MediaCore

/// How many bytes an encoder makes of a picture: follows its target late, overshoots after cuts, and has a floor below
/// which no quantizer takes it, as libvpx was measured to do.
struct SimulatedEncoder: Sendable {
    /// What is filmed.
    package struct Content: Hashable, Sendable {
        /// The bits per pixel below which no frame comes, at the coarsest quantizer: 0.02 is a natural scene, 0.065 a
        /// very busy one.
        package var floor = 0.02
        /// The bits per pixel above which no frame comes, at the finest quantizer: 0.06 is a drawing, 0.6 a natural
        /// scene.
        package var ceiling = 0.6
        /// The spread of sizes from frame to frame.
        package var spread = 0.25
        /// How many times the bytes of another frame a keyframe has.
        package var keyframe = 4.0

        package init() {}
    }

    /// What is filmed now.
    var content: Content
    private var random: SimulationRandom
    private var budget: Double?
    private var dimensions: Dimensions?
    /// The bytes by which the frames so far exceed the target.
    private var excess = 0.0

    init(_ content: Content, seed: UInt64) {
        self.content = content
        random = SimulationRandom(seed: seed)
    }

    /// VP8's quantizer for a step size of AC coefficients, from 4 to 127: the table of RFC 6386 in its linear parts.
    private static func quantizer(ofStep step: Double) -> UInt8 {
        let index =
            switch step {
            case ...58: step - 4
            case ...116: 54 + (step - 58) / 2
            case ...173: 83 + (step - 116) / 3
            case ...229: 102 + (step - 173) / 4
            default: 116 + (step - 229) / 5
            }
        return UInt8(min(127, max(4, index)))
    }

    /// The frame, without its packets' headers; `nil` if the encoder leaves it out.
    ///
    /// As libvpx, it takes for a frame what the rate gives in the time between two: pictures come at `rate`.
    mutating func encode(_ target: EncodingTarget, at rate: FrameRate, forceKeyframe: Bool) -> EncodingReport? {
        let slower = min(rate.framesPerSecond, target.frameRate.framesPerSecond)
        let wanted = Double(target.bitrate.bitsPerSecond) / 8 / slower
        let isKeyframe = forceKeyframe || dimensions != target.dimensions
        // libvpx leaves frames out when its buffer is empty: 300 ms here.
        excess = max(0, excess - wanted)
        if !isKeyframe, excess > Double(target.bitrate.bitsPerSecond) / 8 * 0.3 { return nil }
        dimensions = target.dimensions
        let followed = budget.map { $0 + 0.6 * (wanted - $0) } ?? wanted
        budget = followed
        var floor = content.floor * Double(target.dimensions.area) / 8
        var size = followed * max(0.3, 1 + content.spread * random.normal())
        if isKeyframe {
            size = max(size, wanted) * content.keyframe
            floor *= content.keyframe
        }
        if let largest = target.largestFrame { size = min(size, Double(largest.bytes)) }
        size = min(size, content.ceiling * Double(target.dimensions.area) / 8 * (isKeyframe ? content.keyframe : 1))
        size = max(size, floor, 200)
        excess += size
        let bitsPerPixel = size * 8 / (isKeyframe ? content.keyframe : 1) / Double(target.dimensions.area)
        return EncodingReport(
            bytes: Int(size),
            isKeyframe: isKeyframe,
            quantizer: Self.quantizer(ofStep: 8 * content.ceiling / max(0.001, bitsPerPixel)),
            encodeDuration: .milliseconds(5),
            dimensions: target.dimensions
        )
    }
}
