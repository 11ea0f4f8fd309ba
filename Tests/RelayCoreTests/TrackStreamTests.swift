import MediaCore
import RelayCore
import RoomProtocol
import Testing

@Suite("Track stream", .timeLimit(.minutes(1)))
struct TrackStreamTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000)

    private func header(
        _ number: UInt32,
        isKeyframe: Bool = false,
        layer: UInt8 = 0,
        offset: Int = 0,
        payload: Int = 100,
        length: Int = 100
    ) -> MediaPacketHeader {
        let info = EncodedFrameInfo(
            number: number,
            timestamp: start,
            isKeyframe: isKeyframe,
            temporalLayer: layer,
            isLayerSync: layer == 1
        )
        return MediaPacketHeader(
            frame: info,
            trackAlias: 1,
            captureTime: RoomTime(microseconds: 0),
            encodeDelay: .zero,
            frameLength: length,
            chunkOffset: offset,
            payloadLength: payload
        )
    }

    private func append(_ header: MediaPacketHeader, _ stream: inout TrackStream, at milliseconds: Int) throws {
        try stream.append(makePacket(header), header: header, at: start + .milliseconds(milliseconds))
    }

    @Test("Frames in order are kept, and what is out of order is refused")
    func order() throws {
        var stream = TrackStream()
        #expect(throws: MalformedPacket.self) { try append(header(0, offset: 50, payload: 50), &stream, at: 0) }
        try append(header(0, isKeyframe: true), &stream, at: 0)
        #expect(throws: MalformedPacket.self) { try append(header(0), &stream, at: 0) }
        #expect(throws: MalformedPacket.self) { try append(header(1, offset: 50, payload: 50), &stream, at: 0) }
        try append(header(5, payload: 40), &stream, at: 0)
        let wrong = [
            header(6), header(5, payload: 40), header(5, offset: 41, payload: 59), header(5, offset: 39, payload: 40),
            header(5, layer: 1, offset: 40, payload: 60), header(6, offset: 40, payload: 60),
            header(5, isKeyframe: true, offset: 40, payload: 60), header(5, offset: 40, payload: 60, length: 101),
        ]
        for header in wrong {
            #expect(throws: MalformedPacket.self) { try append(header, &stream, at: 0) }
        }
        try append(header(5, offset: 40, payload: 60), &stream, at: 0)
        #expect(stream.endPosition == 3 && stream.newestBaseFrame == 5)
        #expect(throws: MalformedPacket.self) { try append(header(4), &stream, at: 0) }
    }

    @Test("The cache holds the last keyframe and layer 0 since, until it is too old; the rest goes after a moment")
    func cache() throws {
        var stream = TrackStream()
        for index in 0..<90 {
            let layer: UInt8 = index % 30 == 0 ? 0 : [0, 2, 1, 2][index % 4]
            try append(header(UInt32(index), isKeyframe: index == 0, layer: layer), &stream, at: index * 33)
        }
        // 2.97 s on: the keyframe is there, and of the frames older than 600 ms those of layer 0 alone.
        let now = start + .milliseconds(2990)
        let keyframe = try #require(stream.cachedKeyframe(at: now))
        #expect(stream[keyframe].isKeyframe && keyframe == 0)
        for position in stream.startPosition..<stream.endPosition {
            let entry = stream[position]
            let isOld = now.duration(since: entry.arrival) > .milliseconds(660)
            #expect((entry.packet != nil) == (!isOld || entry.temporalLayer == 0), "\(position)")
        }
        #expect(stream.cachedKeyframe(at: start + .milliseconds(3001)) == nil)
        try append(header(90), &stream, at: 3030)
        #expect(stream.startPosition > 60)
        #expect(stream.newestKeyframe == nil)
    }

    @Test("Never more bytes than allowed, whatever the packets' size", arguments: [1, 1000, 15_000])
    func byteBound(_ payload: Int) throws {
        var settings = TrackStreamSettings()
        settings.maximumBytes = DataSize(bytes: 100_000)
        var stream = TrackStream(settings)
        for index in 0..<2000 {
            let layer: UInt8 = index == 0 ? 0 : 2
            let header = header(
                UInt32(index),
                isKeyframe: index == 0,
                layer: layer,
                payload: payload,
                length: payload
            )
            try append(header, &stream, at: index)
            #expect(stream.size <= settings.maximumBytes)
        }
        // Each entry takes its place in memory, however small the packet.
        #expect(stream.endPosition - stream.startPosition < 1000)
        #expect(stream.cachedKeyframe(at: start + .seconds(2)) == nil)
        stream.clear()
        #expect(stream.size == .zero && stream.startPosition == stream.endPosition)
    }

    @Test("The largest frame allowed fits, with its packets' buffers rounded up")
    func largestFrame() throws {
        var stream = TrackStream()
        let length = WireFormat.maximumFrame.bytes
        var offset = 0
        while offset < length {
            let payload = min(Packetizer.maximumPayload, length - offset)
            let header = header(0, isKeyframe: true, offset: offset, payload: payload, length: length)
            try stream.append(PacketBuffer(capacity: 16_384), header: header, at: start)
            offset += payload
        }
        #expect(stream.cachedKeyframe(at: start) == 0)
        #expect(stream.newestBaseFrame == 0)
    }

    @Test("The middle of a frame that was begun before a pause is let in, and of no use to the cache")
    func clearMidFrame() throws {
        var stream = TrackStream()
        try append(header(0, isKeyframe: true, payload: 40), &stream, at: 0)
        stream.clear()
        try append(header(0, isKeyframe: true, offset: 40, payload: 60), &stream, at: 10)
        try append(header(1), &stream, at: 20)
        #expect(stream.cachedKeyframe(at: start + .milliseconds(20)) == nil)
        var cursor = ForwardingCursor(joining: stream, at: start + .milliseconds(20))
        #expect(cursor.catchUpThrough == nil && cursor.isWaitingForKeyframe(in: stream))
        let step = cursor.next(in: stream, at: start + .milliseconds(20), policy: ForwardingPolicy())
        guard case .idle = step else {
            Issue.record("\(step)")
            return
        }
    }

    @Test("A clock that goes back takes nothing that is still needed")
    func backwards() throws {
        var stream = TrackStream()
        try append(header(0, isKeyframe: true), &stream, at: 5000)
        try append(header(1, layer: 2), &stream, at: 4000)
        try append(header(2), &stream, at: 4500)
        #expect(stream.endPosition - stream.startPosition == 3)
        #expect(stream.cachedKeyframe(at: start) == 0)
    }
}
