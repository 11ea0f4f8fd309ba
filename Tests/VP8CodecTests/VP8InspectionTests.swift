import TestTools
import Testing
import VP8Codec

import struct MediaCore.Dimensions
import struct MediaCore.FrameRate

@Suite("VP8 frames that are passed on")
struct VP8InspectionTests {
    private let size = Dimensions(width: 80, height: 48)

    private func frames(_ count: Int) throws -> [CodedFrame] {
        var encoder = try VP8Encoder(
            VP8EncoderSettings(dimensions: size, frameRate: FrameRate(30), temporalLayerCount: 1)
        )
        return try encoder.clip(count).compactMap(\.self)
    }

    private enum Finding: Hashable {
        case keyframe(Dimensions)
        case other
        case fault(VP8Bitstream.Fault)
    }

    private func inspect(_ bytes: [UInt8]) -> Finding {
        do {
            return try VP8Bitstream.inspect(bytes.span.bytes).map { .keyframe($0) } ?? .other
        } catch {
            return .fault(error)
        }
    }

    @Test("Every frame of the encoder passes, and a keyframe says its size")
    func encoded() throws {
        let frames = try frames(10)
        #expect(frames.count > 3)
        for frame in frames {
            #expect(inspect(frame.bytes) == (frame.info.isKeyframe ? .keyframe(size) : .other))
        }
    }

    @Test("A frame that is not to be shown is told apart from one that is not VP8")
    func invisible() throws {
        for var frame in try frames(3) {
            frame.bytes[0] &= ~0x10
            #expect(inspect(frame.bytes) == .fault(.invisible))
        }
    }

    @Test("A frame that is cut before the end of its first partition is refused, and so is one without bytes")
    func cut() throws {
        for frame in try frames(3) {
            let tag = Int(frame.bytes[0]) | Int(frame.bytes[1]) << 8 | Int(frame.bytes[2]) << 16
            let end = (frame.info.isKeyframe ? 10 : 3) + tag >> 5
            for count in 0..<min(end, frame.bytes.count) {
                #expect(inspect(Array(frame.bytes[..<count])) == .fault(count == 0 ? .empty : .notVP8))
            }
        }
    }

    @Test("Random bytes neither pass for a keyframe nor end the program")
    func random() {
        var generator = SeededGenerator(seed: 11)
        var passed = 0
        for _ in 0..<20_000 {
            let bytes = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            switch inspect(bytes) {
            case .keyframe: Issue.record("a keyframe in \(bytes)")
            case .other: passed += 1
            case .fault: break
            }
        }
        // A tag has few bits that can be wrong, but the partition's length must fit.
        #expect(passed < 100)
    }
}
