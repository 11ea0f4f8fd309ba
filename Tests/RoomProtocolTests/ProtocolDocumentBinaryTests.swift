import Foundation
import MediaCore
import RoomProtocol
import TestTools
import Testing

/// The byte tables and dumps of `docs/protocol.md` against the code that writes and reads packets.
@Suite("The protocol's document: binary messages", .timeLimit(.minutes(1)))
struct ProtocolDocumentBinaryTests {
    private let document: ProtocolDocument

    init() throws {
        document = try ProtocolDocument()
    }

    @Test("Each header field lies where the table says, and the table leaves no byte out")
    func headerTable() throws {
        let fields = try layout("6.1 Header of a video packet", length: MediaPacketHeader.fixedLength)
        var info = EncodedFrameInfo(number: 0x1112_1314, timestamp: MonotonicInstant(nanoseconds: 0), isKeyframe: false)
        info.temporalLayer = 2
        info.baseLayerIndex = 0x2122
        var header = MediaPacketHeader(
            frame: info,
            trackAlias: 0x3132_3334,
            captureTime: RoomTime(microseconds: 0x4142_4344_4546_4748),
            encodeDelay: .microseconds(0x5152_5354),
            frameLength: 0x0031_3233,
            chunkOffset: 0x0021_2223,
            payloadLength: 9
        )
        header.simulcastLayer = 0x71
        header.relayTime = RoomTime(microseconds: 0x6162_6364_6566_6768)
        let bytes = written(MediaPacketHeader.fixedLength) { header.write(to: &$0) }
        let values = fields.mapValues { bigEndian(bytes[$0]) }
        let expected: [String: UInt64] = [
            "version": 1, "kind": UInt64(BinaryMessageKind.video.rawValue), "header length": 48, "flags": 0,
            "simulcast layer": 0x71, "temporal layer": 2, "reserved": 0, "track alias": 0x3132_3334,
            "frame number": 0x1112_1314, "capture time": 0x4142_4344_4546_4748, "frame length": 0x0031_3233,
            "chunk offset": 0x0021_2223, "encode delay": 0x5152_5354, "base layer index": 0x2122,
            "relay time": 0x6162_6364_6566_6768,
        ]
        #expect(values == expected)
    }

    @Test("Each flag has the bit and the value of the table")
    func flagTable() throws {
        let table = try #require(document.section("6.2 Flags")?.tables.first)
        for row in table.rows {
            let bit = try #require(Int(row[0]))
            #expect(row[1] == "\(1 << bit)")
            // A middle chunk has none of the flags; each case sets one.
            var info = EncodedFrameInfo(number: 1, timestamp: MonotonicInstant(nanoseconds: 0), isKeyframe: false)
            info.isKeyframe = row[2] == "keyframe"
            info.isLayerSync = row[2] == "layer sync"
            info.isDiscardable = row[2] == "discardable"
            info.isRepeat = row[2] == "repeat"
            info.isSubstitute = row[2] == "substitute"
            let header = MediaPacketHeader(
                frame: info,
                trackAlias: 1,
                captureTime: RoomTime(microseconds: 1),
                encodeDelay: .zero,
                frameLength: 30,
                chunkOffset: row[2] == "first chunk" ? 0 : 10,
                payloadLength: row[2] == "last chunk" ? 20 : 10
            )
            let bytes = written(MediaPacketHeader.fixedLength) { header.write(to: &$0) }
            #expect(bytes[4] == 1 << bit, "\(row[2])")
        }
        #expect(table.rows.count == 7)
    }

    @Test("The kinds that are not reserved are those the code knows")
    func kindTable() throws {
        let tables = try #require(document.section("6. Media packets")?.tables)
        let table = try #require(tables.first { $0.heading.first == "kind" })
        for row in table.rows {
            let kind = try #require(UInt8(row[0]))
            #expect((BinaryMessageKind(rawValue: kind) == nil) == row[2].contains("**Reserved:**"))
        }
        let known = (UInt8.min...UInt8.max).filter { BinaryMessageKind(rawValue: $0) != nil }
        #expect(Set(known).isSubset(of: table.rows.compactMap { UInt8($0[0]) }))
    }

    @Test("Each field of an acknowledgement lies where the table says, and the table leaves no byte out")
    func acknowledgementTable() throws {
        let fields = try layout("7. Acknowledgements", length: MediaAcknowledgement.length)
        let acknowledgement = MediaAcknowledgement(
            cumulativeBytes: 0x1112_1314_1516_1718,
            receiveTime: MediaAcknowledgement.ReceiverTime(microseconds: 0x2122_2324_2526_2728),
            trackAlias: 0x3132_3334,
            frameNumber: 0x4142_4344,
            firstByteTime: MediaAcknowledgement.ReceiverTime(microseconds: 0x5152_5354_5556_5758),
            lastByteTime: MediaAcknowledgement.ReceiverTime(microseconds: 0x6162_6364_6566_6768)
        )
        let bytes = written(MediaAcknowledgement.length) { acknowledgement.write(to: &$0) }
        let values = fields.mapValues { bigEndian(bytes[$0]) }
        let expected: [String: UInt64] = [
            "version": 1, "kind": UInt64(BinaryMessageKind.acknowledgement.rawValue), "header length": 48,
            "reserved": 0, "cumulative bytes": 0x1112_1314_1516_1718, "receive time": 0x2122_2324_2526_2728,
            "track alias": 0x3132_3334, "frame number": 0x4142_4344, "first byte time": 0x5152_5354_5556_5758,
            "last byte time": 0x6162_6364_6566_6768,
        ]
        #expect(values == expected)
    }

    @Test("The dump of a keyframe is what the packetizer makes and the relay stamps, and its table explains it")
    func keyframeDump() throws {
        let dump = document.dump("keyframe")
        let payload = Array(dump.dropFirst(MediaPacketHeader.fixedLength))
        var info = EncodedFrameInfo(number: 300, timestamp: MonotonicInstant(nanoseconds: 0), isKeyframe: true)
        info.baseLayerIndex = 76
        var packets: [[UInt8]] = []
        Packetizer(trackAlias: 7).packetize(
            info,
            bytes: payload.span.bytes,
            captureTime: RoomTime(microseconds: 81_234_567_890),
            encodeDelay: .microseconds(4812),
            makeBuffer: buffer,
            emit: { packet in
                packet.withMutableBytes {
                    MediaPacketHeader.stamp(&$0, relayTime: RoomTime(microseconds: 81_234_574_331))
                }
                packets.append(bytes(of: packet))
            }
        )
        #expect(packets == [dump])
        #expect(payload[0] & 1 == 0)
        #expect(payload[3..<10] == [0x9D, 0x01, 0x2A, 16, 0, 16, 0])

        let fields = try layout("6.1 Header of a video packet", length: MediaPacketHeader.fixedLength)
        let table = try #require(document.section("14.1 A keyframe in one packet")?.tables.first)
        for row in table.rows {
            let range = try #require(fields[row[2]], "\(row[2])")
            #expect(Int(row[0]) == range.lowerBound)
            #expect(row[1].withoutBackticks == dump[range].map(hexadecimal).joined(separator: " "))
            #expect(UInt64(row[3].prefix { $0.isNumber }) == bigEndian(dump[range]), "\(row[2])")
        }
    }

    @Test("The dump with extensions is read, and its extensions are those of the registry")
    func extensionsDump() throws {
        let dump = document.dump("extensions")
        let header = try MediaPacketHeader(reading: dump.span.bytes)
        #expect(header.headerLength == 56)
        #expect(header.payloadLength == 30)
        #expect(header.isLayerSync && header.isDiscardable && header.isFirstChunk && header.isLastChunk)
        #expect(!header.isKeyframe)
        #expect(header.temporalLayer == 2)
        #expect(header.frameNumber == 301)
        #expect(header.baseLayerIndex == 76)
        #expect(header.relayTime == nil)
        let table = try #require(document.section("6.5 Extensions")?.tables.first)
        let names = Dictionary(uniqueKeysWithValues: table.rows.map { ($0[0], $0[1]) })
        var found: [String: [UInt8]] = [:]
        var rest = dump[MediaPacketHeader.fixedLength..<header.headerLength]
        while let type = rest.popFirst() {
            guard type != 0, let length = rest.popFirst() else { continue }
            let name = try #require(names["\(type)"])
            found[name] = Array(rest.prefix(Int(length)))
            rest = rest.dropFirst(Int(length))
        }
        #expect(found == ["orientation": [1], "metadata": Array("hi".utf8)])
    }

    @Test("The dump of an acknowledgement is what the code writes")
    func acknowledgementDump() throws {
        let dump = document.dump("acknowledgement")
        let acknowledgement = MediaAcknowledgement(
            cumulativeBytes: 1_285_031,
            receiveTime: MediaAcknowledgement.ReceiverTime(microseconds: 81_234_602_950),
            trackAlias: 7,
            frameNumber: 301,
            firstByteTime: MediaAcknowledgement.ReceiverTime(microseconds: 81_234_602_801),
            lastByteTime: MediaAcknowledgement.ReceiverTime(microseconds: 81_234_602_950)
        )
        #expect(written(MediaAcknowledgement.length) { acknowledgement.write(to: &$0) } == dump)
        #expect(try MediaAcknowledgement(reading: dump.span.bytes) == acknowledgement)
    }

    // MARK: Helpers

    /// Where the fields of a byte table lie; the table must cover `length` bytes without gap or overlap.
    private func layout(_ title: String, length: Int) throws -> [String: Range<Int>] {
        let table = try #require(document.section(title)?.tables.first)
        var fields: [String: Range<Int>] = [:]
        var end = 0
        for row in table.rows {
            let offset = try #require(Int(row[0]))
            let size = try #require(Int(row[1]))
            #expect(offset == end, "\(row[2])")
            end = offset + size
            fields[row[2]] = offset..<end
        }
        try #require(end == length)
        return fields
    }

    private func buffer(_ count: Int) -> PacketBuffer {
        let buffer = PacketBuffer(capacity: count)
        buffer.count = count
        return buffer
    }

    private func written(_ count: Int, _ write: (inout MutableRawSpan) -> Void) -> [UInt8] {
        let buffer = buffer(count)
        buffer.withMutableBytes { write(&$0) }
        return bytes(of: buffer)
    }

    private func bytes(of buffer: PacketBuffer) -> [UInt8] {
        buffer.withBytes { span in (0..<span.byteCount).map { span.byte(at: $0) } }
    }

    private func bigEndian(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    private func hexadecimal(_ byte: UInt8) -> String {
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
}
