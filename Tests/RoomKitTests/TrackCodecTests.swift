import RoomProtocol
import Testing

@testable import RoomKit

@Suite("Codecs")
struct TrackCodecTests {
    @Test("A server accepts every codec that this library has, and no other")
    func accepted() {
        #expect(Set(TrackCodec.all.map(\.name)) == Set(VideoCodec.all))
    }
}
