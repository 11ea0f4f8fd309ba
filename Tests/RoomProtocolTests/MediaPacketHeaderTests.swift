import MediaCore
import RoomProtocol
import TestTools
import Testing

@Suite("Media packet header", .timeLimit(.minutes(1)))
struct MediaPacketHeaderTests {
    private let frame = EncodedFrameInfo(
        number: 0x0102_0304,
        timestamp: MonotonicInstant(nanoseconds: 0),
        isKeyframe: false,
        temporalLayer: 2,
        isLayerSync: true,
        isDiscardable: true,
        baseLayerIndex: 0xBEEF
    )

    private func header(offset: Int = 0, payload: Int = 10, frameLength: Int = 10) -> MediaPacketHeader {
        MediaPacketHeader(
            frame: frame,
            trackAlias: 0xA1B2_C3D4,
            captureTime: RoomTime(microseconds: 0x0011_2233_4455_6677),
            encodeDelay: .microseconds(70_000),
            frameLength: frameLength,
            chunkOffset: offset,
            payloadLength: payload
        )
    }

    private func packet(_ header: MediaPacketHeader) -> PacketBuffer {
        let packet = makeBuffer([UInt8](repeating: 0xEE, count: header.headerLength + header.payloadLength))
        packet.withMutableBytes { header.write(to: &$0) }
        return packet
    }

    @Test("Every field comes back", arguments: [(0, 10, 10), (0, 1024, 3000), (1024, 1024, 3000), (2990, 10, 3000)])
    func roundTrip(offset: Int, payload: Int, length: Int) throws {
        var written = header(offset: offset, payload: payload, frameLength: length)
        written.simulcastLayer = 2
        written.relayTime = RoomTime(microseconds: 99)
        #expect(try packet(written).header() == written)
        written.isLayerSync = false
        #expect(try packet(written).header() == written)
        written.isRepeat = true
        #expect(try packet(written).header() == written)
        written.isSubstitute = true
        #expect(try packet(written).header() == written)
        written.isDiscardable = false
        written.temporalLayer = 0
        written.isKeyframe = true
        written.relayTime = nil
        #expect(try packet(written).header() == written)
    }

    @Test("The bytes of a header are these")
    func goldenBytes() {
        let bytes = packet(header(offset: 0x10, payload: 2, frameLength: 0x12)).bytes
        let expected: [UInt8] = [
            1, 0, 0, 48, 0b11010, 0, 2, 0, 0xA1, 0xB2, 0xC3, 0xD4, 1, 2, 3, 4,
            0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0, 0, 0, 0x12, 0, 0, 0, 0x10,
            0, 1, 0x11, 0x70, 0xBE, 0xEF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xEE, 0xEE,
        ]
        #expect(bytes == expected)
    }

    @Test("The relay's stamp fills its slot and leaves all else alone, extensions among it")
    func stamp() throws {
        var written = header()
        written.headerLength = 60
        let packet = packet(written)
        let before = packet.bytes
        packet.withMutableBytes { MediaPacketHeader.stamp(&$0, relayTime: RoomTime(microseconds: 0x0102_0304_0506)) }
        let after = packet.bytes
        #expect(Array(after[40..<48]) == [0, 0, 1, 2, 3, 4, 5, 6])
        #expect(Array(after[..<40]) == Array(before[..<40]))
        #expect(Array(after[48...]) == Array(before[48...]))
        written.relayTime = RoomTime(microseconds: 0x0102_0304_0506)
        #expect(try packet.header() == written)
    }

    @Test("A packet cut anywhere is an error")
    func truncated() throws {
        let bytes = packet(header()).bytes
        for count in 0..<bytes.count {
            #expect(throws: MalformedPacket.self) { try makeBuffer(Array(bytes[..<count])).header() }
        }
        #expect(throws: Never.self) { try makeBuffer(bytes).header() }
    }

    @Test("A chunk below 1,024 bytes is an error, unless it ends its frame")
    func smallChunks() throws {
        for offset in [0, 2_000] {
            let small = packet(header(offset: offset, payload: 1_023, frameLength: 9_000))
            #expect(throws: MalformedPacket.self) { try small.header() }
            let large = packet(header(offset: offset, payload: 1_024, frameLength: 9_000))
            #expect(throws: Never.self) { try large.header() }
        }
        let last = packet(header(offset: 8_999, payload: 1, frameLength: 9_000))
        #expect(throws: Never.self) { try last.header() }
    }

    @Test(
        "A header that contradicts itself or a limit is an error",
        arguments: [
            ("another version", 0, [2]), ("a header shorter than itself", 2, [0, 47]),
            ("a header longer than the packet", 2, [0, 59]), ("no payload", 2, [0, 58]),
            ("a flag of a first chunk missing", 4, [0b11000]), ("a keyframe in a higher layer", 4, [0b11111]),
            ("an empty frame", 24, [0, 0, 0, 0]), ("a frame beyond the limit", 24, [0, 0x40, 0, 1]),
            ("a chunk beyond its frame", 24, [0, 0, 0, 9]),
            ("an offset at the end of numbers", 28, [255, 255, 255, 255]),
        ] as [(String, Int, [UInt8])]
    )
    func contradictions(_ name: String, offset: Int, replacement: [UInt8]) {
        var bytes = packet(header()).bytes
        bytes.replaceSubrange(offset..<offset + replacement.count, with: replacement)
        #expect(throws: MalformedPacket.self) { try makeBuffer(bytes).header() }
    }

    /// A longer packet, sent on as it is, would have ended the session of every subscriber whose WebSocket library
    /// keeps to the limit.
    @Test("A packet beyond the limit of a binary message is an error")
    func tooLong() throws {
        let limit = WireFormat.maximumBinaryMessage.bytes
        let longest = header(payload: limit - 48, frameLength: 100_000)
        #expect(throws: Never.self) { try packet(longest).header() }
        let longer = header(payload: limit - 47, frameLength: 100_000)
        #expect(throws: MalformedPacket.self) { try packet(longer).header() }
    }

    @Test("Times beyond what a clock can say are clamped")
    func hugeTimes() throws {
        var bytes = packet(header()).bytes
        for offset in 16..<24 { bytes[offset] = 0xFF }
        let read = try makeBuffer(bytes).header()
        #expect(read.captureTime == RoomTime(microseconds: .max))
        let estimate = ClockEstimate(basis: .estimated, offset: .seconds(-5), errorBound: .zero)
        _ = estimate.instant(at: read.captureTime)
    }

    @Test("100,000 random and mutated packets give an error or a header that holds together")
    func hostile() {
        var generator = SeededGenerator(seed: 1)
        let good = packet(header()).bytes
        let buffer = makeBuffer(good)
        var readable = 0
        for round in 0..<100_000 {
            let isMutation = round % 4 != 0
            let count = isMutation ? good.count : Int.random(in: 0...good.count, using: &generator)
            buffer.count = count
            buffer.withMutableBytes { bytes in
                for index in 0..<count {
                    let byte = isMutation ? good[index] : UInt8.random(in: 0...255, using: &generator)
                    bytes.storeBytes(of: byte, toByteOffset: index, as: UInt8.self)
                }
                for _ in 0..<(isMutation ? Int.random(in: 1...3, using: &generator) : 0) {
                    let offset = Int.random(in: 0..<count, using: &generator)
                    bytes.storeBytes(
                        of: UInt8.random(in: 0...255, using: &generator),
                        toByteOffset: offset,
                        as: UInt8.self
                    )
                }
            }
            guard let header = try? buffer.header() else { continue }
            readable += 1
            let isSound =
                header.headerLength >= 48 && header.payloadLength > 0
                && header.headerLength + header.payloadLength == count
                && Int(header.chunkOffset) + header.payloadLength <= Int(header.frameLength)
            guard isSound else {
                Issue.record("\(header) of \(count) bytes")
                return
            }
        }
        #expect(readable > 10_000)
    }
}

@Suite("Acknowledgements", .timeLimit(.minutes(1)))
struct MediaAcknowledgementTests {
    private let full = MediaAcknowledgement(
        cumulativeBytes: .max,
        receiveTime: MediaAcknowledgement.ReceiverTime(microseconds: 5),
        trackAlias: 6,
        frameNumber: 7,
        firstByteTime: MediaAcknowledgement.ReceiverTime(microseconds: 8),
        lastByteTime: MediaAcknowledgement.ReceiverTime(microseconds: 9)
    )

    private func packet(_ acknowledgement: MediaAcknowledgement) -> PacketBuffer {
        let packet = makeBuffer(MediaAcknowledgement.length)
        packet.withMutableBytes { acknowledgement.write(to: &$0) }
        return packet
    }

    @Test("Every field comes back, also where the optional ones are left out")
    func roundTrip() throws {
        var written = full
        #expect(try packet(written).withBytes { try MediaAcknowledgement(reading: $0) } == written)
        #expect(packet(written).withBytes { binaryMessageKind(of: $0) } == .acknowledgement)
        written.firstByteTime = nil
        written.lastByteTime = nil
        #expect(try packet(written).withBytes { try MediaAcknowledgement(reading: $0) } == written)
    }

    @Test("An acknowledgement cut anywhere, or of another version, is an error")
    func truncated() {
        var bytes = packet(full).bytes
        for count in 0..<bytes.count {
            let cut = makeBuffer(Array(bytes[..<count]))
            #expect(throws: MalformedPacket.self) { try cut.withBytes { try MediaAcknowledgement(reading: $0) } }
        }
        bytes[0] = 9
        let other = makeBuffer(bytes)
        #expect(throws: MalformedPacket.self) { try other.withBytes { try MediaAcknowledgement(reading: $0) } }
    }

    @Test("Kinds that this version does not know, and messages without one, are told apart")
    func kinds() {
        #expect(makeBuffer([1, 0]).withBytes { binaryMessageKind(of: $0) } == .video)
        #expect(makeBuffer([1, 200]).withBytes { binaryMessageKind(of: $0) } == nil)
        #expect(makeBuffer([1]).withBytes { binaryMessageKind(of: $0) } == nil)
        #expect(makeBuffer([]).withBytes { binaryMessageKind(of: $0) } == nil)
    }
}
