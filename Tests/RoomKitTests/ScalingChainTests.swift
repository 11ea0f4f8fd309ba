import MediaCore
import Testing
import VideoProcessing

@testable import RoomKit

@Suite("Scaling chain")
struct ScalingChainTests {
    private let whole = FrameTransform()
    private let limit = Dimensions(width: 640, height: 480)

    @Test("A picture that is wanted as it is is not copied, and each other size is made once")
    func once() {
        let chain = ScalingChain(encodings: 3, limit: limit)
        let frame = picture(640, 480)
        let half = Dimensions(width: 320, height: 240)
        #expect(chain.picture(frame, sizing: whole, dimensions: limit, for: 2).buffer === frame.buffer)
        let first = chain.picture(frame, sizing: whole, dimensions: half, for: 1)
        #expect(first.dimensions == half && first.timestamp == frame.timestamp)
        #expect(chain.picture(frame, sizing: whole, dimensions: half, for: 0).buffer === first.buffer)
    }

    // A source may deliver the same memory again, such as a picture that stands still.
    @Test("A later frame of the same memory keeps its own time")
    func sameBuffer() {
        let chain = ScalingChain(encodings: 1, limit: limit)
        let frame = picture(640, 480)
        let half = Dimensions(width: 320, height: 240)
        _ = chain.picture(frame, sizing: whole, dimensions: half, for: 0)
        var later = frame
        later.timestamp = timestamp(at: 9)
        #expect(chain.picture(later, sizing: whole, dimensions: half, for: 0).timestamp == timestamp(at: 9))
        var turned = later
        turned.rotation = .half
        #expect(chain.picture(turned, sizing: whole, dimensions: half, for: 0).rotation == .none)
    }

    @Test("The same memory serves picture after picture")
    func reused() {
        let chain = ScalingChain(encodings: 1, limit: limit)
        let half = Dimensions(width: 320, height: 240)
        var buffers: Set<ObjectIdentifier> = []
        var kept: [VideoFrame] = []
        for index in 0..<50 {
            let scaled = chain.picture(picture(640, 480, at: index), sizing: whole, dimensions: half, for: 0)
            buffers.insert(ObjectIdentifier(scaled.buffer))
            if index < 3 { kept.append(scaled) }
        }
        chain.release()
        #expect(buffers.count <= 5)
    }

    @Test(
        "No size has more pixels than the codec allows, whatever the source delivers, and lies or stands as that does",
        arguments: [(1280, 720), (480, 640), (33, 17), (720, 1280), (1000, 100)]
    )
    func limited(width: Int, height: Int) {
        let chain = ScalingChain(encodings: 1, limit: limit)
        let frame = picture(width, height)
        let size = chain.largestDimensions(of: frame, sizing: whole)
        #expect(size.area <= limit.area && (size.width < size.height) == (width < height))
        if width * height <= limit.area { #expect(size == frame.dimensions) }
        #expect(chain.picture(frame, sizing: whole, dimensions: size, for: 0).dimensions == size)
    }
}
