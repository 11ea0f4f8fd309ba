/// Bytes that are the same in every run.
package struct SeededBytes {
    private var state: UInt64

    /// The bytes of `seed`.
    package init(seed: UInt64) { state = seed }

    /// The next `count` bytes.
    package mutating func next(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in
            // The constants of Knuth's MMIX generator, whose high bits are the good ones.
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
    }
}

/// SplitMix64: the same numbers on every run.
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    /// The numbers of `seed`.
    package init(seed: UInt64) { state = seed }

    /// The next number.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
