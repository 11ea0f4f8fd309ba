import MediaCore
import TestTools
import Testing

@testable import RoomKit

@Suite("Encoders for pictures that become larger", .timeLimit(.minutes(2)))
struct GrowingEncoderTests {
    // Both sides together were more than can be encoded, so that nothing was sent any more.
    @Test("A large picture that is turned is encoded, with a keyframe and the next number")
    func turned() throws {
        let lying = Dimensions(width: 4608, height: 2592)
        let encoder = try TrackCodec.vp8.makeEncoder(
            FrameEncoderSettings(dimensions: Dimensions(width: 64, height: 48), frameRate: FrameRate(30))
        )
        for (number, size) in [lying, lying.transposed, lying].enumerated() {
            let target = EncodingTarget(dimensions: size, bitrate: .kilobitsPerSecond(20_000), frameRate: FrameRate(30))
            let info = try encoder.encode(
                picture(size.width, size.height, at: number * 30),
                target: target,
                forceKeyframe: false
            ) { _, _ in true }
            #expect(info?.isKeyframe == true && info?.number == UInt32(number) && info?.dimensions == size)
        }
    }
}
