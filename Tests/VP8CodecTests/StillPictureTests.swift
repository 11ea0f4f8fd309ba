import MediaCore
import TestTools
import Testing
import VP8Codec

@Suite("Still pictures", .timeLimit(.minutes(2)))
struct StillPictureTests {
    /// The PSNR-Y of what is shown `seconds` after a dense picture has come to stand still.
    ///
    /// A screen repeats its picture after 0.2, 0.4 and 0.6 s, and then once a second.
    private func sharpness(after seconds: Int, at bitrate: Bitrate, marked: Bool) throws -> Double {
        let size = Dimensions(width: 640, height: 360)
        var encoder = try VP8Encoder(
            VP8EncoderSettings(dimensions: size, targetBitrate: bitrate, frameRate: FrameRate(15))
        )
        var decoder = try VP8Decoder()
        var shown: VideoFrame?
        let still = picture(size, at: 29, .noise)
        func show(_ frame: VideoFrame) throws {
            guard let coded = try encoder.coded(frame) else { return }
            shown = try decoder.picture(coded.bytes)
        }
        // The moving pictures before it have used up the rate.
        for index in 0..<15 { try show(picture(size, at: 2 * index, .noise)) }
        for delay in [200, 400, 600] + (1...seconds).map({ 600 + 1000 * $0 }) {
            var frame = still
            frame.timestamp = still.timestamp + .milliseconds(delay)
            frame.isRepeat = marked
            try show(frame)
        }
        return lumaPSNR(try #require(shown), still)
    }

    // Noise is the densest picture. Without the mark these came to 26 and 29 dB.
    @Test("A dense picture that stands still becomes sharp", arguments: [(800, 6), (2500, 1)])
    func dense(kilobits: Int, seconds: Int) throws {
        let bitrate = Bitrate.kilobitsPerSecond(kilobits)
        let marked = try sharpness(after: seconds, at: bitrate, marked: true)
        let unmarked = try sharpness(after: seconds, at: bitrate, marked: false)
        #expect(marked > 35 && marked > unmarked + 5, "\(marked) dB, unmarked \(unmarked) dB")
    }
}
