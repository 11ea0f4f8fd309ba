import MediaCore
import TestTools
import Testing
import VP8Codec

/// What the encoder makes of frames that come at another pace than before.
@Suite("Frame intervals", .timeLimit(.minutes(2)))
struct FrameIntervalTests {
    /// Encodes busy pictures captured at `times`, in µs, at 300 kbit/s.
    ///
    /// - Returns: The bytes of each; 0 for those left out.
    private func sizes(at times: [Int64], frameRate: (Int) -> Int) throws -> [Int] {
        let size = Dimensions(width: 320, height: 240)
        let rate = Bitrate.kilobitsPerSecond(300)
        var encoder = try VP8Encoder(
            VP8EncoderSettings(dimensions: size, targetBitrate: rate, frameRate: FrameRate(frameRate(0)))
        )
        return try times.enumerated().map { index, time in
            var frame = picture(size, at: index, .busy)
            frame.timestamp = MonotonicInstant(microseconds: 5_000_000 + time)
            return try encoder.coded(frame) { $0.frameRate = FrameRate(frameRate(index)) }?.bytes.count ?? 0
        }
    }

    // libvpx believed in 5,000 frames a second when two of its slots ended at nearly the same time.
    @Test(
        "When the frame rate changes, the frames go on with all of the bitrate",
        arguments: [(15, 30), (30, 15), (10, 30), (30, 20)],
        [-900, -300, -1, 0, 1, 40, 300, 900] as [Int64]
    )
    func changedRate(rates: (former: Int, new: Int), jitter: Int64) throws {
        let count = 2 * rates.former
        let former = (0..<count).map { Int64($0) * 1_000_000 / Int64(rates.former) }
        let start = 2_000_000 - 1_000_000 / Int64(rates.former) + jitter
        let new = (1...2 * rates.new).map { start + Int64($0) * 1_000_000 / Int64(rates.new) }
        let sizes = try sizes(at: former + new) { $0 < count ? rates.former : rates.new }
        let after = Array(sizes[count...])
        let (encoded, bytes) = (after.count { $0 > 0 }, after.reduce(0, +))
        #expect(encoded > after.count * 3 / 4, "\(sizes)")
        // Three quarters of what the bitrate allows in these two seconds.
        #expect(bytes > 56_000, "\(sizes)")
    }

    @Test("Frames that come at once disturb those after them for no longer than their bits take")
    func burst() throws {
        let regular = (0..<90).map { Int64($0) * 33_333 }
        let burst = (1...4).map { regular[30] + Int64($0) * 100 }
        let sizes = try sizes(at: (regular + burst).sorted()) { _ in 30 }
        let after = Array(sizes[44..<74])
        let (encoded, bytes) = (after.count { $0 > 0 }, after.reduce(0, +))
        #expect(encoded > 22, "\(sizes)")
        #expect(bytes > 28_000, "\(sizes)")
    }
}
