import Glibc
import MediaCore
import TestTools
import VP8Codec

/// How hard the pictures of a clip are to code.
enum Content {
    /// A slanted pattern that moves.
    case moving
    /// The same under light noise, so that rate control has a hard time.
    case busy
    /// A different noise in every picture.
    case noise
    /// Lines of small dark marks on white, as text has, that scroll.
    case page
}

/// The picture of a clip at `index`, thirty of them a second.
func picture(_ dimensions: Dimensions, at index: Int, _ content: Content = .moving) -> VideoFrame {
    let buffer = VideoBuffer(dimensions: dimensions)
    var generator = SeededGenerator(seed: UInt64(index))
    buffer.withMutablePlanes { luma, chromaU, chromaV in
        for row in 0..<dimensions.height {
            for column in 0..<dimensions.width {
                let pattern = UInt8(truncatingIfNeeded: (column + 3 * index) ^ (2 * row + index))
                luma[row * buffer.lumaStride + column] =
                    switch content {
                    case .moving: pattern
                    case .busy: pattern / 2 + UInt8(truncatingIfNeeded: generator.next()) / 8
                    case .noise: UInt8(truncatingIfNeeded: generator.next())
                    case .page: pagePixel(column, row + 3 * index)
                    }
            }
        }
        chromaU.update(repeating: UInt8(truncatingIfNeeded: 100 + index))
        chromaV.update(repeating: 140)
    }
    return VideoFrame(buffer: buffer, timestamp: timestamp(at: index))
}

/// A pixel of an endless page.
private func pagePixel(_ column: Int, _ row: Int) -> UInt8 {
    let (line, mark) = (UInt64(row / 16), UInt64(column / 5))
    let hash = (line &* 0x9E37_79B9_7F4A_7C15 ^ mark &* 0xD1B5_4A32_D192_ED03) &* 0x94D0_49BB_1331_11EB >> 32
    let (width, height) = (Int(hash % 3), 5 + Int(hash / 3 % 6))
    return column % 5 < width && row % 16 < height ? 20 : 235
}

/// When the picture at `index` was captured.
func timestamp(at index: Int) -> MonotonicInstant {
    MonotonicInstant(microseconds: 5_000_000 + Int64(index) * 33_333)
}

/// A packet, copied out of the encoder.
struct CodedFrame {
    var info: EncodedFrameInfo
    var bytes: [UInt8]
}

extension VP8Encoder {
    /// Encodes one picture of a clip, with `change` made to the target from here on; `nil` if the encoder left it out.
    mutating func coded(
        _ frame: VideoFrame,
        forceKeyframe: Bool = false,
        _ change: (inout EncodingTarget) -> Void = { _ in }
    ) throws -> CodedFrame? {
        var target = target
        change(&target)
        return try encode(frame, target: target, forceKeyframe: forceKeyframe) { info, bytes in
            CodedFrame(info: info, bytes: bytes.withUnsafeBytes { Array($0) })
        }
    }

    /// Encodes `count` pictures of a clip; those left out are `nil`.
    mutating func clip(
        _ count: Int,
        _ content: Content = .moving,
        keyframesAt keyframes: Set<Int> = []
    ) throws -> [CodedFrame?] {
        var frames: [CodedFrame?] = []
        for index in 0..<count {
            frames.append(try coded(picture(dimensions, at: index, content), forceKeyframe: keyframes.contains(index)))
        }
        return frames
    }
}

/// What a picture looks like, in one number: equal for equal pixels.
func digest(_ frame: VideoFrame) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    func add(_ plane: Span<UInt8>, _ dimensions: Dimensions, stride: Int) {
        for row in 0..<dimensions.height {
            for column in 0..<dimensions.width {
                hash = (hash ^ UInt64(plane[row * stride + column])) &* 0x100_0000_01B3
            }
        }
    }
    frame.buffer.withPlanes { luma, chromaU, chromaV in
        add(luma, frame.dimensions, stride: frame.buffer.lumaStride)
        add(chromaU, frame.buffer.chromaDimensions, stride: frame.buffer.chromaStride)
        add(chromaV, frame.buffer.chromaDimensions, stride: frame.buffer.chromaStride)
    }
    return hash
}

extension VP8Decoder {
    /// Decodes one packet into a buffer of its own.
    mutating func picture(_ bytes: [UInt8]) throws -> VideoFrame? {
        try decode(bytes.span.bytes, timestamp: timestamp(at: 0)) { VideoBuffer(dimensions: $0) }
    }
}

/// What a new decoder makes of the frames that `takes` says it gets: their pictures' digests, by frame number.
func decoded(_ frames: [CodedFrame], _ takes: (EncodedFrameInfo) -> Bool = { _ in true }) throws -> [UInt32: UInt64] {
    var decoder = try VP8Decoder()
    var digests: [UInt32: UInt64] = [:]
    for frame in frames where takes(frame.info) {
        if let picture = try decoder.picture(frame.bytes) { digests[frame.info.number] = digest(picture) }
    }
    return digests
}

/// What `VP8Bitstream` says of `bytes`; the macros of Swift Testing take no spans.
func statedDimensions(of bytes: [UInt8]) -> Dimensions? {
    VP8Bitstream.keyframeDimensions(of: bytes.span.bytes)
}

/// What `VP8Bitstream` says of `bytes`; the macros of Swift Testing take no spans.
func isKeyframe(_ bytes: [UInt8]) -> Bool {
    VP8Bitstream.isKeyframe(bytes.span.bytes)
}

/// The peak signal-to-noise ratio of a picture's brightness against the original's, in dB.
func lumaPSNR(_ picture: VideoFrame, _ original: VideoFrame) -> Double {
    precondition(picture.dimensions == original.dimensions)
    var squares = 0
    picture.buffer.withPlanes { luma, _, _ in
        original.buffer.withPlanes { originalLuma, _, _ in
            for row in 0..<picture.dimensions.height {
                for column in 0..<picture.dimensions.width {
                    let difference =
                        Int(luma[row * picture.buffer.lumaStride + column])
                        - Int(originalLuma[row * original.buffer.lumaStride + column])
                    squares += difference * difference
                }
            }
        }
    }
    guard squares > 0 else { return .infinity }
    return 10 * log10(255 * 255 * Double(picture.dimensions.area) / Double(squares))
}
