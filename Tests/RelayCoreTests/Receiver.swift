import MediaCore
import RoomProtocol

/// What a subscriber has of one track, and whether what it is sent makes sense.
struct Receiver {
    private(set) var wholeFrames: [UInt32] = []
    /// The simulcast layer of each whole frame.
    private(set) var simulcastLayers: [Int] = []
    private(set) var problems: [String] = []
    let catchUpThrough: UInt32?
    /// The simulcast layer that `catchUpThrough` is about.
    let firstLayer: Int
    private var decoded: Set<UInt32> = []
    private var last: MediaPacketHeader?

    init(simulcastLayer: Int = 0, catchUpThrough: UInt32?) {
        firstLayer = simulcastLayer
        self.catchUpThrough = catchUpThrough
    }

    mutating func receive(_ packet: PacketBuffer, of camera: Camera) {
        guard let header = try? packet.header() else { return problems.append("an unreadable packet") }
        if !camera.hasSent(packet) { problems.append("a packet that the publisher did not send: \(header)") }
        if header.relayTime == nil { problems.append("a packet without the relay's time: \(header)") }
        let number = header.frameNumber
        if header.isFirstChunk {
            if let last, last.simulcastLayer != header.simulcastLayer {
                if !header.isKeyframe { problems.append("a change of the simulcast layer without a keyframe") }
                decoded = []
            } else if let last, last.frameNumber >= number {
                problems.append("frame \(number) after \(last.frameNumber)")
            }
            let missing = (camera.references[number] ?? []).filter { !decoded.contains($0) }
            if !missing.isEmpty { problems.append("frame \(number) without \(missing), to which it refers") }
            if let catchUpThrough, number <= catchUpThrough, header.temporalLayer > 0,
                Int(header.simulcastLayer) == firstLayer, simulcastLayers.allSatisfy({ $0 == firstLayer })
            {
                problems.append("frame \(number) of layer \(header.temporalLayer) in the catch-up")
            }
        } else if let last, last.frameNumber == number, last.simulcastLayer == header.simulcastLayer,
            !last.isLastChunk
        {
            if Int(header.chunkOffset) != Int(last.chunkOffset) + last.payloadLength {
                problems.append("byte \(header.chunkOffset) of frame \(number) out of turn")
            }
        } else {
            problems.append("a middle of frame \(number) without its beginning")
        }
        last = header
        if header.isLastChunk {
            decoded.insert(number)
            wholeFrames.append(number)
            simulcastLayers.append(Int(header.simulcastLayer))
        }
    }
}
