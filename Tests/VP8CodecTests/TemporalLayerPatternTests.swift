import Testing
import VP8Codec

/// The roles of `count` frames after a keyframe, of which those in `dropped` are left out.
private func roles(layerCount: Int, _ count: Int, dropped: [Int] = []) -> [String] {
    var pattern = TemporalLayerPattern(layerCount: layerCount)
    pattern.advance(.keyframe)
    return (1...count).map { index in
        defer { pattern.advance(dropped.contains(index) ? .dropped : .encoded) }
        return pattern.nextRole.text
    }
}

extension TemporalLayerPattern.Role {
    /// The layer, then `s` for a sync, `m` for a frame that refers to the middle layer, `r` for a reference.
    fileprivate var text: String {
        "\(temporalLayer)\(isLayerSync ? "s" : "")\(refersToMiddleLayer ? "m" : "")\(isReference ? "r" : "")"
    }
}

@Suite("Temporal layer pattern", .timeLimit(.minutes(1)))
struct TemporalLayerPatternTests {
    @Test(
        "Without drops the pattern is libwebrtc's",
        arguments: [
            (3, ["2s", "1sr", "2m", "0r", "2m", "1mr", "2m", "0r", "2s", "1sr", "2m", "0r", "2m", "1mr", "2m", "0r"]),
            (2, ["1s", "0r", "1s", "0r"]),
            (1, ["0r", "0r"]),
        ]
    )
    func table(layerCount: Int, expected: [String]) {
        #expect(roles(layerCount: layerCount, expected.count) == expected)
    }

    @Test(
        "A higher frame left out leaves a gap, and layer 0 takes the next frame instead",
        arguments: [
            ([2], ["2s", "1sr", "2s", "0r", "2s", "1sr", "2m", "0r", "2s"]),
            ([2, 6], ["2s", "1sr", "2s", "0r", "2s", "1sr", "2s", "0r", "2s"]),
            ([4, 8], ["2s", "1sr", "2m", "0r", "0r", "2m", "1mr", "2m", "0r"]),
            ([6, 8], ["2s", "1sr", "2m", "0r", "2m", "1mr", "2m", "0r", "0r"]),
            ([1, 3, 5, 7], ["2s", "1sr", "2m", "0r", "2m", "1mr", "2m", "0r", "2s"]),
        ]
    )
    func drops(dropped: [Int], expected: [String]) {
        #expect(roles(layerCount: 3, expected.count, dropped: dropped) == expected)
    }

    @Test("The pattern can start again at any frame: that one is of layer 0", arguments: 1...3, 0...9)
    func restart(layerCount: Int, encoded: Int) {
        var pattern = TemporalLayerPattern(layerCount: layerCount)
        pattern.advance(.keyframe)
        for _ in 0..<encoded { pattern.advance(.encoded) }
        pattern.restart()
        #expect(pattern == TemporalLayerPattern(layerCount: layerCount) && pattern.nextRole.text == "0r")
    }

    @Test("A keyframe begins the pattern anew", arguments: 1...9)
    func keyframe(position: Int) {
        var pattern = TemporalLayerPattern(layerCount: 3)
        pattern.advance(.keyframe)
        let afterKeyframe = pattern
        for _ in 0..<position { pattern.advance(.encoded) }
        pattern.advance(.keyframe)
        #expect(pattern == afterKeyframe)
    }

    @Test("A number of layers without a pattern is a bug of the caller's, and ends the program")
    func unsupportedCount() async {
        await #expect(processExitsWith: .failure) { _ = TemporalLayerPattern(layerCount: 4) }
    }

    /// The number of the frame that LAST, and GOLDEN, holds for one who got certain frames.
    private struct References: Equatable {
        var last = 0
        var golden = 0

        mutating func update(_ role: TemporalLayerPattern.Role, _ number: Int) {
            guard role.isReference else { return }
            if role.temporalLayer == 0 { last = number } else { golden = number }
        }

        func suffice(for role: TemporalLayerPattern.Role, of sender: References) -> Bool {
            last == sender.last && (!role.refersToMiddleLayer || golden == sender.golden)
        }
    }

    @Test("Whatever is left out, one who begins a layer at a sync has every frame that later ones refer to")
    func joining() {
        let count = 13
        var wrong = 0
        for mask in 0..<(1 << count) {
            var pattern = TemporalLayerPattern(layerCount: 3)
            pattern.advance(.keyframe)
            var sent: [(number: Int, role: TemporalLayerPattern.Role, needed: References)] = []
            var sender = References()
            for number in 1...count {
                guard mask >> (number - 1) & 1 == 0 else {
                    pattern.advance(.dropped)
                    continue
                }
                sent.append((number, pattern.nextRole, sender))
                sender.update(pattern.nextRole, number)
                pattern.advance(.encoded)
            }
            for (start, joined) in sent.enumerated() where joined.role.isLayerSync {
                var receiver = References()
                let highest = joined.role.temporalLayer
                for (index, frame) in sent.enumerated()
                where frame.role.temporalLayer <= (index < start ? 0 : highest) {
                    if !receiver.suffice(for: frame.role, of: frame.needed) { wrong += 1 }
                    receiver.update(frame.role, frame.number)
                }
            }
        }
        #expect(wrong == 0)
    }
}
