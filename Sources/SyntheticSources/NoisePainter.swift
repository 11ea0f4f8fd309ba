import Capture
import MediaCore
import Threading

/// Paints coloured noise: it cuts each row at a random place out of noise that was made once.
final class NoisePainter: FramePainter {
    /// The length of the noise, in bytes.
    ///
    /// It is larger than any cache that could help a codec, and prime, so that no row length divides it.
    private static let noiseCount = 262_139

    let dimensions: Dimensions
    let frameRate: FrameRate

    private let pool = VideoBufferPool()
    private let lumaNoise: [UInt8]
    private let chromaNoise: [UInt8]
    private var generator: SplitMix64

    /// Creates a painter whose pictures depend only on `seed`.
    init(dimensions: Dimensions, frameRate: FrameRate, seed: UInt64) {
        self.dimensions = dimensions
        self.frameRate = frameRate
        var generator = SplitMix64(state: seed)
        // The noise covers the whole limited range: 16 to 235, and 16 to 240.
        let noise = { (levels: UInt64) in
            (0..<Self.noiseCount).map { _ in UInt8(16 + ((generator.next() >> 32) * levels) >> 32) }
        }
        lumaNoise = noise(220)
        chromaNoise = noise(225)
        self.generator = generator
    }

    func paint(_ assignment: FrameAssignment) -> VideoBuffer? {
        let buffer = pool.take((assignment.dimensions ?? dimensions).codable)
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            cover(&luma, with: lumaNoise, stride: buffer.lumaStride)
            cover(&chromaU, with: chromaNoise, stride: buffer.chromaStride)
            cover(&chromaV, with: chromaNoise, stride: buffer.chromaStride)
        }
        return buffer
    }

    private func cover(_ plane: inout MutableSpan<UInt8>, with noise: [UInt8], stride: Int) {
        for first in Swift.stride(from: 0, to: plane.count, by: stride) {
            let start = Int(generator.next() % UInt64(noise.count - stride))
            plane.copy(noise.span, start..<start + stride, to: first)
        }
    }
}

/// Sebastiano Vigna's SplitMix64: a small generator that passes the usual tests of randomness.
private struct SplitMix64 {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
