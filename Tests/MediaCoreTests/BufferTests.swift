import MediaCore
import Testing

@Suite("Buffers")
struct BufferTests {
    @Test("Planes hold every pixel of odd sizes", arguments: [(1, 1), (3, 5), (640, 480), (641, 481), (33, 2)])
    func planes(width: Int, height: Int) {
        let buffer = VideoBuffer(dimensions: Dimensions(width: width, height: height))
        #expect(buffer.lumaStride >= width && buffer.lumaStride % 32 == 0)
        #expect(buffer.chromaStride >= (width + 1) / 2)
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            luma.update(repeating: 1)
            chromaU.update(repeating: 2)
            chromaV.update(repeating: 3)
        }
        buffer.withPlanes { luma, chromaU, chromaV in
            #expect(luma.count == buffer.lumaStride * height && luma[luma.count - 1] == 1)
            #expect(chromaU.count == buffer.chromaStride * ((height + 1) / 2) && chromaU[0] == 2)
            #expect(chromaV.count == chromaU.count && chromaV[chromaV.count - 1] == 3)
        }
    }

    @Test("A transport header stands directly before the message")
    func transportHeader() {
        let packet = PacketBuffer(capacity: 100)
        packet.count = 3
        packet.withMutableBytes { bytes in
            for index in 0..<3 { bytes.storeBytes(of: UInt8(10 + index), toByteOffset: index, as: UInt8.self) }
        }
        packet.withTransportBytes { bytes in
            #expect(bytes.byteCount == PacketBuffer.headroom + 3)
            bytes.storeBytes(of: 0x82, toByteOffset: PacketBuffer.headroom - 2, as: UInt8.self)
            bytes.storeBytes(of: 0x03, toByteOffset: PacketBuffer.headroom - 1, as: UInt8.self)
        }
        packet.transportHeaderCount = 2
        let framed = packet.withFramedBytes { bytes in bytes.withUnsafeBytes { Array($0) } }
        #expect(framed == [0x82, 0x03, 10, 11, 12])
    }

    @Test("An encoded frame lends its own bytes of a larger message")
    func encodedFrameRange() {
        let packet = PacketBuffer(capacity: 8)
        packet.count = 8
        packet.withMutableBytes { bytes in
            for index in 0..<8 { bytes.storeBytes(of: UInt8(index), toByteOffset: index, as: UInt8.self) }
        }
        let info = EncodedFrameInfo(number: 0, timestamp: MonotonicInstant(nanoseconds: 0), isKeyframe: true)
        let frame = EncodedFrame(info: info, buffer: packet, range: 3..<8)
        #expect(frame.size == DataSize(bytes: 5))
        #expect(frame.withBytes { bytes in bytes.withUnsafeBytes { Array($0) } } == [3, 4, 5, 6, 7])
    }
}
