import MediaCore
import RelayCore
import Testing

@testable import RoomKit

@Suite("Publish options")
struct PublishOptionTests {
    // A track of up to 1 Gbit/s could be asked for, and the server ended the session.
    @Test("The highest bitrate leaves a fifth of what a server admits, and others are clamped")
    func bitrates() {
        let admitted = RelaySettings().media.trackRate
        let supported = VideoPublishOptions.supportedBitrates
        #expect(supported.upperBound.bitsPerSecond * 5 <= admitted.bitsPerSecond * 4)
        var options = VideoPublishOptions()
        #expect(options.encodingParameters.targetBitrate == nil)
        options.maxBitrate = .kilobitsPerSecond(1_000_000)
        #expect(options.encodingParameters.targetBitrate == supported.upperBound)
        options.maxBitrate = .kilobitsPerSecond(1)
        #expect(options.encodingParameters.targetBitrate == supported.lowerBound)
        options.maxBitrate = .kilobitsPerSecond(2000)
        #expect(options.encodingParameters.targetBitrate == .kilobitsPerSecond(2000))
    }
}
