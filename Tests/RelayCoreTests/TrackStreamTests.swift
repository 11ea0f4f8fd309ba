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
        isRepeat: Bool = false,
        layer: UInt8 = 0,
        offset: Int = 0,
        payload: Int = 100,
        length: Int = 100
    ) -> MediaPacketHeader {
        var info = EncodedFrameInfo(
            number: number,
            timestamp: start,
            isKeyframe: isKeyframe,
            temporalLayer: layer,
            isLayerSync: layer == 1
        )
        info.isRepeat = isRepeat
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

    private func append(_ header: MediaPacketHeader, _ stream: inout TrackStream, at milliseconds: Int) {
        stream.append(makePacket(header), header: header, at: start + .milliseconds(milliseconds))
    }

    @Test("Frames in order are taken, abandoned ones are noticed, and what is out of order is refused")
    func order() throws {
        var order = FrameOrder()
        #expect(throws: MalformedPacket.self) { try order.advance(to: header(0, offset: 50, payload: 50)) }
        #expect(try order.advance(to: header(0, isKeyframe: true)) == nil)
        #expect(throws: MalformedPacket.self) { try order.advance(to: header(0)) }
        #expect(throws: MalformedPacket.self) { try order.advance(to: header(1, offset: 50, payload: 50)) }
        #expect(try order.advance(to: header(5, payload: 40)) == nil)
        let wrong = [
            header(5, payload: 40), header(5, offset: 41, payload: 59), header(5, offset: 39, payload: 40),
            header(5, layer: 1, offset: 40, payload: 60), header(6, offset: 40, payload: 60),
            header(5, isKeyframe: true, offset: 40, payload: 60), header(5, offset: 40, payload: 60, length: 101),
            header(4),
        ]
        for header in wrong {
            #expect(throws: MalformedPacket.self) { try order.advance(to: header) }
        }
        #expect(try order.advance(to: header(5, offset: 40, payload: 60)) == nil)
        #expect(throws: MalformedPacket.self) { try order.advance(to: header(4)) }
        #expect(try order.advance(to: header(6, layer: 1, payload: 40)) == nil)
        #expect(try order.advance(to: header(7, isKeyframe: true, payload: 40)) == 1)
        #expect(try order.advance(to: header(8)) == 0)
    }

    @Test("The cache holds the last keyframe and layer 0 since, until it is too old; the rest goes after a moment")
    func cache() throws {
        var stream = TrackStream()
        for index in 0..<90 {
            let layer: UInt8 = index % 30 == 0 ? 0 : [0, 2, 1, 2][index % 4]
            append(header(UInt32(index), isKeyframe: index == 0, layer: layer), &stream, at: index * 33)
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
        append(header(90), &stream, at: 3030)
        #expect(stream.startPosition > 60)
        #expect(stream.newestKeyframe == nil)
    }

    /// A stream with a keyframe at 0, and a second of motion after it.
    private func moved() -> TrackStream {
        var stream = TrackStream()
        append(header(0, isKeyframe: true), &stream, at: 0)
        for index in 1...30 { append(header(UInt32(index), layer: [0, 2, 1, 2][index % 4]), &stream, at: index * 33) }
        return stream
    }

    private func isCached(_ stream: TrackStream, at milliseconds: Int) -> Bool {
        stream.cachedKeyframe(at: start + .milliseconds(milliseconds)) == 0
    }

    @Test("While the picture stands still, the keyframe does not grow old", arguments: [false, true])
    func still(isBlinking: Bool) {
        var stream = moved()
        for second in 1...90 {
            let number = UInt32(29 + 2 * second)
            if isBlinking { append(header(number), &stream, at: 1000 * second + 500) }
            append(header(number + 1, isRepeat: true), &stream, at: 1000 * second + 630)
            #expect(isCached(stream, at: 1000 * second + 700), "\(second)")
        }
        // Every packet since the keyframe is there, of layer 0.
        let present = (0..<stream.endPosition - 3).filter { stream[$0].packet != nil }
        #expect(present.allSatisfy { stream[$0].temporalLayer == 0 } && present.count > 90)
        // As if it had come with the last repeat.
        #expect(isCached(stream, at: 93_600) && !isCached(stream, at: 93_700))
        append(header(1000), &stream, at: 110_000)
        #expect(stream.newestKeyframe == nil && stream.endPosition - stream.startPosition == 1)
    }

    @Test("It grows old by 200 frames or 1 MiB behind it, by motion and by a restart; a new one begins anew")
    func stillBounds() {
        // Behind 7 frames of layer 0 in motion.
        for (count, payload) in [(193, 100), (9, 110_000)] {
            var stream = moved()
            func still(_ index: Int) {
                let next = header(UInt32(100 + index), isRepeat: true, payload: payload, length: payload)
                append(next, &stream, at: 2000 + 100 * index)
            }
            for index in 0..<count { still(index) }
            let end = 2000 + 100 * count
            #expect(isCached(stream, at: max(end, 2900)))
            for index in count...count + 3 { still(index) }
            #expect(!isCached(stream, at: max(end + 400, 3001)), "\(count)")
            let next = header(5000, isKeyframe: true, isRepeat: true)
            append(next, &stream, at: end + 5000)
            append(header(5001, isRepeat: true), &stream, at: end + 7000)
            #expect(stream.cachedKeyframe(at: start + .milliseconds(end + 9900)) != nil)
        }
        var stream = moved()
        append(header(31, isRepeat: true), &stream, at: 2000)
        for index in 0..<90 { append(header(UInt32(32 + index), layer: 2), &stream, at: 2000 + 33 * index) }
        #expect(isCached(stream, at: 4990) && !isCached(stream, at: 5010))
        stream = moved()
        append(header(31, isRepeat: true), &stream, at: 2000)
        stream.restart(because: .disabled)
        append(header(32, isKeyframe: true), &stream, at: 2100)
        #expect(stream.cachedKeyframe(at: start + .milliseconds(5000)) != nil)
        #expect(stream.cachedKeyframe(at: start + .milliseconds(5200)) == nil)
    }

    @Test("A large keyframe that its publisher abandons makes the one before no older")
    func abandonedKeyframeBehindStill() {
        var stream = moved()
        append(header(31, isRepeat: true), &stream, at: 2000)
        let length = 2 << 20
        for offset in stride(from: 0, to: length / 2, by: 15_000) {
            let chunk = header(32, isKeyframe: true, offset: offset, payload: 15_000, length: length)
            append(chunk, &stream, at: 2100)
        }
        stream.abandonFrame()
        for second in 3...9 { append(header(UInt32(30 + second), isRepeat: true), &stream, at: 1000 * second) }
        #expect(isCached(stream, at: 9500))
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
            append(header, &stream, at: index)
            #expect(stream.size <= settings.maximumBytes)
        }
        // Each entry takes its place in memory, however small the packet.
        #expect(stream.endPosition - stream.startPosition < 1000)
        #expect(stream.cachedKeyframe(at: start + .seconds(2)) == nil)
        stream.restart(because: .disabled)
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
            stream.append(PacketBuffer(capacity: 16_384), header: header, at: start)
            offset += payload
        }
        #expect(stream.cachedKeyframe(at: start) == 0)
        #expect(stream.newestBaseFrame == 0)
    }

    @Test("The middle of a frame that was begun before a pause is let in, and of no use to the cache")
    func clearMidFrame() throws {
        var stream = TrackStream()
        append(header(0, isKeyframe: true, payload: 40), &stream, at: 0)
        stream.restart(because: .disabled)
        append(header(0, isKeyframe: true, offset: 40, payload: 60), &stream, at: 10)
        append(header(1), &stream, at: 20)
        #expect(stream.cachedKeyframe(at: start + .milliseconds(20)) == nil)
        var cursor = ForwardingCursor(joining: stream, at: start + .milliseconds(20))
        #expect(cursor.catchUpThrough == nil && cursor.isWaitingForKeyframe(in: stream))
        let step = cursor.next(
            in: stream.packets,
            at: start + .milliseconds(20),
            limits: ForwardingPolicy.Limits(ForwardingPolicy()),
            isAdmitted: true,
            isBacklogged: false
        )
        guard case .idle = step else {
            Issue.record("\(step)")
            return
        }
    }

    @Test("Frames held up by an outage behind a keyframe are left out; frames held up by the keyframe are sent")
    func heldUp() {
        for isOutage in [false, true] {
            var stream = TrackStream()
            var cursor = ForwardingCursor(joining: stream, at: start)
            func step(at milliseconds: Int) -> Bool {
                let now = start + .milliseconds(milliseconds)
                let limits = ForwardingPolicy.Limits(ForwardingPolicy())
                let step = cursor.next(
                    in: stream.packets,
                    at: now,
                    limits: limits,
                    isAdmitted: true,
                    isBacklogged: false
                )
                if case .send = step { return true }
                return false
            }
            append(header(0, isKeyframe: true), &stream, at: 0)
            #expect(step(at: 0))
            append(header(1), &stream, at: 33)
            append(header(2), &stream, at: 66)
            if isOutage { cursor.outageEnded() }
            #expect(step(at: 1000) != isOutage)
        }
    }

    @Test("An abandoned keyframe does not replace the one before, and its memory is given back")
    func abandonedKeyframe() throws {
        var stream = TrackStream()
        append(header(0, isKeyframe: true), &stream, at: 0)
        append(header(1), &stream, at: 10)
        let size = stream.size
        append(header(2, isKeyframe: true, payload: 1200, length: 3000), &stream, at: 20)
        #expect(stream.cachedKeyframe(at: start) == 2, "while it comes in, it is the live edge")
        stream.abandonFrame()
        #expect(stream.cachedKeyframe(at: start) == 0 && stream.newestBaseFrame == 1)
        #expect(stream.size.bytes - size.bytes < 300 && stream.endPosition == 3)
        append(header(3, isKeyframe: true), &stream, at: 30)
        #expect(stream.cachedKeyframe(at: start) == 3 && stream.newestBaseFrame == 3)
        stream.abandonFrame()
        #expect(stream.cachedKeyframe(at: start) == 3, "a whole frame cannot be abandoned")
    }

    /// A subscriber that had not come so far when a track was disabled, and then acknowledged, ended the server.
    @Test("Nothing waits for a subscriber whose packets were all discarded at once")
    func bytesAfterRestart() {
        var stream = TrackStream()
        append(header(0, isKeyframe: true), &stream, at: 0)
        append(header(1), &stream, at: 33)
        #expect(stream.packets.bytes(from: 0) > 0)
        stream.restart(because: .disabled)
        for position in 0...3 { #expect(stream.packets.bytes(from: position) == 0) }
    }

    @Test("A clock that goes back takes nothing that is still needed")
    func backwards() throws {
        var stream = TrackStream()
        append(header(0, isKeyframe: true), &stream, at: 5000)
        append(header(1, layer: 2), &stream, at: 4000)
        append(header(2), &stream, at: 4500)
        #expect(stream.endPosition - stream.startPosition == 3)
        #expect(stream.cachedKeyframe(at: start) == 0)
    }
}
