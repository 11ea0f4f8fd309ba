import Testing

@testable import RelayCore

@Suite("The time between frames as they are published") struct FrameSpacingTests {
    /// The interval that is found where of frames each `interval` microseconds only those at each `step` are sent.
    private func interval(_ interval: Int64, sending step: UInt32) -> Int64 {
        var (spacing, progress) = (FrameSpacing(), FrameProgress())
        for number in stride(from: UInt32(7), to: 600, by: Int(step)) {
            spacing.add(progress.advance(to: number), at: Int64(number) * interval)
        }
        return spacing.interval
    }

    @Test(
        "It is the publisher's, however many frames are left out",
        arguments: [33_333, 66_667, 100_000] as [Int64],
        [1, 2, 5] as [UInt32]
    )
    func leftOut(interval: Int64, step: UInt32) {
        let found = self.interval(interval, sending: step)
        #expect(abs(found - interval) < interval / 50, "\(found)")
    }

    @Test("Two tracks together have half the time between frames, and a pause counts as 200 ms at most")
    func severalTracks() {
        var (spacing, tracks) = (FrameSpacing(), [FrameProgress(), FrameProgress()])
        for step in 0..<200 {
            spacing.add(tracks[step % 2].advance(to: UInt32(step / 2)), at: Int64(step) * 50_000)
        }
        #expect(abs(spacing.interval - 50_000) < 1000)
        for step in 1...100 { spacing.add(1, at: 10_000_000 + Int64(step) * 3_000_000) }
        #expect((190_000...200_000).contains(spacing.interval))
    }

    @Test("Numbers that go back, or far ahead, count as one frame")
    func otherNumbers() {
        var progress = FrameProgress()
        #expect([5, 6, 9, 3, 4, 400, 402].map { progress.advance(to: $0) } == [1, 1, 3, 1, 1, 1, 2])
    }
}
