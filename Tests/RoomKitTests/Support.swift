import Foundation
import Capture
import MediaCore
import RelayServer
import Synchronization
import Testing
import Threading

@testable import RoomKit
@testable import RoomProtocol

/// When the picture at `index` of 30 a second was captured: near enough to now for no age to be absurd.
func timestamp(at index: Int) -> MonotonicInstant {
    MonotonicInstant(microseconds: 5_000_000 + Int64(index) * 33_333)
}

/// A picture whose left half is dark and whose right half is bright, with some detail that depends on `index`.
func picture(_ width: Int, _ height: Int, at index: Int = 0, rotation: VideoRotation = .none) -> VideoFrame {
    let buffer = VideoBuffer(dimensions: Dimensions(width: width, height: height))
    buffer.withMutablePlanes { luma, chromaU, chromaV in
        luma.update(repeating: 40)
        for row in 0..<height {
            for column in width / 2..<width { luma[row * buffer.lumaStride + column] = 200 }
            luma[row * buffer.lumaStride + (row + index) % width] = 120
        }
        chromaU.update(repeating: 128)
        chromaV.update(repeating: 128)
    }
    return VideoFrame(buffer: buffer, timestamp: timestamp(at: index), rotation: rotation)
}

/// A picture that no encoder makes small.
func noise(_ width: Int, _ height: Int, at index: Int = 0) -> VideoFrame {
    let buffer = VideoBuffer(dimensions: Dimensions(width: width, height: height))
    buffer.withMutablePlanes { luma, chromaU, chromaV in
        luma.withUnsafeMutableBytes { bytes in
            if let start = bytes.baseAddress { arc4random_buf(start, bytes.count) }
        }
        chromaU.update(repeating: 128)
        chromaV.update(repeating: 128)
    }
    return VideoFrame(buffer: buffer, timestamp: timestamp(at: index))
}

/// Waits for what another thread brings about; in vain only where something is broken, and then not for ever, as the
/// suite's time limit cannot end a thread.
func wait(until condition: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation) {
    for _ in 0..<40_000 {
        if condition() { return }
        usleep(500)
    }
    Issue.record("waited in vain", sourceLocation: sourceLocation)
}

/// A source whose pictures the test makes.
final class HandSource: VideoSource {
    let sinks = VideoSinks()

    func deliver(_ frame: VideoFrame) {
        sinks.deliver(frame)
    }
}

/// A source whose pictures and events the test makes, on a thread of its own.
final class EventSource: CoreCapturer {
    struct Trouble: Error, Equatable {}

    enum Step: Sendable {
        case frame
        case event(CaptureEvent)
        case failure
        case end
    }

    let core: CaptureCore
    private let steps = Monitor<[Step]>([])

    init() {
        core = CaptureCore(threadName: "events", explainShortage: { _ in Trouble() }) { [steps] context in
            context.whenStopRequested { steps.change { _ in } }
            context.opened(nil)
            while true {
                let step = steps.wait { queue -> Step? in
                    if context.isStopRequested { return .end }
                    return queue.isEmpty ? nil : queue.removeFirst()
                }
                switch step {
                case .frame: context.sinks.deliver(picture(64, 48))
                case .event(.noFramesCaptured(let error)): context.noFramesCaptured(because: error)
                case .event(.warning(let error)): context.warn(error)
                case .event(.interrupted(let error)): context.interrupted(by: error)
                case .event(.interruptionEnded): context.interruptionEnded()
                case .failure: throw Trouble()
                case .event, .end, nil: return
                }
            }
        }
    }

    deinit {
        core.abandon(waiting: true)
    }

    func give(_ some: Step...) { steps.change { $0 += some } }
}

/// A publisher without a room: the test takes the part of the room, and of a server that acknowledges what it gets.
final class PublisherBench: Sendable {
    let publisher: VideoPublisher
    let uplink = Uplink()
    let failures = Monitor<[RoomError]>([])
    let announced = Monitor(0)
    private let isAcknowledging: Bool
    private let wakes = Atomic(0)
    private let written = Atomic(0)
    private let assemblers = Monitor<[UInt8: FrameAssembler]>([:])

    init(
        options: VideoPublishOptions = VideoPublishOptions(),
        announced size: Dimensions = Dimensions(width: 4096, height: 4096),
        isSimulcast: Bool = false,
        isWanted: Bool = true,
        isAcknowledging: Bool = true,
        isRelaying: Bool = false,
        isScreencast: Bool = false,
        clock: ClockBox = ClockBox(),
        rate: Monitor<FrameRate?> = Monitor(nil),
        requestFrame: @escaping @Sendable () -> Void = {}
    ) throws {
        self.isAcknowledging = isAcknowledging
        publisher = VideoPublisher(
            options: options,
            isRelaying: isRelaying,
            isScreencast: isScreencast,
            requestFrame: requestFrame
        )
        let single = isRelaying ? options.relayPlan : options.singlePlan
        if isWanted { publisher.setWanted(everything) }
        try publisher.begin(
            PublishingRoute(
                trackID: "TR_1",
                codec: .forPublishing,
                packetizer: Packetizer(trackAlias: 7),
                plans: isSimulcast ? options.plans(for: size, processors: 2) : [single],
                dimensions: size,
                frameRate: FrameRate(30),
                readFrameRate: { rate.withLock { $0 } },
                clock: clock,
                uplink: uplink,
                wake: { [weak self] in _ = self?.wakes.add(1, ordering: .acquiringAndReleasing) },
                announceEnabled: { [announced] in announced.withLock { $0 += 1 } },
                reportFailure: { [failures] failure in failures.withLock { $0.append(failure) } }
            )
        )
    }

    /// Delivers a picture and waits until it is encoded or dropped.
    func deliver(_ frame: VideoFrame) {
        publisher.onVideoFrame(frame)
        wait { isSettled }
    }

    /// Delivers a picture that finds no room in the queue, and waits until it is looked at.
    func deliverInVain(_ frame: VideoFrame) {
        let before = wakes.load(ordering: .acquiring)
        publisher.onVideoFrame(frame)
        wait { wakes.load(ordering: .acquiring) > before }
    }

    /// The only encoding.
    var lane: EncodingLane { publisher.lanes[0] }

    /// Whether every captured picture is accounted for.
    var isSettled: Bool {
        let statistics = publisher.statistics
        return statistics.framesCaptured == statistics.framesEncoded + statistics.framesDropped.total
    }

    /// Sends at most `count` packets of what is queued, and acknowledges them at once.
    ///
    /// Without a time nothing is late, however slow this machine is.
    ///
    /// - Returns: The frames, put together again.
    /// - Throws: When the packets break the wire format.
    func send(
        at now: MonotonicInstant = MonotonicInstant(nanoseconds: 0),
        atMost count: Int = .max
    ) throws -> [FrameAssembler.Frame] {
        var frames: [FrameAssembler.Frame] = []
        for lane in publisher.lanes {
            for _ in 0..<count {
                let step = lane.sendQueue.take(at: now)
                guard let packet = step.packet else {
                    if step.hasGivenUp { uplink.gaveUp(of: lane.seat) }
                    break
                }
                uplink.wrote(packet.count, of: lane.seat)
                let written = written.add(packet.count, ordering: .relaxed).newValue
                if let frame = try assemble(packet) { frames.append(frame) }
                if isAcknowledging { acknowledge(written) }
            }
        }
        return frames
    }

    private func acknowledge(_ bytes: Int) {
        let time = MediaAcknowledgement.ReceiverTime(microseconds: UInt64(MonotonicClock.now.microseconds))
        uplink.acknowledged(
            MediaAcknowledgement(
                cumulativeBytes: UInt64(bytes),
                receiveTime: time,
                trackAlias: 7,
                frameNumber: 0
            )
        )
    }

    private func assemble(_ packet: PacketBuffer) throws -> FrameAssembler.Frame? {
        let header = try packet.withBytes { bytes throws(MalformedPacket) in try MediaPacketHeader(reading: bytes) }
        return try assemblers.withLock { assemblers in
            try assemblers[header.simulcastLayer, default: FrameAssembler()].receive(packet, header: header) { count in
                let buffer = PacketBuffer(capacity: count)
                buffer.count = count
                return buffer
            }
            .frame
        }
    }

    /// Delivers pictures until one is sent, which may have to wait for its keyframe; returns what was sent.
    ///
    /// `index` is that of the next picture.
    func passSome(from index: inout Int, _ width: Int = 64, _ height: Int = 48) throws -> FrameAssembler.Frame {
        for _ in 0..<1000 {
            publisher.onVideoFrame(picture(width, height, at: index))
            index += 1
            usleep(5000)
            if let frame = try send().first { return frame }
        }
        throw NothingSent()
    }

    struct NothingSent: Error {}

    /// Delivers a picture and sends what comes of it.
    func pass(_ frame: VideoFrame) throws -> FrameAssembler.Frame? {
        deliver(frame)
        return try send().first
    }
}

/// The wish of subscribers who can use everything.
let everything = [WantedLayer(simulcastLayer: 0)]

/// Compressed frames of moving pictures, the first one a keyframe.
func encodedFrames(_ count: Int, width: Int = 64, height: Int = 48) async throws -> [FrameAssembler.Frame] {
    let bench = try PublisherBench()
    bench.publisher.setWanted([WantedLayer(simulcastLayer: 0, temporalLayers: 1)])
    var frames: [FrameAssembler.Frame] = []
    for index in 0..<count {
        if let frame = try bench.pass(picture(width, height, at: index)) { frames.append(frame) }
    }
    await bench.publisher.stop()
    return frames
}

extension FrameAssembler.Frame {
    /// The compressed picture.
    var bytes: [UInt8] {
        buffer.withBytes { bytes in bytes.extracting(range).withUnsafeBytes { Array($0) } }
    }

    /// The same frame with other bytes.
    func with(_ bytes: [UInt8]) -> FrameAssembler.Frame {
        let buffer = PacketBuffer(capacity: bytes.count)
        buffer.count = bytes.count
        buffer.withMutableBytes { span in span.withUnsafeMutableBytes { $0.copyBytes(from: bytes) } }
        return FrameAssembler.Frame(header: header, buffer: buffer, range: 0..<bytes.count)
    }

    /// The frame as it waits for a decoder or a file.
    func received(isCatchUp: Bool = false) -> ReceivedFrame {
        let info = header.frameInfo(timestamp: MonotonicInstant(microseconds: header.captureTime.microseconds))
        return ReceivedFrame(
            frame: EncodedFrame(info: info, buffer: buffer, range: range),
            received: timestamp(at: 1),
            relayed: nil,
            decoded: nil,
            picture: nil,
            isCatchUp: isCatchUp,
            clock: ClockEstimate(basis: .sameHost, offset: .zero, errorBound: .zero)
        )
    }
}

/// A frame that is described and holds nothing, or `size` undefined bytes.
func bareFrame(
    _ number: UInt32,
    key: Bool = false,
    layer: UInt8 = 0,
    isCatchUp: Bool = false,
    size: Int = 0,
    received: MonotonicInstant? = nil
) -> ReceivedFrame {
    let info = EncodedFrameInfo(
        number: number,
        timestamp: timestamp(at: Int(number)),
        isKeyframe: key,
        temporalLayer: layer,
        isDiscardable: layer == 2
    )
    let buffer = PacketBuffer(capacity: size)
    buffer.count = size
    return ReceivedFrame(
        frame: EncodedFrame(info: info, buffer: buffer, range: 0..<size),
        received: received ?? timestamp(at: Int(number)),
        relayed: nil,
        decoded: nil,
        picture: nil,
        isCatchUp: isCatchUp,
        clock: ClockEstimate(basis: .sameHost, offset: .zero, errorBound: .zero)
    )
}

/// A remote track that no room knows.
func remoteTrack(
    name: String = "camera",
    publisher: String = "robot",
    dimensions size: Dimensions = Dimensions(width: 64, height: 48)
) -> RemoteVideoTrack {
    let info = TrackInfo(
        id: "TR_1",
        alias: 7,
        name: name,
        source: "camera",
        codec: VideoCodec.vp8,
        width: size.width,
        height: size.height,
        frameRate: 30
    )
    return RemoteVideoTrack(info, publisherIdentity: publisher)
}

/// Notes the pictures that it is given.
final class NotingRenderer: VideoRenderer {
    let frames = Monitor<[VideoFrame]>([])

    func render(_ frame: VideoFrame) {
        frames.withLock { $0.append(frame) }
    }

    var count: Int { frames.withLock { $0.count } }
}

extension RemoteVideoTrack {
    /// Whether `renderer` has done with every picture that was handed to it.
    func isSettled(for renderer: any VideoRenderer) -> Bool {
        guard let counts = rendererStatistics(of: renderer) else { return true }
        return counts.framesRendered + counts.framesDropped + counts.framesFailed == statistics.framesRendered
    }
}

extension Room {
    /// The properties of a published track's encodings, the smallest first.
    func plans(of track: LocalVideoTrack) -> [EncodingPlan] {
        publications.all.first { $0.track === track }?.publisher.lanes.map(\.plan) ?? []
    }
}

extension ConnectOptions {
    /// The options for a room of a server of this process.
    init(roomName: String, of server: RelayServer) {
        self.init(roomName: roomName)
        url = server.url
    }
}
