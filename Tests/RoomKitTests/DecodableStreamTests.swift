import MediaCore
import RoomProtocol
import TestTools
import Testing
import Threading
import VP8Codec

@testable import RoomKit

/// Sends two simulcast encodings through what a receiver has, in every way that the protocol allows and some that it
/// does not, and compares each decoded picture with the one of an undisturbed decoder, bit for bit.
@Suite("The frames that reach the decoder", .timeLimit(.minutes(3)))
struct DecodableStreamTests {
    @Test("Every frame that the queue hands out decodes to the picture that was encoded", arguments: 0..<60)
    func queue(seed: Int) throws {
        var generator = SeededGenerator(seed: UInt64(seed))
        let encodings = try #require(Encoding.sets.randomElement(using: &generator))
        var sender = Sender(encodings, SeededGenerator(seed: UInt64(seed) + 1000))
        var receiver = Receiver()
        let queue = FrameQueue(
            FrameQueue.Depths(dropTopLayer: 2, dropMiddleLayer: 4, skip: Int.random(in: 5...20, using: &generator))
        )
        var decoder = try VP8Decoder()
        var decoded = 0
        func decode(atMost count: Int) throws {
            for _ in 0..<count {
                guard queue.newestCapture != nil, let frame = queue.take() else { return }
                let picture = try frame.frame.withBytes { bytes throws(VP8Error) in
                    try decoder.decode(bytes, timestamp: timestamp(at: 0)) { VideoBuffer(dimensions: $0) }
                }
                #expect(picture.map { digest($0) } == encodings.digest(of: frame.frame.info))
                decoded += 1
            }
        }
        while let packets = sender.next() {
            for (frame, isAfterLoss) in try receiver.receive(packets) {
                if isAfterLoss { queue.frameWasLost() }
                _ = queue.put(frame.received())
            }
            try decode(atMost: Int.random(in: 0...3, using: &generator))
        }
        try decode(atMost: .max)
        #expect(decoded >= 10, "hardly anything was decoded")
    }

    /// Notes the digests of all decoded pictures.
    private final class DigestSink: ReceivedFrameSink {
        let digests = Monitor<[(EncodedFrameInfo, Int?)]>([])
        var wantsPictures: Bool { true }
        func begin(with earlier: [ReceivedFrame]) {}
        func end() {}
        func receive(_ frame: ReceivedFrame) {
            let value = frame.picture.map { digest($0) }
            digests.withLock { $0.append((frame.frame.info, value)) }
        }
    }

    @Test("Every frame that a receiver decodes is the picture that was encoded", arguments: 0..<12)
    func receiver(seed: Int) async throws {
        var generator = SeededGenerator(seed: UInt64(seed) + 500)
        let encodings = try #require(Encoding.sets.randomElement(using: &generator))
        var sender = Sender(encodings, SeededGenerator(seed: UInt64(seed) + 2000))
        var assembly = Receiver()
        let track = remoteTrack()
        let sink = DigestSink()
        track.addSink(sink)
        let receiver = try VideoReceiver(
            track: track,
            codec: .forPublishing,
            clock: ClockBox(),
            start: .init(),
            subscribed: MonotonicClock.now
        )
        while let packets = sender.next() {
            for (frame, isAfterLoss) in try assembly.receive(packets) {
                receiver.receive(frame, isAfterLoss: isAfterLoss, at: MonotonicClock.now)
            }
        }
        await receiver.stop()
        let statistics = track.statistics
        #expect(statistics.framesReceived == statistics.framesDecoded + statistics.framesDropped)
        #expect(statistics.framesDroppedByReason[.corrupt] == 0)
        for (info, value) in sink.digests.withLock({ $0 }) { #expect(value == encodings.digest(of: info)) }
    }

    // It was decoded with the pictures from before the loss, without an error, and shown.
    @Test("After a loss, a frame that only claims to be a keyframe is not shown, and another one is asked for")
    func falseKeyframe() async throws {
        let frames = try await encodedFrames(8)
        let track = remoteTrack()
        let requests = Monitor(0)
        track.setKeyframeRequest { _ in requests.withLock { $0 += 1 } }
        let renderer = NotingRenderer()
        track.addRenderer(renderer)
        let receiver = try VideoReceiver(
            track: track,
            codec: .forPublishing,
            clock: ClockBox(),
            start: .init(),
            subscribed: MonotonicClock.now,
            // A picture that is late, as when this process is stopped, is not shown.
            now: { timestamp(at: 0) }
        )
        func give(_ frame: FrameAssembler.Frame, isAfterLoss: Bool = false) {
            receiver.receive(frame, isAfterLoss: isAfterLoss, at: MonotonicClock.now)
            wait {
                let statistics = track.statistics
                return statistics.framesReceived == statistics.framesDecoded + statistics.framesDropped
                    && track.isSettled(for: renderer)
            }
        }
        give(frames[0])
        give(frames[1])
        give(frames[4], isAfterLoss: true)
        var liar = frames[5]
        liar.header.isKeyframe = true
        give(liar)
        for frame in frames[6...] { give(frame) }
        #expect(renderer.count == 2)
        #expect(requests.withLock { $0 } == 2, "after the loss, and after the false keyframe")
        give(frames[0])
        await receiver.stop()
        #expect(renderer.count == 3)
        #expect(track.statistics.framesDroppedByReason[.network] == 1)
        #expect(track.statistics.framesDroppedByReason[.corrupt] == 3)
    }
}

/// A frame of an encoding.
private struct Coded: Sendable {
    var info: EncodedFrameInfo
    var bytes: [UInt8]
}

/// The frames of one simulcast layer, one for each picture that the encoder did not leave out.
private struct Encoding: Sendable {
    var frames: [Coded?] = []
    /// What an undisturbed decoder makes of each frame, by its number.
    var digests: [UInt32: Int] = [:]

    static let length = 150

    /// Two simulcast layers, with one to three temporal layers, which change their sizes now and then.
    static let sets: [[Encoding]] = (1...3).compactMap { layers in
        try? (0..<2).map { try Encoding(simulcastLayer: UInt8($0), layers: layers) }
    }

    init(simulcastLayer: UInt8, layers: Int) throws {
        let sizes =
            simulcastLayer == 0
            ? [Dimensions(width: 64, height: 48), Dimensions(width: 48, height: 36)]
            : [
                Dimensions(width: 112, height: 80), Dimensions(width: 96, height: 64),
                Dimensions(width: 80, height: 64),
            ]
        var encoder = try VP8Encoder(
            VP8EncoderSettings(
                dimensions: sizes[0],
                targetBitrate: .kilobitsPerSecond(simulcastLayer == 0 ? 600 : 1500),
                frameRate: FrameRate(30),
                temporalLayerCount: layers
            )
        )
        var decoder = try VP8Decoder()
        for index in 0..<Self.length {
            let size = sizes[index / 40 % sizes.count]
            let isKeyframe = index % 13 == Int(simulcastLayer) * 5
            let target = EncodingTarget(
                dimensions: size,
                bitrate: .kilobitsPerSecond(simulcastLayer == 0 ? 600 : 1500),
                frameRate: FrameRate(30),
                temporalLayerCount: layers
            )
            let coded = try encoder.encode(texture(size, at: index), target: target, forceKeyframe: isKeyframe) {
                info,
                bytes -> Coded? in
                var info = info
                info.simulcastLayer = simulcastLayer
                return Coded(info: info, bytes: bytes.withUnsafeBytes { Array($0) })
            }
            frames.append(coded)
            guard let coded else { continue }
            let picture = try decoder.decode(coded.bytes.span.bytes, timestamp: timestamp(at: 0)) {
                VideoBuffer(dimensions: $0)
            }
            digests[coded.info.number] = picture.map { digest($0) }
        }
    }
}

extension [Encoding] {
    fileprivate func digest(of info: EncodedFrameInfo) -> Int? {
        self[Int(info.simulcastLayer)].digests[info.number]
    }
}

/// Decides what is sent of the encodings, as a publisher and a relay that follow the rules of the protocol; frames that
/// go missing without their knowledge are of temporal layer 0, or discardable.
private struct Sender {
    private let encodings: [Encoding]
    private var generator: SeededGenerator
    private var index = 0
    private var layer = 0
    private var wantedLayer = 0
    private var limit = Int.max
    private var gate = TemporalLayerGate()

    init(_ encodings: [Encoding], _ generator: SeededGenerator) {
        self.encodings = encodings
        self.generator = generator
    }

    private mutating func happens(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &generator) < percent }

    /// The packets of the next moment; `nil` at the end.
    mutating func next() -> [PacketBuffer]? {
        guard index < Encoding.length else { return nil }
        defer { index += 1 }
        if happens(10) { wantedLayer = Int.random(in: 0...1, using: &generator) }
        if happens(15) { limit = [0, 1, .max].randomElement(using: &generator) ?? .max }
        let formerLayer = layer
        if wantedLayer != layer, encodings[wantedLayer].frames[index]?.info.isKeyframe == true { layer = wantedLayer }
        guard let frame = encodings[layer].frames[index] else { return [] }
        let before = gate
        guard gate.passes(frame.info, limit: limit) else { return [] }
        if frame.bytes.count > 2 * 1024, happens(6) {
            // It is abandoned, and counts as left out.
            gate = before
            if frame.info.isKeyframe {
                if formerLayer == layer { gate.waitForKeyframe() }
                layer = formerLayer
            } else if frame.info.temporalLayer == 0 {
                gate.waitForKeyframe()
            } else {
                _ = gate.passes(frame.info, limit: Int(frame.info.temporalLayer) - 1)
            }
            return [frame.chunk(0..<1024)]
        }
        // Nobody notices that it is lost.
        if frame.info.temporalLayer == 0 || frame.info.isDiscardable, happens(4) { return [] }
        guard frame.bytes.count > 2 * 1024 else { return [frame.chunk(0..<frame.bytes.count)] }
        return [frame.chunk(0..<1024), frame.chunk(1024..<frame.bytes.count)]
    }
}

extension Coded {
    /// The packet with a part of the frame.
    fileprivate func chunk(_ range: Range<Int>) -> PacketBuffer {
        let header = MediaPacketHeader(
            frame: info,
            trackAlias: 7,
            captureTime: RoomTime(microseconds: info.timestamp.microseconds),
            encodeDelay: .zero,
            frameLength: bytes.count,
            chunkOffset: range.lowerBound,
            payloadLength: range.count
        )
        let packet = PacketBuffer(capacity: MediaPacketHeader.fixedLength + range.count)
        packet.count = packet.capacity
        packet.withMutableBytes { message in
            header.write(to: &message)
            message.copy(bytes.span.bytes.extracting(range), at: MediaPacketHeader.fixedLength)
        }
        return packet
    }
}

/// Puts packets together and looks for losses, as a room does.
private struct Receiver {
    private var assembler = FrameAssembler()
    private var continuity = BaseLayerContinuity()

    mutating func receive(_ packets: [PacketBuffer]) throws -> [(FrameAssembler.Frame, isAfterLoss: Bool)] {
        var frames: [(FrameAssembler.Frame, isAfterLoss: Bool)] = []
        for packet in packets {
            let header = try packet.withBytes { bytes throws(MalformedPacket) in try MediaPacketHeader(reading: bytes) }
            let outcome = try assembler.receive(packet, header: header) { count in
                let buffer = PacketBuffer(capacity: count)
                buffer.count = count
                return buffer
            }
            if let frame = outcome.frame { frames.append((frame, continuity.noteFrame(frame.header))) }
        }
        return frames
    }
}

/// Bytes that are the same in every run.
private let noiseBytes: [UInt8] = {
    var bytes = SeededBytes(seed: 4)
    return bytes.next(1 << 14)
}()

/// A picture that changes a lot from one to the next, so that its frame takes several packets.
private func texture(_ size: Dimensions, at index: Int) -> VideoFrame {
    let buffer = VideoBuffer(dimensions: size)
    buffer.withMutablePlanes { luma, chromaU, chromaV in
        for row in 0..<size.height {
            let start = (index * 1031 + row * 977) % (noiseBytes.count - size.width)
            for column in 0..<size.width {
                luma[row * buffer.lumaStride + column] = noiseBytes[start + column] / 2 + 60
            }
        }
        chromaU.update(repeating: 128)
        chromaV.update(repeating: UInt8(truncatingIfNeeded: 100 + index))
    }
    return VideoFrame(buffer: buffer, timestamp: timestamp(at: index))
}

/// What a picture looks like, in one number that differs from process to process.
private func digest(_ frame: VideoFrame) -> Int {
    var hasher = Hasher()
    hasher.combine(frame.dimensions)
    func add(_ plane: Span<UInt8>, _ size: Dimensions, stride: Int) {
        for row in 0..<size.height {
            plane.extracting(row * stride..<row * stride + size.width).bytes.withUnsafeBytes {
                hasher.combine(bytes: $0)
            }
        }
    }
    frame.buffer.withPlanes { luma, chromaU, chromaV in
        add(luma, frame.dimensions, stride: frame.buffer.lumaStride)
        add(chromaU, frame.buffer.chromaDimensions, stride: frame.buffer.chromaStride)
        add(chromaV, frame.buffer.chromaDimensions, stride: frame.buffer.chromaStride)
    }
    return hasher.finalize()
}
