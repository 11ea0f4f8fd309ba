import MediaCore
import RoomProtocol
import TestTools
import Testing

@Suite("Packetizer and frame assembler", .timeLimit(.minutes(1)))
struct PacketizerTests {
    private static let limit = Packetizer.maximumPayload

    private func assemble(
        _ packets: [PacketBuffer],
        with assembler: inout FrameAssembler
    ) throws -> [FrameAssembler.Frame] {
        var frames: [FrameAssembler.Frame] = []
        for packet in packets {
            let frame = try assembler.receive(packet, header: packet.header()) { makeBuffer($0) }.frame
            if let frame { frames.append(frame) }
        }
        return frames
    }

    private func bytes(of frame: FrameAssembler.Frame) -> [UInt8] { Array(frame.buffer.bytes[frame.range]) }

    @Test(
        "A frame of any size comes back byte for byte, in packets within the limit",
        arguments: [1, limit - 1, limit, limit + 1, 2 * limit, 2 * limit + 1, 100_000, 4 << 20]
    )
    func sizes(_ size: Int) throws {
        let picture = pattern(size)
        let packets = packetize(picture)
        #expect(packets.count == (size + Self.limit - 1) / Self.limit)
        #expect(packets.allSatisfy { $0.count <= WireFormat.maximumBinaryMessage.bytes })
        let headers = try packets.map { try $0.header() }
        #expect(headers.map(\.isFirstChunk) == packets.indices.map { $0 == 0 })
        #expect(headers.map(\.isLastChunk) == packets.indices.map { $0 == packets.count - 1 })
        var assembler = FrameAssembler()
        let frames = try assemble(packets, with: &assembler)
        try #require(frames.count == 1)
        #expect(bytes(of: frames[0]) == picture)
        #expect(frames[0].header == headers[0])
        #expect(assembler.abandonedFrames == 0)
    }

    @Test("A frame of one packet is not copied")
    func notCopied() throws {
        let packet = packetize(pattern(500))[0]
        var assembler = FrameAssembler()
        let frame = try #require(
            try assembler.receive(packet, header: packet.header()) { count in
                Issue.record("a buffer of \(count) bytes was asked for")
                return makeBuffer(count)
            }
            .frame
        )
        #expect(frame.buffer === packet)
        #expect(frame.range == 48..<548)
    }

    @Test("Extensions of the header are passed over", arguments: [100, 40_000])
    func extensions(_ size: Int) throws {
        let picture = pattern(size)
        let packets = packetize(picture).map { packet -> PacketBuffer in
            var bytes = packet.bytes
            bytes.insert(contentsOf: [0xFE, 0, 2, 9, 9], at: 48)
            bytes[3] = 53
            return makeBuffer(bytes)
        }
        // Cut for packets without extensions, the longest are over the limit; what counts here is the assembler.
        var assembler = FrameAssembler()
        var result: FrameAssembler.Frame?
        let originals = packetize(picture)
        for (index, packet) in packets.enumerated() {
            var header = try originals[index].header()
            header.headerLength = 53
            result = try assembler.receive(packet, header: header) { makeBuffer($0) }.frame
        }
        let frame = try #require(result)
        #expect(bytes(of: frame) == picture)
    }

    @Test("The beginning of a frame gives up the unfinished one before it")
    func abandoned() throws {
        var other = someFrame
        other.number = 8
        var assembler = FrameAssembler()
        let frames = try assemble(
            Array(packetize(pattern(40_000))[..<2]) + packetize(pattern(33_000), as: other),
            with: &assembler
        )
        #expect(frames.map(\.header.frameNumber) == [8])
        #expect(bytes(of: frames[0]) == pattern(33_000))
        #expect(assembler.abandonedFrames == 1)
    }

    @Test("A chunk without its frame's first chunk is passed over")
    func headless() throws {
        var assembler = FrameAssembler()
        #expect(try assemble(Array(packetize(pattern(40_000))[1...]), with: &assembler).isEmpty)
    }

    @Test("A chunk that does not begin where the last one ended is an error, and the next frame is complete again")
    func mixedUp() throws {
        let packets = packetize(pattern(60_000))
        var other = someFrame
        other.number = 8
        let others = packetize(pattern(60_000), as: other)
        let longer = packetize(pattern(60_001))
        for wrong in [packets[2], others[1], longer[1]] {
            var assembler = FrameAssembler()
            _ = try assembler.receive(packets[0], header: packets[0].header()) { makeBuffer($0) }.frame
            #expect(throws: MalformedPacket.self) {
                try assembler.receive(wrong, header: wrong.header()) { makeBuffer($0) }.frame
            }
            #expect(assembler.abandonedFrames == 1)
            let frames = try assemble(others, with: &assembler)
            #expect(frames.count == 1)
        }
        var assembler = FrameAssembler()
        _ = try assembler.receive(packets[0], header: packets[0].header()) { makeBuffer($0) }.frame
        _ = try assembler.receive(packets[1], header: packets[1].header()) { makeBuffer($0) }.frame
        #expect(throws: MalformedPacket.self) {
            try assembler.receive(packets[1], header: packets[1].header()) { makeBuffer($0) }.frame
        }
    }

    @Test("Packets in any order give whole frames or errors, never a mixture")
    func shuffled() throws {
        var generator = SeededGenerator(seed: 2)
        let pictures = (0..<3).map { pattern(30_000, salt: UInt8($0)) }
        let packets = pictures.enumerated().flatMap { index, picture in
            var frame = someFrame
            frame.number = UInt32(index)
            return packetize(picture, as: frame)
        }
        var assembler = FrameAssembler()
        var whole = 0
        for _ in 0..<1000 {
            let packet = try #require(packets.randomElement(using: &generator))
            let result = try? assembler.receive(packet, header: packet.header()) { makeBuffer($0) }.frame
            guard let frame = result ?? nil else { continue }
            whole += 1
            #expect(frame.buffer.bytes == pictures[Int(frame.header.frameNumber)])
        }
        #expect(whole > 10)
    }
}
