import MediaCore
import RoomProtocol
import TestTools
import Testing

/// The frames of three temporal layers in the pattern 0 2 1 2, in which every second frame of layer 1 is a sync.
private func patternFrame(_ index: Int, isKeyframe: Bool = false) -> EncodedFrameInfo {
    EncodedFrameInfo(
        number: UInt32(index),
        timestamp: MonotonicInstant(nanoseconds: 0),
        isKeyframe: isKeyframe,
        temporalLayer: isKeyframe ? 0 : [0, 2, 1, 2][index % 4],
        isLayerSync: !isKeyframe && index % 8 == 2,
        isDiscardable: !isKeyframe && index % 2 == 1
    )
}

/// What a decoder has, independent of how the gate thinks: a frame decodes if all that it refers to was decoded.
private struct ReferenceDecoder {
    private var last: [Int: UInt32] = [:]
    private var have: Set<UInt32> = []
    private var newest: [Int: UInt32] = [:]

    /// Takes notice of a frame, received or not, and says whether it decodes.
    mutating func frame(_ frame: EncodedFrameInfo, isReceived: Bool) -> Bool {
        var needs: [UInt32?] = []
        switch (frame.isKeyframe, frame.temporalLayer) {
        case (true, _): break
        case (_, 0): needs = [newest[0]]
        case (_, 1): needs = frame.isLayerSync ? [newest[0]] : [newest[0], newest[1]]
        default: needs = [newest[0], newest[1]]
        }
        let decodes = isReceived && needs.allSatisfy { $0.map(have.contains) ?? false }
        if frame.isKeyframe {
            // Every reference is the keyframe now.
            newest = [0: frame.number, 1: frame.number]
        } else if frame.temporalLayer < 2 {
            newest[Int(frame.temporalLayer)] = frame.number
        }
        if decodes { have.insert(frame.number) }
        return decodes
    }
}

@Suite("Temporal layer gate", .timeLimit(.minutes(1)))
struct TemporalLayerGateTests {
    /// Runs frames 0 … with the limits, of which the last one goes on, and gives the numbers of those that pass.
    private func passing(_ count: Int, limits: [Int: Int], keyframes: Set<Int> = [0]) -> [Int] {
        var gate = TemporalLayerGate()
        var limit = Int.max
        return (0..<count).filter { index in
            limit = limits[index] ?? limit
            return gate.passes(patternFrame(index, isKeyframe: keyframes.contains(index)), limit: limit)
        }
    }

    @Test("Without limits everything from the first keyframe on passes")
    func everything() {
        #expect(passing(20, limits: [:]) == Array(0..<20))
        #expect(passing(20, limits: [:], keyframes: [5]) == Array(5..<20))
        #expect(passing(20, limits: [:], keyframes: []) == [])
    }

    @Test(
        "A layer that was left out comes in again at its sync",
        arguments: [
            ([0: 0], [0, 4, 8, 12, 16]),
            ([0: 1], [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]),
            // Layer 2 alone was left out: it refers to nothing of its own.
            ([0: 1, 5: .max], [0, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]),
            // The sync at 2 was left out; frame 6 refers to it; the next sync is at 10.
            ([0: 0, 3: .max], [0, 4, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]),
            // Frame 6 was left out, so the layer waits for 10; frame 9 refers to 6 by way of its layer.
            ([6: 0, 7: .max], [0, 1, 2, 3, 4, 5, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]),
            // Only frames of layer 0 came while it was narrow: nothing is lost.
            ([4: 0, 5: .max], Array(0..<20)),
            ([8: 0, 9: 1], [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18]),
        ] as [([Int: Int], [Int])]
    )
    func limits(_ limits: [Int: Int], expected: [Int]) {
        #expect(passing(20, limits: limits) == expected)
    }

    @Test("Nothing passes after giving up until a keyframe, which opens all layers")
    func givingUp() {
        var gate = TemporalLayerGate()
        #expect(gate.isWaitingForKeyframe)
        let keyframePasses = gate.passes(patternFrame(0, isKeyframe: true), limit: 0)
        #expect(keyframePasses && !gate.isWaitingForKeyframe)
        gate.waitForKeyframe()
        #expect(gate.isWaitingForKeyframe)
        for index in 1..<16 {
            let passes = gate.passes(patternFrame(index))
            #expect(!passes)
        }
        let next = gate.passes(patternFrame(16, isKeyframe: true))
        let afterNext = gate.passes(patternFrame(17))
        #expect(next && afterNext)
    }

    @Test("A limit below layer 0 counts as a loss of everything")
    func negativeLimit() {
        var gate = TemporalLayerGate()
        _ = gate.passes(patternFrame(0, isKeyframe: true))
        let isPassed = gate.passes(patternFrame(4), limit: -1)
        #expect(!isPassed && gate.isWaitingForKeyframe)
    }

    @Test(
        "Layers that a hostile publisher makes up neither trap nor pass without those below",
        arguments: [3, 200, 255]
    )
    func strangeLayers(_ layer: UInt8) {
        for bits in 0..<4 {
            var gate = TemporalLayerGate()
            let isSync = bits & 1 != 0
            let isDiscardable = bits & 2 != 0
            for limit in [Int.max, 0, 254, 255] {
                let isPassed = gate.passes(
                    isKeyframe: false,
                    temporalLayer: layer,
                    isLayerSync: isSync,
                    isDiscardable: isDiscardable,
                    limit: limit
                )
                #expect(!isPassed)
            }
        }
    }

    @Test("Whatever the limits and gaps, what passes decodes, and without limits nothing decodable is held back")
    func bruteForce() {
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<3000 {
            var gate = TemporalLayerGate()
            var decoder = ReferenceDecoder()
            var limit = Int.max
            for index in 0..<48 {
                if Int.random(in: 0..<4, using: &generator) == 0 { limit = Int.random(in: 0...3, using: &generator) }
                if Int.random(in: 0..<30, using: &generator) == 0 { gate.waitForKeyframe() }
                let frame = patternFrame(
                    index,
                    isKeyframe: Int.random(in: 0..<20, using: &generator) == 0 || index == 0
                )
                let isPassed = gate.passes(frame, limit: limit)
                let isDecoded = decoder.frame(frame, isReceived: isPassed)
                guard isPassed == isDecoded else {
                    Issue.record("frame \(index) passed and does not decode")
                    return
                }
            }
        }
    }

    @Test("A layer that was left out is back within eight frames of the limit's end")
    func recovery() {
        for narrow in 1..<24 {
            for width in 0...1 {
                let passed = passing(48, limits: [narrow: width, narrow + 3: .max])
                let recovered = narrow + 3 + 8
                #expect(passed.filter { $0 >= recovered } == Array(recovered..<48), "from \(narrow) at \(width)")
            }
        }
    }
}
