import MediaCore
import RoomProtocol
import TestTools
import Testing

@Suite("Packet extensions", .timeLimit(.minutes(1)))
struct PacketExtensionTests {
    private func packets(_ picture: [UInt8], _ extensions: PacketExtensions) -> [PacketBuffer] {
        var packets: [PacketBuffer] = []
        Packetizer(trackAlias: 3).packetize(
            someFrame,
            bytes: picture.span.bytes,
            captureTime: RoomTime(microseconds: 1_000_000),
            encodeDelay: .milliseconds(4),
            extensions: extensions,
            makeBuffer: { makeBuffer($0) },
            emit: { packets.append($0) }
        )
        return packets
    }

    private func assemble(_ packets: [PacketBuffer]) throws -> FrameAssembler.Frame {
        var assembler = FrameAssembler()
        var frame: FrameAssembler.Frame?
        for packet in packets {
            frame = try assembler.receive(packet, header: packet.header()) { makeBuffer($0) }.frame ?? frame
        }
        return try #require(frame)
    }

    @Test("Orientation and metadata of any size come back with the frame, which stays within all limits")
    func roundTrip() throws {
        for count in [0, 1, 3, 254, 255, 256, 509, 510, 511, 900] {
            let metadata = try FrameMetadata((0..<count).map { UInt8(truncatingIfNeeded: $0 * 7) })
            for rotation in VideoRotation.allCases {
                let extensions = PacketExtensions(rotation: rotation, isMirrored: count % 2 == 1, metadata: metadata)
                for length in [1, 15_000, Packetizer.maximumPayload, 40_000] {
                    let picture = pattern(length)
                    let packets = packets(picture, extensions)
                    #expect(packets.allSatisfy { $0.count <= WireFormat.maximumBinaryMessage.bytes })
                    let headers = try packets.map { try $0.header() }
                    #expect(headers[0].headerLength <= 1024 && headers[0].headerLength.isMultiple(of: 8))
                    #expect(headers.dropFirst().allSatisfy { !$0.hasExtensions })
                    let frame = try assemble(packets)
                    #expect(frame.extensions == extensions)
                    #expect(frame.extensions.metadata?.bytes ?? [] == metadata.bytes)
                    #expect(Array(frame.buffer.bytes[frame.range]) == picture)
                }
            }
        }
    }

    @Test("An upright frame without metadata has no extensions")
    func none() throws {
        let extensions = PacketExtensions(rotation: .none, isMirrored: false, metadata: try FrameMetadata([]))
        #expect(extensions == PacketExtensions() && extensions.length == 0)
        #expect(try packets([1, 2], extensions)[0].header().headerLength == MediaPacketHeader.fixedLength)
    }

    /// Reads the bytes `list` as the extensions of a frame; `nil` if they say that it is encrypted.
    private func readIfClear(_ list: [UInt8]) throws -> FrameAssembler.Frame? {
        var bytes = packets([9, 9, 9], PacketExtensions())[0].bytes
        bytes.insert(contentsOf: list, at: MediaPacketHeader.fixedLength)
        let length = MediaPacketHeader.fixedLength + list.count
        (bytes[2], bytes[3]) = (UInt8(length >> 8), UInt8(length & 255))
        let packet = makeBuffer(bytes)
        var assembler = FrameAssembler()
        return try assembler.receive(packet, header: packet.header()) { makeBuffer($0) }.frame
    }

    private func read(_ list: [UInt8]) throws -> FrameAssembler.Frame { try #require(try readIfClear(list)) }

    @Test("The first orientation counts, values of metadata are put together, and unused bits are ignored")
    func several() throws {
        let frame = try read([2, 2, 104, 105, 0, 1, 1, 0b1111_1110, 1, 1, 1, 200, 1, 7, 2, 1, 33])
        #expect(frame.extensions.rotation == .half && frame.extensions.isMirrored)
        #expect(frame.extensions.metadata?.bytes == Array("hi!".utf8))
        // An orientation of another length than one byte is none.
        #expect(try read([1, 2, 1, 1]).extensions == PacketExtensions())
    }

    @Test("More metadata than a frame may carry is ignored, and the frame is good")
    func tooMuch() throws {
        let value = [2, 255] + [UInt8](repeating: 1, count: 255)
        let frame = try read(value + value + value + value + [1, 1, 1])
        #expect(frame.extensions.metadata == nil && frame.extensions.rotation == .clockwise90)
        #expect(frame.range.count == 3)
        let error = #expect(throws: FrameMetadataTooLarge.self) { try FrameMetadata([UInt8](repeating: 0, count: 901)) }
        #expect(error?.description == "A frame carries at most 900 bytes of metadata, not 901.")
    }

    @Test("Any bytes can stand there", arguments: 0..<8 as Range<UInt64>)
    func hostile(seed: UInt64) throws {
        var random = SeededBytes(seed: seed)
        for round in 0..<300 {
            // Small numbers make types and lengths that fit; encrypted frames are not read.
            let list = random.next(round * 3).map { round % 2 == 0 ? $0 % 6 : $0 }
            guard let frame = try readIfClear(list) else { continue }
            #expect(frame.range.count == 3)
            #expect(frame.extensions.metadata?.bytes.count ?? 0 <= FrameMetadata.maximumSize.bytes)
        }
    }
}
